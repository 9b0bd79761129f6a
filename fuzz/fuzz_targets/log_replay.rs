//! `cargo +nightly fuzz run log_replay --features libfuzzer`
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    fuzz::log_replay(input);
});

//! `cargo +nightly fuzz run manifest --features libfuzzer`
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    fuzz::manifest(input);
});

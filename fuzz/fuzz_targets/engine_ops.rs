//! `cargo +nightly fuzz run engine_ops --features libfuzzer`
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    fuzz::engine_ops(input);
});

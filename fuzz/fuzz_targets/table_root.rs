//! `cargo +nightly fuzz run table_root --features libfuzzer`
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    fuzz::table_root(input);
});

//! `cargo +nightly fuzz run table_block --features libfuzzer`
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    fuzz::table_block(input);
});

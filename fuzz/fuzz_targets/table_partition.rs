//! `cargo +nightly fuzz run table_partition --features libfuzzer`
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    fuzz::table_partition(input);
});

//! `cargo +nightly fuzz run skiplist_ops --features libfuzzer`
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    fuzz::skiplist_ops(input);
});

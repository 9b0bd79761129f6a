//! `cargo +nightly fuzz run memtable_ops --features libfuzzer`
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    fuzz::memtable_ops(input);
});

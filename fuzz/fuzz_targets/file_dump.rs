//! `cargo +nightly fuzz run file_dump --features libfuzzer`
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    fuzz::file_dump(input);
});

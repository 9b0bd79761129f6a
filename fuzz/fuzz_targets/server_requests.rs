//! `cargo +nightly fuzz run server_requests --features libfuzzer`
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    fuzz::server_requests(input);
});

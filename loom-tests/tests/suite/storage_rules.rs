//! The models' storage panics at every breach of its rules.

use std::panic::catch_unwind;

use loom_tests::models::misuse;

#[test]
fn every_misuse_of_the_storage_is_noticed() {
    // Catches a storage that misses a breach, and so models that miss defects.
    for misuse in misuse::ALL {
        let noticed = catch_unwind(|| misuse.run()).expect_err(misuse.name);
        let text = noticed.downcast_ref::<String>().map(String::as_str);
        let text = text.or(noticed.downcast_ref::<&str>().copied()).unwrap_or_default();
        assert!(text.contains(misuse.complaint), "{}: {text}", misuse.name);
    }
}

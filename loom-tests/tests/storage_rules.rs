//! The models' storage notices what it is there to notice.

use loom_tests::models::misuse;

/// Catches nodes that overlap, and bytes that change after they were published.
#[test]
#[should_panic(expected = "are written twice")]
fn a_byte_that_is_written_twice_is_noticed() {
    misuse::write_twice();
}

/// Catches lengths that lead past a node's end.
#[test]
#[should_panic(expected = "are read and were never written")]
fn a_byte_that_was_never_written_is_noticed() {
    misuse::read_too_far();
}

/// Catches links that do not publish bytes.
#[test]
#[should_panic(expected = "Causality violation: Concurrent read and write accesses")]
fn bytes_that_are_not_published_are_noticed() {
    misuse::read_unpublished();
}

/// Catches two writers in one word.
#[test]
#[should_panic(expected = "Causality violation: Concurrent write accesses")]
fn writers_of_one_word_are_noticed() {
    misuse::write_beside_unpublished();
}

/// Catches links that do not publish meta words, and hints that do not publish blocks.
#[test]
#[should_panic(expected = "Causality violation: Concurrent load and mut accesses")]
fn atomics_that_are_not_published_are_noticed() {
    misuse::load_unpublished();
}

/// Catches offsets that are off by a word.
#[test]
#[should_panic(expected = "holds bytes and is used as an atomic")]
fn bytes_used_as_an_atomic_are_noticed() {
    misuse::bytes_as_atomic();
}

/// Catches offsets that are off by a word.
#[test]
#[should_panic(expected = "is an atomic and is used as bytes")]
fn an_atomic_used_as_bytes_is_noticed() {
    misuse::atomic_as_bytes();
}

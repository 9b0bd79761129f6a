//! Accesses past the end of a node, which address sanitizer must report.
#![cfg(fastskip_poisoned)]

use std::env;
use std::process::Command;

use crate::{Lookup, Memtable};

/// The environment variable that passes the length of the value to a child process, which is expected to fail.
const OVERRUN: &str = "FASTSKIP_OVERRUN";

/// Reads one byte past the value of a node that has a neighbour.
fn overrun(len: usize) {
    let memtable = Memtable::builder().shards(1).build();
    let value = vec![7; len];
    for seqno in 1..3 {
        memtable.put(b"key", seqno, &value).unwrap();
    }
    let Lookup::Value(found) = memtable.get(b"key", 1) else { panic!("the value that was just stored") };
    // SAFETY: one past the end of a slice.
    let past = unsafe { found.as_ptr().add(found.len()) };
    // SAFETY: none; the test checks that the sanitizer reports this read. The byte is mapped, so without a report the read succeeds.
    std::hint::black_box(unsafe { past.read_volatile() });
}

/// Catches a build in which reads past a node, into its padding or the word behind, go unnoticed.
#[test]
fn overrun_of_a_node_is_reported() {
    if let Ok(len) = env::var(OVERRUN) {
        return overrun(len.parse().unwrap());
    }
    // Each length takes one byte and the key three: these values leave from 7 to 0 bytes of padding.
    for len in 4..12 {
        let mut child = Command::new(env::current_exe().unwrap());
        child.args(["--exact", "mem::poison::tests::overrun_of_a_node_is_reported"]).env(OVERRUN, len.to_string());
        let output = child.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains("use-after-poison"), "value of {len} bytes: {said}");
    }
}

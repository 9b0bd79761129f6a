//! Tests on full file systems: each test mounts one of a few MiB in memory. Without the right to mount, the tests print a clear warning that
//! they tested nothing.

mod emptied;
mod engine;
mod import;
mod server;

const DISK: u64 = 12 << 20;
/// The bytes of a disk with room for everything that the tests write.
const ENOUGH: u64 = 256 << 20;

fn key(n: u64) -> String {
    format!("{n:08}")
}

/// A value that no compression makes shorter than half.
fn value(n: u64) -> String {
    (0..25).map(|part| format!("{:016x}", (n * 25 + part).wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect()
}

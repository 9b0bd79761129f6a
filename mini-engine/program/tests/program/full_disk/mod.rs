//! A disk that is really full: each test mounts a file system in memory of a few MiB. It needs the right to mount; without it, the tests print a
//! clear warning that they tested nothing.

mod emptied;
mod engine;
mod import;
mod server;

const DISK: u64 = 12 << 20;
/// Room for all that the tests write.
const ENOUGH: u64 = 256 << 20;

/// A value that no compression makes shorter than half.
fn value(n: u64) -> String {
    (0..25).map(|part| format!("{:016x}", (n * 25 + part).wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect()
}

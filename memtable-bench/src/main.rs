//! The program `memtable-bench`.

use std::process::ExitCode;

/// The allocator of all subjects, since their rounds run in processes of this program; for C and C++ code too.
#[cfg(feature = "peers")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    memtable_bench::main()
}

//! The program as its users meet it: started as a process, judged by stdout, stderr and exit code.

mod bench;
mod commands;
mod dump;
mod import;
mod process;
mod readers;
mod recovered;
mod refused;
mod salvage;
mod scan;
#[path = "../../../tests/scratch/mod.rs"]
mod scratch;

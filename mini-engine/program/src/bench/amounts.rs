//! Amounts of work, as arguments.

use clap::Args;

use crate::{number, size};

/// The arguments for the amount and the manner of writes and reads.
#[derive(Args)]
pub(crate) struct Amounts {
    /// Threads that share the operations of each name
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) threads: u32,
    /// Keys, and operations of each name
    #[arg(long, value_name = "N", default_value = "100000", value_parser = number::parse::<1>)]
    pub(crate) num: u64,
    /// Bytes of a value, at most 16M
    #[arg(long, value_name = "SIZE", default_value = "100", value_parser = value_size)]
    pub(crate) value_size: usize,
    /// Writes in a batch
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub(crate) batch: u32,
    /// Sync each batch
    #[arg(long)]
    pub(crate) synced: bool,
    /// Draws other keys
    #[arg(long, value_name = "N", default_value = "1", value_parser = number::parse::<0>)]
    pub(crate) seed: u64,
}

/// Parses the size of values. It is limited so that a batch can hold many values.
fn value_size(text: &str) -> Result<usize, String> {
    let bytes = size::parse_in_memory(text)?;
    if bytes <= 16 << 20 { Ok(bytes) } else { Err("expected at most 16M".into()) }
}

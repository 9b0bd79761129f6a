//! Writes the committed inputs, `corpus/<target>/seed-*`: `cargo run -p fuzz --example seeds [TARGET..]`. It draws many random inputs from a fixed
//! seed and keeps an input if it has an outcome (an operation or a refusal) that no earlier input had; it keeps at least 12. The shard of a thread,
//! and so the moment when a table is full, depends on the thread's number. So an input is run many times, and only outcomes of every run count.

use std::fs;
use std::io;
use std::path::Path;

use fuzz::{Body, Met, TARGETS};
use proof::Random;

/// Inputs tried for each target.
const TRIED: usize = 4000;
/// The least number of inputs kept.
const LEAST: usize = 12;

/// The number of runs that must all have the outcome for which an input is kept.
const RUNS: usize = 50;

/// 16 to 271 bytes.
fn draw(random: &mut Random) -> Vec<u8> {
    let len = 16 + random.below(256);
    (0..len).map(|_| random.next() as u8).collect()
}

/// The outcomes that `input` has for every choice of shards.
fn reliably(body: Body, input: &[u8]) -> Met {
    let runs = (0..RUNS).map(|_| body(input));
    runs.reduce(|met, also| met.intersection(&also).cloned().collect()).unwrap_or_default()
}

fn main() -> io::Result<()> {
    let wanted: Vec<_> = std::env::args().skip(1).collect();
    let is_wanted = |target: &str| wanted.is_empty() || wanted.iter().any(|name| name == target);
    for (target, body) in TARGETS.iter().copied().filter(|(target, _)| is_wanted(target)) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"seed-")) {
                fs::remove_file(path)?;
            }
        }
        let mut random = Random(2026);
        let (mut met, mut kept) = (Met::new(), 0);
        for tried in 0..TRIED {
            let input = draw(&mut random);
            let new = !body(&input).is_subset(&met) && !reliably(body, &input).is_subset(&met);
            if new || (kept < LEAST && tried % 64 == 63) {
                met.extend(reliably(body, &input));
                fs::write(folder.join(format!("seed-{kept:02}")), input)?;
                kept += 1;
            }
        }
        println!("{target}: {kept} inputs meet {met:#?}");
    }
    Ok(())
}

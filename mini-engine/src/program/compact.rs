//! `compact`: merges a range of keys into one run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use clap::Args;
use indicatif::{BinaryBytes, ProgressBar, ProgressStyle};
use mini_engine::Db;

use super::Exit;
use super::bytes::HexArgs;
use super::database::{DatabaseArgs, OpenFor};
use super::failure::Failure;
use super::keys::RangeArgs;
use super::output::Output;

/// Merge the whole database, or a range of its keys, so that nothing obsolete takes space
///
/// Overwritten values and deleted keys are left out, and each key is found in one place. That
/// reads and writes all of the range once or twice; it is safe to interrupt.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    after_help = "\
Examples:
  mini-engine compact files.db
  mini-engine compact files.db --from /usr --to /usr0"
)]
pub(crate) struct CompactArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    #[command(flatten)]
    keys: RangeArgs,
    #[command(flatten)]
    hex: HexArgs,
}

/// Runs `merge`, and shows on a terminal how much it has read.
fn with_progress<T>(db: &Db, merge: impl FnOnce() -> T) -> T {
    let (bar, done) = (spinner(), AtomicBool::new(false));
    if bar.is_hidden() {
        return merge();
    }
    thread::scope(|scope| {
        scope.spawn(|| {
            let before = db.metrics().compaction_bytes_read;
            // Relaxed: it says nothing about other memory.
            while !done.load(Ordering::Relaxed) {
                bar.set_position(db.metrics().compaction_bytes_read - before);
                thread::sleep(REDRAW);
            }
        });
        let merged = merge();
        done.store(true, Ordering::Relaxed);
        bar.finish_and_clear();
        merged
    })
}

fn spinner() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    match ProgressStyle::with_template("{spinner} {binary_bytes} merged, {binary_bytes_per_sec}") {
        Ok(style) => bar.with_style(style),
        // Indicatif's plain one: a picture is no reason to stop.
        Err(_) => bar,
    }
}

const REDRAW: Duration = Duration::from_millis(100);

pub(crate) fn run(args: &CompactArgs) -> Result<Exit, Failure> {
    let keys = args.keys.parse(&args.hex)?;
    let db = args.database.open(OpenFor::Writing)?;
    let bytes = || BinaryBytes(db.metrics().levels.iter().map(|level| level.bytes).sum());
    db.flush()?;
    let before = bytes();
    with_progress(&db, || db.compact_range(keys))?;
    let after = bytes();
    db.close()?;
    let mut output = Output::new();
    output.write(|out| writeln!(out, "{before} in tables before, {after} now"))?;
    output.finish()?;
    Ok(Exit::Done)
}

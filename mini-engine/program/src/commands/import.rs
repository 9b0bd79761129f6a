//! `import`: stores the records of a file or of stdin.
//!
//! Lines are handled in order, in batches that are each stored as a whole or not at all. So whenever the program dies, also by ^C, the database holds
//! the records of the first N lines, and N is at least the last acknowledged line. The import can be continued after line N, or simply run again.
//!
//! An existing database is opened before the input is read. A new database is made only for the first record: a mistyped name or a refused input
//! creates nothing.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use indicatif::ProgressBar;
use mini_engine::Durability;

use crate::bytes::HexArgs;
use crate::database::DatabaseArgs;
use crate::failure::{Exit, Failure, is_want_of_space};
use crate::import::batch::Batch;
use crate::import::interrupt::Interrupt;
use crate::import::lines::{Line, Lines};
use crate::import::rejects::Rejects;
use crate::keyspace::KeyspaceArgs;
use crate::output::{self, Output};
use crate::record::{self, Format};
use crate::source::Source;
use crate::{number, progress, size};

/// Store the records of a file, or of stdin with -, one a line: key, TAB, value
///
/// Bytes are taken as they are, UTF-8 or not, but for a UTF-8 byte order mark at the beginning of the input, which is
/// left out and reported. The first TAB separates; a carriage return at the end belongs to the value; the last line may
/// lack its newline. Of several lines with one key the last wins.
///
/// A line that is no record is reported by its number and counted, the rest is imported, and
/// the exit code is 5; with --strict the first one stops the import with exit code 2, and the
/// lines before it are stored.
///
/// A database or a keyspace that is not there is made, once there is a record for it.
///
/// When the import ends, all of it survives power loss. If it is interrupted, by ^C for
/// instance, the database is sound and holds the first lines of the input: all that were
/// acknowledged, and perhaps some more. ^C says how many, and so does an import that a full disk
/// has stopped; --skip goes on behind them.
///
/// An input none of whose lines is a record is refused with exit code 2, and so is one that has
/// fewer lines than --skip leaves out.
#[derive(Args)]
#[command(after_help = "\
Examples:
  find / -xdev -type f -printf '%p\\t%s %T@\\n' | mini-engine import files.db -
  mini-engine import words.db words.tsv --strict
  mini-engine import words.db words.tsv --skip 120000
  mini-engine import events.db events.jsonl --json --synced --batch 100
  mini-engine import shop.db users.tsv --keyspace users
  mini-engine export shop.db | mini-engine import copy.db - --json")]
pub(crate) struct ImportArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    #[command(flatten)]
    keyspace: KeyspaceArgs,
    /// The file to read; - is stdin
    file: PathBuf,
    /// Read JSON lines: {"key":"..","value":".."}, or with hexadecimal digits key_hex and value_hex;
    /// with "expires_at":MILLIS the key is there until that time, in milliseconds since 1970; with "keyspace":"NAME",
    /// as `export` prints it, the record goes to that keyspace, whatever --keyspace says
    #[arg(long, conflicts_with = "hex")]
    json: bool,
    #[command(flatten)]
    hex: HexArgs,
    /// Stop at the first line that is no record
    #[arg(long)]
    strict: bool,
    /// Leave the first N lines out: an earlier import has stored them
    #[arg(long, value_name = "N", default_value = "0", hide_default_value = true, value_parser = number::parse::<0>)]
    skip: u64,
    /// Sync each batch and print `acked N`: the first N lines of the input now survive power loss
    #[arg(long)]
    synced: bool,
    /// Lines in a batch, which is stored whole or not at all; it ends early at 1 MiB, or at a
    /// quarter of a memtable if that is less
    #[arg(long, value_name = "N", default_value = "1000", value_parser = number::parse::<1>)]
    batch: u64,
}

pub(crate) fn run(args: &ImportArgs) -> Result<Exit, Failure> {
    let source = Source::open(&args.file)?;
    let progress = progress::of_bytes(source.bytes());
    // Called before other threads start, so that they inherit the blocked signals.
    let interrupt = Interrupt::watch(args.skip, progress.clone())?;
    // Redraws an unmoved bar too, because a batch may wait long for lines.
    if !progress.is_hidden() {
        progress.enable_steady_tick(progress::REDRAW);
    }
    let mut import = Import::new(args, source, interrupt, progress);
    if !is_free(&args.database.path) {
        let Import { progress, batch, .. } = &mut import;
        progress.suspend(|| batch.open().map(drop))?;
    }
    let outcome = import.run();
    import.finish(outcome)
}

/// The character with which some programs begin a file; it is not part of the first key.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Whether `path` does not exist, or is an empty directory.
fn is_free(path: &Path) -> bool {
    match fs::read_dir(path) {
        Ok(mut names) => names.next().is_none(),
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}

/// One running import.
struct Import<'a> {
    args: &'a ImportArgs,
    lines: Lines,
    format: Format,
    batch: Batch<'a>,
    /// Lines read, records or not.
    handled: u64,
    /// Lines handled when the last batch was stored.
    acknowledged: u64,
    /// Records in stored batches.
    stored: u64,
    rejects: Rejects,
    progress: ProgressBar,
    interrupt: Arc<Interrupt>,
    /// The output for acknowledgements, until their reader has closed it.
    acks: Option<Output>,
}

impl<'a> Import<'a> {
    fn new(args: &'a ImportArgs, source: Source, interrupt: Arc<Interrupt>, progress: ProgressBar) -> Self {
        let format = Format::new(args.json, args.hex.hex);
        Self {
            args,
            format,
            batch: Batch::new(&args.database, &args.keyspace),
            handled: 0,
            acknowledged: 0,
            stored: 0,
            rejects: Rejects::new(source.name()),
            progress,
            lines: Lines::new(source, format.longest_line()),
            interrupt,
            acks: args.synced.then(Output::new),
        }
    }

    fn run(&mut self) -> Result<(), Failure> {
        let outcome = self.store_all().map_err(|failure| match failure {
            // The last batch was stored after the failure was made, so the number of lines is read again.
            Failure::Interrupted { signal, .. } => Failure::Interrupted { signal, lines: self.lines_in() },
            Failure::Engine(cause) if self.batch.is_open() => Failure::Stopped { cause, lines: self.lines_in() },
            other => other,
        });
        // Also after a failure, since the number of bad lines may explain the failure.
        self.rejects.finish();
        outcome
    }

    /// Stores the records of all lines, up to the first failure.
    fn store_all(&mut self) -> Result<(), Failure> {
        let outcome = loop {
            match self.step() {
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(failure) => break Err(failure),
            }
            if self.handled - self.acknowledged >= self.args.batch || self.batch.is_full() {
                self.store()?;
            }
        };
        if self.handled > self.acknowledged {
            // Stores the valid lines before the one that could not be read, or that stopped a `--strict` import.
            self.store()?;
        }
        outcome
    }

    /// Handles one line; false at the end of the input.
    fn step(&mut self) -> Result<bool, Failure> {
        let line = self.lines.next()?;
        // Checked after the line was read: the writer of the input may have received the same signal and left half a line.
        match line {
            None | Some(Line::Last(_)) => self.interrupt.check_at_end()?,
            Some(_) => self.interrupt.check()?,
        }
        let added = match line {
            None => return Ok(false),
            Some(_) if self.handled < self.args.skip => Ok(()),
            Some(Line::TooLong) => Err(format!("longer than any record, {} bytes", self.format.longest_line())),
            Some(Line::Whole(line) | Line::Last(line)) => {
                let line = match line.strip_prefix(BYTE_ORDER_MARK) {
                    Some(line) if self.handled == 0 => {
                        let found = self.rejects.describe(1, "left out the UTF-8 byte order mark at its beginning");
                        self.progress.suspend(|| output::say(format_args!("{found}")));
                        line
                    }
                    _ => line,
                };
                match record::parse(line, self.format) {
                    Ok(record) => self.batch.add(&record)?,
                    Err(why) => Err(why),
                }
            }
        };
        let number = self.handled + 1;
        if let Err(why) = added {
            self.reject(number, &why)?;
        }
        self.handled = number;
        Ok(true)
    }

    fn reject(&mut self, line: u64, why: &str) -> Result<(), Failure> {
        if self.args.strict {
            return Err(Failure::Usage(self.rejects.describe(line, why)));
        }
        self.progress.suspend(|| self.rejects.add(line, why));
        Ok(())
    }

    /// Writes the batch and acknowledges all lines handled so far.
    fn store(&mut self) -> Result<(), Failure> {
        let durability = if self.args.synced { Durability::Synced } else { Durability::Buffered };
        self.stored += self.batch.store(durability)?;
        self.acknowledged = self.handled;
        self.interrupt.stored(self.lines_in());
        self.progress.set_position(self.lines.bytes_read());
        self.progress.set_message(format!(", {} lines", self.handled));
        self.acknowledge()
    }

    /// The number of input lines in the database: those of this import, and those of an earlier one, which it skips.
    fn lines_in(&self) -> u64 {
        self.acknowledged.max(self.args.skip)
    }

    fn acknowledge(&mut self) -> Result<(), Failure> {
        let Some(acks) = &mut self.acks else {
            return Ok(());
        };
        let lines = self.acknowledged;
        let told = self.progress.suspend(|| {
            acks.write(|out| writeln!(out, "acked {lines}"))?;
            acks.flush()
        });
        match told {
            // The reader of acknowledgements has closed the pipe, but the import continues.
            Err(Failure::ClosedPipe) => self.acks = None,
            told => told?,
        }
        Ok(())
    }
    /// Refuses some inputs as a whole, after they were read to the end.
    fn check_input(&self) -> Result<(), Failure> {
        let (handled, skip) = (self.handled, self.args.skip);
        if handled < skip {
            let lines = size::counted(handled, "line", "lines");
            return Err(Failure::Usage(format!("the input has {lines}: there is nothing behind --skip {skip}")));
        }
        // If lines of an earlier import are skipped, all later ones may be bad.
        if skip == 0 && self.stored == 0 && self.rejects.count() > 0 {
            return Err(Failure::Usage(
                "no line of the input is a record: expected key, TAB, value, or JSON with --json".into(),
            ));
        }
        Ok(())
    }

    /// Closes the database, and reports the imported lines.
    fn finish(mut self, outcome: Result<(), Failure>) -> Result<Exit, Failure> {
        self.progress.finish_and_clear();
        let (lines, rejected) = (self.lines_in(), self.rejects.count());
        let outcome = outcome.and_then(|()| self.check_input());
        if outcome.is_ok() {
            // An empty input makes a database, too.
            self.batch.open()?;
        }
        // The stored batches must be durable before their number is reported, whatever stopped the import.
        let closed = self.batch.close();
        // If there is no space for tables, the batches are durable in the log.
        if closed.is_ok() || closed.as_ref().is_err_and(is_want_of_space) {
            let stored = size::counted(self.stored, "line", "lines");
            output::say(format_args!("imported {stored}, rejected {rejected}"));
        }
        match (outcome, closed) {
            // The error of the close is more important than the interruption: it means that stored lines may not be durable.
            (Err(Failure::Interrupted { .. } | Failure::Stopped { .. }), Err(error)) if !is_want_of_space(&error) => {
                Err(Failure::Engine(error))?;
            }
            (Ok(()), Err(cause)) if is_want_of_space(&cause) => Err(Failure::Stopped { cause, lines })?,
            (outcome, closed) => outcome.and(closed.map_err(Failure::Engine))?,
        }
        Ok(if rejected > 0 { Exit::Rejected } else { Exit::Done })
    }
}

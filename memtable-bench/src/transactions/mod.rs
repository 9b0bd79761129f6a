//! Measures how many transactions of several threads an engine commits in a second: transfers between random accounts. With few accounts most
//! transactions conflict, with many almost none.
//!
//! In a round each engine in turn gets an empty directory, stores the accounts, comes to rest, and is measured with each number of threads. After
//! that, the balances must add up to zero: after a lost update they would not.

mod banks;
#[cfg(feature = "peers")]
mod peers;

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use bench_keys::rng;
use clap::{Args, value_parser};
use itertools::Itertools;
use rand::RngExt;

use self::banks::{Bank, Mini};
use crate::allocator;
use crate::error::Error;
use crate::plan::parse_count;
use crate::results::{Run, origin};
use crate::spec::KEY_LEN;
use crate::subjects::store::Done;
use crate::text::{Sheet, grouped, print, short};

/// Accounts that are stored by one write.
const BATCH: usize = 1000;

/// Compare the transactions of engines: transfers between random accounts, commits a second, medians of interleaved rounds
///
/// Each transaction reads two accounts and writes both. Commits are not synced. Databases go to the directory that TMPDIR names.
#[derive(Debug, Args)]
pub(crate) struct TransactionArgs {
    /// Accounts, at least 2: with few, most transactions meet others
    #[arg(long, value_parser = parse_count, value_delimiter = ',', default_value = "10,1M", value_name = "N")]
    accounts: Vec<usize>,
    /// Threads that commit at the same time
    #[arg(long, value_parser = parse_count, value_delimiter = ',', default_value = "2,8", value_name = "N")]
    threads: Vec<usize>,
    /// Milliseconds of each measurement
    #[arg(long, value_parser = value_parser!(u64).range(1..), default_value = "2000", value_name = "N")]
    millis: u64,
    /// Rounds of each engine
    #[arg(long, value_parser = value_parser!(u32).range(1..), default_value = "5", value_name = "N")]
    rounds: u32,
}

/// The result of one measurement.
#[derive(Debug, Clone, Copy)]
struct Rate {
    commits_a_second: f64,
    /// The number of begun transactions for each committed one.
    tries: f64,
}

type Round = fn(&TransactionArgs, usize) -> Done<Vec<Rate>>;

const BANKS: &[(&str, Round)] = &[
    ("mini-engine", round::<Mini>),
    #[cfg(feature = "peers")]
    ("fjall, optimistic", round::<peers::FjallOptimistic>),
    #[cfg(feature = "peers")]
    ("fjall, one writer", round::<peers::FjallOneWriter>),
    #[cfg(feature = "peers")]
    ("redb, one writer", round::<peers::Redb>),
];

pub(crate) fn run(args: &TransactionArgs) -> Result<(), Error> {
    if let Some(few) = args.accounts.iter().find(|&&accounts| accounts < 2) {
        return Err(format!("a transfer needs 2 accounts, found {few}").into());
    }
    print(&format!(
        "{}Commits a second, medians of {} rounds, not synced.\n",
        origin(&Run::new(None, args.rounds, true)),
        args.rounds
    ))?;
    for &accounts in &args.accounts {
        let mut rates: Vec<Vec<Vec<Rate>>> = vec![Vec::new(); BANKS.len()];
        for _ in 0..args.rounds {
            for (&(name, round), rates) in BANKS.iter().zip(&mut rates) {
                let rate = round(args, accounts).map_err(|error| Error::subject(format!("{name}: {error}")))?;
                rates.push(rate);
            }
        }
        print(&format!("\n{} accounts\n\n{}", short(accounts), sheet(args, &rates).markdown()))?;
    }
    Ok(())
}

/// A row for each engine, with two columns for each number of threads.
fn sheet(args: &TransactionArgs, rates: &[Vec<Vec<Rate>>]) -> Sheet {
    let head = args.threads.iter().flat_map(|threads| [format!("{threads} threads"), "range".into(), "tries".into()]);
    let row = |((name, _), rounds): (&(&str, Round), &Vec<Vec<Rate>>)| {
        let figures = (0..args.threads.len()).flat_map(|at| {
            let sorted: Vec<Rate> = rounds
                .iter()
                .map(|rates| rates[at])
                .sorted_by(|a, b| a.commits_a_second.total_cmp(&b.commits_a_second))
                .collect();
            let [least, median, most] = [0, sorted.len() / 2, sorted.len() - 1].map(|at| sorted[at]);
            let [least, commits, most] = [least, median, most].map(|rate| grouped(rate.commits_a_second as usize));
            [commits, format!("{least} - {most}"), format!("{:.2}", median.tries)]
        });
        std::iter::once((*name).to_owned()).chain(figures).collect()
    };
    Sheet::new(std::iter::once("engine".to_owned()).chain(head), BANKS.iter().zip(rates).map(row))
}

/// One round of an engine.
fn round<B: Bank>(args: &TransactionArgs, accounts: usize) -> Done<Vec<Rate>> {
    allocator::give_back();
    let dir = tempfile::tempdir()?;
    let bank = B::open(dir.path())?;
    let accounts: Vec<[u8; KEY_LEN]> = (0..accounts).map(account).collect();
    accounts.chunks(BATCH).try_for_each(|some| bank.add(some))?;
    bank.settle()?;
    let rates =
        args.threads.iter().map(|&threads| measure(&bank, &accounts, threads, Duration::from_millis(args.millis)));
    let rates = rates.collect::<Done<Vec<_>>>()?;
    let (mut found, mut total) = (0, 0);
    bank.balances(|balance| (found, total) = (found + 1, total + balance))?;
    match (found, total) == (accounts.len(), 0) {
        true => Ok(rates),
        false => {
            Err(format!("expected {} accounts with 0 in total, found {found} with {total}", accounts.len()).into())
        }
    }
}

/// The key of an account. The keys of neighbouring numbers are far apart.
fn account(number: usize) -> [u8; KEY_LEN] {
    let mut key = [0; KEY_LEN];
    let number = number as u64;
    key[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

/// Runs transfers on all threads, until the time is over.
fn measure<B: Bank>(bank: &B, accounts: &[[u8; KEY_LEN]], threads: usize, time: Duration) -> Done<Rate> {
    let gate = &Barrier::new(threads);
    let work = |thread: usize| {
        let mut draw = rng(thread as u64);
        let (mut commits, mut tries) = (0, 0);
        gate.wait();
        let begun = Instant::now();
        while begun.elapsed() < time {
            let from = draw.random_range(0..accounts.len());
            let to = (from + draw.random_range(1..accounts.len())) % accounts.len();
            tries += bank.transfer(&accounts[from], &accounts[to])?;
            commits += 1;
        }
        Done::Ok((commits, tries, begun.elapsed()))
    };
    let ended: Vec<Done<(u64, u64, Duration)>> = thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|thread| scope.spawn(move || work(thread))).collect();
        handles.into_iter().map(|of| of.join().unwrap_or_else(|cause| std::panic::resume_unwind(cause))).collect()
    });
    let ended = ended.into_iter().collect::<Done<Vec<_>>>()?;
    let commits: u64 = ended.iter().map(|end| end.0).sum();
    let tries: u64 = ended.iter().map(|end| end.1).sum();
    let longest = ended.iter().map(|end| end.2).max().unwrap_or(time);
    Ok(Rate { commits_a_second: commits as f64 / longest.as_secs_f64(), tries: tries as f64 / commits as f64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_engine_commits_transfers_and_loses_none() {
        // Catches wrong calls of an engine's API that leave its transactions without isolation, and figures in the wrong column.
        let args = TransactionArgs { accounts: vec![3], threads: vec![1, 4], millis: 20, rounds: 1 };
        let rates: Vec<_> =
            BANKS.iter().map(|(name, round)| vec![round(&args, 3).unwrap_or_else(|e| panic!("{name}: {e}"))]).collect();
        for rate in rates.iter().flatten().flatten() {
            assert!(rate.commits_a_second >= 50.0 && rate.tries >= 1.0, "{rate:?}");
        }
        let sheet = sheet(&args, &rates);
        assert!(sheet.rows.len() == BANKS.len() && sheet.rows.iter().all(|row| row.len() == 7));
    }

    #[test]
    fn a_lost_update_is_found() {
        // Catches totals that are not compared: this bank's transfers only withdraw.
        struct Thief(Mini);
        impl Bank for Thief {
            fn open(dir: &std::path::Path) -> Done<Self> {
                Mini::open(dir).map(Thief)
            }
            fn add(&self, accounts: &[[u8; KEY_LEN]]) -> Done {
                self.0.add(accounts)
            }
            fn settle(&self) -> Done {
                self.0.settle()
            }
            fn transfer(&self, from: &[u8], _: &[u8]) -> Done<u64> {
                self.0.transfer(from, b"elsewhere")
            }
            fn balances(&self, each: impl FnMut(i64)) -> Done {
                self.0.balances(each)
            }
        }
        let args = TransactionArgs { accounts: vec![3], threads: vec![1], millis: 5, rounds: 1 };
        assert!(round::<Thief>(&args, 3).is_err());
    }
}

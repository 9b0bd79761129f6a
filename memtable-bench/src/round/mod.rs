//! One round of one subject, in a process of its own (see `run`); or one workload of a subject, as often as criterion asks.

mod contents;
mod engine;
mod input;
mod sample;
mod table;
mod work;

pub(crate) use sample::{Request, Sample};

use contents::Contents;
use input::Input;
use work::Work;

use crate::spec::{Shape, Subject, Workload, subjects};
use crate::subjects;
use crate::subjects::store::{Done, Store};

/// Measures a workload once. The table or database was prepared before.
pub(crate) type Measure = Box<dyn FnMut() -> Done<Sample>>;
type Functions = (fn(&Request) -> Done<Vec<Sample>>, fn(&Request) -> Done<Measure>);

macro_rules! dispatch {
    ($($(#[$doc:meta])* $subject:ident $($feature:literal)?: $role:ident, [$($can:ident),*], $kind:ident($type:ty);)*) => {
        /// The functions for a subject; `None` if it was not built.
        fn functions(subject: Subject) -> Option<Functions> {
            match subject {
                $($(#[cfg(feature = $feature)])? Subject::$subject => Some((once::<$type>, repeatedly::<$type>)),)*
                #[allow(unreachable_patterns)]
                _ => None,
            }
        }
    };
}
subjects!(dispatch);

/// Runs a round. The error describes the subject's wrong result or failure.
pub(crate) fn run(request: &Request) -> Result<Vec<Sample>, String> {
    let (once, _) = functions(request.subject).ok_or("the subject was not built")?;
    once(request).map_err(|error| error.to_string())
}

/// Prepares a request of one workload.
pub(crate) fn prepared(request: &Request) -> Done<Measure> {
    let (_, repeatedly) = functions(request.subject).ok_or("the subject was not built")?;
    repeatedly(request)
}

/// The operations of all threads in a workload.
pub(crate) fn operations(shape: &Shape, workload: Workload) -> u64 {
    let threads = if workload.is_done_by_each() { shape.threads } else { 1 };
    (contents::count(shape, workload) * threads) as u64
}

fn once<S: Store>(request: &Request) -> Done<Vec<Sample>> {
    let wanted: Vec<_> = request.workloads.iter().copied().filter(|of| request.subject.can(*of)).collect();
    let input = Input::new(&request.shape, contents::later(&request.shape, &wanted));
    let work = Work { request: request.clone(), input };
    let mut samples = match request.shape.store.is_table() {
        true => table::run::<S>(&work, &wanted)?,
        false => engine::run::<S>(&work, &wanted)?,
    };
    let is_missing = |of: &&Workload| !samples.iter().any(|sample| sample.workload == **of);
    if let Some(missing) = wanted.iter().find(is_missing) {
        return Err(format!("no sample of {missing:?}").into());
    }
    // Every round of a table does the insert, but not every request includes it.
    samples.retain(|sample| wanted.contains(&sample.workload));
    Ok(samples)
}

/// A fill begins with an empty subject each time. Other workloads repeat on one full subject, and so must not change its contents; transactions change
/// values, whose sum is checked.
fn repeatedly<S: Store + 'static>(request: &Request) -> Done<Measure> {
    let (workload, is_table) = (request.workloads[0], request.shape.store.is_table());
    let work = Work { request: request.clone(), input: Input::new(&request.shape, 0) };
    let mut contents = Contents::filled(&work.input);
    let ops = contents.operations(workload);
    Ok(match workload {
        Workload::Insert => Box::new(move || Ok(work.table::<S>(workload)?.1)),
        Workload::Put | Workload::PutBatch | Workload::SyncedPut => {
            Box::new(move || Ok(work.fill::<S>(workload)?.swap_remove(0)))
        }
        Workload::Replay => {
            let killed = work.killed::<S>()?;
            Box::new(move || {
                let copy = engine::copied(killed.path())?;
                work.time_open::<S>(workload, &copy, &Contents::filled(&work.input))
            })
        }
        Workload::Open => {
            let closed = work.filled::<S>()?.close()?;
            Box::new(move || work.time_open::<S>(workload, &closed, &Contents::filled(&work.input)))
        }
        _ if is_table => {
            let (table, _) = work.table::<S>(Workload::Insert)?;
            Box::new(move || work.perform(&table, workload, &ops))
        }
        _ => {
            let (reads, scans) = (contents.operations(Workload::Get), contents.operations(Workload::Scan10));
            let opened = work.filled::<S>()?;
            if workload.is_scan() {
                work.scan_often(&opened, &scans, &reads)?;
            }
            match workload {
                Workload::Transactions => Box::new(move || work.transactions(&opened, &ops)),
                _ => Box::new(move || work.time(&opened, workload, &ops)),
            }
        }
    })
}

#[cfg(test)]
mod tests;

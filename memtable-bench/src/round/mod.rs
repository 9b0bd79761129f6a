//! One round of one subject, in a process of its own; see `run`.

mod contents;
mod engine;
mod input;
mod sample;
mod table;
mod work;

pub(crate) use sample::{Request, Sample};

use crate::spec::{Subject, name, subjects};
use crate::subjects;
use crate::subjects::store::{Done, Store};

macro_rules! dispatch {
    ($($(#[$doc:meta])* $subject:ident $($feature:literal)?: $role:ident, $can:ident, $kind:ident($type:ty);)*) => {
        /// Runs a round. The error describes the subject's wrong result or failure.
        pub(crate) fn run(request: &Request) -> Result<Vec<Sample>, String> {
            let samples = match request.subject {
                $($(#[cfg(feature = $feature)])? Subject::$subject => of::<$type>(request),)*
                #[allow(unreachable_patterns)]
                other => Err(format!("{} was not built", name(other)).into()),
            };
            samples.map_err(|error| error.to_string())
        }
    };
}
subjects!(dispatch);

fn of<S: Store>(request: &Request) -> Done<Vec<Sample>> {
    let wanted: Vec<_> = request.workloads.iter().copied().filter(|of| request.subject.can(*of)).collect();
    let input = input::Input::new(&request.shape, contents::later(&request.shape, &wanted));
    let work = work::Work { request, input: &input };
    let mut samples = match request.shape.store.is_table() {
        true => table::run::<S>(&work, &wanted)?,
        false => engine::run::<S>(&work, &wanted)?,
    };
    // Every round of a table does the insert, but not every request includes it.
    samples.retain(|sample| wanted.contains(&sample.workload));
    Ok(samples)
}

#[cfg(test)]
mod tests;

//! One round of one subject, in a process of its own; see `ipc`.

mod contents;
mod digest;
mod engine;
mod input;
mod outcome;
mod recorder;
mod table;

pub(crate) use outcome::{Fact, Outcome, Request, Sample, Timeline};

use crate::spec::{Subject, subjects};
use crate::text::name;
use crate::{engines, tables};

macro_rules! dispatch {
    ($($(#[$doc:meta])* $subject:ident $($feature:literal)?: $role:ident, $can:ident, $colour:literal, $kind:ident($($path:tt)*);)*) => {
        /// Runs a round. An error is what the subject did wrong.
        pub(crate) fn run(request: &Request) -> Result<Outcome, String> {
            match request.subject {
                $($(#[cfg(feature = $feature)])? Subject::$subject => dispatch!(@$kind request, $($path)*),)*
                #[allow(unreachable_patterns)]
                other => Err(format!("{} was not built", name(other))),
            }
        }
    };
    (@table $request:ident, $($path:tt)*) => { table::run::<tables::$($path)*>($request) };
    (@engine $request:ident, $($path:tt)*) => { engine::run::<engines::$($path)*>($request) };
    (@both $request:ident, $($path:tt)*) => {
        match $request.shape.store.is_table() {
            true => table::run::<tables::$($path)*>($request),
            false => engine::run::<engines::floors::InMemory<tables::$($path)*>>($request),
        }
    };
}
subjects!(dispatch);

//! The outcome of a step.

use mini_engine::WriteBatch;

use crate::state::job::Job;

/// What a step came to. Requests that were understood have their length.
#[derive(Debug)]
pub(crate) enum Step {
    /// The next request is not all there.
    Incomplete,
    Done {
        len: usize,
        /// How many they were: as many as the replies.
        requests: usize,
    },
    /// It names no command, and has no reply.
    Empty(usize),
    /// A part of the first request was carried out, and it goes on when it comes again.
    Continue,
    /// The reply comes when the job is done; until then the client's next request waits.
    Later(usize, Job),
    /// Nothing was carried out, since this would have had to wait to be written.
    Held(WriteBatch),
    /// The connection ends when the reply is sent.
    Close,
}

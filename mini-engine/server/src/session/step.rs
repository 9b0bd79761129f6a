//! The outcome of a step.

use crate::state::context::Work;

/// The outcome of a step. Each variant for requests that were understood contains their length.
#[derive(Debug)]
pub(crate) enum Step {
    /// The next request is incomplete.
    Incomplete,
    Done {
        len: usize,
        /// The number of requests, which is also the number of replies.
        requests: usize,
    },
    /// An empty request, which has no reply.
    Empty(usize),
    /// A part of the first request was carried out; repeating the step continues the request.
    Continue,
    /// The request waits for this work; until then the client's next request waits too. The length is 0 if the request stays in the input: it is
    /// carried out again after the work, or groups of a cluster carry it out.
    Later(usize, Work),
    /// The connection ends when the reply was sent.
    Close,
}

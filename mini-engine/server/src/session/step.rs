//! The outcome of a step.

use crate::groups::GroupRequests;
use crate::state::context::Wait;
use crate::state::job::Job;

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
    /// The reply comes when the job is done; until then the client's next request waits.
    Later(usize, Job),
    /// Requests are passed to groups of a cluster. The requests stay in the input until their replies come.
    Asked(GroupRequests),
    /// Nothing was carried out, because it would have had to wait.
    Held(Wait),
    /// The connection ends when the reply was sent.
    Close,
}

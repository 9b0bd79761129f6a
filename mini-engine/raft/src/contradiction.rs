//! Calls that contradict what this node has committed, applied or voted for.
//!
//! Raft never makes such a call. One arrives when another node has lost entries that it had acknowledged: its directory was replaced by an older copy,
//! or its disk has not kept what was synced. openraft does not notice it. So the storage refuses the call as damage, which ends the node; otherwise the
//! nodes would hold different data from then on.

use std::fmt::Display;
use std::io::{Error, ErrorKind};

use openraft::{LogId, vote::RaftCommittedLeaderId};

/// Whether an entry with the id `new` is the entry `old`, or can come after it in one log.
pub(crate) fn follows<L: RaftCommittedLeaderId>(new: &LogId<L>, old: &LogId<L>) -> bool {
    new == old || (new.index > old.index && new.leader_id >= old.leader_id)
}

/// The error for a call with `new` on a node that has settled `old`.
pub(crate) fn contradiction(call: &str, new: impl Display, settled: &str, old: impl Display) -> Error {
    let text = format!(
        "{call} {new} contradicts {old}, which this node has {settled}: a node has lost what it had acknowledged, as after its directory was replaced \
         by an older copy. Keep a copy of this directory; then remove this node from its cluster, and add it with an empty directory"
    );
    Error::new(ErrorKind::InvalidData, text)
}

pub(crate) fn shown(log_id: &Option<impl Display>) -> String {
    log_id.as_ref().map_or_else(|| "nothing".into(), ToString::to_string)
}

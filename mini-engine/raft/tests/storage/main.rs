//! Tests of the storage as openraft uses it: openraft's own suite, crashes at every operation of a file system, counted syncs, costs of a purged log,
//! snapshots that are damaged in transfer, and a cluster.

mod cluster;
mod contradictions;
mod crash;
mod log;
mod purge;
mod snapshots;
mod suite;
mod support;
mod syncs;

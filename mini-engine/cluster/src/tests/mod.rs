//! Clusters of several nodes in this process, over loopback. The program's tests have processes, which they kill.

mod groups;
mod leaders;
mod limits;
mod members;
mod observed;
mod placement;
mod refusals;
mod requests;
mod support;
mod time;

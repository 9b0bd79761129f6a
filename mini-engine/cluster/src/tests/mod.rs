//! Clusters of several nodes in this process, over loopback. The tests of the program instead start processes, and kill them.

mod backups;
mod catching_up;
mod checks;
mod copies;
mod formats;
mod members;
mod observed;
mod placement;
mod reads;
mod refusals;
mod requests;
mod room;
mod secrets;
mod support;
mod time;

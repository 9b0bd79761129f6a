//! The path of a write: durability, groups of writers, the rotation of logs, and all waits of writers.

mod backpressure;
mod durability;
mod group;
mod pipeline;
mod recycle;
mod refused;
mod rotation;
mod space;

//! The path of a write: when it is durable, groups of writers, one log after another, and everything that a writer may wait for.

mod backpressure;
mod durability;
mod group;
mod pipeline;
mod recycle;
mod refused;
mod rotation;
mod space;

//! The way of a write: what is durable when, groups of writers, logs that follow each other, and everything that a writer may wait for.

mod backpressure;
mod durability;
mod group;
mod pipeline;
mod recycle;
mod refused;
mod rotation;
mod space;

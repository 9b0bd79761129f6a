//! Tests of the whole program: the order of its files, and its commands, run as a process.

mod layers;
mod program;

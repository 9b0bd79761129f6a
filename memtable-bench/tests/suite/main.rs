//! Tests of the whole program: the layers of its files, and its commands, which run as processes.

mod layers;
mod program;

//! Tests of the whole: the order of its files, and the commands, run as a program.

mod layers;
mod program;

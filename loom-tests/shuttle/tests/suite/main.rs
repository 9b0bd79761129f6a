//! Runs the programs, and checks that their schedules would find mistakes. One test program, so that it is linked once.

mod canaries;
mod schedules;

//! The programs, and whether their schedules would find what is wrong: one program, so that it is linked once.

mod canaries;
mod schedules;

//! Tests of properties of a whole process: its threads at a fork, its memory, its file handles, its working directory. So each test runs in a
//! process of its own, which is this program again.

#[cfg(unix)]
mod fork;
mod memory;
#[cfg(unix)]
mod open_files;
mod working_directory;

use std::env;
use std::process::Command;

/// The environment variable that marks the process of a test.
const ALONE: &str = "MINI_ENGINE_TEST_ALONE";

/// Runs `work`, the test named `name`, in a process without other tests.
fn alone(name: &str, work: fn()) {
    if env::var_os(ALONE).is_some() {
        return work();
    }
    let mut program = Command::new(env::current_exe().unwrap());
    let output = program.args(["--exact", name, "--nocapture"]).env(ALONE, "1").output().unwrap();
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    println!("{text}");
    assert!(output.status.success() && text.contains("1 passed"), "{name}: {}", output.status);
}

macro_rules! tests {
    ($($(#[$cfg:meta])? $module:ident: $name:ident;)*) => {
        $(
            $(#[$cfg])?
            #[test]
            fn $name() {
                alone(stringify!($name), $module::$name);
            }
        )*
    };
}
tests! {
    #[cfg(unix)] fork: a_fork_writes_nothing_to_the_database_of_its_parent;
    memory: a_large_value_costs_little_more_than_twice_its_size_at_each_step;
    memory: nested_ranges_cost_as_much_as_so_many_beside_each_other;
    #[cfg(unix)] open_files: a_process_with_64_handles_reads_writes_and_compacts_500_tables;
    working_directory: a_relative_path_is_fixed_at_open;
}

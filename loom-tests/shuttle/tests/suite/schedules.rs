//! Runs every program in schedules of both kinds. `SHUTTLE_SCHEDULES=n` sets the number of schedules of each kind, `SHUTTLE_SEED=n` repeats a run.
//! A failed test prints the command that repeats it.

use std::hash::{BuildHasher, RandomState};
use std::time::Instant;

use shuttle_tests::models::ALL;
use shuttle_tests::schedules::Draw;

/// The number of schedules of each kind, unless the environment sets another: `.ci/run` runs ten times as many.
const SCHEDULES: u64 = 1_000;

fn number(name: &str, otherwise: impl FnOnce() -> u64) -> u64 {
    std::env::var(name).map_or_else(|_| otherwise(), |text| text.parse().expect("a number"))
}

fn run(name: &str) {
    let seed = number("SHUTTLE_SEED", || RandomState::new().hash_one(name) >> 16);
    let schedules = number("SHUTTLE_SCHEDULES", || SCHEDULES) as usize;
    let model = ALL.iter().find(|model| model.name == name).expect("the program of this name");
    for draw in [Draw::Even, Draw::Priorities] {
        println!("{draw:?}: SHUTTLE_SEED={seed} SHUTTLE_SCHEDULES={schedules} cargo test -p shuttle-tests {name}");
        let began = Instant::now();
        let count = (model.run)(draw, seed, schedules);
        assert_eq!(count, schedules, "schedules run, and asked for");
        println!("{name}: {draw:?}, {count} schedules, {:.1} s", began.elapsed().as_secs_f64());
    }
}

macro_rules! tests {
    ($($name:ident: $program:expr;)*) => {
        $(
            #[test]
            fn $name() {
                run(stringify!($name));
            }
        )*
    };
}
shuttle_tests::every_program!(tests);

//! Runs every model. `Depth::of_tests` decides how deep.

use loom_tests::check::Depth;
use loom_tests::models::ALL;
use loom_tests::mutants::ALL as ALL_MUTANTS;

fn run(name: &str) {
    let model = ALL.iter().find(|model| model.name == name).expect("the model of this name");
    let depth = Depth::of_tests();
    let kills = ALL_MUTANTS.iter().any(|mutant| mutant.killed_by == name);
    if kills && depth != Depth::QUICK && depth.executions != usize::MAX {
        // The first executions of a deeper search differ from those of a quick one. `ordering_mutants` expects its failures at the quick depth, so
        // that depth runs too.
        println!("{name}: {}", (model.run)(Depth::QUICK));
    }
    println!("{name}: {}", (model.run)(depth));
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
loom_tests::every_model!(tests);

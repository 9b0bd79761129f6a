//! Runs every model. How deep, `Depth::of_tests` says.

use loom_tests::check::Depth;
use loom_tests::models::ALL;

fn run(name: &str) {
    let model = ALL.iter().find(|model| model.name == name).expect("the model of this name");
    let depth = Depth::of_tests();
    if depth != Depth::QUICK && depth.executions != usize::MAX {
        // The first executions of a deeper search are not those of this one, at which `ordering_mutants.rs` kills.
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

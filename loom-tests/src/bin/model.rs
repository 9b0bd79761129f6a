//! Runs one model: `model NAME [--quick | --preemptions N] [--weaken SITE=ORDERING]`. Without NAME, lists all models. Without a
//! bound, explores every execution.

use std::process::ExitCode;

use loom_tests::check::Depth;
use loom_tests::models;
use loom_tests::weaken::Weakening;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let Some(name) = args.next() else {
        models::ALL.iter().for_each(|model| println!("{}", model.name));
        return ExitCode::SUCCESS;
    };
    let mut depth = Depth::ALL;
    while let Some(flag) = args.next() {
        if flag == "--quick" {
            depth = Depth::QUICK;
            continue;
        }
        let value = args.next().expect("a flag has a value");
        match flag.as_str() {
            "--preemptions" => {
                let most = value.parse().expect("a number of preemptions");
                depth = Depth { two: Some(most), more: Some(most), ..Depth::ALL };
            }
            "--weaken" => value.parse::<Weakening>().expect("site=Ordering").choose().expect("one weakening at a time"),
            other => panic!("unknown flag {other}"),
        }
    }
    let model = models::ALL.iter().find(|model| model.name == name).expect("the name of a model");
    println!("{name}: {}", (model.run)(depth));
    ExitCode::SUCCESS
}

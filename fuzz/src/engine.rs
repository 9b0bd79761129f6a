//! Compares the engine with ordinary maps, on a disk in memory, with reopens, kills and power cuts: the steps of the model test.

use proof::model::{Run, Step, steps};

use crate::Met;

/// Runs the steps that `input` encodes.
///
/// # Panics
/// If the engine and the maps differ.
pub fn engine_ops(input: &[u8]) -> Met {
    let (chosen, steps) = steps(input);
    let mut run = Run::in_memory(&chosen);
    let met = steps.map(|step| {
        let name = if let Step::Reopen(end, _) = &step { name(end) } else { name(&step) };
        if run.step(step) { format!("{name}: buffered writes lost") } else { name }
    });
    met.collect()
}

/// The name of a variant.
fn name(of: &impl std::fmt::Debug) -> String {
    format!("{of:?}").split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_owned()
}

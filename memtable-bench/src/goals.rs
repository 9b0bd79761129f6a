//! Checks results against the project's goals, which `goals.json` lists. Every check compares medians of one run.

use itertools::iproduct;
use serde::Deserialize;

use crate::matrix::Matrix;
use crate::results::CellResults;
use crate::sheet::{Sheet, figure};
use crate::spec::{Shape, Subject, Workload, name};

/// Each subject at each workload and shape of `of` is `at-least` so many times as fast as `beside`, or takes `at-most` that share of its time.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Goal {
    goal: String,
    of: Matrix,
    /// Subjects, each with its workload if it is not the same. Their times are added up.
    #[serde(default)]
    beside: Vec<(Subject, Option<Workload>)>,
    /// Beside the subject itself, by one thread.
    #[serde(default)]
    one_thread: bool,
    /// The bound is that of a cost beside time, or of "ns".
    fact: Option<String>,
    at_least: Option<f64>,
    at_most: Option<f64>,
}

impl Goal {
    /// The measured value; `None` if a part of it was not measured.
    fn measured(&self, run: &[CellResults], shape: Shape, subject: Subject, workload: Workload) -> Option<f64> {
        let of = |shape: Shape| run.iter().filter(move |results| results.cell.shape == shape);
        of(shape).find_map(|cell| {
            let ours = cell.nanos(subject, workload)?;
            let other = |&(peer, at): &(_, Option<_>)| cell.nanos(peer, at.unwrap_or(workload.of_peers()));
            let others = match &*self.beside {
                [] if self.one_thread => {
                    of(Shape { threads: 1, ..shape }).find_map(|cell| cell.nanos(subject, workload))?
                }
                [] => {
                    let fact = self.fact.as_ref()?;
                    return if fact == "ns" { Some(ours) } else { cell.fact(subject, workload, fact) };
                }
                peers => peers.iter().map(other).sum::<Option<f64>>()?,
            };
            Some(if self.at_least.is_some() { others / ours } else { ours / others })
        })
    }
}

/// Every check whose parts the run has measured.
pub(crate) fn sheet(run: &[CellResults]) -> Sheet {
    let goals: Vec<Goal> = serde_json::from_str(include_str!("../goals.json")).expect("a test reads them");
    let mut rows = vec![["goal", "", "measured", "asked for"].map(Into::into).to_vec()];
    for goal in &goals {
        for (shape, &workload, &subject) in iproduct!(goal.of.shapes(), &goal.of.workloads, &goal.of.subjects) {
            let Some(found) = goal.measured(run, shape, subject, workload) else { continue };
            let (least, most) = (goal.at_least.unwrap_or(f64::MIN), goal.at_most.unwrap_or(f64::MAX));
            let verdict = if (least..=most).contains(&found) { "met" } else { "MISSED" };
            let asked = goal.at_least.map_or(format!("≤ {most}"), |least| format!("≥ {least}"));
            let peers = goal.beside.iter().map(|(peer, at)| name(*peer) + " " + &at.map_or_else(String::new, name));
            let beside =
                goal.fact.clone().unwrap_or(if goal.one_thread { "one thread".into() } else { peers.collect() });
            let what = format!("{} {} {} {shape}, {}", goal.goal, name(subject), name(workload), beside.trim());
            rows.push(vec![what, verdict.into(), figure(found), asked]);
        }
    }
    Sheet(rows)
}

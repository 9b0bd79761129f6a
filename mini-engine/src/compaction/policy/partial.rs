//! Partial compaction: leveled, one table at a time, the one with the smallest overlap with the next level for its size. It is the granularity of a
//! file in Sarkar, Staratzis, Zhu and Athanassoulis 2021, "Constructing and Analyzing the LSM Compaction Design Space".
//!
//! Compactions are small and of similar size, so none delays the next one for long, and the additional space for inputs and output is small. Level
//! 0 goes down as a whole here too, because its tables overlap each other.

use super::leveled::{self, Portion};
use super::{Context, Policy};
use crate::compaction::plan::Plan;

pub(super) const POLICY: Policy = Policy { plans, push_level_0: leveled::push_level_0 };

fn plans(context: &Context<'_>) -> Vec<Plan> {
    leveled::plans_by(context, Portion::Table)
}

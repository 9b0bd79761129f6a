//! Partial compaction: leveled, one table at a time, the one that overlaps least of the next level for its size (the
//! granularity of a file in Sarkar, Staratzis, Zhu and Athanassoulis 2021, "Constructing and Analyzing the LSM Compaction
//! Design Space").
//!
//! Compactions are small and all alike, so that none holds up what comes after it for long, and the space that inputs and
//! output take side by side is small. Level 0 goes down as a whole here too: its tables overlap each other.

use super::leveled::{self, Portion};
use super::{Context, Policy};
use crate::compaction::plan::Plan;

pub(super) const POLICY: Policy = Policy { plans, push_level_0: leveled::push_level_0 };

fn plans(context: &Context<'_>) -> Vec<Plan> {
    leveled::plans_by(context, Portion::Table)
}

//! The core of the list: nodes with towers of links, searched from the highest level down.
//!
//! `height` decides how tall a tower is, `finger` goes along links, `search` finds places (`splice`, and `group` for many at
//! once), `trail` and `locate` spare the search where nodes come in order, `link` links; `walk` and `stretch` iterate.

mod finger;
mod group;
mod height;
mod link;
mod locate;
mod search;
mod splice;
mod stretch;
mod trail;
mod walk;

pub(super) use group::{GROUP, Group};
pub(crate) use height::coins;
pub(super) use height::mix;
pub(crate) use search::SeekResult;
pub(super) use splice::Splice;
pub(super) use trail::Trail;
pub(crate) use walk::{Position, RangeIter};

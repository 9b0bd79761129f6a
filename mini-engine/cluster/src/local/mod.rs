//! This node, and the groups that are on it.

mod groups;
mod node;

pub(crate) use self::groups::Groups;
pub(crate) use self::node::Local;

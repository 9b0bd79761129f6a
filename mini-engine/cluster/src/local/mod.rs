//! This node and the groups on it.

mod groups;
mod node;

pub(crate) use self::groups::Groups;
pub(crate) use self::node::Local;

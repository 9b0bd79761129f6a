//! openraft with this project's storage and application.

use openraft_mini_engine::StateMachine;

use crate::application::Application;
use crate::types::TypeConfig;

pub(crate) type Raft = openraft::Raft<TypeConfig, StateMachine<TypeConfig, Application>>;

//! The choices of the command line, in words.

use clap::ValueEnum;
use clap::builder::PossibleValue;

use super::session::{Protocol, ServerDurability};

impl ValueEnum for Protocol {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Resp, Self::Lines]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self {
            Self::Resp => PossibleValue::new("resp").help("The Redis protocol, versions 2 and 3"),
            Self::Lines => PossibleValue::new("lines")
                .help("p KEY VALUE, g KEY, r FROM TO, d KEY, l FILE, s, one a line; keys and values are whole numbers"),
        })
    }
}

impl ValueEnum for ServerDurability {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Synced, Self::Everysec, Self::Buffered]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (name, help) = match self {
            Self::Synced => ("synced", "Once it survives power loss; writes that arrive together share a sync"),
            Self::Everysec => ("everysec", "Before; power loss takes the last second or two, a killed server nothing"),
            Self::Buffered => {
                ("buffered", "Before; power loss takes what was not written yet, a killed server nothing")
            }
        };
        Some(PossibleValue::new(name).help(help))
    }
}

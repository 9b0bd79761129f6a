//! The number of calls of each command and their total time, for INFO and for Prometheus.

/// The figures of one command.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CommandStat {
    /// In capital letters.
    pub(crate) name: &'static str,
    pub(crate) calls: u64,
    /// The total time of all calls. The time of pipelined requests that were carried out together is divided equally among them.
    pub(crate) nanos: u64,
    /// The number of calls whose reply was an error.
    pub(crate) failed: u64,
}

impl CommandStat {
    /// Counts a call.
    pub(crate) fn add(&mut self, nanos: u64, is_failed: bool) {
        self.calls += 1;
        self.nanos += nanos;
        self.failed += u64::from(is_failed);
    }
}

/// The figures of all commands, by the commands' indices in their table.
#[derive(Debug, Default)]
pub(crate) struct CommandStats(Vec<CommandStat>);

impl CommandStats {
    /// The figures of the command at index `place` of the table.
    pub(crate) fn of(&mut self, place: usize, name: &'static str) -> &mut CommandStat {
        if self.0.len() <= place {
            self.0.resize(place + 1, CommandStat::default());
        }
        let stat = &mut self.0[place];
        stat.name = name;
        stat
    }

    /// The commands that were called at least once, in the order of their names.
    pub(crate) fn called(&self) -> impl Iterator<Item = &CommandStat> {
        self.0.iter().filter(|stat| stat.calls > 0)
    }
}

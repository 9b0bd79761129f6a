//! Records each request that was carried out: for INFO, SLOWLOG and MONITOR.

use std::time::Duration;

use crate::commands::Command;
use crate::protocol::request::Args;
use crate::state::context::Context;

/// Records a request and the time that it took.
pub(crate) fn record(context: &mut Context<'_>, command: &Command, args: Args<'_>, took: Duration, is_failed: bool) {
    let shared = &mut *context.shared;
    shared.counters.stats.of(command.place(), command.name()).add(took.as_nanos() as u64, is_failed);
    if took.as_micros() >= u128::from(shared.settings.slow_micros) {
        slow(context, command, args, took);
    }
    show(context, command, args);
}

/// Shows a request to the clients that have sent MONITOR.
pub(super) fn show(context: &mut Context<'_>, command: &Command, args: Args<'_>) {
    let shared = &mut *context.shared;
    // As in Redis, MONITOR itself is not shown.
    if shared.clients.monitors.is_empty() || command.name() == "MONITOR" {
        return;
    }
    shared.clients.show(context.client.id, without_password(command, args));
}

#[cold]
fn slow(context: &mut Context<'_>, command: &Command, args: Args<'_>, took: Duration) {
    let shared = &mut *context.shared;
    let record = shared.clients.get(context.client.id);
    let (address, name) = record.map(|record| (record.addresses[0].clone(), record.name.clone())).unwrap_or_default();
    shared.counters.slow_log.add(took.as_micros() as u64, without_password(command, args), address, name);
}

/// The commands that may run before the password was sent have it as an argument, so only their names are shown.
fn without_password<'a>(command: &Command, args: Args<'a>) -> Args<'a> {
    if command.runs_before_password() { args.up_to(1) } else { args }
}

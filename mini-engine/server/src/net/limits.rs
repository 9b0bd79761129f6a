//! Checks that settings are within their limits.

use std::ops::RangeInclusive;

use mini_engine::MAX_VALUE_LEN;

use crate::error::{Error, Result};
use crate::settings::{Limits, Settings};

/// The maximum number of databases: the engine's maximum number of keyspaces, plus the default one.
const MOST_DATABASES: usize = 1 << 16;

/// # Errors
/// [`Error::InvalidSettings`]: no server could work with these settings.
pub(super) fn check(settings: &Settings) -> Result<()> {
    let limits = &settings.limits;
    within("limits.clients", limits.clients, 1..=usize::MAX)?;
    within("limits.pipeline", limits.pipeline, 1..=usize::MAX)?;
    within("limits.request_bytes", limits.request_bytes, Limits::MIN_REQUEST_BYTES..=MAX_VALUE_LEN)?;
    within("databases", settings.databases, 1..=MOST_DATABASES)?;
    let password = settings.password.as_ref();
    password.map_or(Ok(()), |password| within("length of the password", password.len(), 1..=Settings::MAX_PASSWORD_LEN))
}

fn within(name: &'static str, found: usize, allowed: RangeInclusive<usize>) -> Result<()> {
    match allowed.contains(&found) {
        true => Ok(()),
        false => Err(Error::InvalidSettings { name, expected: format!("{allowed:?}"), found }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_no_server_could_work_with_are_refused() {
        // Catches a loop that never ends because no request may be carried out, and an empty password.
        let with = |change: fn(&mut Settings)| {
            let mut settings = Settings { password: Some(b"secret".to_vec()), ..Settings::default() };
            change(&mut settings);
            check(&settings)
        };
        assert!(with(|_| ()).is_ok());
        let bad: [fn(&mut Settings); 6] = [
            |settings| settings.databases = 0,
            |settings| settings.limits.pipeline = 0,
            |settings| settings.limits.clients = 0,
            |settings| settings.limits.request_bytes = 1023,
            |settings| settings.limits.request_bytes = MAX_VALUE_LEN + 1,
            |settings| settings.password = Some(Vec::new()),
        ];
        for change in bad {
            assert!(matches!(with(change), Err(Error::InvalidSettings { .. })));
        }
    }
}

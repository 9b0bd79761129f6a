//! The password of the server. It is not an argument, because every user of the machine can read a process's arguments.

use std::path::Path;

use mini_engine_server::Settings;

use crate::failure::Failure;

const VARIABLE: &str = "MINI_ENGINE_PASSWORD";
const LONGEST: usize = Settings::MAX_PASSWORD_LEN;

/// The first line of `file`, or else the variable of the environment.
pub(crate) fn read(file: Option<&Path>) -> Result<Option<Vec<u8>>, Failure> {
    let (place, password) = match (file, std::env::var_os(VARIABLE)) {
        (Some(file), _) => {
            let text = std::fs::read(file).map_err(|source| Failure::Io {
                action: "read",
                place: file.display().to_string(),
                source,
            })?;
            let line = text.split(|&byte| byte == b'\n').next().unwrap_or_default();
            (file.display().to_string(), line.strip_suffix(b"\r").unwrap_or(line).to_vec())
        }
        (None, Some(password)) => (VARIABLE.to_owned(), password.into_encoded_bytes()),
        (None, None) => return Ok(None),
    };
    if password.is_empty() || password.len() > LONGEST {
        return Err(Failure::Usage(format!(
            "{place}: expected a password of 1 to {LONGEST} bytes, found {}",
            password.len()
        )));
    }
    Ok(Some(password))
}

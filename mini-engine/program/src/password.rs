//! The password of the server, and the secret of the nodes of a cluster. Neither is an argument, because every user of the machine can read a
//! process's arguments.

use std::path::Path;

use mini_engine_server::Settings;

use crate::failure::Failure;

const VARIABLE: &str = "MINI_ENGINE_PASSWORD";
const LONGEST: usize = Settings::MAX_PASSWORD_LEN;

/// The first line of `file`, or else the value of the environment variable.
pub(crate) fn read(file: Option<&Path>) -> Result<Option<Vec<u8>>, Failure> {
    match (file, std::env::var_os(VARIABLE)) {
        (Some(file), _) => read_file(file).map(Some),
        (None, Some(password)) => checked(VARIABLE, password.into_encoded_bytes()).map(Some),
        (None, None) => Ok(None),
    }
}

/// The first line of `file`.
pub(crate) fn read_file(file: &Path) -> Result<Vec<u8>, Failure> {
    let place = file.display().to_string();
    let text = std::fs::read(file).map_err(|source| Failure::Io { action: "read", place: place.clone(), source })?;
    let line = text.split(|&byte| byte == b'\n').next().unwrap_or_default();
    checked(&place, line.strip_suffix(b"\r").unwrap_or(line).to_vec())
}

fn checked(place: &str, password: Vec<u8>) -> Result<Vec<u8>, Failure> {
    match (1..=LONGEST).contains(&password.len()) {
        true => Ok(password),
        false => Err(Failure::Usage(format!(
            "{place}: expected a password of 1 to {LONGEST} bytes, found {}",
            password.len()
        ))),
    }
}

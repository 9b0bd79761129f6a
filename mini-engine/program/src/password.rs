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
fn read_file(file: &Path) -> Result<Vec<u8>, Failure> {
    checked(&file.display().to_string(), lines(file)?.swap_remove(0))
}

/// The lines of `file`; at least one. All but the first were ignored once, so they are refused if they are hardly meant as secrets.
#[cfg(feature = "cluster")]
pub(crate) fn read_secrets(file: &Path) -> Result<Vec<Vec<u8>>, Failure> {
    let mut lines = lines(file)?;
    lines.truncate(1 + lines.iter().rposition(|line| !line.is_empty()).unwrap_or(0));
    match lines.iter().skip(1).all(|line| line.trim_ascii().len() >= 16) {
        true => Ok(lines),
        false => Err(Failure::Usage(format!(
            "{}: the second line counts as a secret too: expected at least 16 bytes; remove it, or put a shorter secret first",
            file.display()
        ))),
    }
}

/// At least one.
fn lines(file: &Path) -> Result<Vec<Vec<u8>>, Failure> {
    let failed = |source| Failure::Io { action: "read", place: file.display().to_string(), source };
    let text = std::fs::read(file).map_err(failed)?;
    let lines = text.split(|&byte| byte == b'\n');
    Ok(lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line).to_vec()).collect())
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

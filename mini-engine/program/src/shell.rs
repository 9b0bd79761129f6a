//! `shell`: reads commands, fills the database in, and runs each one as a process of its own.
//!
//! So there is one way for each command, and a command that blocks signals, waits for ^C or ends the process does so here too. Between two commands the
//! database is closed, and other programs can write to it.

use std::io::{self, IsTerminal};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::{env, process};

use clap::{Args, Command};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::Validator;
use rustyline::{Config, Context, Editor, Helper};
use signal_hook::consts::SIGINT;

use crate::failure::{Exit, Failure, WRONG_USE};
use crate::output::say;

/// The exit code of a command that ^C has ended.
const INTERRUPTED: u8 = 130;

/// Read commands for one database, a line each
///
/// A line is a command as it is typed in a system's shell, without `mini-engine` and DB. Words are separated by spaces;
/// quotes and backslashes work as there, and # begins a comment. `exit` or ^D ends the shell. On a terminal lines are
/// edited and remembered until the end, and TAB completes commands and options. Without one, no command can read stdin,
/// and one that ^C ends ends the shell too. The exit code is that of the last command.
#[derive(Args)]
#[command(after_help = "\
Examples:
  mini-engine shell notes.db
  printf 'put milk \"2 litres\"\\nscan\\n' | mini-engine shell notes.db")]
pub(crate) struct ShellArgs {
    /// Directory of the database
    #[arg(value_name = "DB")]
    path: PathBuf,
}

/// Runs the lines of stdin, which are commands of `program`.
pub(crate) fn run(args: &ShellArgs, program: Command) -> Result<Exit, Failure> {
    run_lines(args, Commands(program)).map_err(|source| Failure::Io {
        action: "run",
        place: "the shell".into(),
        source,
    })
}

fn run_lines(args: &ShellArgs, commands: Commands) -> io::Result<Exit> {
    // ^C ends a running command, which gets it too, and not the shell.
    signal_hook::flag::register(SIGINT, Arc::default())?;
    let config = Config::builder().auto_add_history(true).build();
    let mut editor = Editor::<_, DefaultHistory>::with_config(config).map_err(io::Error::other)?;
    editor.set_helper(Some(&commands));
    let is_script = !io::stdin().is_terminal();
    let prompt = if is_script { "" } else { "mini-engine> " };
    let mut code = 0;
    loop {
        let line = match editor.readline(prompt) {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => return Ok(Exit::With(code)),
            Err(error) => return Err(io::Error::other(error)),
        };
        match words(&line).as_deref() {
            Err(why) => {
                say(format_args!("mini-engine: {why}"));
                code = WRONG_USE;
            }
            Ok([]) => {}
            Ok([name, ..]) if name == "exit" || name == "quit" => return Ok(Exit::With(code)),
            // The lines after this one are in the editor's buffer: the command would miss them, and they would run as commands.
            Ok([_, rest @ ..]) if is_script && rest.iter().any(|word| word == "-") => {
                say(format_args!(
                    "mini-engine: a command of a script cannot read stdin (-): it has the script's lines"
                ));
                return Ok(Exit::With(WRONG_USE));
            }
            Ok([name, rest @ ..]) => {
                let mut command = process::Command::new(env::current_exe()?);
                command.arg(name).args(commands.takes_database(name).then_some(&args.path)).args(rest);
                if is_script {
                    command.stdin(process::Stdio::null());
                }
                let status = command.status()?;
                let number = status.code().or_else(|| Some(128 + status.signal()?));
                code = number.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX);
                if is_script && code == INTERRUPTED {
                    return Ok(Exit::With(code));
                }
            }
        }
    }
}

/// The words of a line.
fn words(line: &str) -> Result<Vec<String>, &'static str> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (None, letter) if letter.is_whitespace() => words.extend(word.take()),
            (None, '#') if word.is_none() => break,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (Some(open), _) if letter == open => quote = None,
            (None | Some('"'), '\\') => {
                let escaped = letters.next().ok_or("expected a character after a backslash")?;
                let word = word.get_or_insert_default();
                // Within double quotes only these can be escaped.
                if quote.is_some() && !matches!(escaped, '"' | '\\' | '$' | '`') {
                    word.push('\\');
                }
                word.push(escaped);
            }
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    if quote.is_none() { Ok(words) } else { Err("expected a closing quote") }
}

/// The commands of the program, for the completion of a word.
struct Commands(Command);

impl Commands {
    /// Whether the first argument of the command is a database.
    fn takes_database(&self, name: &str) -> bool {
        let first = self.0.find_subcommand(name).and_then(|command| command.get_positionals().next());
        first.is_some_and(|first| first.get_value_names().is_some_and(|names| names == ["DB"]))
    }

    /// The words that begin with the last one of `line`, and where that one begins.
    fn completions(&self, line: &str) -> (usize, Vec<String>) {
        let start = line.rfind(' ').map_or(0, |space| space + 1);
        let (before, word) = line.split_at(start);
        let all: Vec<String> = match before.split_whitespace().next() {
            None => self.0.get_subcommands().map(|command| command.get_name().to_owned()).collect(),
            Some(name) => {
                let options = self.0.find_subcommand(name).into_iter().flat_map(Command::get_arguments);
                options
                    .filter(|option| !option.is_hide_set())
                    .filter_map(|option| Some(format!("--{}", option.get_long()?)))
                    .collect()
            }
        };
        (start, all.into_iter().filter(|found| found.starts_with(word)).collect())
    }
}

impl Helper for &Commands {}
impl Highlighter for &Commands {}
impl Validator for &Commands {}
impl Hinter for &Commands {
    type Hint = String;
}

impl rustyline::completion::Completer for &Commands {
    type Candidate = String;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(self.completions(line.get(..at).unwrap_or(line)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_split_as_a_shell_does() {
        // Catches a quoted space that separates, an empty word that is lost, and a comment within a word.
        for (line, expected) in [
            ("put milk  '2 litres'\r\n", &["put", "milk", "2 litres"][..]),
            (r#"put '' a"\"'"b\ c # it"#, &["put", "", "a\"'b c"]),
            (r"get a#b '\'", &["get", "a#b", "\\"]),
            (r#"get "a\tb\\c""#, &["get", r"a\tb\c"]),
            (" # only this", &[]),
        ] {
            assert_eq!(words(line).expect("words"), expected);
        }
        assert!(["get 'a", "get \"a'", "get a\\"].map(words).iter().all(Result::is_err));
    }

    #[test]
    fn a_word_is_completed_by_its_place() {
        // Catches options that are offered as commands, and hidden ones.
        let program = Command::new("p").subcommand(
            Command::new("get").arg(clap::arg!(--hex)).arg(clap::arg!(--hid).hide(true)).arg(clap::arg!(<DB>)),
        );
        let commands = Commands(program.subcommand(Command::new("import").arg(clap::arg!(<FILE>))));
        assert_eq!(commands.completions("g"), (0, vec!["get".into()]));
        assert_eq!(commands.completions("get k --h"), (6, vec!["--hex".into()]));
        assert_eq!(commands.completions("none --h"), (5, vec![]));
        assert!(commands.takes_database("get") && !commands.takes_database("import"));
    }
}

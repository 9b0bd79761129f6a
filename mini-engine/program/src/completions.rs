//! `completions`: prints a completion script for this program's commands and options.

use clap::{Args, Command};

use crate::failure::{Exit, Failure};
use crate::output::Output;

/// Print a completion script for a shell
#[derive(Args)]
#[command(after_help = "\
Examples:
  mini-engine completions bash > ~/.local/share/bash-completion/completions/mini-engine
  mini-engine completions fish > ~/.config/fish/completions/mini-engine.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: clap_complete::Shell,
}

/// Prints the script for `program`.
pub(crate) fn run(args: &CompletionsArgs, mut program: Command) -> Result<Exit, Failure> {
    // The generator panics when its writer fails, for example on a closed pipe; writing to memory cannot fail.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program, "mini-engine", &mut script);
    let mut output = Output::new();
    output.write(|out| out.write_all(&script))?;
    output.finish()?;
    Ok(Exit::Done)
}

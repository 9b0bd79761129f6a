//! The small language of the Harvard LSM coursework (CS265), one command per line:
//!
//! * `p KEY VALUE` stores a pair; prints nothing.
//! * `g KEY` prints the value, or an empty line.
//! * `r FROM TO` prints `key:value` for each key from FROM up to TO, which is excluded, on one line with spaces between the pairs.
//! * `d KEY` removes a key; prints nothing.
//! * `l "FILE"` stores the pairs of a binary file of 32-bit numbers; prints nothing.
//! * `s` prints the number of pairs, the size of each level, and the pairs of a small database.
//!
//! Keys and values are whole numbers of at most 64 bits, with a sign. A key is stored as eight bytes whose order is that of the numbers, and a value
//! as its digits. The reply to an invalid line begins with `error:`, which the language does not define.
//!
//! Differences from the coursework: `s` prints bytes for each level, since an entry of this engine may still be in the log, and prints no level for
//! each pair. `l` is refused unless the server was started with a directory from which to load.

use std::ops::Bound;
use std::path::{Component, Path};

use super::step::Step;
use crate::protocol::numbers::{encode_key, push_pair};
use crate::protocol::output::Output;
use crate::protocol::reply::{Outcome, Refusal, Reply};
use crate::protocol::request::is_http;
use crate::state::context::{After, Client, Context, Work};
use crate::state::job::Job;
use crate::state::keyspace::{Direction, Keyspace};
use crate::state::shared::Shared;

/// The maximum length of a line, in bytes.
const LONGEST_LINE: usize = 4096;

/// Carries out the first line of `input`.
pub(crate) fn step(shared: &mut Shared, client: &mut Client, input: &[u8], output: &mut Output) -> Step {
    let window = &input[..input.len().min(LONGEST_LINE)];
    let Some(end) = window.iter().position(|&byte| byte == b'\n') else {
        if window.len() < LONGEST_LINE {
            return Step::Incomplete;
        }
        encode(&Reply::Error(format!("a line has at most {LONGEST_LINE} bytes")), output);
        return Step::Close;
    };
    if window[..end].trim_ascii().split(u8::is_ascii_whitespace).next().is_some_and(is_http) {
        encode(&Reply::Error("this is no HTTP server".into()), output);
        return Step::Close;
    }
    let line = std::str::from_utf8(&window[..end]).map(str::trim);
    if line == Ok("") {
        return Step::Empty(end + 1);
    }
    let mut context = Context::new(shared, client);
    let outcome = line.map_err(|_| Refusal::new("a line is text")).and_then(|line| run(&mut context, line));
    let after = context.after;
    if let After::Hold(work) = after {
        return Step::Later(0, work);
    }
    shared.counters.commands += 1;
    encode(&shared.counters.reply(outcome), output);
    match after {
        After::Later(work) => Step::Later(end + 1, work),
        _ => Step::Done { len: end + 1, requests: 1 },
    }
}

fn run(context: &mut Context<'_>, line: &str) -> Outcome {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let mut keyspace = Keyspace::of_command(context.client.database.clone());
    let mut reply = Reply::Nothing;
    match words[..] {
        ["p", key, value] => keyspace.insert(&encode_key(number(key)?), number(value)?.to_string().as_bytes())?,
        ["g", key] => reply = Reply::Bulk(keyspace.get(&encode_key(number(key)?))?.unwrap_or_default()),
        ["r", from, to] => {
            let most = context.shared.keys.request_bytes;
            reply = Reply::Text(range(most, &keyspace, number(from)?, number(to)?)?);
        }
        ["d", key] => keyspace.remove(&encode_key(number(key)?))?,
        ["s"] => context.after = After::Later(Work::Job(Job::Statistics)),
        ["l", ..] => {
            let job = load(context.shared.settings.load_from.as_deref(), line[1..].trim())?;
            // From now on other clients see the pairs; they are synced at the end of the job.
            context.shared.syncs.loads += 1;
            context.after = After::Later(Work::Job(job));
        }
        _ => return Err(Refusal::new("expected p KEY VALUE, g KEY, r FROM TO, d KEY, l \"FILE\" or s")),
    }
    context.commit(keyspace)?;
    Ok(reply)
}

fn number(word: &str) -> Result<i64, Refusal> {
    word.parse().map_err(|_| Refusal::new(format!("expected a whole number, found {}", word.escape_debug())))
}

fn range(most: usize, keyspace: &Keyspace, from: i64, to: i64) -> Result<String, Refusal> {
    let bounds = (Bound::Included(encode_key(from).to_vec()), Bound::Excluded(encode_key(to).to_vec()));
    let mut line = String::new();
    for entry in keyspace.range(bounds, Direction::Forward) {
        let (key, value) = entry?;
        push_pair(&mut line, &key, &value);
        if line.len() > most {
            return Err(Refusal::new(format!("the reply is longer than {most} bytes")));
        }
    }
    Ok(line)
}

/// The file with this `name`, which must be inside the directory from which to load.
fn load(directory: Option<&Path>, name: &str) -> Result<Job, Refusal> {
    let Some(directory) = directory else {
        return Err(Refusal::new("this server loads no files: start it with --load-from DIR"));
    };
    let name = name.strip_prefix('"').and_then(|name| name.strip_suffix('"')).unwrap_or(name);
    let path = Path::new(name);
    let is_below = path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if name.is_empty() || !is_below {
        return Err(Refusal::new("expected the name of a file below the directory of --load-from"));
    }
    Ok(Job::Load(directory.join(path)))
}

/// Encodes a reply as lines.
pub(crate) fn encode(reply: &Reply, output: &mut Output) {
    match reply {
        Reply::Bulk(bytes) => output.put_value(bytes),
        Reply::Text(text) => output.put(text.as_bytes()),
        Reply::Error(text) => output.put(format!("error: {text}").as_bytes()),
        // No command of this language returns such replies.
        Reply::Integer(_)
        | Reply::Simple(_)
        | Reply::Null
        | Reply::NullArray
        | Reply::Array(_)
        | Reply::Map(_)
        | Reply::Nothing => return,
    }
    output.put(b"\n");
}

//! The server's session: any bytes are taken as data that clients send, whole and in pieces.

use std::sync::Arc;

use mini_engine::Db;
use proof::disk::MemFs;
use redis_protocol::{resp2, resp3};

use crate::Met;
use crate::models::input::Input;
use crate::protocol::output::Output;
use crate::protocol::reply::{Outcome, Reply};
use crate::session::{Session, Step};
use crate::settings::{Limits, Protocol, Settings};
use crate::state::context::Work;
use crate::state::job::Job;
use crate::state::shared::Shared;

/// The commands that inputs are made of. Other inputs are sent as raw bytes.
pub const COMMANDS: [&str; 44] = [
    "APPEND",
    "AUTH",
    "CLIENT",
    "COMMAND",
    "CONFIG",
    "COPY",
    "DBSIZE",
    "DECRBY",
    "DEL",
    "DELPREFIX",
    "DELRANGE",
    "DISCARD",
    "EXEC",
    "EXISTS",
    "EXPIREAT",
    "EXPIRETIME",
    "FLUSHALL",
    "FLUSHDB",
    "GET",
    "GETEX",
    "GETRANGE",
    "HELLO",
    "INCR",
    "INCRBYFLOAT",
    "KEYS",
    "MGET",
    "MOVE",
    "MSET",
    "MULTI",
    "OBJECT",
    "PERSIST",
    "PREFIX",
    "RANGE",
    "RENAME",
    "RESET",
    "SCAN",
    "SELECT",
    "SET",
    "SETRANGE",
    "STRLEN",
    "TYPE",
    "UNWATCH",
    "WAITAOF",
    "WATCH",
];
/// Commands whose replies depend on more than the requests.
const CHANGING: [&[u8]; 3] = [b"TIME", b"INFO", b"LASTSAVE"];
const PASSWORD: &str = "pass";
const LIMITS: Limits = Limits { clients: 1, request_bytes: 4096, pipeline: 1, buffer_bytes: 1 << 20, idle_seconds: 0 };

/// Sends the requests of `input` to two sessions: one carries out requests together where that is allowed; the other receives them in pieces,
/// and mostly carries them out one by one.
///
/// # Panics
/// If the replies of a session are not whole or differ in number from the requests, or if the two sessions differ in replies or in stored data.
pub fn server_requests(input: &[u8]) -> Met {
    let mut input = Input::new(input);
    let protocol = input.choose(&[Protocol::Resp, Protocol::Resp, Protocol::Resp, Protocol::Lines]);
    let has_password = input.byte().is_multiple_of(4);
    let cut = 1 + usize::from(input.byte());
    let together = if cut.is_multiple_of(4) { usize::MAX } else { 1 };
    let mut sent = Vec::new();
    while !input.is_empty() {
        request(&mut input, &mut sent);
    }
    let mut met = Met::new();
    let mut whole = Conversation::new(protocol, has_password, usize::MAX);
    whole.receive(&sent, &mut Met::new());
    let mut pieces = Conversation::new(protocol, has_password, together);
    for end in (0..sent.len()).step_by(cut).chain([sent.len()]) {
        pieces.receive(&sent[..end], &mut met);
    }
    let capitals = sent.to_ascii_uppercase();
    if !CHANGING.iter().any(|name| capitals.windows(name.len()).any(|window| window == *name)) {
        assert_eq!(whole.answered.escape_ascii().to_string(), pieces.answered.escape_ascii().to_string());
    }
    assert_eq!(whole.contents(), pieces.contents());
    met
}

/// Appends a request, usually a valid one.
fn request(input: &mut Input<'_>, sent: &mut Vec<u8>) {
    let shape = input.byte();
    if shape < 8 {
        sent.extend((0..shape).map(|_| input.byte()));
        return;
    }
    let mut parts = vec![input.choose(&COMMANDS).as_bytes().to_vec()];
    for _ in 0..shape % 5 {
        parts.push(part(input));
    }
    if shape >= 250 {
        // Sent as separate words; the words may contain line breaks.
        sent.extend_from_slice(&parts.join(&b' '));
        sent.extend_from_slice(b"\r\n");
        return;
    }
    sent.extend_from_slice(format!("*{}\r\n", parts.len()).as_bytes());
    for part in parts {
        // Sometimes the length is wrong.
        let len = if input.byte() == 255 { usize::from(input.byte()) * 100 } else { part.len() };
        sent.extend_from_slice(format!("${len}\r\n").as_bytes());
        sent.extend_from_slice(&part);
        sent.extend_from_slice(b"\r\n");
    }
}

fn part(input: &mut Input<'_>) -> Vec<u8> {
    const WORDS: &str = "NX,XX,GET,LIMIT,REV,MATCH,COUNT,1,2,3,0,-1,9223372036854775807,a*,[^a-b]?,AUTH,default,pass,maxclients,\
                         DOCS,INFO,SETNAME,,TYPE,EXAT,KEEPTTL,DB,REPLACE,ENCODING";
    match input.byte() % 4 {
        0 => input.key(),
        1 => input.value(),
        2 => input.choose(&["a", "b", "c", "d"]).into(),
        _ => input.choose(&WORDS.split(',').collect::<Vec<_>>()).into(),
    }
}

/// A client's session, with a server of its own.
struct Conversation {
    shared: Shared,
    session: Session,
    protocol: Protocol,
    /// The most requests that the session may carry out together.
    most: usize,
    /// The number of sent bytes that the session has carried out.
    consumed: usize,
    answered: Vec<u8>,
    is_over: bool,
}

impl Conversation {
    fn new(protocol: Protocol, has_password: bool, most: usize) -> Self {
        let builder = Db::builder("/db").memtable_bytes(256 << 10).file_system(Arc::new(MemFs::default()));
        let settings = Settings {
            protocol,
            password: has_password.then(|| PASSWORD.into()),
            limits: LIMITS,
            may_flush_all: true,
            ..Settings::default()
        };
        let mut shared = Shared::new(builder.open().expect("a sound disk"), settings, 1);
        let session = Session::new(&mut shared);
        Self { shared, session, protocol, most, consumed: 0, answered: Vec::new(), is_over: false }
    }

    /// Carries out the complete requests in `sent` (all bytes received so far) from byte `consumed` on.
    fn receive(&mut self, sent: &[u8], met: &mut Met) {
        while !self.is_over {
            let (rest, mut output) = (&sent[self.consumed..], Output::default());
            let (len, replies) = match self.session.step(&mut self.shared, rest, self.most, &mut output) {
                Step::Incomplete => {
                    assert!(output.is_empty());
                    return;
                }
                Step::Done { len, requests } => {
                    assert!((1..=self.most).contains(&requests));
                    (len, requests)
                }
                Step::Empty(len) => {
                    assert!(output.is_empty());
                    (len, 0)
                }
                Step::Continue => {
                    assert!(output.is_empty());
                    continue;
                }
                Step::Later(0, Work::Job(Job::Create(number))) => {
                    assert!(output.is_empty());
                    let created: Outcome = Job::Create(number).run(&self.shared.keys.db, &Default::default());
                    assert!(created.is_ok());
                    continue;
                }
                Step::Later(len, Work::Job(job)) => {
                    assert!(output.is_empty());
                    let reply = match job {
                        Job::Count(_) => {
                            let outcome: Outcome = job.run(&self.shared.keys.db, &Default::default());
                            self.shared.end_job(&job, outcome)
                        }
                        _ => Reply::OK,
                    };
                    self.session.answer(&reply, &mut output);
                    (len, 1)
                }
                Step::Later(0, Work::Room(batch)) => {
                    assert!(output.is_empty() && !batch.is_empty());
                    let waited = self.shared.keys.db.wait_for_room(&batch);
                    self.session.refuse(waited.err());
                    continue;
                }
                Step::Later(..) => unreachable!("there are no groups"),
                Step::Close => {
                    self.is_over = true;
                    // SHUTDOWN has no reply.
                    (rest.len(), usize::from(!output.is_empty()))
                }
            };
            assert!(len > 0 && len <= rest.len());
            let mut answered = Vec::new();
            while !output.is_empty() {
                output.send(&mut answered).expect("memory takes it");
            }
            let output = answered;
            if self.protocol == Protocol::Resp {
                assert!(are_replies(&output, replies), "{replies}: {}", output.escape_ascii());
            }
            assert!(output.len() <= 16 * LIMITS.request_bytes);
            met.extend(self.meets(&rest[..len], &output));
            self.consumed += len;
            self.answered.extend_from_slice(&output);
        }
    }

    /// The command, if it was carried out, or the code of its refusal.
    fn meets(&self, request: &[u8], output: &[u8]) -> Option<String> {
        if self.protocol == Protocol::Lines {
            return None;
        }
        if output.starts_with(b"-ERR Protocol error") {
            return Some("malformed".into());
        }
        if output.starts_with(b"-") {
            let code = output.split(|byte| byte.is_ascii_whitespace()).next()?;
            return Some(String::from_utf8(code.to_vec()).expect("a code is text"));
        }
        let capitals = request.to_ascii_uppercase();
        let is_named = |name: &&&str| {
            let part = format!("${}\r\n{name}\r\n", name.len());
            capitals.iter().position(|&byte| byte == b'$').is_some_and(|at| capitals[at..].starts_with(part.as_bytes()))
        };
        COMMANDS.iter().find(is_named).map(|name| (*name).to_owned())
    }

    fn contents(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let entries = self.shared.keys.db.iter().map(|entry| entry.expect("a sound disk"));
        entries.map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
    }
}

/// Whether a client of either protocol version parses all of `output` as `count` replies.
fn are_replies(mut output: &[u8], count: usize) -> bool {
    for _ in 0..count {
        let two = || resp2::decode::decode(output).ok().flatten().map(|(_, len)| len);
        let three = || resp3::decode::complete::decode(output).ok().flatten().map(|(_, len)| len);
        let Some(len) = two().or_else(three) else { return false };
        output = &output[len..];
    }
    output.is_empty()
}

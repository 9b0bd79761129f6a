//! The metrics for Prometheus: `GET /metrics` over HTTP/1.1, of which nothing else is supported. A connection ends with its first reply.

use super::step::Step;
use crate::protocol::output::Output;
use crate::protocol::reply::Reply;
use crate::state::metrics;
use crate::state::shared::Shared;

/// The maximum length of a request with its headers, in bytes.
const LONGEST: usize = 16 << 10;

/// Answers the request at the beginning of `input`.
pub(super) fn step(shared: &Shared, input: &[u8], output: &mut Output) -> Step {
    let is_whole = input.windows(4).any(|end| end == b"\r\n\r\n");
    if !is_whole && input.len() < LONGEST {
        return Step::Incomplete;
    }
    let line = input.split(|&byte| byte == b'\r').next().unwrap_or_default();
    let mut words = line.split(|&byte| byte == b' ');
    match (is_whole, words.next(), words.next()) {
        (true, Some(b"GET"), Some(b"/metrics")) => respond("200 OK", &metrics::text(shared), output),
        (true, Some(b"GET"), Some(_)) => respond("404 Not Found", "the metrics are at /metrics\n", output),
        (true, _, _) => respond("405 Method Not Allowed", "expected GET /metrics\n", output),
        (false, _, _) => respond("431 Request Header Fields Too Large", "the request is too long\n", output),
    }
    Step::Close
}

fn respond(status: &str, body: &str, output: &mut Output) {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    output.put(head.as_bytes());
    output.put(body.as_bytes());
}

/// Replaces the reply by an error after a failed sync; no reply of this language waits for a sync.
pub(super) fn encode(reply: &Reply, output: &mut Output) {
    if let Reply::Error(text) = reply {
        respond("500 Internal Server Error", text, output);
    }
}

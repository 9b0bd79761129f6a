//! Clients that do not read their replies: how long the server reads their requests, and when it disconnects them.

use std::io::ErrorKind;

use super::*;
use crate::state::refused::Cause;

const PART: usize = 10_000;

/// A request and its reply.
fn echo() -> (String, String) {
    let value = format!("${PART}\r\n{}\r\n", "v".repeat(PART));
    (format!("*2\r\n$4\r\nECHO\r\n{value}"), value)
}

fn running(buffer_bytes: usize) -> Running {
    let mut settings = settings(ServerDurability::Buffered);
    settings.limits.buffer_bytes = buffer_bytes;
    Running::with(settings)
}

/// A figure of INFO.
fn number(client: &mut TcpStream, section: &str, name: &str) -> usize {
    client.write_all(format!("INFO {section}\r\nPING\r\n").as_bytes()).expect("send");
    let (mut said, mut part) = (Vec::new(), [0; 4096]);
    while !said.ends_with(b"+PONG\r\n") {
        let len = client.read(&mut part).expect("receive");
        assert!(len > 0, "it ended");
        said.extend_from_slice(&part[..len]);
    }
    let said = String::from_utf8(said).expect("text");
    let line = said.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("{name}: {said}")).parse().expect("a number")
}

#[test]
fn a_pipeline_may_be_sent_whole_before_its_first_reply_is_read() {
    // Catches a deadlock in which each side waits until the other one reads; Redis replies in this case.
    let server = running(1 << 30);
    let mut client = server.client();
    client.set_write_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    let ((request, reply), requests) = (echo(), 5000);
    // Far more than all buffers of the system, in both directions.
    client.write_all(request.repeat(requests).as_bytes()).expect("it is read");
    let mut said = vec![0; reply.len()];
    for n in 0..requests {
        client.read_exact(&mut said).expect("a reply");
        assert!(said == reply.as_bytes(), "{n}");
    }
    assert!(number(&mut client, "clients", "client_buffer_bytes") < 2 << 20, "the memory is given back");
    server.end();
}

#[test]
fn requests_are_read_ahead_up_to_a_part_of_the_memory_of_all_clients_and_none_is_lost() {
    // Catches a flooding client that is disconnected merely because it does not read, or that takes the memory of the other clients; and requests
    // that are moved, dropped or repeated in a long input.
    let most = 32 << 20;
    let server = running(most);
    let (mut flooder, mut other) = (server.client(), server.client());
    let (request, reply) = echo();
    let requests = request.repeat(10);
    flooder.set_nonblocking(true).expect("nonblocking");
    let (mut sent, mut refused) = (0, 0);
    while refused < 10 {
        match flooder.write(&requests.as_bytes()[sent % request.len()..]) {
            Ok(len) => (sent, refused) = (sent + len, 0),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                refused += 1;
                // The event loop has had a turn, in which it would have read more.
                let bytes = number(&mut other, "clients", "client_buffer_bytes");
                assert!(bytes < most / 2 + (2 << 20), "{bytes} bytes are kept");
            }
        }
    }
    assert!(sent > most / 4, "{sent} bytes were taken");
    // The client sends the rest of its last request while it reads replies.
    flooder.set_nonblocking(false).expect("blocking");
    let (whole, mut writer) = (sent.div_ceil(request.len()), flooder.try_clone().expect("a handle"));
    let rest = request.as_bytes()[request.len() - (whole * request.len() - sent)..].to_owned();
    let writing = thread::spawn(move || writer.write_all(&rest).expect("it is read"));
    let mut said = vec![0; reply.len()];
    for n in 0..whole {
        flooder.read_exact(&mut said).expect("a reply");
        assert!(said == reply.as_bytes(), "{n} of {whole}");
    }
    writing.join().expect("no panic");
    assert_eq!(number(&mut other, "stats", "clients_disconnected_buffers"), 0);
    server.end();
}

#[test]
fn a_client_that_takes_no_reply_for_a_minute_is_disconnected_and_said() {
    // Catches a client that disappears silently and stays connected, and a client that is disconnected although it takes its replies slowly.
    let db = database(1 << 20).1;
    db.insert("k", vec![b'v'; 900_000]).expect("insert");
    let mut shared = Shared::new(db, settings(ServerDurability::Buffered), 1);
    let (now, mut buffer) = (Instant::now(), vec![0; READ_BYTES]);
    let (mut client, arrived, mut connection) = connected(&mut shared, now);
    client.write_all("GET k\r\n".repeat(100).as_bytes()).expect("send");
    while arrived.peek(&mut [0; 700]).is_ok_and(|len| len < 700) {}
    // More than the system's buffers take.
    for _ in 0..100 {
        connection.turn(&mut shared, &mut buffer, now);
        connection.send(now);
    }
    let minute = Duration::from_secs(60);
    for (waited, is_closed) in [(minute, false), (minute + Duration::from_millis(1), true)] {
        assert_eq!(is_closed_at(&mut connection, &mut shared, now + waited), is_closed);
        assert_eq!(shared.counters.refused.count(Cause::Slow), u64::from(is_closed));
    }
    let [_, said] = shared.counters.refused.news(now);
    let (said, address) = (said.expect("a line"), client.local_addr().expect("an address"));
    assert!(said.starts_with(&format!("disconnected {address}: it took none of its replies for 60 s")), "{said}");
    let text = crate::state::metrics::text(&shared);
    for (reason, count) in [("slow", 1), ("buffers", 0), ("monitor", 0), ("idle", 0)] {
        assert!(text.contains(&format!("\nmini_engine_disconnected_total{{reason=\"{reason}\"}} {count}\n")), "{text}");
    }
}

#[test]
fn who_takes_too_much_memory_or_is_too_far_behind_is_counted_by_the_reason() {
    // Catches a disconnection that INFO does not count, or counts under another cause.
    let server = running(512 << 10);
    let (mut other, mut large) = (server.client(), server.client());
    // The client may be disconnected before everything is sent.
    large.write_all(format!("*2\r\n$4\r\nECHO\r\n$1000000\r\n{}", "v".repeat(900_000)).as_bytes()).ok();
    assert!(large.read(&mut [0]).map_or(true, |len| len == 0));
    assert_eq!(number(&mut other, "stats", "clients_disconnected_buffers"), 1);
    assert_eq!(number(&mut other, "stats", "client_output_buffer_limit_disconnections"), 1);
    server.end();

    let server = running(64 << 20);
    let (mut other, mut monitor) = (server.client(), server.client());
    assert_eq!(ask(&mut monitor, "MONITOR\r\n", 1), ["+OK"]);
    let request = format!("ECHO {}\r\n", "v".repeat(1000)).repeat(1000);
    // At most the bytes that the system and the server buffer.
    let is_gone = (0..200).any(|_| {
        other.write_all(request.as_bytes()).expect("send");
        other.read_exact(&mut vec![0; 1000 * "$1000\r\n\r\n".len() + 1000 * 1000]).expect("the replies");
        number(&mut other, "stats", "clients_disconnected_monitor") == 1
    });
    assert!(is_gone);
    assert_eq!(number(&mut other, "stats", "clients_disconnected_buffers"), 0);
    server.end();
}

//! The options for the server's addresses, and its messages and metrics.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;

use redis::cmd;

use crate::support::server::{Raw, Server, serve};
use crate::support::{Room, check_says};

#[test]
fn clients_of_a_unix_socket_are_served() {
    // Catches a path that is taken for an address, and a start message without the address for clients.
    let room = Room::new();
    let path = room.path("socket");
    let listen = format!("unix:{}", path.display());
    let mut command = serve(&room.database(), &["--listen", &listen]);
    let mut child = command.spawn().expect("spawn");
    let mut said = String::new();
    BufReader::new(child.stderr.as_mut().expect("piped")).read_line(&mut said).expect("text");
    assert_eq!(said, format!("serving {} on {listen}\n", room.database().display()));
    let mut raw = UnixStream::connect(&path).expect("connect");
    raw.write_all(b"PING\r\nSHUTDOWN\r\n").expect("send");
    let mut replies = String::new();
    raw.read_to_string(&mut replies).expect("the end");
    assert_eq!(replies, "+PONG\r\n");
    assert!(child.wait().expect("wait").success() && !path.exists());
}

#[test]
fn metrics_are_at_the_address_that_is_printed() {
    // Catches a server without metrics.
    let server = Server::new(&["--metrics", "127.0.0.1:0"]);
    let metrics = server.started.lines().next().expect("a line").strip_prefix("metrics at http://");
    let metrics = metrics.and_then(|at| at.strip_suffix("/metrics")).expect("an address");
    let mut reader = Raw::connect(metrics);
    reader.send("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    let said = String::from_utf8(reader.rest()).expect("text");
    assert!(said.starts_with("HTTP/1.1 200 OK\r\n") && said.contains("\nmini_engine_writes_total 0\n"), "{said}");
}

#[test]
fn options_that_no_server_could_use_are_refused_before_the_database_is_made() {
    // Catches a server that does not encrypt in spite of the TLS options, and an error that does not name the option's file.
    let room = Room::new();
    std::fs::write(room.path("empty.pem"), "").expect("write");
    let empty = room.path("empty.pem").display().to_string();
    let with_tls = format!("serve --listen 127.0.0.1:0 --tls-cert {empty}");
    room.refuses(
        2,
        &[
            (&with_tls, "--tls-key"),
            (&format!("{with_tls} --tls-key {empty}"), "empty.pem for TLS"),
            ("serve --listen 127.0.0.1:0 --metrics nowhere", "nowhere: expected an address and a port"),
        ],
    );
    room.refuses(4, &[("serve --listen unix:/nowhere/socket", "unix:/nowhere/socket")]);
    assert!(!room.database().exists());
}

#[test]
fn refused_clients_and_passwords_are_in_the_log() {
    // Catches refused clients that the server's log does not mention.
    let room = Room::new();
    let mut command = serve(&room.database(), &["--max-clients", "1"]);
    command.env("MINI_ENGINE_PASSWORD", "hush");
    let mut server = Server::run(command);
    let mut raw = server.raw();
    raw.send("AUTH wrong\r\n");
    raw.expect("-WRONGPASS invalid username-password pair or user is disabled.\r\n");
    assert_eq!(server.raw().rest(), b"-ERR max number of clients reached\r\n");
    drop(raw);
    let said = server.end();
    check_says(&said, "WARN|refused 127.0.0.1:");
    // One line, for the first refused client or for both.
    let lines = [": wrong password\n", ": there are already 1 clients (and 1 more)\n"];
    assert!(lines.iter().any(|line| said.contains(line)), "{said}");
}

#[test]
fn a_slow_request_is_shown_to_whom_it_concerns() {
    // Catches an option that is not passed on.
    for (options, micros) in [(&["--slow", "0"][..], "0"), (&[], "10000")] {
        let server = Server::new(options);
        let mut db = server.client();
        let setting: Vec<String> =
            cmd("CONFIG").arg("GET").arg("slowlog-log-slower-than").query(&mut db).expect("a setting");
        assert_eq!(setting[1], micros);
        if micros == "0" {
            assert!(cmd("SLOWLOG").arg("LEN").query::<usize>(&mut db).expect("a number") > 0);
        }
    }
}

//! The options for the server's addresses, and its messages and metrics.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use redis::cmd;

use crate::support::server::{Server, connect, serve};
use crate::support::{PATIENCE, Room};

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
    let mut db = redis::Client::open(format!("unix://{}", path.display()))
        .expect("an address")
        .get_connection()
        .expect("connect");
    assert_eq!(cmd("PING").query::<String>(&mut db).expect("ping"), "PONG");
    let mut raw = UnixStream::connect(&path).expect("connect");
    raw.write_all(b"SHUTDOWN\r\n").expect("send");
    assert!(child.wait().expect("wait").success() && !path.exists());
}

#[test]
fn metrics_are_at_the_address_that_is_printed() {
    // Catches a server without metrics.
    let room = Room::new();
    let mut child =
        serve(&room.database(), &["--metrics", "127.0.0.1:0"]).stderr(Stdio::piped()).spawn().expect("spawn");
    let mut lines = BufReader::new(child.stderr.as_mut().expect("piped")).lines().map(|line| line.expect("text"));
    let (metrics, address) = (lines.next().expect("a line"), lines.next().expect("a line"));
    let metrics =
        metrics.strip_prefix("metrics at http://").and_then(|at| at.strip_suffix("/metrics")).expect("an address");
    let mut reader = TcpStream::connect(metrics).expect("connect");
    reader.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    reader.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").expect("send");
    let mut said = String::new();
    reader.read_to_string(&mut said).expect("the end");
    assert!(said.starts_with("HTTP/1.1 200 OK\r\n") && said.contains("\nmini_engine_writes_total 0\n"), "{said}");
    let (_, address) = address.split_once(" on ").expect("an address");
    let mut raw = TcpStream::connect(address).expect("connect");
    raw.write_all(b"SHUTDOWN\r\n").expect("send");
    assert!(child.wait().expect("wait").success());
}

#[test]
fn options_that_no_server_could_use_are_refused_before_the_database_is_made() {
    // Catches a server that does not encrypt in spite of the TLS options, and an error that does not name the option's file.
    let room = Room::new();
    std::fs::write(room.path("empty.pem"), "").expect("write");
    let empty = room.path("empty.pem").display().to_string();
    room.refuses(2, &[(&format!("serve --tls-cert {empty}"), "--tls-key")]);
    room.refuses(
        2,
        &[(&format!("serve --listen 127.0.0.1:0 --tls-cert {empty} --tls-key {empty}"), "empty.pem for TLS")],
    );
    room.refuses(2, &[("serve --listen 127.0.0.1:0 --metrics nowhere", "nowhere: expected an address and a port")]);
    room.refuses(4, &[("serve --listen unix:/nowhere/socket", "unix:/nowhere/socket")]);
    assert!(!room.database().exists());
}

#[test]
fn refused_clients_and_passwords_are_in_the_log() {
    // Catches refused clients that the server's log does not mention.
    let room = Room::new();
    let mut command = serve(&room.database(), &["--max-clients", "1"]);
    command.env("MINI_ENGINE_PASSWORD", "hush");
    let server = Server::run(command);
    let mut raw = server.raw();
    raw.send("AUTH wrong\r\n");
    raw.expect("-WRONGPASS invalid username-password pair or user is disabled.\r\n");
    assert_eq!(server.raw().rest(), b"-ERR max number of clients reached\r\n");
    drop(raw);
    let said = server.end();
    // One line, for the first refused client or for both.
    let lines = [": wrong password\n", ": there are already 1 clients (and 1 more)\n"];
    assert!(
        said.contains("WARN") && said.contains("refused 127.0.0.1:") && lines.iter().any(|line| said.contains(line)),
        "{said}"
    );
}

#[test]
fn a_slow_request_is_shown_to_whom_it_concerns() {
    // Catches an option that is not passed on.
    let server = Server::new(&["--slow", "0"]);
    let mut db = connect(server.address, "");
    cmd("ECHO").arg("hello").query::<()>(&mut db).expect("echo");
    assert!(cmd("SLOWLOG").arg("LEN").query::<usize>(&mut db).expect("a number") > 0);
    drop(db);
    let server = Server::new(&[]);
    let mut db = connect(server.address, "");
    let slower: Vec<String> =
        cmd("CONFIG").arg("GET").arg("slowlog-log-slower-than").query(&mut db).expect("a setting");
    assert_eq!(slower[1], "10000");
    drop(db);
    server.end();
}

//! Clients that send too much, too little, or invalid data, and must not affect others.

use std::io::{Read, Write};
use std::net::Shutdown;

use redis::{Commands, cmd};

use crate::support::server::{Raw, Server, connect, info, serve, syncs};
use crate::support::{Room, wait_for};

fn ping(server: &Server) {
    let mut raw = server.raw();
    raw.send("PING\r\n");
    raw.expect("+PONG\r\n");
}

#[test]
fn what_is_no_request_ends_its_own_connection_after_a_reply_that_says_so() {
    // Catches a frame that ends or blocks the server. Some frames are nested arrays, which overflow the stack of recursive decoders.
    let server = Server::new(&["--max-request", "1M"]);
    let mut bystander = server.client();
    let nested = "*1\r\n".repeat(200_000);
    let frames: [&[u8]; 9] = [
        b"*1\r\n+PING\r\n",
        b"*x\r\n",
        b"*99999999\r\n",
        b"*1\r\n$-5\r\n",
        b"*1\r\n$1048577\r\n",
        b"*1\r\n$4\r\nPINGxx*1\r\n",
        b"GET \"unbalanced\r\n",
        nested.as_bytes(),
        b"*11111111111111111111111111111111111111111111111111111",
    ];
    for frame in frames {
        let mut raw = server.raw();
        raw.send("PING\r\n");
        // The server may close its side before all bytes are sent; it reads the rest only for a while.
        raw.0.write_all(frame).ok();
        raw.0.shutdown(Shutdown::Write).ok();
        let said = String::from_utf8(raw.rest_or_reset()).expect("text");
        let expected = "+PONG\r\n-ERR Protocol error: ";
        assert!(said.starts_with(expected) && said.ends_with("\r\n"), "{:?}: {said}", frame[..10].escape_ascii());
        assert_eq!(said.matches("\r\n").count(), 2, "{said}");
        assert_eq!(cmd("PING").query::<String>(&mut bystander).expect("others are served"), "PONG");
    }
}

#[test]
fn a_request_may_arrive_byte_by_byte_beside_others() {
    // Catches a server that waits for the rest of one request while other clients' requests are complete.
    let server = Server::new(&[]);
    let mut slow = server.raw();
    for byte in b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nvalue\r\n" {
        slow.send([*byte]);
        ping(&server);
    }
    slow.expect("+OK\r\n");
    // A client that has closed its sending side still gets its replies.
    slow.send("GET k\r\nPING\r\n");
    slow.0.shutdown(Shutdown::Write).expect("shutdown");
    assert_eq!(slow.rest(), b"$5\r\nvalue\r\n+PONG\r\n");
}

/// The memory of all clients' buffers, from the server's own count.
fn buffer_bytes(db: &mut redis::Connection) -> usize {
    info(db, "clients", "client_buffer_bytes").parse().expect("a number")
}

#[test]
fn a_client_that_does_not_read_stops_only_itself_and_loses_nothing() {
    // Catches replies that accumulate without bound, an event loop that waits for the slow reader, and replies that are lost or garbled because
    // they take many writes.
    let server = Server::new(&[]);
    let value: Vec<u8> = (0..100_000).map(|n: u32| (n ^ (n >> 8)) as u8).collect();
    server.client().set::<_, _, ()>("large", &value).expect("set");
    let mut slow = server.raw();
    // The requests fit into the system's buffers; their replies do not.
    let requests = 1000;
    slow.send("GET large\r\n".repeat(requests));
    (0..20).for_each(|_| ping(&server));
    let buffers = buffer_bytes(&mut server.client());
    assert!(buffers < 8 << 20, "{buffers} bytes are kept");
    // Once the client reads, every request gets its reply.
    let expected = [&b"$100000\r\n"[..], &value, b"\r\n"].concat();
    let mut reply = vec![0; expected.len()];
    for _ in 0..requests {
        slow.0.read_exact(&mut reply).expect("a reply");
        assert!(reply == expected);
    }
}

#[test]
fn a_flood_of_requests_is_carried_out_in_turns() {
    // Catches a pipeline that is carried out to its end before any other client's request. Each turn ends with a sync, so the number of syncs is the
    // number of turns.
    let server = Server::new(&["--max-pipeline", "16"]);
    let mut other = server.client();
    let before = syncs(&mut other);
    let mut flooder = server.raw();
    let requests = 1600;
    flooder.send("INCR flood\r\n".repeat(requests));
    flooder.expect((1..=requests).map(|n| format!(":{n}\r\n")).collect::<String>());
    let turns = syncs(&mut other) - before;
    assert!(turns >= 100, "{turns} turns for {requests} requests");
}

#[test]
fn clients_past_the_limit_are_told_and_places_become_free_again() {
    // Catches a limit on clients that is not enforced, and one that counts disconnected clients.
    let server = Server::new(&["--max-clients", "2"]);
    for _ in 0..3 {
        let (mut one, mut two) = (admitted(&server), admitted(&server));
        assert_eq!(server.raw().rest(), b"-ERR max number of clients reached\r\n");
        for raw in [&mut one, &mut two] {
            raw.send("QUIT\r\n");
            assert_eq!(raw.rest(), b"+OK\r\n");
        }
    }
}

/// A client that the server has admitted. The server may notice the end of another connection late, so this may take several tries.
fn admitted(server: &Server) -> Raw {
    let mut admitted = None;
    wait_for("a place for a client", || {
        let mut raw = server.raw();
        let mut reply = [0; 7];
        // The write fails if the connection was reset.
        raw.0.write_all(b"PING\r\n").ok();
        let is_admitted = raw.0.read_exact(&mut reply).is_ok() && reply == *b"+PONG\r\n";
        admitted = is_admitted.then_some(raw);
        is_admitted
    });
    admitted.expect("it was admitted")
}

#[test]
fn a_client_that_says_nothing_is_disconnected_after_the_idle_timeout() {
    // Catches an idle client that is never disconnected, also one that has sent half a request.
    let server = Server::new(&["--idle-timeout", "1"]);
    let (mut silent, mut half) = (server.raw(), server.raw());
    // The client may be disconnected before it sends.
    half.0.write_all(b"*2\r\n$3\r\nGET\r\n$100\r\nhalf").ok();
    assert_eq!((silent.rest(), half.rest_or_reset()), (vec![], vec![]));
}

#[test]
fn all_clients_together_take_no_more_memory_than_they_may() {
    // Catches total memory without a bound, from many requests that are each within their limit. The client with the most memory is disconnected, the
    // others stay.
    let server = Server::new(&["--max-buffers", "4M", "--max-request", "8M"]);
    let mut bystander = server.client();
    let mut large = server.raw();
    let request = format!("*2\r\n$3\r\nGET\r\n${}\r\n{}", 7 << 20, "k".repeat(6 << 20));
    // The client is disconnected before all bytes are sent.
    large.0.write_all(request.as_bytes()).ok();
    assert_eq!(large.rest_or_reset(), b"");
    assert_eq!(cmd("PING").query::<String>(&mut bystander).expect("others stay"), "PONG");
}

#[test]
fn a_reply_is_counted_until_its_memory_is_free() {
    // Catches memory of a reply that is no longer counted once a part of the reply was sent, so that many such clients exceed the bound.
    let server = Server::new(&[]);
    let mut other = server.client();
    let mut reader = server.raw();
    // Far more bytes than network buffers hold.
    let len = 64 << 20;
    let value = "e".repeat(len);
    reader.send(format!("*2\r\n$4\r\nECHO\r\n${len}\r\n{value}\r\n"));
    // Once the first bytes arrive, a part of the reply was sent.
    reader.expect(format!("${len}\r\n"));
    let buffers = buffer_bytes(&mut other);
    assert!(buffers >= len, "{buffers} of {len} bytes are counted");
    let mut rest = vec![0; len + 2];
    reader.0.read_exact(&mut rest).expect("the rest");
    assert!(rest.ends_with(b"ee\r\n"));
    wait_for("the memory is given back", || buffer_bytes(&mut other) < 1 << 20);
}

#[test]
fn a_server_that_others_reach_needs_a_password() {
    // Catches a database that is open to the network by default, and a password that is not required.
    let room = Room::new();
    room.refuses(
        2,
        &[("serve --listen 0.0.0.0:0", "--password-file"), ("serve --password-file /dev/null", "password")],
    );
    assert!(!room.database().exists());

    std::fs::write(room.path("secret"), "hush\n").expect("write");
    let file = room.path("secret").display().to_string();
    let by_file = serve(&room.database(), &["--password-file", &file]);
    let mut by_variable = serve(&room.database(), &[]);
    by_variable.env("MINI_ENGINE_PASSWORD", "hush");
    for command in [by_file, by_variable] {
        let server = Server::run(command);
        let mut raw = server.raw();
        raw.send("GET a\r\nAUTH no\r\nAUTH hush\r\nGET a\r\n");
        raw.expect("-NOAUTH Authentication required.\r\n-WRONGPASS invalid username-password pair or user is disabled.\r\n+OK\r\n$-1\r\n");
        for options in ["", "?protocol=resp3"] {
            connect(format!(":hush@{}", server.address), options).set::<_, _, ()>("a", 1).expect("set");
        }
        connect(format!(":hush@{}", server.address), "").del::<_, ()>("a").expect("del");
    }
}

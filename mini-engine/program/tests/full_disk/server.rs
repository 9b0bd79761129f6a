//! `serve` on a disk that is really full.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStderr, ExitStatus};

use rustix::process::{Pid, Signal, kill_process};

use crate::mount::Mount;
use crate::program::{DISK, ENOUGH, PATIENCE, in_time, program, value};

/// `serve`, and what it says.
struct Server {
    /// Until it has been told to end.
    child: Option<Child>,
    stderr: BufReader<ChildStderr>,
    address: String,
}

impl Server {
    fn start(db: &Path) -> Self {
        let mut child = program("serve", db, &["--listen", "127.0.0.1:0"]).spawn().expect("spawn");
        let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
        let mut said = String::new();
        stderr.read_line(&mut said).expect("text");
        let address = said.trim_end().rsplit(' ').next().expect("an address").to_owned();
        Self { child: Some(child), stderr, address }
    }

    fn client(&self) -> Client {
        let stream = TcpStream::connect(&self.address).expect("connect");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        Client(BufReader::new(stream))
    }

    /// How it ends when it is told to, and what it says until then.
    fn end(mut self) -> (ExitStatus, String) {
        let child = self.child.take().expect("it runs");
        kill_process(Pid::from_child(&child), Signal::TERM).expect("signal");
        let status = in_time(child).status;
        let mut said = String::new();
        self.stderr.read_to_string(&mut said).expect("text");
        (status, said)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A test has failed. The disk cannot be unmounted as long as it runs.
        if let Some(child) = &mut self.child {
            child.kill().and_then(|()| child.wait()).ok();
        }
    }
}

struct Client(BufReader<TcpStream>);

impl Client {
    /// The first line of the reply.
    fn ask(&mut self, request: &str) -> String {
        self.0.get_mut().write_all(format!("{request}\r\n").as_bytes()).expect("send");
        self.line()
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("a reply");
        line.trim_end().to_owned()
    }
}

/// Sets keys from `from` on until one is refused; that one's number, and what the client was told.
fn fill(client: &mut Client, from: u64) -> (u64, String) {
    let mut n = from;
    loop {
        let said = client.ask(&format!("SET {n:08} {}", value(n)));
        if said != "+OK" {
            return (n, said);
        }
        n += 1;
        assert!(n < 1_000_000, "the disk is full before");
    }
}

#[test]
fn a_server_on_a_full_disk_refuses_writes_goes_on_reading_ends_when_told_and_resumes() {
    // Catches a server that hangs, with all its clients, until it is killed.
    let name = "a_server_on_a_full_disk_refuses_writes_goes_on_reading_ends_when_told_and_resumes";
    let Some(mount) = Mount::new(DISK, name) else { return };
    let db = mount.path("db");
    let server = Server::start(&db);
    let (mut client, mut other) = (server.client(), server.client());
    let (written, said) = fill(&mut client, 0);
    assert!(said.starts_with("-MISCONF no space: could not ") && said.contains("No space left"), "{said}");
    assert_eq!(other.ask("PING"), "+PONG");
    assert_eq!(other.ask(&format!("STRLEN {:08}", written - 1)), ":400");
    assert_eq!(other.ask(&format!("EXISTS {written:08}")), ":0");
    other.ask("INFO writes");
    let info: Vec<String> = (0..5).map(|_| other.line()).collect();
    assert_eq!(info[1], "aof_last_write_status:err", "{info:?}");
    assert!(info[3].starts_with("last_write_refusal:could not "), "{info:?}");

    mount.resize(DISK + (4 << 20));
    let mut said = String::new();
    while said != "+OK" {
        said = client.ask(&format!("SET {written:08} {}", value(written)));
        assert!(said == "+OK" || said.starts_with("-MISCONF "), "{said}");
    }
    // Until there is none again.
    let (written, _) = fill(&mut client, written + 1);
    let (status, said) = server.end();
    assert!(said.contains("writes are refused: could not "), "{said}");
    assert!(status.code().is_some(), "{status}: {said}");

    mount.resize(ENOUGH);
    let server = Server::start(&db);
    assert_eq!(server.client().ask("DBSIZE"), format!(":{written}"));
    let (status, said) = server.end();
    assert!(status.success() && said.ends_with("ended; everything is written\n"), "{said}");
}

//! A server for one test, and connections to it.

use std::fmt::Display;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;

use redis::{Client, Connection, RedisResult, cmd};
use rustix::process::{Pid, Signal, kill_process};

use super::{PATIENCE, Room, program};

pub(crate) struct Server {
    child: Child,
    /// The messages of the process, until they are read to the end.
    stderr: Option<BufReader<ChildStderr>>,
    /// The messages up to the one with the address.
    pub(crate) started: String,
    pub(crate) address: SocketAddr,
    /// The directory, which is removed after the server ends, unless the test keeps it.
    _room: Option<Room>,
}

/// The command of `mini-engine serve`, on a free port unless `args` name one; not yet started.
pub(crate) fn serve(database: &Path, args: &[&str]) -> Command {
    let mut command = program();
    command.arg("serve").arg(database).args(args);
    if !args.contains(&"--listen") {
        command.args(["--listen", "127.0.0.1:0"]);
    }
    command.env_remove("MINI_ENGINE_PASSWORD").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

impl Server {
    /// A server with a database of its own.
    pub(crate) fn new(args: &[&str]) -> Self {
        let room = Room::new();
        let mut server = room.server(args);
        server._room = Some(room);
        server
    }

    pub(crate) fn start(database: &Path, args: &[&str]) -> Self {
        Self::run(serve(database, args))
    }

    pub(crate) fn run(mut command: Command) -> Self {
        let mut child = command.spawn().expect("spawn");
        let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
        let address = (Ipv4Addr::UNSPECIFIED, 0).into();
        let mut server = Self { child, stderr: None, started: String::new(), address, _room: None };
        while stderr.read_line(&mut server.started).expect("text") > 0 {
            if let Some((_, address)) = server.started.trim_end().rsplit_once(" on ") {
                (server.address, server.stderr) = (address.parse().expect("an address"), Some(stderr));
                return server;
            }
        }
        panic!("it ended, and said: {}", server.started);
    }

    pub(crate) fn client(&self) -> Connection {
        connect(self.address, "")
    }

    /// A client that speaks version 3.
    pub(crate) fn client3(&self) -> Connection {
        connect(self.address, "?protocol=resp3")
    }

    pub(crate) fn raw(&self) -> Raw {
        Raw::connect(self.address)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("signal");
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("kill");
        self.child.wait().expect("wait");
    }

    /// Waits for the end of the server. Returns its messages until then.
    pub(crate) fn wait(&mut self) -> (ExitStatus, String) {
        let (mut stderr, (ended, has_ended)) = (self.stderr.take().expect("it runs"), mpsc::channel());
        thread::spawn(move || {
            let mut said = String::new();
            ended.send(stderr.read_to_string(&mut said).map(|_| said))
        });
        let said = has_ended.recv_timeout(PATIENCE);
        if said.is_err() {
            self.child.kill().ok();
        }
        (self.child.wait().expect("wait"), said.expect("it ends").expect("text"))
    }

    /// Ends the server as an operator does, which gives connected clients some time. Returns the messages until then.
    pub(crate) fn end(&mut self) -> String {
        self.signal(Signal::TERM);
        let (status, said) = self.wait();
        assert!(status.success() && said.ends_with("ended; everything is written\n"), "{status} {said}");
        said
    }
}

impl Drop for Server {
    /// Every server that a test leaves running must end without an error.
    fn drop(&mut self) {
        if thread::panicking() {
            self.child.kill().ok();
            self.child.wait().ok();
        } else if self.child.try_wait().expect("wait").is_none() {
            self.end();
        }
    }
}

/// A client of the server at `address`, which may begin with a password.
pub(crate) fn connect(address: impl Display, options: &str) -> Connection {
    try_connect(address, options).expect("connect")
}

/// A client of a server that may have ended.
pub(crate) fn try_connect(address: impl Display, options: &str) -> RedisResult<Connection> {
    let connection = Client::open(format!("redis://{address}/{options}"))?.get_connection()?;
    connection.set_read_timeout(Some(PATIENCE))?;
    Ok(connection)
}

/// The number of the server's log syncs.
pub(crate) fn syncs(db: &mut Connection) -> u64 {
    info(db, "engine", "wal_syncs").parse().expect("a number")
}

/// A connection without a client library.
pub(crate) struct Raw(pub(crate) TcpStream);

impl Raw {
    pub(crate) fn connect(address: impl ToSocketAddrs) -> Self {
        let stream = TcpStream::connect(address).expect("connect");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
        Self(stream)
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).expect("send");
    }

    /// Checks that exactly these bytes come next.
    #[track_caller]
    pub(crate) fn expect(&mut self, bytes: impl AsRef<[u8]>) {
        let mut found = vec![0; bytes.as_ref().len()];
        self.0.read_exact(&mut found).expect("receive");
        assert_eq!(found.escape_ascii().to_string(), bytes.as_ref().escape_ascii().to_string());
    }

    /// All bytes until the server ends the connection.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        let (found, end) = self.until_end();
        end.expect("the end");
        found
    }

    /// Like `rest`, but the client may still be sending when the server ends the connection, which resets it.
    pub(crate) fn rest_or_reset(&mut self) -> Vec<u8> {
        let (found, end) = self.until_end();
        assert!(end.as_ref().map_or_else(|error| error.kind() == ErrorKind::ConnectionReset, |_| true), "{end:?}");
        found
    }

    fn until_end(&mut self) -> (Vec<u8>, std::io::Result<usize>) {
        let mut found = Vec::new();
        let end = self.0.read_to_end(&mut found);
        // For a while the server waits until the client closes the connection.
        self.0.shutdown(Shutdown::Both).ok();
        (found, end)
    }
}

/// The value of a field of INFO.
pub(crate) fn info(db: &mut Connection, section: &str, field: &str) -> String {
    let info: String = cmd("INFO").arg(section).query(db).expect("info");
    let value = info.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    value.unwrap_or_else(|| panic!("{field} in {info}")).to_owned()
}

impl Room {
    pub(crate) fn server(&self, args: &[&str]) -> Server {
        Server::start(&self.database(), args)
    }
}

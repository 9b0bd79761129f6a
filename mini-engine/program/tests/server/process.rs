//! A server of a test's own, and connections to it.

use std::fmt::Display;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use redis::{Client, Connection, RedisResult, cmd};
use rustix::process::{Pid, Signal, kill_process};

use crate::scratch::TempDir;

/// After which a silent server has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Server {
    child: Child,
    stderr: BufReader<ChildStderr>,
    pub(crate) address: SocketAddr,
}

/// `mini-engine serve` on a free port unless `args` name one, not yet started.
pub(crate) fn serve(database: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mini-engine"));
    command.arg("serve").arg(database).args(args);
    if !args.contains(&"--listen") {
        command.args(["--listen", "127.0.0.1:0"]);
    }
    command.env_remove("MINI_ENGINE_PASSWORD").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

impl Server {
    pub(crate) fn start(database: &Path, args: &[&str]) -> Self {
        Self::run(serve(database, args))
    }

    pub(crate) fn run(mut command: Command) -> Self {
        let mut child = command.spawn().expect("spawn");
        let stderr = BufReader::new(child.stderr.take().expect("piped"));
        let mut server = Self { child, stderr, address: (Ipv4Addr::UNSPECIFIED, 0).into() };
        let mut said = String::new();
        while server.stderr.read_line(&mut said).expect("text") > 0 {
            if let Some((_, address)) = said.trim_end().rsplit_once(" on ") {
                server.address = address.parse().expect("an address");
                return server;
            }
        }
        panic!("it ended, and said: {said}");
    }

    pub(crate) fn client(&self) -> Connection {
        connect(self.address, "")
    }

    /// A client that speaks version 3.
    pub(crate) fn client3(&self) -> Connection {
        connect(self.address, "?protocol=resp3")
    }

    pub(crate) fn raw(&self) -> Raw {
        let stream = TcpStream::connect(self.address).expect("connect");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
        Raw(stream)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("signal");
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("kill");
        self.child.wait().expect("wait");
    }

    /// Waits for the end; what was said until then.
    pub(crate) fn wait(mut self) -> (ExitStatus, String) {
        let mut said = String::new();
        self.stderr.read_to_string(&mut said).expect("text");
        (self.child.wait().expect("wait"), said)
    }

    /// Ends it as an operator does.
    pub(crate) fn end(self) {
        self.signal(Signal::TERM);
        let (status, said) = self.wait();
        assert!(status.success() && said.ends_with("ended; everything is written\n"), "{status} {said}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A client of the server at `address`, which may have a password before it.
pub(crate) fn connect(address: impl Display, options: &str) -> Connection {
    try_connect(address, options).expect("connect")
}

/// A client of a server that may be gone.
pub(crate) fn try_connect(address: impl Display, options: &str) -> RedisResult<Connection> {
    let connection = Client::open(format!("redis://{address}/{options}"))?.get_connection()?;
    connection.set_read_timeout(Some(PATIENCE))?;
    Ok(connection)
}

/// Waits until something is so.
pub(crate) fn until(mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "it never became so");
    }
}

/// How often the server has synced a log.
pub(crate) fn syncs(db: &mut Connection) -> u64 {
    let info: String = cmd("INFO").arg("engine").query(db).expect("info");
    let count = info.lines().find_map(|line| line.strip_prefix("wal_syncs:")).expect("a count");
    count.parse().expect("a number")
}

/// A connection without a client library.
pub(crate) struct Raw(pub(crate) TcpStream);

impl Raw {
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).expect("send");
    }

    /// Exactly these bytes come next.
    #[track_caller]
    pub(crate) fn expect(&mut self, bytes: impl AsRef<[u8]>) {
        let mut found = vec![0; bytes.as_ref().len()];
        self.0.read_exact(&mut found).expect("receive");
        assert_eq!(found.escape_ascii().to_string(), bytes.as_ref().escape_ascii().to_string());
    }

    /// All that comes until the server ends the connection.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        let (found, end) = self.until_end();
        end.expect("the end");
        found
    }

    /// As `rest`, where the client may still be sending when the server gives the connection up: that resets it.
    pub(crate) fn rest_or_reset(&mut self) -> Vec<u8> {
        let (found, end) = self.until_end();
        assert!(end.as_ref().map_or_else(|error| error.kind() == ErrorKind::ConnectionReset, |_| true), "{end:?}");
        found
    }

    fn until_end(&mut self) -> (Vec<u8>, std::io::Result<usize>) {
        let mut found = Vec::new();
        let end = self.0.read_to_end(&mut found);
        (found, end)
    }
}

/// A directory of a test's own, and the database path in it.
pub(crate) struct Room(TempDir);

impl Room {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().expect("a temporary directory"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.path("db")
    }

    pub(crate) fn server(&self, args: &[&str]) -> Server {
        Server::start(&self.database(), args)
    }
}

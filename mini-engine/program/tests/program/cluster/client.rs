//! A client that follows the leader. For each request it determines whether the request was carried out, was not, or may have been.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::PATIENCE;

/// The number of other nodes that a request is sent to before the client gives up.
const TRIES: usize = 200;
/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(10);

/// A reply of version 2 of the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Status(String),
    Error(String),
    Integer(i64),
    Value(Option<String>),
    List(Vec<Reply>),
}

impl Reply {
    pub(super) fn value(text: &str) -> Self {
        Self::Value(Some(text.to_owned()))
    }

    /// The number in a value or an integer.
    #[track_caller]
    pub(super) fn number(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(*number),
            Self::Value(text) => text.as_ref().map(|text| text.parse().expect("a number")),
            other => panic!("expected a number, found {other:?}"),
        }
    }
}

/// One connection to one node.
pub(super) struct Connection(BufReader<TcpStream>);

impl Connection {
    /// A connection whose replies are awaited for `patience`.
    pub(super) fn open(address: SocketAddr, patience: Duration) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, patience)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        stream.set_nodelay(true)?;
        Ok(Self(BufReader::new(stream)))
    }

    /// A connection that reads at this node, even if the node does not lead.
    pub(super) fn reading(address: SocketAddr) -> io::Result<Self> {
        Self::open(address, PATIENCE)?.after(&["READONLY"])
    }

    fn after(mut self, request: &[&str]) -> io::Result<Self> {
        match self.call(request)? {
            Reply::Status(_) => Ok(self),
            other => Err(unexpected(&format!("{other:?}"))),
        }
    }

    pub(super) fn call(&mut self, args: &[&str]) -> io::Result<Reply> {
        let mut request = format!("*{}\r\n", args.len());
        args.iter().for_each(|arg| request.push_str(&format!("${}\r\n{arg}\r\n", arg.len())));
        self.0.get_mut().write_all(request.as_bytes())?;
        self.reply()
    }

    fn reply(&mut self) -> io::Result<Reply> {
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        // A line that the end of the connection cut off is no reply.
        let line = line.strip_suffix("\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
        let (kind, text) = line.split_at_checked(1).ok_or_else(|| unexpected(line))?;
        let number = || text.parse::<i64>().map_err(|_| unexpected(line));
        Ok(match kind {
            "+" => Reply::Status(text.to_owned()),
            "-" => Reply::Error(text.to_owned()),
            ":" => Reply::Integer(number()?),
            "$" | "*" if number()? < 0 => Reply::Value(None),
            "$" => Reply::Value(Some(self.bytes(number()? as usize)?)),
            "*" => Reply::List((0..number()?).map(|_| self.reply()).collect::<io::Result<_>>()?),
            _ => return Err(unexpected(line)),
        })
    }

    fn bytes(&mut self, length: usize) -> io::Result<String> {
        let mut bytes = vec![0; length + 2];
        self.0.read_exact(&mut bytes)?;
        bytes.truncate(length);
        String::from_utf8(bytes).map_err(|error| unexpected(&error.to_string()))
    }
}

fn unexpected(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("expected a reply, found {what}"))
}

/// The reason why a request has no final reply.
#[derive(Debug)]
pub(super) enum Failure {
    /// No node has accepted the request, so it has no effect.
    NotDone(String),
    /// The request was sent, and may have an effect, now or later.
    Unknown(String),
}

/// A client of the whole cluster.
pub(super) struct Client {
    nodes: Vec<SocketAddr>,
    /// The node that gets the next request.
    pub(super) at: SocketAddr,
    connections: HashMap<SocketAddr, Connection>,
    patience: Duration,
    /// Whether reads are linearizable at any node. Set before the first request.
    pub(super) reads_anywhere: bool,
}

impl Client {
    /// A client that sends its first request to `nodes[first]`.
    pub(super) fn new(nodes: Vec<SocketAddr>, first: usize, patience: Duration) -> Self {
        let at = nodes[first % nodes.len()];
        Self { nodes, at, connections: HashMap::new(), patience, reads_anywhere: false }
    }

    /// Sends a request to the leader of its slot, as soon as the leader is known.
    pub(super) fn call(&mut self, args: &[&str]) -> Result<Reply, Failure> {
        let mut why = String::new();
        for _ in 0..TRIES {
            match self.connection().map(|connection| connection.call(args)) {
                Ok(Ok(Reply::Error(said))) => match refusal(&said) {
                    Some(Refusal::Moved(to)) => self.at = to,
                    Some(Refusal::Down) => self.turn(),
                    None => return Err(self.unknown(said)),
                },
                Ok(Ok(reply)) => return Ok(reply),
                Ok(Err(error)) => return Err(self.unknown(error.to_string())),
                // The connection failed, so nothing was sent.
                Err(error) => {
                    why = error.to_string();
                    self.turn();
                }
            }
        }
        Err(Failure::NotDone(why))
    }

    /// The reply to an idempotent request, which is sent until it is answered.
    #[track_caller]
    pub(super) fn must(&mut self, args: &[&str]) -> Reply {
        let begun = Instant::now();
        loop {
            match self.call(args) {
                Ok(reply) => return reply,
                Err(Failure::NotDone(why) | Failure::Unknown(why)) => {
                    assert!(begun.elapsed() < PATIENCE, "{args:?}: {why}");
                }
            }
        }
    }

    fn connection(&mut self) -> io::Result<&mut Connection> {
        if !self.connections.contains_key(&self.at) {
            let mut connection = Connection::open(self.at, self.patience)?;
            if self.reads_anywhere {
                connection = connection.after(&["READONLY", "LINEARIZABLE"])?;
            }
            self.connections.insert(self.at, connection);
        }
        Ok(self.connections.get_mut(&self.at).expect("inserted"))
    }

    /// Moves on to the next node, after a pause.
    fn turn(&mut self) {
        thread::sleep(PAUSE);
        let place = self.nodes.iter().position(|node| *node == self.at);
        self.at = self.nodes[place.map_or(0, |place| (place + 1) % self.nodes.len())];
    }

    fn unknown(&mut self, why: String) -> Failure {
        // Closes the connection: a late reply would be taken for the reply to the next request.
        self.connections.remove(&self.at);
        self.turn();
        Failure::Unknown(why)
    }
}

/// An error reply to a request that had no effect.
enum Refusal {
    Moved(SocketAddr),
    Down,
}

fn refusal(said: &str) -> Option<Refusal> {
    let mut words = said.split(' ');
    match words.next()? {
        "MOVED" => Some(Refusal::Moved(words.nth(1)?.parse().expect("an address"))),
        "CLUSTERDOWN" => Some(Refusal::Down),
        _ => None,
    }
}

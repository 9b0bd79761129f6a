//! A client that follows the leader. For each request it determines whether the request was carried out, was not, or may have been.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use redis::{Connection, ErrorKind, FromRedisValue, RedisResult, ServerErrorKind, Value, cmd, from_redis_value};

use crate::support::PATIENCE;

/// The number of other nodes that a request is sent to before the client gives up.
const TRIES: usize = 200;
/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(10);

/// A connection to one node, whose replies are awaited for `patience`.
pub(super) fn open(node: SocketAddr, patience: Duration) -> RedisResult<Connection> {
    let connection = redis::Client::open(format!("redis://{node}/"))?.get_connection_with_timeout(patience)?;
    connection.set_read_timeout(Some(patience))?;
    connection.set_write_timeout(Some(patience))?;
    Ok(connection)
}

/// A connection that reads at this node, even if the node does not lead.
pub(super) fn reader(node: SocketAddr) -> Connection {
    let mut connection = open(node, PATIENCE).expect("connect");
    cmd("READONLY").exec(&mut connection).expect("a node that answers");
    connection
}

pub(super) fn get(connection: &mut Connection, key: &str) -> RedisResult<Option<String>> {
    cmd("GET").arg(key).query(connection)
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
    pub(super) fn call(&mut self, args: &[&str]) -> Result<Value, Failure> {
        let mut why = String::new();
        for _ in 0..TRIES {
            let replied = self.connection().map(|connection| cmd(args[0]).arg(&args[1..]).query(connection));
            match replied {
                Ok(Ok(reply)) => return Ok(reply),
                Ok(Err(error)) => match error.kind() {
                    // These requests had no effect.
                    ErrorKind::Server(ServerErrorKind::Moved) => {
                        self.at = error.redirect_node().expect("an address").0.parse().expect("an address");
                    }
                    ErrorKind::Server(ServerErrorKind::ClusterDown) => self.turn(),
                    _ => {
                        // Closes the connection: a late reply would be taken for the reply to the next request.
                        self.connections.remove(&self.at);
                        self.turn();
                        return Err(Failure::Unknown(error.to_string()));
                    }
                },
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
    pub(super) fn must<T: FromRedisValue>(&mut self, args: &[&str]) -> T {
        let begun = Instant::now();
        loop {
            match self.call(args) {
                Ok(reply) => return from_redis_value(reply).expect("a reply of this type"),
                Err(Failure::NotDone(why) | Failure::Unknown(why)) => {
                    assert!(begun.elapsed() < PATIENCE, "{args:?}: {why}");
                }
            }
        }
    }

    #[track_caller]
    pub(super) fn set(&mut self, key: &str, value: &str) {
        self.must::<()>(&["SET", key, value]);
    }

    #[track_caller]
    pub(super) fn get(&mut self, key: &str) -> Option<String> {
        self.must(&["GET", key])
    }

    fn connection(&mut self) -> RedisResult<&mut Connection> {
        if !self.connections.contains_key(&self.at) {
            let mut connection = open(self.at, self.patience)?;
            if self.reads_anywhere {
                cmd("READONLY").arg("LINEARIZABLE").exec(&mut connection)?;
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
}

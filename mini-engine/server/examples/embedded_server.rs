//! A program that uses its database and serves it to clients of the Redis protocol at the same time.
//! `cargo run -p mini-engine-server --example embedded_server`

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::thread;

use mini_engine::Db;
use mini_engine_server::{Limits, Server, Settings};

/// A client that knows as much of the protocol as this needs; `redis-cli` and client libraries connect in the same way.
struct Client(BufReader<TcpStream>);

impl Client {
    fn connect(to: &str) -> std::io::Result<Self> {
        Ok(Self(BufReader::new(TcpStream::connect(to)?)))
    }

    /// Sends a command, and returns the first line of the reply, or the value behind it.
    fn ask(&mut self, command: &str) -> std::io::Result<String> {
        write!(self.0.get_mut(), "{command}\r\n")?;
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        if line.starts_with('$') && !line.starts_with("$-") {
            line.clear();
            self.0.read_line(&mut line)?;
        }
        Ok(line.trim_end().to_owned())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let db = Db::open(directory.path().join("served.db"))?;
    db.insert("config/colour", "blue")?;

    // Port 0 takes a free one. On an address that other machines can reach, it asks for a password. SAVE makes a checkpoint.
    let settings = Settings {
        checkpoints: directory.path().join("checkpoints"),
        limits: Limits { clients: 100, ..Limits::default() },
        ..Settings::default()
    };
    let server = Server::bind("127.0.0.1:0", settings)?;
    let address = server.address().to_string();
    println!("serving on {address}");
    let stopper = server.stopper()?;
    let serving = thread::spawn({
        let db = db.clone();
        move || server.run(db)
    });

    // Clients and the program see each other's writes. INCR and its kind are atomic among clients; the program leaves their keys to them.
    let mut client = Client::connect(&address)?;
    assert_eq!(client.ask("GET config/colour")?, "blue");
    assert_eq!(client.ask("SET visitors 41")?, "+OK");
    assert_eq!(client.ask("INCR visitors")?, ":42");
    assert_eq!(db.get("visitors")?.as_deref(), Some(&b"42"[..]));
    assert_eq!(client.ask("GET nothing")?, "$-1");
    assert_eq!(client.ask("SAVE")?, "+OK");

    // It answers what it has received, and closes the database: from then on the program's handle says `Closed`.
    stopper.stop();
    serving.join().expect("the server")?;
    println!("{}", db.get("visitors").unwrap_err());
    drop(db);

    let db = Db::open(directory.path().join("served.db"))?;
    assert_eq!(db.get("visitors")?.as_deref(), Some(&b"42"[..]));
    db.close()?;
    Ok(())
}

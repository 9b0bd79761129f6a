//! Unix sockets, TLS, the metrics, and commands that affect other clients' connections.

use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::*;
use crate::settings::TlsFiles;

/// The path of a socket, in a separate directory.
fn unix_path(directory: &proof::TempDir) -> (String, std::path::PathBuf) {
    let path = directory.path().join("socket");
    (format!("unix:{}", path.display()), path)
}

#[test]
fn a_unix_socket_is_served_and_its_file_removed_at_the_end() {
    // Catches a client whose address is not shown, and a socket file that is left behind.
    let directory = proof::TempDir::new().expect("a temporary directory");
    let (listen, path) = unix_path(&directory);
    let server = Running::of(Server::bind(&listen, settings(ServerDurability::Synced)).expect("a socket"));
    assert_eq!(server.address.to_string(), listen);
    let mut client = UnixStream::connect(&path).expect("connect");
    client.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    assert_eq!(ask(&mut client, "SET a 1\r\nGET a\r\n", 3), ["+OK", "$1", "1"]);
    let info = ask(&mut client, "CLIENT INFO\r\n", 2)[1].clone();
    assert!(info.contains(&format!("addr={0}:0 laddr={0}:0 ", path.display())), "{info}");
    server.end_by(client);
    assert!(!path.exists());
}

#[test]
fn only_the_socket_of_a_server_that_has_gone_is_replaced() {
    // Catches a server that takes over the path of a running one, or removes a file that is not a socket.
    let directory = proof::TempDir::new().expect("a temporary directory");
    let (listen, path) = unix_path(&directory);
    let bind = || Server::bind(&listen, Settings::default());
    std::fs::write(&path, "a file").expect("write");
    assert!(bind().is_err() && std::fs::read(&path).is_ok_and(|text| text == b"a file"));
    std::fs::remove_file(&path).expect("remove");
    // Dropping a listener leaves its file behind, like killing the server.
    drop(UnixListener::bind(&path).expect("a socket"));
    let server = bind().expect("the server has gone");
    assert!(bind().is_err());
    UnixStream::connect(&path).expect("the first one still has it");
    drop(server);
    assert!(!path.exists());
}

/// Writes a certificate for this machine to files in `directory`.
fn certify(directory: &Path) -> TlsFiles {
    let certified = rcgen::generate_simple_self_signed(["localhost".into()]).expect("a certificate");
    let files = TlsFiles { certificates: directory.join("cert.pem"), key: directory.join("key.pem") };
    std::fs::write(&files.certificates, certified.cert.pem()).expect("write");
    std::fs::write(&files.key, certified.signing_key.serialize_pem()).expect("write");
    files
}

/// A client that trusts the certificate.
fn tls_client(server: &Running, files: &TlsFiles) -> StreamOwned<ClientConnection, TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&files.certificates).expect("a certificate")).expect("a root");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().expect("versions");
    let config = Arc::new(config.with_root_certificates(roots).with_no_client_auth());
    let name = ServerName::try_from("localhost").expect("a name");
    StreamOwned::new(ClientConnection::new(config, name).expect("a client"), server.client())
}

#[test]
fn tls_carries_pipelines_and_long_values_both_ways_and_tells_its_end() {
    // Catches records that stay in memory when the socket is full, a read that stops before the last record, and an end that looks like a cut.
    let directory = proof::TempDir::new().expect("a temporary directory");
    let files = certify(directory.path());
    let settings = Settings { tls: Some(files.clone()), ..settings(ServerDurability::Buffered) };
    let server = Running::with(settings);
    let mut client = tls_client(&server, &files);
    let value = "v".repeat(900_000);
    assert_eq!(ask(&mut client, &format!("*3\r\n$3\r\nSET\r\n$1\r\na\r\n$900000\r\n{value}\r\n"), 1), ["+OK"]);
    // More than the socket accepts, and read only afterwards: the server has to keep the bytes that it could not send.
    let gets = 20;
    client.write_all("GET a\r\n".repeat(gets).as_bytes()).expect("send");
    client.flush().expect("send");
    let reply = format!("$900000\r\n{value}\r\n");
    for _ in 0..gets {
        let mut received = vec![0; reply.len()];
        client.read_exact(&mut received).expect("receive");
        assert!(received == reply.as_bytes());
    }
    client.write_all(b"INCR n\r\nQUIT\r\n").expect("send");
    let mut rest = String::new();
    // Without the TLS record that marks the end, this is an error.
    client.read_to_string(&mut rest).expect("the end");
    assert_eq!(rest, ":1\r\n+OK\r\n");

    // A client that does not use TLS is refused, and counted.
    let mut plain = server.client();
    plain.write_all(b"PING\r\n").expect("send");
    assert!(plain.read_to_end(&mut Vec::new()).is_ok_and(|len| len < 10));
    let mut client = tls_client(&server, &files);
    let stats = ask(&mut client, "INFO stats\r\n", 14);
    assert!(stats.contains(&"tls_handshakes_failed:1".into()), "{stats:?}");
    server.end_by(client);
}

#[test]
fn a_new_certificate_is_for_new_clients_and_a_useless_file_changes_nothing() {
    // Catches a reload without effect, one that disconnects clients, and one that leaves the server without a certificate.
    let directory = proof::TempDir::new().expect("a temporary directory");
    let files = certify(directory.path());
    let bound = Server::bind("127.0.0.1:0", Settings { tls: Some(files.clone()), ..Settings::default() });
    let bound = bound.expect("a port");
    let reloader = bound.tls_reloader().expect("TLS");
    let server = Running::of(bound);
    let mut old = tls_client(&server, &files);
    assert_eq!(ask(&mut old, "PING\r\n", 1), ["+PONG"]);
    std::fs::write(&files.key, "").expect("write");
    assert!(reloader.reload().is_err());
    assert_eq!(ask(&mut tls_client(&server, &files), "PING\r\n", 1), ["+PONG"]);
    certify(directory.path());
    reloader.reload().expect("files that can be used");
    // This client trusts only the new certificate.
    assert_eq!(ask(&mut tls_client(&server, &files), "PING\r\n", 1), ["+PONG"]);
    assert_eq!(ask(&mut old, "PING\r\n", 1), ["+PONG"]);
    server.end_by(old);
}

#[test]
fn files_that_tls_cannot_use_are_named() {
    // Catches a server that starts without the configured encryption.
    let directory = proof::TempDir::new().expect("a temporary directory");
    let files = certify(directory.path());
    let refused = |certificates: &Path, key: &Path, named: &str, reason: &str| {
        let tls = Some(TlsFiles { certificates: certificates.into(), key: key.into() });
        let error = Server::bind("127.0.0.1:0", Settings { tls, ..Settings::default() }).expect_err("refused");
        assert!(error.to_string().starts_with(&format!("cannot use {named} for TLS: {reason}")), "{error}");
    };
    let (certificate, key) = (files.certificates.display().to_string(), files.key.display().to_string());
    let file = |name: &str, text: &str| {
        std::fs::write(directory.path().join(name), text).expect("write");
        directory.path().join(name)
    };
    let encrypted =
        file("encrypted.pem", "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n");
    let rsa = "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nAAAA";
    let rsa = format!("-----BEGIN RSA PRIVATE KEY-----\n{rsa}\n-----END RSA PRIVATE KEY-----\n");
    let (empty, encrypted_rsa) = (file("empty.pem", ""), file("encrypted.rsa", &rsa));
    let no_certificate = "expected certificates in PEM form (BEGIN CERTIFICATE), found none";
    let no_key = "expected a private key in PEM form (BEGIN PRIVATE KEY), found none";
    refused(Path::new("/nowhere"), &files.key, "/nowhere", "");
    refused(&files.certificates, &files.certificates, &certificate, no_key);
    refused(&files.key, &files.key, &key, no_certificate);
    refused(&empty, &files.key, &empty.display().to_string(), no_certificate);
    refused(&files.certificates, &empty, &empty.display().to_string(), no_key);
    for key in [encrypted, encrypted_rsa] {
        refused(&files.certificates, &key, &key.display().to_string(), "the key is encrypted, and nobody is there");
    }
    let others = proof::TempDir::new().expect("a temporary directory");
    refused(&files.certificates, &certify(others.path()).key, &certificate, "");
}

#[test]
fn prometheus_reads_the_metrics_at_their_own_address() {
    // Catches a reply that is not HTTP, a line that is not a metric, and a metrics connection that takes a client's place.
    let mut settings = Settings { metrics: Some("127.0.0.1:0".into()), ..settings(ServerDurability::Synced) };
    settings.limits.clients = 1;
    let server = Server::bind("127.0.0.1:0", settings).expect("a port");
    let metrics = tcp(server.metrics_address().expect("an address"));
    let server = Running::of(server);
    let mut client = server.client();
    assert_eq!(ask(&mut client, "SET a 1\r\nGET a\r\nGET b\r\nINCR x y\r\n", 5).len(), 5);
    let get = |request: &str| {
        let mut reader = TcpStream::connect(metrics).expect("connect");
        let mut said = String::new();
        reader.write_all(request.as_bytes()).expect("send");
        reader.read_to_string(&mut said).expect("the end");
        said
    };
    let said = get("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let (head, body) = said.split_once("\r\n\r\n").expect("a head");
    assert!(
        head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains(&format!("Content-Length: {}\r\n", body.len())),
        "{head}"
    );
    for line in body.lines().filter(|line| !line.starts_with("# ")) {
        let (name, value) = line.rsplit_once(' ').expect("a value");
        assert!(name.starts_with("mini_engine_") && value.parse::<f64>().is_ok(), "{line}");
        let family = name.split('{').next().expect("a name");
        assert!(body.contains(&format!("# TYPE {family} ")) && body.contains(&format!("# HELP {family} ")), "{line}");
    }
    for expected in ["clients 1", "commands_total{command=\"get\"} 2", "key_misses_total 1", "writes_total 1"] {
        assert!(body.contains(&format!("\nmini_engine_{expected}\n")), "{expected}: {body}");
    }
    assert!(get("GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
    assert!(get("POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
    assert!(get(&"x".repeat(1 << 14)).starts_with("HTTP/1.1 431 "));
    server.end_by(client);
}

#[test]
fn a_monitor_is_shown_the_requests_of_all_but_no_password() {
    // Catches requests that MONITOR misses because they are carried out together, are queued or fail; requests shown twice; and a shown password.
    let server = Running::start();
    let (mut monitor, mut client) = (server.client(), server.client());
    assert_eq!(ask(&mut monitor, "MONITOR\r\n", 1), ["+OK"]);
    let requests = "SET a 1\r\nGET a\r\nMULTI\r\nINCR a\r\nEXEC\r\nAUTH secret\r\nKEYS \"q\\\\\"\r\nNONE\r\nINCR nope x\r\nGET b\r\n";
    ask(&mut client, requests, 12);
    let shown = ask(&mut monitor, "", 8);
    let address = client.local_addr().expect("an address");
    let words = |line: &String| line.split_once(&format!("[0 {address}] ")).expect("an address").1.to_owned();
    let expected = r#""SET" "a" "1"|"GET" "a"|"MULTI"|"INCR" "a"|"EXEC"|"AUTH"|"KEYS" "q\\"|"GET" "b""#;
    assert_eq!(shown.iter().map(words).collect::<Vec<_>>().join("|"), expected);
    let flags = ask(&mut client, "CLIENT LIST\r\n", 2);
    assert!(flags[1].contains("flags=O") && flags[2].contains("flags=N"), "{flags:?}");
    assert_eq!(ask(&mut monitor, "RESET\r\n", 2)[1], "+RESET");
    assert_eq!(ask(&mut client, "GET a\r\n", 2), ["$1", "2"]);
    assert_eq!(ask(&mut monitor, "PING\r\n", 1), ["+PONG"]);
    server.end();
}

#[test]
fn clients_end_each_others_connections() {
    // Catches a CLIENT KILL that disconnects another client than the named one, or none, and a sender that gets no reply.
    let server = Running::start();
    let mut clients: Vec<TcpStream> = (0..4).map(|_| server.client()).collect();
    for (client, id) in clients.iter_mut().zip(1..) {
        assert_eq!(ask(client, "CLIENT ID\r\n", 1), [format!(":{id}")]);
    }
    let ends = |client: &mut TcpStream| client.read_to_end(&mut Vec::new()).is_ok_and(|len| len == 0);
    let address = clients[1].local_addr().expect("an address");
    assert_eq!(ask(&mut clients[0], &format!("CLIENT KILL {address}\r\n"), 1), ["+OK"]);
    assert!(ends(&mut clients[1]));
    assert_eq!(ask(&mut clients[0], "CLIENT KILL ID 3 TYPE normal\r\n", 1), [":1"]);
    assert!(ends(&mut clients[2]));
    assert_eq!(ask(&mut clients[3], "CLIENT KILL TYPE normal SKIPME no\r\n", 1), [":2"]);
    assert!(ends(&mut clients[3]) && ends(&mut clients[0]));
    drop(clients);
    let mut last = server.client();
    // A client that has closed its connection is listed until the server notices.
    while !ask(&mut last, "CLIENT LIST\r\n", 2)[1].starts_with("id=5 ") {}
    server.end();
}

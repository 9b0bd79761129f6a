//! The properties of commands that the server reports, and the features that it reports as missing.

use super::*;

#[test]
fn the_keys_of_a_request_are_those_that_redis_names() {
    // Catches replies that make a proxy send a request to the wrong node, and errors that differ from those of Redis.
    let mut server = Server::new();
    server.talk(
        "command getkeys get a => *1 $1 a | command getkeys mset a 1 b 2 => *2 $1 a $1 b | command getkeys del a b => *2 $1 a $1 b
         command getkeys copy a b db 1 => *2 $1 a $1 b | command getkeys object encoding a => *1 $1 a
         command getkeys eval x 2 a b c => *2 $1 a $1 b | command getkeys eval x 2 a => *0 | command getkeys eval x q a => *0
         command getkeys nope a => -ERR Invalid command specified
         command getkeys get a b => -ERR Invalid number of arguments specified for command
         command getkeys client id => -ERR The command has no key arguments
         command getkeys scan 0 => -ERR The command has no key arguments",
    );
}

#[test]
fn counters_begin_anew_and_what_is_there_stays() {
    // Catches a counter that is not reset, and a reset that loses the connected clients or the slow log.
    let mut server = Server::with(|settings| settings.slow_micros = 0);
    server.talk("get nope => $-1 | set k v => +OK | get k => $1 v");
    server.shared.counters.clients = 1;
    (server.shared.counters.connections, server.shared.counters.sent_bytes) = (5, 6);
    server.shared.counters.refused.note(crate::state::refused::Cause::Clients, "there", "too many");
    server.talk("config resetstat => +OK | config resetstat now => -ERR unknown subcommand or wrong number of arguments for 'resetstat' of CONFIG");
    let info = server.said("info everything\r\n");
    let fields = "connected_clients:1 total_connections_received:0 total_net_output_bytes:0 keyspace_hits:0 keyspace_misses:0 rejected_connections:0";
    for field in fields.split(' ') {
        assert!(info.contains(&format!("\n{field}\r")), "{field}: {info}");
    }
    assert!(!info.contains("cmdstat_get") && !info.contains("slowlog_len:0"), "{info}");
}

#[test]
fn no_client_is_let_to_cache_what_it_would_not_hear_of() {
    // Catches a client-side cache that shows old values for ever, because the server claims to support it.
    let mut server = Server::new();
    server.talk(
        "client tracking on optin => -ERR CLIENT TRACKING is not there: the server does not say which keys change, so clients must not cache them
         client tracking off => +OK | client tracking maybe => -ERR syntax error
         client caching yes => -ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled
         client trackinginfo => *6 $5 flags *1 $3 off $8 redirect :-1 $8 prefixes *0 | client getredir => :-1",
    );
}

//! The language of the coursework over a connection.

use std::net::Shutdown;

use crate::process::{Room, serve};

#[test]
fn a_workload_is_answered_line_by_line() {
    // Catches a job whose answer comes out of its place, and lines that are answered twice.
    let room = Room::new();
    let data = room.path("data");
    std::fs::create_dir(&data).expect("a directory");
    std::fs::write(data.join("0.dat"), [5i32, 50, 6, 60].map(i32::to_ne_bytes).concat()).expect("write");
    let data = data.display().to_string();
    let server = room.server(&["--protocol", "lines", "--load-from", &data]);
    let mut raw = server.raw();
    raw.send("p 10 7\np 63 222\ng 10\ng 15\nl \"0.dat\"\nr 0 100\nd 10\nr 0 100\ns\nbogus\ng 6\n");
    raw.0.shutdown(Shutdown::Write).expect("shutdown");
    let said = String::from_utf8(raw.rest()).expect("text");
    let expected = "7\n\n5:50 6:60 10:7 63:222\n5:50 6:60 63:222\nLogical Pairs: 3\n\n5:50 6:60 63:222\n\
                    error: expected p KEY VALUE, g KEY, r FROM TO, d KEY, l \"FILE\" or s\n60\n";
    assert_eq!(said, expected);
    server.end();
    let refused = serve(&room.database(), &["--protocol", "lines", "--listen", "0.0.0.0:0"]).output().expect("run");
    assert_eq!(refused.status.code(), Some(2));
}

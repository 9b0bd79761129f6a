//! Proxies between the nodes of a cluster, whose links a test can cut. A cut connection stays open, and its bytes arrive once the link is restored.
//!
//! Each node advertises its proxy to the others. A proxy finds in /proc which process, and so which node, has made a connection. Connections of other
//! processes, such as `mini-engine cluster status`, are never cut.

use std::collections::HashSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

#[derive(Default)]
struct State {
    /// The process of each node.
    processes: Vec<Option<u32>>,
    /// Pairs of nodes: connections from the first to the second are cut.
    cut: HashSet<(usize, usize)>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// The links of a cluster. The threads of its proxies end with the process of the tests.
#[derive(Default)]
pub(super) struct Links(Arc<Shared>);

impl Links {
    /// A proxy for a further node, which listens at `node`.
    pub(super) fn proxy(&self, node: SocketAddr) -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("bind");
        let address = listener.local_addr().expect("an address");
        let mut state = self.0.state.lock().expect("state");
        let to = state.processes.len();
        state.processes.push(None);
        let shared = Arc::clone(&self.0);
        thread::spawn(move || shared.serve(&listener, to, node));
        address
    }

    pub(super) fn set_process(&self, node: usize, process: Option<u32>) {
        self.change(|state| state.processes[node] = process);
    }

    /// Cuts the connections that `from` makes to `to`.
    pub(super) fn cut(&self, from: usize, to: usize) {
        self.change(|state| _ = state.cut.insert((from, to)));
    }

    /// Cuts a node off from all others, in both directions.
    pub(super) fn isolate(&self, node: usize) {
        self.change(|state| {
            let others = (0..state.processes.len()).filter(|other| *other != node);
            state.cut.extend(others.flat_map(|other| [(node, other), (other, node)]));
        });
    }

    pub(super) fn mend(&self) {
        self.change(|state| state.cut.clear());
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.0.state.lock().expect("state"));
        self.0.changed.notify_all();
    }
}

impl Shared {
    fn serve(self: Arc<Self>, listener: &TcpListener, to: usize, node: SocketAddr) {
        while let Ok((near, peer)) = listener.accept() {
            let processes = self.state.lock().expect("state").processes.clone();
            let from = owner(peer, &near, &processes);
            // The node may be down: the connection then ends at once.
            let Ok(far) = TcpStream::connect(node) else { continue };
            for (source, target) in [(&near, &far), (&far, &near)] {
                let (Ok(source), Ok(target)) = (source.try_clone(), target.try_clone()) else { break };
                target.set_nodelay(true).ok();
                let shared = Arc::clone(&self);
                thread::spawn(move || shared.pass_on(source, target, from.map(|from| (from, to))));
            }
        }
    }

    /// Forwards bytes while the link is not cut.
    fn pass_on(&self, mut source: TcpStream, mut target: TcpStream, link: Option<(usize, usize)>) {
        let mut bytes = vec![0; 64 << 10];
        while let Ok(length @ 1..) = source.read(&mut bytes) {
            self.wait(link);
            if target.write_all(&bytes[..length]).is_err() {
                source.shutdown(Shutdown::Both).ok();
                break;
            }
        }
        self.wait(link);
        target.shutdown(Shutdown::Write).ok();
    }

    fn wait(&self, link: Option<(usize, usize)>) {
        let Some(link) = link else { return };
        let state = self.state.lock().expect("state");
        drop(self.changed.wait_while(state, |state| state.cut.contains(&link)).expect("state"));
    }
}

/// The index of the process that holds the other end of a connection from `peer`.
fn owner(peer: SocketAddr, near: &TcpStream, processes: &[Option<u32>]) -> Option<usize> {
    let here = near.local_addr().ok()?.port();
    let port = |field: &str| u16::from_str_radix(field.rsplit_once(':')?.1, 16).ok();
    let table = fs::read_to_string("/proc/net/tcp").ok()?;
    // Local address, remote address, and the inode: the second, the third and the tenth field.
    let socket = table.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_it = port(fields.get(1)?) == Some(peer.port()) && port(fields.get(2)?) == Some(here);
        is_it.then(|| format!("socket:[{}]", fields[9]))
    })?;
    processes.iter().position(|process| process.is_some_and(|process| holds(process, &socket)))
}

fn holds(process: u32, socket: &str) -> bool {
    let handles = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    handles.filter_map(|handle| fs::read_link(handle.path()).ok()).any(|target| target == Path::new(socket))
}

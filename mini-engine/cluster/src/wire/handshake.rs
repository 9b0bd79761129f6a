//! The proof that both sides have the secret, before any other message.
//!
//! ```text
//! client                              server
//!   Hello { nonce, audience }   ──►
//!                               ◄──   Challenge { nonce, a proof of the server by each of its secrets }, or Refused
//!   proof of the client         ──►
//!                               ◄──   Welcome, or Refused
//! ```
//!
//! A proof is an HMAC-SHA256 with the secret as its key, over the side's name, both nonces and the audience. The nonces are fresh, so a proof that
//! was overheard is useless in another conversation; the side's name prevents that a proof is sent back to its author. Without a secret the key is
//! empty, and the proof only shows that neither side has a secret. The secret does not encrypt or protect the following messages; TLS does.
//!
//! During a change of the secret a side has two. The client answers by the first of its own that the server has proved, and the server accepts both. So
//! sides that share one understand each other, whichever else they have.
//!
//! The audience is the identity of the node that the client wants to reach: another node at the same address gets no messages for that node.

use std::io::{Error, ErrorKind, Result};
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use tokio::time::timeout;

use super::frames::Frames;

/// Must change with every change of the messages.
const VERSION: u32 = 5;
const MAGIC: [u8; 8] = *b"mini-eng";
/// The maximum time of the whole handshake.
pub(crate) const DEADLINE: Duration = Duration::from_secs(5);

type Nonce = [u8; 32];
type Proof = [u8; 32];

/// The identity of the node that a client intends to reach: the numbers of the cluster and of the node. `None`: any node.
pub(crate) type Audience = Option<(u64, u64)>;

#[derive(Serialize, Deserialize)]
struct Hello {
    magic: [u8; 8],
    version: u32,
    nonce: Nonce,
    audience: Audience,
}

#[derive(Serialize, Deserialize)]
enum Challenge {
    Challenge { nonce: Nonce, proofs: Vec<Proof> },
    Refused(String),
}

#[derive(Serialize, Deserialize)]
enum Verdict {
    Welcome,
    Refused(String),
}

#[derive(Clone, Copy)]
enum Side {
    Client,
    Server,
}

/// The values that both sides need for a proof.
#[derive(Clone, Copy)]
struct Conversation<'a> {
    secret: &'a [u8],
    client: Nonce,
    server: Nonce,
    audience: Audience,
}

impl<'a> Conversation<'a> {
    fn mac(&self, side: Side) -> Result<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.secret).map_err(Error::other)?;
        mac.update(match side {
            Side::Client => b"client",
            Side::Server => b"server",
        });
        mac.update(&VERSION.to_le_bytes());
        mac.update(&self.client);
        mac.update(&self.server);
        let (cluster, node) = self.audience.unwrap_or_default();
        mac.update(&[u8::from(self.audience.is_some())]);
        mac.update(&cluster.to_le_bytes());
        mac.update(&node.to_le_bytes());
        Ok(mac)
    }

    fn proof(&self, side: Side) -> Result<Proof> {
        Ok(self.mac(side)?.finalize().into_bytes().into())
    }

    /// The comparison takes constant time.
    fn is_proved(&self, side: Side, proof: &Proof) -> Result<bool> {
        Ok(self.mac(side)?.verify_slice(proof).is_ok())
    }

    fn with(self, secret: &'a [u8]) -> Self {
        Self { secret, ..self }
    }

    /// This conversation with the first of the secrets by which one of the proofs is right.
    fn proved(self, secrets: &'a [Vec<u8>], side: Side, proofs: &[Proof]) -> Result<Option<Self>> {
        for conversation in secrets.iter().map(|secret| self.with(secret)) {
            for proof in proofs {
                if conversation.is_proved(side, proof)? {
                    return Ok(Some(conversation));
                }
            }
        }
        Ok(None)
    }
}

fn nonce() -> Result<Nonce> {
    let mut nonce = Nonce::default();
    getrandom::fill(&mut nonce).map_err(Error::other)?;
    Ok(nonce)
}

fn refused(reason: impl Into<String>) -> Error {
    Error::new(ErrorKind::PermissionDenied, reason.into())
}

/// The client's side. There is at least one secret.
pub(crate) async fn ask(frames: &mut Frames, secrets: &[Vec<u8>], audience: Audience) -> Result<()> {
    timeout(DEADLINE, ask_in_time(frames, secrets, audience)).await?
}

async fn ask_in_time(frames: &mut Frames, secrets: &[Vec<u8>], audience: Audience) -> Result<()> {
    let client = nonce()?;
    frames.send(&Hello { magic: MAGIC, version: VERSION, nonce: client, audience }).await?;
    let (server, proofs) = match frames.receive().await? {
        Challenge::Challenge { nonce, proofs } => (nonce, proofs),
        // From a stranger: no control characters get into a log or a terminal.
        Challenge::Refused(reason) => return Err(refused(reason.escape_debug().to_string())),
    };
    let conversation = Conversation { secret: &[], client, server, audience };
    let Some(conversation) = conversation.proved(secrets, Side::Server, &proofs)? else {
        // So that the other side logs it too. A proof would help it to guess the secret.
        frames.send(&Proof::default()).await.ok();
        return Err(refused("the node does not have the same secret"));
    };
    frames.send(&conversation.proof(Side::Client)?).await?;
    match frames.receive().await? {
        Verdict::Welcome => {
            frames.trust();
            Ok(())
        }
        Verdict::Refused(reason) => Err(refused(reason)),
    }
}

/// The server's side. `own` is the node's identity, if it has one.
pub(crate) async fn answer(frames: &mut Frames, secrets: &[Vec<u8>], own: Audience) -> Result<()> {
    timeout(DEADLINE, answer_in_time(frames, secrets, own)).await?
}

async fn answer_in_time(frames: &mut Frames, secrets: &[Vec<u8>], own: Audience) -> Result<()> {
    let Hello { magic, version, nonce: client, audience } = frames.receive().await?;
    if magic != MAGIC || version != VERSION {
        let reason = format!("expected version {VERSION} of the protocol between nodes, found {version}");
        frames.send(&Challenge::Refused(reason.clone())).await?;
        return Err(refused(reason));
    }
    let conversation = Conversation { secret: &[], client, server: nonce()?, audience };
    let proofs = secrets.iter().map(|secret| conversation.with(secret).proof(Side::Server)).collect::<Result<_>>()?;
    frames.send(&Challenge::Challenge { nonce: conversation.server, proofs }).await?;
    let proof: Proof = frames.receive().await?;
    let reason = if conversation.proved(secrets, Side::Client, &[proof])?.is_none() {
        "the secrets differ".to_owned()
    } else if audience.is_some() && audience != own {
        // Checked only now: a stranger must not learn which node this is.
        format!("expected {}, found {}", shown(audience), shown(own))
    } else {
        frames.send(&Verdict::Welcome).await?;
        frames.trust();
        return Ok(());
    };
    frames.send(&Verdict::Refused(reason.clone())).await.ok();
    Err(refused(reason))
}

fn shown(audience: Audience) -> String {
    match audience {
        Some((cluster, node)) => format!("node {node} of cluster {cluster:016x}"),
        None => "a node of no cluster".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The results of both sides of a conversation.
    async fn talk(secrets: [&[&str]; 2], audience: Audience, own: Audience) -> [Result<()>; 2] {
        let secrets =
            secrets.map(|secrets| secrets.iter().map(|secret| secret.as_bytes().to_vec()).collect::<Vec<_>>());
        let (client, server) = tokio::io::duplex(1 << 12);
        let (mut client, mut server) = (Frames::new(Box::new(client)), Frames::new(Box::new(server)));
        let ask = async {
            let asked = ask(&mut client, &secrets[0], audience).await;
            // The server must not wait for a client that has given up.
            drop(client);
            asked
        };
        let (asked, answered) = tokio::join!(ask, answer(&mut server, &secrets[1], own));
        [asked, answered]
    }

    #[tokio::test]
    async fn only_who_knows_the_secret_and_means_this_node_is_let_in() {
        // Catches a proof that one side does not check, and messages for another node.
        let (one, two) = (Some((9, 1)), Some((9, 2)));
        for (audience, own) in [(None, None), (None, one), (one, one)] {
            let shared: [[&[&str]; 2]; 6] = [
                [&["a"], &["a"]],
                [&[""], &[""]],
                // Every pair during a change from `a` to `b`.
                [&["a"], &["b", "a"]],
                [&["b", "a"], &["a"]],
                [&["a", "b"], &["b", "a"]],
                [&["b"], &["a", "b"]],
            ];
            for secrets in shared {
                let [asked, answered] = talk(secrets, audience, own).await;
                asked.unwrap();
                answered.unwrap();
            }
        }
        let different: [[&[&str]; 2]; 4] =
            [[&["a"], &["b"]], [&[""], &["a", "b"]], [&["a", "b"], &[""]], [&["a", "b"], &["c"]]];
        for secrets in different {
            let both = talk(secrets, None, one).await;
            assert!(both.iter().all(Result::is_err), "{both:?}");
            let say_so = |side: &Result<()>| side.as_ref().unwrap_err().to_string().contains("secret");
            assert!(both.iter().all(say_so), "{both:?}");
        }
        for (audience, own) in [(one, two), (one, None), (Some((8, 1)), one)] {
            let [asked, answered] = talk([&["s"], &["s"]], audience, own).await;
            assert!(answered.is_err());
            assert!(asked.unwrap_err().to_string().contains("expected node 1 of cluster"));
        }
    }

    #[tokio::test]
    async fn the_refusal_of_a_stranger_controls_no_terminal() {
        // Catches text of a stranger that forges lines of the log.
        let (client, server) = tokio::io::duplex(1 << 12);
        let (mut client, mut server) = (Frames::new(Box::new(client)), Frames::new(Box::new(server)));
        server.send(&Challenge::Refused("\x1b[2J\nall is well".into())).await.unwrap();
        let error = ask(&mut client, &[vec![]], None).await.unwrap_err().to_string();
        assert_eq!(error, "\\u{1b}[2J\\nall is well");
    }

    #[tokio::test]
    async fn a_proof_is_of_no_use_for_the_other_side_or_in_another_conversation() {
        // Catches a proof that can be sent back to its author, or used again.
        let conversation = Conversation { secret: b"s", client: [1; 32], server: [2; 32], audience: None };
        let proof = conversation.proof(Side::Server).unwrap();
        assert!(conversation.is_proved(Side::Server, &proof).unwrap());
        assert!(!conversation.is_proved(Side::Client, &proof).unwrap());
        let changes: [fn(&mut Conversation<'_>); 4] = [
            |other| other.client = [3; 32],
            |other| other.server = [3; 32],
            |other| other.audience = Some((0, 0)),
            |other| other.secret = b"t",
        ];
        for change in changes {
            let mut other = Conversation { secret: b"s", client: [1; 32], server: [2; 32], audience: None };
            change(&mut other);
            assert!(!other.is_proved(Side::Server, &proof).unwrap());
        }
        assert_ne!(nonce().unwrap(), nonce().unwrap());
    }
}

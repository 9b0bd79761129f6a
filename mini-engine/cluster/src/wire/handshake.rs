//! The proof that both sides have the secret, before any other message.
//!
//! ```text
//! client                              server
//!   Hello { versions, nonce,
//!           audience }          ──►
//!                               ◄──   Challenge { version, nonce, a proof of the server by each of its secrets }, or Refused
//!   proof of the client         ──►
//!                               ◄──   Welcome, or Refused
//! ```
//!
//! A proof is an HMAC-SHA256 with the secret as its key, over the side's name, the versions, both nonces and the audience. The nonces are fresh, so a proof that
//! was overheard is useless in another conversation; the side's name prevents that a proof is sent back to its author. Without a secret the key is
//! empty, and the proof only shows that neither side has a secret. The secret does not encrypt or protect the following messages; TLS does.
//!
//! The server chooses the newest [version](super::version) that both sides speak. `Hello` and `Challenge` are the same in all versions.
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
use super::version::Versions;

const MAGIC: [u8; 8] = *b"mini-eng";
/// The maximum time of the whole handshake.
pub(crate) const DEADLINE: Duration = Duration::from_secs(5);

type Nonce = [u8; 32];
type Proof = [u8; 32];

/// The identity of the node that a client intends to reach: the numbers of the cluster and of the node. `None`: any node.
pub(crate) type Audience = Option<(u64, u64)>;

/// What one side brings to every conversation.
pub(crate) struct Terms {
    /// At least one.
    pub(crate) secrets: Vec<Vec<u8>>,
    pub(crate) versions: Versions,
}

#[derive(Serialize, Deserialize)]
struct Hello {
    magic: [u8; 8],
    versions: Versions,
    nonce: Nonce,
    audience: Audience,
}

#[derive(Serialize, Deserialize)]
struct Challenge {
    version: u32,
    nonce: Nonce,
    proofs: Vec<Proof>,
}

/// The answer to `Hello`, and that to the proof of the client; or the reason of a refusal.
type Answer = std::result::Result<Challenge, String>;
type Verdict = std::result::Result<(), String>;

#[derive(Clone, Copy, Serialize)]
enum Side {
    Client,
    Server,
}

/// The values that both sides know. A proof is over all of them.
#[derive(Clone, Copy, Serialize)]
struct Conversation {
    /// The versions that the client speaks.
    offered: Versions,
    version: u32,
    client: Nonce,
    server: Nonce,
    audience: Audience,
}

impl Conversation {
    fn mac(&self, secret: &[u8], side: Side) -> Result<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(secret).map_err(Error::other)?;
        mac.update(&postcard::to_stdvec(&(side, self)).map_err(Error::other)?);
        Ok(mac)
    }

    fn proof(&self, secret: &[u8], side: Side) -> Result<Proof> {
        Ok(self.mac(secret, side)?.finalize().into_bytes().into())
    }

    /// The first of the secrets by which one of the proofs is right. The comparison takes constant time.
    fn proved<'a>(&self, secrets: &'a [Vec<u8>], side: Side, proofs: &[Proof]) -> Result<Option<&'a [u8]>> {
        for secret in secrets {
            let mac = self.mac(secret, side)?;
            if proofs.iter().any(|proof| mac.clone().verify_slice(proof).is_ok()) {
                return Ok(Some(secret));
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

/// The client's side.
pub(crate) async fn ask(frames: &mut Frames, terms: &Terms, audience: Audience) -> Result<()> {
    timeout(DEADLINE, ask_in_time(frames, terms, audience)).await?
}

async fn ask_in_time(frames: &mut Frames, terms: &Terms, audience: Audience) -> Result<()> {
    let (client, offered) = (nonce()?, terms.versions);
    frames.send(&Hello { magic: MAGIC, versions: offered, nonce: client, audience }).await?;
    let answer = frames.receive::<Answer>().await?;
    // From a stranger: no control characters get into a log or a terminal.
    let answer = answer.map_err(|reason| refused(reason.escape_debug().to_string()));
    let Challenge { version, nonce: server, proofs } = answer?;
    if !(offered.oldest..=offered.newest).contains(&version) || proofs.len() > 2 {
        let found = proofs.len();
        return Err(refused(format!("expected version {offered} and at most 2 proofs, found {version} and {found}")));
    }
    let conversation = Conversation { offered, version, client, server, audience };
    let Some(secret) = conversation.proved(&terms.secrets, Side::Server, &proofs)? else {
        // So that the other side logs it too. A proof would help it to guess the secret.
        frames.send(&Proof::default()).await.ok();
        return Err(refused("the node does not have the same secret"));
    };
    frames.send(&conversation.proof(secret, Side::Client)?).await?;
    frames.receive::<Verdict>().await?.map_err(refused)?;
    frames.trust();
    Ok(())
}

/// The server's side, as `ask`. `own` is the node's identity, if it has one.
pub(crate) async fn answer(frames: &mut Frames, terms: &Terms, own: Audience) -> Result<()> {
    timeout(DEADLINE, answer_in_time(frames, terms, own)).await?
}

async fn answer_in_time(frames: &mut Frames, Terms { secrets, versions }: &Terms, own: Audience) -> Result<()> {
    let Hello { magic, versions: offered, nonce: client, audience } = frames.receive().await?;
    let common = versions.common(offered).filter(|_| magic == MAGIC);
    let Some(version) = common else {
        let reason = versions.refusal(offered);
        frames.send(&Answer::Err(reason.clone())).await?;
        return Err(refused(reason));
    };
    let conversation = Conversation { offered, version, client, server: nonce()?, audience };
    let proofs = secrets.iter().map(|secret| conversation.proof(secret, Side::Server)).collect::<Result<_>>()?;
    frames.send(&Answer::Ok(Challenge { version, nonce: conversation.server, proofs })).await?;
    let proof: Proof = frames.receive().await?;
    let verdict = if conversation.proved(secrets, Side::Client, &[proof])?.is_none() {
        Verdict::Err("the secrets differ".to_owned())
    } else if audience.is_some() && audience != own {
        // Checked only now: a stranger must not learn which node this is.
        Err(format!("expected {}, found {}", shown(audience), shown(own)))
    } else {
        Ok(())
    };
    let sent = frames.send(&verdict).await;
    verdict.map_err(refused)?;
    sent?;
    frames.trust();
    Ok(())
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

    const VERSIONS: Versions = Versions { oldest: 5, newest: 6 };

    fn terms(secrets: &[&str], versions: Versions) -> Terms {
        Terms { secrets: secrets.iter().map(|secret| secret.as_bytes().to_vec()).collect(), versions }
    }

    async fn talk(secrets: [&[&str]; 2], audience: Audience, own: Audience) -> [Result<()>; 2] {
        talk_on(secrets.map(|secrets| terms(secrets, VERSIONS)), audience, own).await
    }

    /// The results of both sides of a conversation.
    async fn talk_on(terms: [Terms; 2], audience: Audience, own: Audience) -> [Result<()>; 2] {
        let (client, server) = tokio::io::duplex(1 << 12);
        let (mut client, mut server) = (Frames::new(Box::new(client)), Frames::new(Box::new(server)));
        let ask = async {
            let asked = ask(&mut client, &terms[0], audience).await;
            // The server must not wait for a client that has given up.
            drop(client);
            asked
        };
        let (asked, answered) = tokio::join!(ask, answer(&mut server, &terms[1], own));
        [asked, answered]
    }

    #[tokio::test]
    async fn only_who_knows_the_secret_and_means_this_node_is_let_in() {
        // Catches a proof that one side does not check, and messages for another node.
        let (one, two) = (Some((9, 1)), Some((9, 2)));
        let shared: [[&[&str]; 2]; 6] = [
            [&["a"], &["a"]],
            [&[""], &[""]],
            // Every pair during a change from `a` to `b`.
            [&["a"], &["b", "a"]],
            [&["b", "a"], &["a"]],
            [&["a", "b"], &["b", "a"]],
            [&["b"], &["a", "b"]],
        ];
        for (audience, own) in [(None, None), (None, one), (one, one)] {
            for secrets in shared {
                assert!(talk(secrets, audience, own).await.iter().all(Result::is_ok), "{secrets:?}");
            }
        }
        let different: [[&[&str]; 2]; 4] =
            [[&["a"], &["b"]], [&[""], &["a", "b"]], [&["a", "b"], &[""]], [&["a", "b"], &["c"]]];
        for secrets in different {
            for side in talk(secrets, None, one).await {
                assert!(side.unwrap_err().to_string().contains("secret"), "{secrets:?}");
            }
        }
        for (audience, own) in [(one, two), (one, None), (Some((8, 1)), one)] {
            let [asked, answered] = talk([&["s"], &["s"]], audience, own).await;
            assert!(answered.is_err());
            assert!(asked.unwrap_err().to_string().contains("expected node 1 of cluster"));
        }
    }

    #[tokio::test]
    async fn the_newest_common_version_is_spoken_and_without_one_both_ranges_are_named() {
        // Catches a node that is shut out during an upgrade, and a refusal that does not say how to go on.
        let range = |oldest, newest| Versions { oldest, newest };
        let talk = async |sides: [Versions; 2]| talk_on(sides.map(|side| terms(&["s"], side)), None, None).await;
        let [five, both] = [range(5, 5), range(5, 6)];
        for (sides, common) in
            [([five, five], 5), ([both, five], 5), ([both, range(6, 8)], 6), ([range(6, 9), range(5, 8)], 8)]
        {
            assert!(talk(sides).await.iter().all(Result::is_ok), "{sides:?}");
            assert_eq!(sides[0].common(sides[1]), Some(common), "{sides:?}");
        }
        for (sides, named) in [
            ([five, range(6, 7)], "called node speaks 6 to 7, the calling node 5;"),
            ([range(6, 6), five], "calling node 6;"),
        ] {
            for side in talk(sides).await {
                let said = side.unwrap_err().to_string();
                assert!(said.contains(named) && said.contains("upgrade by way of"), "{said}");
            }
        }
    }

    #[test]
    fn what_begins_a_conversation_is_the_same_in_all_versions() {
        // Catches a changed beginning: such a node cannot even be refused by others with a reason.
        let (nonce, audience) = ([7; 32], Some((8, 9)));
        let hello = Hello { magic: MAGIC, versions: VERSIONS, nonce, audience };
        assert_eq!(postcard::to_stdvec(&hello).unwrap(), [&b"mini-eng"[..], &[5, 6], &nonce, &[1, 8, 9]].concat());
        let challenge = Answer::Ok(Challenge { version: 6, nonce, proofs: vec![[3; 32]] });
        assert_eq!(postcard::to_stdvec(&challenge).unwrap(), [&[0, 6], &nonce[..], &[1], &[3; 32]].concat());
        assert_eq!(postcard::to_stdvec(&Answer::Err("no".into())).unwrap(), b"\x01\x02no");
        assert_eq!(postcard::to_stdvec(&[Verdict::Ok(()), Verdict::Err("no".into())]).unwrap(), b"\0\x01\x02no");
    }

    #[tokio::test]
    async fn a_stranger_controls_no_terminal_and_chooses_no_version_that_was_not_offered() {
        // Catches text of a stranger that forges lines of the log, and a node that speaks a version it does not know.
        let challenge = |version, proofs| Ok(Challenge { version, nonce: [1; 32], proofs: vec![[0; 32]; proofs] });
        for (challenge, said) in [
            (Answer::Err("\x1b[2J\nall is well".into()), "\\u{1b}[2J\\nall is well"),
            (challenge(7, 1), "expected version 5 to 6 and at most 2 proofs, found 7 and 1"),
            (challenge(5, 3), "expected version 5 to 6 and at most 2 proofs, found 5 and 3"),
        ] {
            let (client, server) = tokio::io::duplex(1 << 12);
            let (mut client, mut server) = (Frames::new(Box::new(client)), Frames::new(Box::new(server)));
            server.send(&challenge).await.unwrap();
            let error = ask(&mut client, &terms(&[""], VERSIONS), None).await.unwrap_err().to_string();
            assert_eq!(error, said);
        }
    }

    #[tokio::test]
    async fn a_proof_is_of_no_use_for_the_other_side_or_in_another_conversation() {
        // Catches a proof that can be sent back to its author, or used again, or that is not the recorded one, of the last release.
        let (client, server, audience) = ([1; 32], [2; 32], Some((8, 9)));
        let conversation = Conversation { offered: VERSIONS, version: 6, client, server, audience };
        let proof = conversation.proof(b"s", Side::Server).unwrap();
        let hex: String = proof.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "56e1230370ef11c2956c412ab370dda8ec5ad589f26531a4db6c0e93f4954386");
        let secrets = [b"t".to_vec(), b"s".to_vec()];
        let proved = |other: Conversation, side| other.proved(&secrets, side, &[proof]).unwrap();
        assert_eq!(proved(conversation, Side::Server), Some(&b"s"[..]));
        assert_eq!(proved(conversation, Side::Client), None);
        let changes: [fn(&mut Conversation); 5] = [
            |other| other.client = [3; 32],
            |other| other.server = [3; 32],
            |other| other.audience = None,
            |other| other.version = 5,
            |other| other.offered.newest = 5,
        ];
        for change in changes {
            let mut other = conversation;
            change(&mut other);
            assert_eq!(proved(other, Side::Server), None);
        }
        assert_ne!(nonce().unwrap(), nonce().unwrap());
    }
}

//! The replies to the requests of one client, which are text.

use super::*;

const CONVERSATIONS: &str = include_str!("conversations.txt");

#[test]
fn conversations_go_as_they_are_written_one_by_one_and_all_at_once() {
    // Catches what the text says above each conversation, and a request that is carried out differently together with its neighbours.
    for conversation in CONVERSATIONS.split("\n\n").skip(1) {
        let title = conversation.lines().next().expect("a title");
        let begin = || Server::with(|settings| settings.may_flush_all = true);
        let (mut server, mut requests, mut replies) = (begin(), Vec::new(), Vec::new());
        for (request, reply) in exchanges(conversation) {
            assert_eq!(server.reply(request), reply, "{title}: {request}");
            requests.push(request);
            replies.extend(reply.split_whitespace());
        }
        let together = begin().reply(&requests.join("\r\n"));
        assert_eq!(together.split_whitespace().collect::<Vec<_>>(), replies, "{title}");
    }
}

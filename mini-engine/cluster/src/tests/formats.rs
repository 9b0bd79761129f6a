//! The bytes of messages, of entries of the log, and of parts of snapshots, as nodes of the last release write and read them.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::wire::control::{ControlReply, ControlRequest};
use crate::wire::message::{Call, CallReply, Numbered, Part};

/// Parts of the JSON texts below.
const PARTS: [(&str, &str); 6] = [
    (
        "WRITES",
        r#"{"Request":{"is_version_3":true,"lengths":[3,1],"bytes":[71,69,84,107]}},{"Transaction":{"is_version_3":false,
        "watched":[{"key":[119],"term":3,"expires_at":300}],"is_changed":true,"requests":[]}},{"Watch":{"keys":[[119]]}},"Check""#,
    ),
    (
        "PLACES",
        r#"{"0":{"membership":{"since":{"term":3,"leader":1,"index":2},"members":{"1":MEMBER},"voters":[1]},"leader":[3,1]}}"#,
    ),
    (
        "STARTS",
        r#"{"cluster":9,"node":1,"history":[{"number":1,"drawn":300,"tick":2}],"others":{"2":{"number":3,"drawn":4,"tick":5}}}"#,
    ),
    ("MEMBER", r#"{"cluster":"a:1","clients":"b:2"}"#),
    ("VOTE", r#"{"leader_id":{"term":3,"node_id":1},"committed":true}"#),
    ("ID", r#"{"leader_id":{"term":3,"node_id":1},"index":300}"#),
];

/// Compares the encoding of these values with the recorded one.
fn check<T: Serialize + DeserializeOwned>(json: &str, recorded: &str) {
    let name = std::any::type_name::<T>();
    let json = PARTS.iter().fold(json.to_owned(), |json, (part, text)| json.replace(part, text));
    let hex = |values: Vec<T>| postcard::to_stdvec(&values).unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
    let found: String = serde_json::from_str(&json).map_or_else(|error| error.to_string(), hex);
    assert!(
        found == recorded,
        "{name} has changed: a node of the last release does not understand it, and this one may not read its old log. Unless `OWN.newest` is of no \
         release yet, follow the rules in wire/mod.rs: append variants, keep the old ones readable, raise `OWN.newest`. Then record\n{found}"
    );
    let bytes = |at| u8::from_str_radix(&recorded[at..at + 2], 16).unwrap();
    let read = postcard::from_bytes(&(0..recorded.len()).step_by(2).map(bytes).collect::<Vec<u8>>()).unwrap();
    assert_eq!(hex(read), recorded, "{name} is read as it was written");
}

#[test]
fn messages_and_entries_of_the_log_are_those_of_the_last_release() {
    // Catches a changed message or entry, with which the nodes of a cluster that is being upgraded stop, or apply different writes.
    check::<Call>(
        r#"[{"Append":[0,{"vote":VOTE,"prev_log_id":ID,"leader_commit":null,"entries":[{"log_id":ID,"payload":"Blank"},
                {"log_id":ID,"payload":{"Normal":{"at":7,"writes":[WRITES]}}},
                {"log_id":ID,"payload":{"Membership":{"configs":[[1]],"nodes":{"1":MEMBER}}}}]},6]},
            {"Vote":[1,{"vote":VOTE,"last_log_id":ID,"leadership_transfer":true}]},
            {"PreVote":[2,{"vote":VOTE,"last_log_id":null,"leadership_transfer":false}]},
            {"Transfer":[3,{"from_leader":VOTE,"to_node_id":2,"last_log_id":ID}]},
            {"Snapshot":[4,VOTE]},{"Control":{"Describe":null}},{"Backup":5},{"Introduce":STARTS},{"ReadIndex":6}]"#,
        "090000030101010301ac02030301ac02000301ac020107040001020301044745546b010001017703ac02010002010177030301ac\
         0202010101010103613a3103623a3200060101030101010301ac020102020301010000030303010102010301ac02040403010105\
         000006050709010101ac020201020304050806",
    );
    check::<CallReply>(
        r#"[{"Append":"Success"},{"Append":{"PartialSuccess":ID}},{"Append":"Conflict"},{"Append":{"HigherVote":VOTE}},
            {"Vote":{"vote":VOTE,"vote_granted":false,"last_log_id":ID}},{"Transfer":{"Ok":null}},
            {"Transfer":{"Err":{"VoteChanged":{"expected":VOTE,"actual":VOTE}}}},
            {"Transfer":{"Err":{"LogNotFlushed":{"expected":ID,"actual":null}}}},
            {"Snapshot":{"vote":VOTE}},{"Control":{"Done":null}},"Working",{"Failed":"no"},{"Introduced":STARTS},{"ReadIndex":300}]"#,
        "0e00000001010301ac02000200030301010103010100010301ac020200020100030101030101020101010301ac02000303010104\
         01000506026e6f0709010101ac0202010203040508ac02",
    );
    check::<Numbered<CallReply>>(r#"[{"number":300,"body":"Working"}]"#, "01ac0205");
    check::<ControlRequest>(
        r#"[{"Describe":[9,PLACES]},
            {"Become":{"identity":{"cluster":9,"node":1,"groups":2},"joined":{"0":null},"others":["c:3"]}},
            {"Group":[4,{"Initialize":{"1":MEMBER}}]},{"Group":[5,{"AddLearner":[2,MEMBER]}]},{"Group":[6,{"Promote":2}]},
            {"Group":[7,{"Remove":[2,{"term":3,"leader":1,"index":2}]}]},{"Group":[8,{"HandOver":2}]},{"Group":[9,"Check"]},
            {"Group":[9,{"Checked":300}]}]"#,
        "09000109010001030102010103613a3103623a320101010301010901020100000103633a33020400010103613a3103623a320205\
         010203613a3103623a3202060202020703020103010202080402020905020906ac02",
    );
    check::<ControlReply>(
        r#"[{"Description":{"identity":null,"member":MEMBER,"clock":7,"disk_free":8,"lacks_room":true,"groups":{"0":{"leader":1,"term":3,"last":4,
            "applied":5,"instant":6,"refuses_growth":true,"membership":{"since":{"term":3,"leader":1,"index":2},"members":{"1":MEMBER},"voters":[1]},
            "matched":{"1":4}}},"places":PLACES,"release":"1.2.3",
            "protocol":{"oldest":5,"newest":6}}},{"Done":null},{"Done":{"term":3,"leader":1,"index":2}},"NotLeader",
            {"Checked":"Behind"},{"Checked":"UnderWay"},{"Checked":{"Done":{"Ok":[300]}}},{"Checked":{"Done":{"Err":"no"}}}]"#,
        "08000003613a3103623a3207010801010001010304050601030102010103613a3103623a32010101010401000103010201010361\
         3a3103623a32010101030105312e322e33050601000101030102020300030103020001ac02030201026e6f",
    );
    check::<Part>(
        r#"[{"Chunk":{"file":"a.sst","file_len":9,"offset":4,"bytes":[1],"checksum":7}},"End",{"Failed":"no"}]"#,
        "030005612e73737409040101070102026e6f",
    );
}

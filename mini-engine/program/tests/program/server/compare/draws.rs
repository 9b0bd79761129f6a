//! Random requests. Keys expire in weeks or have expired, so nothing depends on the speed of the servers.

use std::fmt::{Display, Formatter};

use proof::Random;

/// Templates of requests, separated by commas. Words in capitals are literal, others are drawn (see `Draws::word`). `x|y` is one of both, `x=y` both
/// words, `x?` none or one, `x*` none to three, `x+` one to three. Behind a semicolon is another request. The sum of INCRBYFLOAT is removed again, since
/// its digits may differ.
pub(super) const REQUESTS: &str = "APPEND key value, COPY key key DB=db? REPLACE?, DECR key, DECRBY key int, DEL key+, ECHO value, EXISTS key+, \
    EXPIRE key s NX|XX|GT|LT?, EXPIRE key s NX|XX|GT|LT*, EXPIREAT key at NX|XX|GT|LT?, EXPIRETIME key, GET key, GETDEL key, \
    GETEX key EX=s|PX=ms|EXAT=at|PXAT=atms|PERSIST?, GETRANGE key index index, GETSET key value, INCR key, INCRBY key int, \
    INCRBYFLOAT key float ; DEL same, KEYS pattern, MGET key+, MOVE key db, MSET key=value+, MSETNX key=value+, PERSIST key, \
    PEXPIRE key ms NX|XX|GT|LT*, PEXPIREAT key atms NX|XX|GT|LT*, PEXPIRETIME key, PING value?, PSETEX key ms value, PTTL key, \
    RENAME key key, RENAMENX key key, SCAN 0 COUNT=1000 MATCH=pattern? TYPE=STRING|TYPE=list?, SET key value, \
    SET key value NX|XX? GET? EX=s|PX=ms|EXAT=at|PXAT=atms|KEEPTTL?, SET key value NX|XX|GET|EX=s|PX=ms|EXAT=at|PXAT=atms|KEEPTTL*, \
    SETEX key s value, SETNX key value, SETRANGE key offset value, STRLEN key, SUBSTR key index index, TOUCH key+, TTL key, TYPE key, \
    UNLINK key+, MULTI, WATCH key+";

/// Requests of which several are carried out together.
pub(super) const TOGETHER: &str =
    "DECR key, DECRBY key int, GET key, INCR key, INCRBY key int, SET key value, STRLEN key";

/// Requests that leave too little to compare if they are drawn often. Redis counts a key whose time has come until SCAN or another
/// request meets it.
pub(super) const RARE: &str = "AUTH value+, AUTH default|value value, CLIENT GETNAME|ID|SETNAME=value|CACHING=value|GETREDIR|value, \
    COMMAND GETKEYS GET|MGET|SET|MSET|RENAME|PING|value key=value+, DISCARD, SCAN 0 COUNT=1000 ; DBSIZE, EXEC, FLUSHALL SYNC|ASYNC?, \
    FLUSHDB SYNC|ASYNC?, HELLO 2|3? SETNAME=value?, HELLO 3, HELLO 3 AUTH=default=value|AUTH=value=value|value?, HELLO value*, NONE value*, \
    OBJECT ENCODING|REFCOUNT|FREQ|IDLETIME|value key, QUIT, RESET, SELECT db, TIME, UNWATCH";

/// Commands whose requests get no faults: Redis sets the name of a HELLO that fails behind it, and the key of INCRBYFLOAT has to be the one that is
/// removed.
const WITHOUT_FAULTS: [&str; 2] = ["HELLO", "INCRBYFLOAT"];

/// The parts of a request.
pub(super) struct Request(pub(super) Vec<Vec<u8>>);

impl Request {
    pub(super) fn name(&self) -> String {
        String::from_utf8_lossy(&self.0[0]).to_uppercase()
    }

    /// Whether it begins with these words.
    pub(super) fn is(&self, words: &str) -> bool {
        let mut parts = self.0.iter();
        words.split(' ').all(|word| parts.next().is_some_and(|part| part.eq_ignore_ascii_case(word.as_bytes())))
    }

    /// Appends the request, on one line if its command is in small letters and its parts are words.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let is_word = |part: &Vec<u8>| !part.is_empty() && part.iter().all(u8::is_ascii_alphanumeric);
        if self.0[0][0].is_ascii_lowercase() && self.0.iter().all(is_word) {
            out.extend([&self.0.join(&b' ')[..], b"\r\n"].concat());
            return;
        }
        out.extend(format!("*{}\r\n", self.0.len()).bytes());
        for part in &self.0 {
            out.extend([format!("${}\r\n", part.len()).as_bytes(), part, b"\r\n"].concat());
        }
    }
}

impl Display for Request {
    fn fmt(&self, out: &mut Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|part| write!(out, "\"{}\" ", part.escape_ascii()))
    }
}

/// Arguments that most commands refuse. None of them is a time after which a key would expire at one server before it does at the other.
#[rustfmt::skip]
const ODD: &[&[u8]] = &[b"", b"0", b"-1", b"-0", b"+1", b" 1", b"1.5", b"abc", b"\xff\0\r\n", b"NX", b"9223372036854775807",
    b"9223372036854775808", b"-9223372036854775808"];
const KEYS: &[&[u8]] = &[b"", b"a", b"b", b"c", b"number", b"user:1", b"user:2", b"k\0\r\n", b"*"];
#[rustfmt::skip]
const VALUES: &[&[u8]] = &[b"", b"0", b"10", b"-5", b"hello world", b"\xff\0\r\n", b"3.5", b"9223372036854775806",
    b"-9223372036854775808", b" 1", b"01", b"1e3"];
/// A pattern of several stars alone is not among them: with it Redis does not return the empty key.
const PATTERNS: [&str; 12] = ["*", "a*", "[a-c]", "[^a]", "?", "user:*", "**:1", "\\*", "", "[", "k?*", "[c-a]"];
/// None has base 16, which Redis knows here.
const FLOATS: [&str; 12] = ["0.5", "-1.25", "1e3", "0.1", "inf", "-inf", "nan", "1.7e308", "1 ", "1e-5", ".5", "5."];

/// Draws requests.
pub(super) struct Draws {
    pub(super) random: Random,
    /// The number of times from now that were drawn.
    times: u64,
    /// The key drawn last.
    key: Vec<u8>,
}

impl Draws {
    pub(super) fn new(seed: u64) -> Self {
        Self { random: Random(seed), times: 0, key: Vec::new() }
    }

    pub(super) fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.random.index(choices.len())]
    }

    /// Seconds from now. All are a thousand seconds apart, so that their order is the same at both servers.
    fn seconds(&mut self) -> i64 {
        const PRIME: u64 = 1_000_003;
        self.times += 1;
        (1_000_000 + 1000 * (self.times * 611_953 % PRIME)) as i64
    }

    fn word(&mut self, class: &str) -> Vec<u8> {
        let small = self.random.below(41) as i64 - 20;
        let number = match class {
            "same" => return self.key.clone(),
            "key" => {
                self.key = self.of(KEYS).to_vec();
                return self.key.clone();
            }
            "value" if self.random.one_in(3) => return (0..small).map(|_| self.random.next() as u8).collect(),
            "value" => return self.of(VALUES).to_vec(),
            "pattern" => return self.of(&PATTERNS).into(),
            "float" => return self.of(&FLOATS).into(),
            "int" | "index" | "offset" | "s" | "ms" | "at" | "atms" | "db" if self.random.one_in(10) => {
                return self.of(ODD).to_vec();
            }
            "int" | "index" => small,
            // A byte at the last offset would make a value longer than allowed.
            "offset" => self.of(&[0, 1, 5, 30, 512 << 20]),
            "db" => self.of(&[0, 0, 1, 2, 15, 16]),
            "s" => self.seconds(),
            "ms" => 1000 * self.seconds(),
            "at" | "atms" if self.random.one_in(10) => 1,
            // Few, so that they are often equal, and near the half of a second, where TTL is rounded.
            "at" => 5_000_000_000 + self.of(&[-1, 0, 1]),
            "atms" => 5_000_000_000_000 + self.of(&[-501, -1, 0, 1, 499, 500]),
            literal => return literal.into(),
        };
        number.to_string().into_bytes()
    }

    /// The requests of a template; the last one may get a fault.
    pub(super) fn requests(&mut self, template: &str) -> Vec<Request> {
        let mut requests: Vec<Request> = template.split(" ; ").map(|template| self.request(template)).collect();
        let may_fail = !WITHOUT_FAULTS.iter().any(|name| requests[0].is(name));
        let parts = &mut requests.last_mut().expect("there is one").0;
        if self.random.one_in(4) {
            parts[0].make_ascii_lowercase();
        }
        if self.random.one_in(15) && may_fail {
            let at = 1 + self.random.index(parts.len());
            match self.random.below(3) {
                0 if at < parts.len() => drop(parts.remove(at)),
                1 if at < parts.len() => parts[at] = self.of(ODD).to_vec(),
                _ => parts.insert(at, self.of(ODD).to_vec()),
            }
        }
        requests
    }

    fn request(&mut self, template: &str) -> Request {
        let mut parts = Vec::new();
        for part in template.split(' ') {
            let (part, times) = match part.split_at(part.len() - 1) {
                (part, "?") => (part, self.random.below(2)),
                (part, "*") => (part, self.random.below(4)),
                (part, "+") => (part, 1 + self.random.below(3)),
                _ => (part, 1),
            };
            for _ in 0..times {
                let choices: Vec<&str> = part.split('|').collect();
                for word in self.of(&choices).split('=') {
                    parts.push(self.word(word));
                }
            }
        }
        Request(parts)
    }
}

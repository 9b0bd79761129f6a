//! Compares scripts in Lua 5.1 by their tokens: comments, white space and the kind of quotes make no difference, everything else does.

use std::borrow::Cow;

/// Whether two texts are the same script. The names of commands, that is, the first strings in `call(..)` and `pcall(..)`, may differ in case.
pub(super) fn is_same(one: &[u8], other: &[u8]) -> bool {
    let (mut one, mut other) = (Tokens(one), Tokens(other));
    let mut before = [None, None];
    loop {
        let is_command = matches!(before, [Some(Token::Name(b"call" | b"pcall")), Some(Token::Symbol(b"("))]);
        let token = match (one.next(), other.next()) {
            (None, None) => return true,
            (Some(Token::String(one)), Some(Token::String(other)))
                if is_command && one.eq_ignore_ascii_case(&other) =>
            {
                Token::String(one)
            }
            (Some(one), Some(other)) if one == other && one != Token::Invalid => one,
            _ => return false,
        };
        before = [before[1].take(), Some(token)];
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Token<'a> {
    /// A name or a keyword.
    Name(&'a [u8]),
    Number(&'a [u8]),
    String(Cow<'a, [u8]>),
    Symbol(&'a [u8]),
    /// Text that is not Lua.
    Invalid,
}

/// An iterator over the tokens of a text.
struct Tokens<'a>(&'a [u8]);

impl<'a> Tokens<'a> {
    /// Takes the first `len` bytes.
    fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }

    fn take_while(&mut self, is_part: impl Fn(&u8) -> bool) -> &'a [u8] {
        self.take(self.0.iter().position(|byte| !is_part(byte)).unwrap_or(self.0.len()))
    }

    /// Takes the text in long brackets, `[[ ]]` or `[=[ ]=]`, if the input begins with them; the inner `None` means that the end is missing.
    fn brackets(&mut self) -> Option<Option<&'a [u8]>> {
        let level = self.0.strip_prefix(b"[")?.iter().take_while(|byte| **byte == b'=').count();
        if self.0.get(level + 1) != Some(&b'[') {
            return None;
        }
        self.take(level + 2);
        let end = [&b"]"[..], &b"=".repeat(level), b"]"].concat();
        let len = self.0.windows(end.len()).position(|window| window == end);
        let content = len.map(|len| self.take(len));
        self.take(if len.is_some() { end.len() } else { usize::MAX });
        Some(content)
    }

    /// Skips white space and comments; returns false if a comment does not end.
    fn skip(&mut self) -> bool {
        loop {
            self.take_while(|byte| matches!(byte, b' ' | b'\t'..=b'\r'));
            if !self.0.starts_with(b"--") {
                return true;
            }
            self.take(2);
            match self.brackets() {
                Some(None) => return false,
                Some(Some(_)) => {}
                None => drop(self.take_while(|byte| !matches!(byte, b'\n' | b'\r'))),
            }
        }
    }

    /// Takes a string in quotes; returns `None` if the string does not end, or not in the same line.
    fn string(&mut self, quote: u8) -> Option<Cow<'a, [u8]>> {
        let is_plain = |byte: &u8| *byte != quote && !matches!(byte, b'\\' | b'\n' | b'\r');
        let mut string = Cow::Borrowed(self.take_while(is_plain));
        loop {
            match *self.take(1).first()? {
                b'\\' => {}
                byte => return (byte == quote).then_some(string),
            }
            let digits = self.0.iter().take(3).take_while(|byte| byte.is_ascii_digit()).count();
            let byte = match *self.0.first()? {
                b'0'..=b'9' => std::str::from_utf8(self.take(digits)).ok()?.parse().ok()?,
                _ => match self.take(1)[0] {
                    b'a' => 7,
                    b'b' => 8,
                    b't' => b'\t',
                    b'n' => b'\n',
                    b'v' => 11,
                    b'f' => 12,
                    b'r' => b'\r',
                    other => other,
                },
            };
            string.to_mut().push(byte);
            string.to_mut().extend_from_slice(self.take_while(is_plain));
        }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        const LONG: [&[u8]; 6] = [b"...", b"..", b"==", b"~=", b"<=", b">="];
        if !self.skip() {
            return Some(Token::Invalid);
        }
        let first = *self.0.first()?;
        let is_number = first.is_ascii_digit() || first == b'.' && self.0.get(1).is_some_and(u8::is_ascii_digit);
        Some(match first {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                Token::Name(self.take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_'))
            }
            // A number whose exponent has a sign is split into several tokens here.
            _ if is_number => Token::Number(self.take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'.')),
            b'"' | b'\'' => {
                self.take(1);
                self.string(first).map_or(Token::Invalid, Token::String)
            }
            _ => match self.brackets() {
                Some(string) => string.map_or(Token::Invalid, |string| Token::String(string.into())),
                None if b"+-*/%^#<>=(){}[];:,.~".contains(&first) => {
                    let long = LONG.iter().find(|symbol| self.0.starts_with(symbol));
                    Token::Symbol(self.take(long.map_or(1, |symbol| symbol.len())))
                }
                None => Token::Invalid,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_the_same_if_their_tokens_are() {
        // Catches a comment that is read as code or the reverse, characters of a string that are not compared, and a name in different case.
        let script = "if redis.call('get',KEYS[1]) == ARGV[1] then return 'a\\n' .. #KEYS -- 1\nend";
        let same = [
            "if redis.call(\"GET\", KEYS [ 1 ])==ARGV[1]then return[[a\n]]..#KEYS end",
            "--[[ two\nlines ]]if redis . call ( 'Get' , KEYS[1]) == ARGV[1] --[=[ ]] ]=] then return 'a\\10' .. # KEYS\r\nend --",
            "--[ one line\nif redis.call([==[get]==],KEYS[1]) == ARGV[1] then return \"\\a\\n\" .. #KEYS end",
        ];
        let are_same = |other: &str| is_same(script.as_bytes(), other.as_bytes());
        assert_eq!([script, same[0], same[1], same[2]].map(are_same), [true, true, true, false]);
        let other = [
            ("if ", "IF "),
            ("KEYS[1]", "keys[1]"),
            ("KEYS[1]", "KEYS[1.0]"),
            ("'get'", "'get '"),
            ("'get'", "('get')"),
            ("'get'", "get"),
            ("'a\\n'", "'A\\n'"),
            ("==", "= ="),
            ("==", "~="),
            ("..", "."),
            ("-- 1", "- 1"),
            ("-- 1\n", "-- 1 "),
            ("-- 1", "--[[ 1"),
            ("-- 1", "'"),
            ("-- 1", "\\"),
            ("return", "re turn"),
        ];
        for (from, to) in other {
            assert!(script.contains(from) && !are_same(&script.replacen(from, to, 1)), "{from} {to}");
        }
        assert!(!is_same(b"'a", b"'a") && !is_same(b"--[[", b"--[["));
    }
}

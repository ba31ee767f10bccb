//! Reads JSON without escapes and line breaks, as nearly all senders write it. A text is then
//! exactly the bytes between two quotes.
//!
//! Everything that it accepts is valid JSON. It may reject valid JSON: then [`serde_json`] decides.

/// The maximum nesting depth. Deeper events are refused anyway.
const MAX_DEPTH: usize = 16;
/// The number of bytes that are examined together.
const CHUNK_BYTES: usize = 1024;

/// A place in plain JSON. Methods return `None` if something else follows.
#[derive(Debug)]
pub struct PlainJson<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> PlainJson<'a> {
    /// Begins to read. Returns `None` if the text has escapes or control characters, such as line
    /// breaks.
    #[must_use]
    pub fn new(text: &'a str) -> Option<Self> {
        // There is no branch for each byte, so the compiler can examine many at once.
        let is_plain = |chunk: &[u8]| !chunk.iter().fold(false, |odd, byte| odd | (*byte < b' ') | (*byte == b'\\'));
        let mut json = text.as_bytes().chunks(CHUNK_BYTES).all(is_plain).then_some(Self { text, at: 0 })?;
        json.skip_spaces();
        Some(json)
    }

    /// Reads an object. Calls `read` with each name to read its value.
    pub fn object(&mut self, mut read: impl FnMut(&'a str, &mut Self) -> Option<()>) -> Option<()> {
        self.pass(b'{')?;
        self.skip_spaces();
        if self.take(b'}') {
            return Some(());
        }
        loop {
            self.skip_spaces();
            let name = self.string()?;
            self.skip_spaces();
            self.pass(b':')?;
            self.skip_spaces();
            read(name, self)?;
            self.skip_spaces();
            if !self.take(b',') {
                return self.pass(b'}');
            }
        }
    }

    /// Reads an array. Calls `read` to read each item.
    pub fn array(&mut self, mut read: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.pass(b'[')?;
        self.skip_spaces();
        if self.take(b']') {
            return Some(());
        }
        loop {
            self.skip_spaces();
            read(self)?;
            self.skip_spaces();
            if !self.take(b',') {
                return self.pass(b']');
            }
        }
    }

    /// Reads a text.
    pub fn string(&mut self) -> Option<&'a str> {
        self.pass(b'"')?;
        let rest = self.text.get(self.at..)?;
        let length = memchr::memchr(b'"', rest.as_bytes())?;
        self.at += length + 1;
        rest.get(..length)
    }

    /// Reads a text, or a number as written.
    pub fn text(&mut self) -> Option<&'a str> {
        if self.peek()? == b'"' {
            return self.string();
        }
        let start = self.at;
        self.number()?;
        self.text.get(start..self.at)
    }

    /// Reads true or false.
    pub fn boolean(&mut self) -> Option<bool> {
        let is_true = self.peek()? == b't';
        self.word(if is_true { "true" } else { "false" })?;
        Some(is_true)
    }

    /// Reads any value, and returns its JSON.
    pub fn raw(&mut self) -> Option<&'a str> {
        let start = self.at;
        self.value(0)?;
        self.text.get(start..self.at)
    }

    /// Checks that nothing follows.
    pub fn end(&mut self) -> Option<()> {
        self.skip_spaces();
        (self.at == self.text.len()).then_some(())
    }

    fn value(&mut self, depth: usize) -> Option<()> {
        match self.peek()? {
            b'"' => self.string().map(drop),
            b'{' if depth < MAX_DEPTH => self.object(|_, json| json.value(depth + 1)),
            b'[' if depth < MAX_DEPTH => self.array(|json| json.value(depth + 1)),
            b't' | b'f' => self.boolean().map(drop),
            b'n' => self.word("null"),
            b'-' | b'0'..=b'9' => self.number(),
            _ => None,
        }
    }

    /// Reads a number without an exponent.
    fn number(&mut self) -> Option<()> {
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        (!matches!(self.peek(), Some(b'e' | b'E' | b'0'..=b'9'))).then_some(())
    }

    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }

    fn word(&mut self, word: &str) -> Option<()> {
        let is_there = self.text.as_bytes().get(self.at..)?.starts_with(word.as_bytes());
        self.at += word.len();
        is_there.then_some(())
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_there = self.peek() == Some(byte);
        self.at += usize::from(is_there);
        is_there
    }

    fn pass(&mut self, byte: u8) -> Option<()> {
        self.take(byte).then_some(())
    }

    fn skip_spaces(&mut self) {
        while self.peek() == Some(b' ') {
            self.at += 1;
        }
    }
}

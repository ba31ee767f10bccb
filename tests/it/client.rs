//! A small blocking HTTP/1.1 client: what it sends is exactly what a test says, wrong or not.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// How long an answer may take: a test that waits longer has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// The body of a request.
#[derive(Clone, Debug)]
enum Body {
    None,
    /// With `Content-Length`.
    Sized(Vec<u8>),
    /// With `Transfer-Encoding: chunked`.
    Chunked(Vec<Vec<u8>>),
}

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    method: &'static str,
    target: String,
    headers: Vec<(String, String)>,
    body: Body,
}

impl Call {
    pub(crate) fn new(method: &'static str, target: impl Into<String>) -> Call {
        Call { method, target: target.into(), headers: Vec::new(), body: Body::None }
    }

    pub(crate) fn get(target: impl Into<String>) -> Call {
        Call::new("GET", target)
    }

    pub(crate) fn post(target: impl Into<String>) -> Call {
        Call::new("POST", target)
    }

    pub(crate) fn patch(target: impl Into<String>) -> Call {
        Call::new("PATCH", target)
    }

    pub(crate) fn delete(target: impl Into<String>) -> Call {
        Call::new("DELETE", target)
    }

    pub(crate) fn header(mut self, name: &str, value: impl Into<String>) -> Call {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    pub(crate) fn bearer(self, token: &str) -> Call {
        self.header("authorization", format!("Bearer {token}"))
    }

    pub(crate) fn key(self, public_key: &str) -> Call {
        self.header("x-service-pk", public_key)
    }

    pub(crate) fn agent(self, user_agent: &str) -> Call {
        self.header("user-agent", user_agent)
    }

    /// A JSON body, with its content type.
    pub(crate) fn json(self, body: &Value) -> Call {
        self.text("application/json", body.to_string())
    }

    /// A body of some type, with its length.
    pub(crate) fn text(self, content_type: &str, body: impl Into<Vec<u8>>) -> Call {
        self.header("content-type", content_type).bytes(body)
    }

    /// A body that doesn't say its type.
    pub(crate) fn bytes(mut self, body: impl Into<Vec<u8>>) -> Call {
        self.body = Body::Sized(body.into());
        self
    }

    /// A JSON body in chunks, which doesn't say its length.
    pub(crate) fn chunked(mut self, chunks: impl IntoIterator<Item = Vec<u8>>) -> Call {
        self.body = Body::Chunked(chunks.into_iter().collect());
        self.header("content-type", "application/json")
    }

    fn write(&self, stream: &mut impl Write) -> io::Result<()> {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.target);
        if !self.headers.iter().any(|(name, _)| name == "host") {
            head += "host: headcount.test\r\n";
        }
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        match &self.body {
            Body::None => stream.write_all(format!("{head}\r\n").as_bytes())?,
            Body::Sized(body) => {
                stream.write_all(format!("{head}content-length: {}\r\n\r\n", body.len()).as_bytes())?;
                stream.write_all(body)?;
            }
            Body::Chunked(chunks) => {
                stream.write_all(format!("{head}transfer-encoding: chunked\r\n\r\n").as_bytes())?;
                for chunk in chunks {
                    stream.write_all(format!("{:x}\r\n", chunk.len()).as_bytes())?;
                    stream.write_all(chunk)?;
                    stream.write_all(b"\r\n")?;
                }
                stream.write_all(b"0\r\n\r\n")?;
            }
        }
        stream.flush()
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// The value of a header; its name is in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON; null where there is none.
    pub(crate) fn json(&self) -> Value {
        if self.body.is_empty() {
            return Value::Null;
        }
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {}", self.text()))
    }

    /// The body as JSON, of an answer with this status.
    #[track_caller]
    pub(crate) fn ok(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        self.json()
    }

    /// A field's text.
    #[track_caller]
    pub(crate) fn field(&self, name: &str) -> String {
        let body = self.json();
        body[name].as_str().unwrap_or_else(|| panic!("no text {name} in {body}")).to_owned()
    }

    /// The tag of the answer.
    #[track_caller]
    pub(crate) fn etag(&self) -> String {
        self.header("etag").unwrap_or_else(|| panic!("no ETag on {} {}", self.status, self.text())).to_owned()
    }
}

/// One connection, which is kept open between requests.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    /// Whether it has answered before: then it may have been closed meanwhile.
    is_used: bool,
}

/// Why there is no answer.
pub(crate) enum Broken {
    /// A connection that had been used before was closed, and answered nothing.
    Stale,
    Failed(io::Error),
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> io::Result<Connection> {
        Connection::open_for(address, PATIENCE)
    }

    /// The same, where an answer may take another time.
    pub(crate) fn open_for(address: SocketAddr, patience: Duration) -> io::Result<Connection> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        Ok(Connection { stream: BufReader::new(stream), is_used: false })
    }

    /// Sends a request. The answer, and whether the connection can be used again.
    pub(crate) fn send(&mut self, call: &Call) -> Result<(Answer, bool), Broken> {
        // A server may refuse a body before it has all of it: what it said is to be read all the
        // same.
        let written = call.write(self.stream.get_mut());
        let mut line = String::new();
        match self.stream.read_line(&mut line) {
            Ok(1..) => {}
            Ok(0) if self.is_used => return Err(Broken::Stale),
            Err(error) if self.is_used && error.kind() == io::ErrorKind::ConnectionReset => return Err(Broken::Stale),
            Ok(_) => return Err(Broken::Failed(written.err().unwrap_or_else(|| io::ErrorKind::UnexpectedEof.into()))),
            Err(error) => return Err(Broken::Failed(error)),
        }
        self.is_used = true;
        let answer = self.read(&line, call.method).map_err(Broken::Failed)?;
        let closes = answer.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        Ok((answer, written.is_ok() && !closes))
    }

    /// Sends a request but for its last byte, which is returned.
    pub(crate) fn begin(&mut self, call: &Call) -> io::Result<u8> {
        let mut request = Vec::new();
        call.write(&mut request)?;
        let last = request.pop().unwrap_or_default();
        self.stream.get_mut().write_all(&request)?;
        Ok(last)
    }

    /// Sends the last byte of a request, and reads the answer.
    pub(crate) fn finish(&mut self, call: &Call, last: u8) -> io::Result<Answer> {
        self.stream.get_mut().write_all(&[last])?;
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        self.read(&line, call.method)
    }

    fn read(&mut self, status_line: &str, method: &str) -> io::Result<Answer> {
        let wrong = |what: &str| io::Error::new(io::ErrorKind::InvalidData, format!("{what}: {status_line}"));
        let status = status_line.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(|| wrong("no status"))?;
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut answer = Answer { status, headers, body: Vec::new() };
        if status == 100 {
            let mut line = String::new();
            self.stream.read_line(&mut line)?;
            return self.read(&line, method);
        }
        let is_empty = method == "HEAD" || status == 204 || status == 304;
        if !is_empty && answer.header("transfer-encoding").is_some_and(|value| value == "chunked") {
            answer.body = self.read_chunks()?;
        } else if !is_empty {
            let length =
                answer.header("content-length").and_then(|length| length.parse().ok()).ok_or_else(|| wrong("no length"))?;
            answer.body = vec![0; length];
            self.stream.read_exact(&mut answer.body)?;
        }
        Ok(answer)
    }

    fn read_chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line)?;
            let size = usize::from_str_radix(line.trim(), 16).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
            let mut chunk = vec![0; size + 2];
            self.stream.read_exact(&mut chunk)?;
            if size == 0 {
                return Ok(body);
            }
            body.extend_from_slice(&chunk[..size]);
        }
    }
}

//! A small HTTP/1.1 client: one connection, one request at a time.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use headcount_model::Json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How long an answer may take. Longer than the server's own deadlines.
const TIMEOUT: Duration = Duration::from_secs(30);
/// A usual browser: programs by some other names are taken for bots.
const AGENT: &str = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0 Safari/537.36";

/// What a request is sent with.
#[derive(Debug, Clone, Copy)]
pub enum Credential<'a> {
    /// Nothing.
    None,
    /// A project's public key.
    Key(&'a str),
    /// An API token.
    Token(&'a str),
}

/// A request; with a body it is JSON.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// `GET`, `POST`, …
    pub method: &'a str,
    /// Path and query.
    pub path: &'a str,
    /// What it is sent with.
    pub credential: Credential<'a>,
    /// Its body.
    pub body: Option<&'a str>,
}

impl<'a> Request<'a> {
    /// A `GET` with an API token.
    #[must_use]
    pub fn get(path: &'a str, token: &'a str) -> Self {
        Self { method: "GET", path, credential: Credential::Token(token), body: None }
    }

    /// A request with a body and an API token.
    #[must_use]
    pub fn with_body(method: &'a str, path: &'a str, token: &'a str, body: &'a str) -> Self {
        Self { method, path, credential: Credential::Token(token), body: Some(body) }
    }

    /// Events of a project: one to `/track`, or several to `/i/batch`.
    #[must_use]
    pub fn events(path: &'a str, key: &'a str, body: &'a str) -> Self {
        Self { method: "POST", path, credential: Credential::Key(key), body: Some(body) }
    }

    /// The head, for a body of `length` bytes (`None`: in chunks).
    #[must_use]
    pub fn head(&self, length: Option<usize>) -> String {
        let Self { method, path, .. } = self;
        let credential = match self.credential {
            Credential::None => String::new(),
            Credential::Key(key) => format!("x-service-pk: {key}\r\n"),
            Credential::Token(token) => format!("authorization: Bearer {token}\r\n"),
        };
        let framing = match (self.body, length) {
            (None, _) => String::new(),
            (Some(_), Some(length)) => format!("content-type: application/json\r\ncontent-length: {length}\r\n"),
            (Some(_), None) => "content-type: application/json\r\ntransfer-encoding: chunked\r\n".to_owned(),
        };
        format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nuser-agent: {AGENT}\r\n{credential}{framing}\r\n")
    }
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// `Retry-After`.
    pub retry_after: Option<String>,
    /// The body.
    pub body: String,
}

impl Reply {
    /// The body as JSON; `null` if it is none.
    #[must_use]
    pub fn json(&self) -> Json {
        Json::parse(&self.body).unwrap_or(Json::Null)
    }

    /// A whole number of the body.
    #[must_use]
    pub fn whole(&self, field: &str) -> Option<u64> {
        self.json().field(field).number()?.whole().and_then(|number| u64::try_from(number).ok())
    }
}

/// A connection.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// Nobody listens.
    pub async fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::new() })
    }

    /// Sends a request and reads its answer.
    ///
    /// # Errors
    /// The connection broke, or nothing came in time.
    pub async fn send(&mut self, request: &Request<'_>) -> io::Result<Reply> {
        let body = request.body.unwrap_or_default();
        let mut bytes = request.head(Some(body.len())).into_bytes();
        bytes.extend_from_slice(body.as_bytes());
        let exchange = async {
            self.stream.write_all(&bytes).await?;
            self.reply().await
        };
        tokio::time::timeout(TIMEOUT, exchange).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    }

    /// Sends a request piece by piece, and reads the answer as soon as there is one, whether all was sent or not.
    ///
    /// # Errors
    /// The connection broke without an answer, or nothing came in time.
    pub async fn send_slowly(&mut self, pieces: &[Vec<u8>], pause: Duration) -> io::Result<Reply> {
        for piece in pieces {
            // Where the server has closed its side, the answer may still be there to be read.
            if self.stream.write_all(piece).await.is_err() {
                break;
            }
            if let Ok(reply) = tokio::time::timeout(pause, self.reply()).await {
                return reply;
            }
        }
        tokio::time::timeout(TIMEOUT, self.reply()).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    }

    /// Reads the next answer.
    ///
    /// # Errors
    /// The connection broke, or the answer is not one that this client knows how to read.
    pub async fn reply(&mut self) -> io::Result<Reply> {
        let head_bytes = loop {
            if let Some(at) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            self.fill().await?;
        };
        let head = String::from_utf8_lossy(&self.buffer[..head_bytes]).into_owned();
        let broken = || io::Error::other(format!("an answer that can't be read: {head:?}"));
        let status = head.get(9..12).and_then(|status| status.parse().ok()).ok_or_else(broken)?;
        let header = |name: &str| {
            let found = head.lines().find_map(|line| line.split_once(':').filter(|(found, _)| found.eq_ignore_ascii_case(name)));
            found.map(|(_, value)| value.trim().to_owned())
        };
        let length: usize = match header("content-length") {
            Some(length) => length.parse().map_err(|_| broken())?,
            None if status == 304 || status == 204 => 0,
            None => return Err(broken()),
        };
        while self.buffer.len() < head_bytes + length {
            self.fill().await?;
        }
        let body = String::from_utf8_lossy(&self.buffer[head_bytes..head_bytes + length]).into_owned();
        self.buffer.drain(..head_bytes + length);
        Ok(Reply { status, retry_after: header("retry-after"), body })
    }

    async fn fill(&mut self) -> io::Result<()> {
        let mut chunk = [0; 16 << 10];
        match self.stream.read(&mut chunk).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            read => {
                self.buffer.extend_from_slice(&chunk[..read]);
                Ok(())
            }
        }
    }
}

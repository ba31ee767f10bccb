//! What the harness asks brokers: their own monitoring address, and the requests of JetStream.

use std::net::SocketAddr;
use std::time::Duration;

use headcount_model::Json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::error::{Result, harness};

const TIMEOUT: Duration = Duration::from_secs(5);

/// Asks a monitoring address; `None` if nobody answers, or not with 200.
pub async fn monitor(address: SocketAddr, path: &str) -> Option<Json> {
    let asking = async {
        let mut stream = TcpStream::connect(address).await.ok()?;
        // By this version, the answer ends with the connection.
        stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).await.ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        if head.get(9..12) == Some("200") { Json::parse(body).ok() } else { None }
    };
    tokio::time::timeout(TIMEOUT, asking).await.ok().flatten()
}

/// Sends a request to a broker, and returns its answer.
///
/// # Errors
/// There is no answer, or it says that the request failed.
pub async fn request(broker: SocketAddr, subject: &str, payload: &str) -> Result<Json> {
    let answer = tokio::time::timeout(TIMEOUT, exchange(broker, subject, payload)).await;
    let answer = answer.map_err(|_| harness(format!("{subject}: no answer")))??;
    let json = Json::parse(&answer).map_err(|error| harness(format!("{subject}: {error}")))?;
    match json.field("error") {
        Json::Null => Ok(json),
        error => Err(harness(format!("{subject}: {error}"))),
    }
}

async fn exchange(broker: SocketAddr, subject: &str, payload: &str) -> Result<String> {
    let mut stream = BufReader::new(TcpStream::connect(broker).await?);
    let sent =
        format!("CONNECT {{\"verbose\":false}}\r\nSUB answer 1\r\nPUB {subject} answer {}\r\n{payload}\r\n", payload.len());
    stream.write_all(sent.as_bytes()).await?;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await? == 0 {
            return Err(harness(format!("{subject}: the broker closed the connection")));
        }
        let Some(length) = line.strip_prefix("MSG answer 1 ") else { continue };
        let length = length.trim().parse().map_err(|_| harness(format!("a broker sent {line}")))?;
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await?;
        return Ok(String::from_utf8_lossy(&body).into_owned());
    }
}

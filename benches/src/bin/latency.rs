//! Measures the latency of sequential requests on one keep-alive connection.
//!
//! Usage: `latency ADDRESS`, with a bearer token in `HEADCOUNT_TOKEN`. Each line of standard input
//! is `METHOD<tab>PATH<tab>BODY`. For each, the program prints a line of JSON: the number of
//! requests, the 50th and 99th percentile in microseconds of answers that are computed
//! (`Cache-Control: no-cache`), the same of answers that the server may keep, the same with
//! `If-None-Match` (304 without a body), and the body. All responses to a line must be equal, byte
//! by byte.
//!
//! `latency ADDRESS CONNECTIONS SECONDS` reads one line and prints how many requests per second are
//! answered, with `If-None-Match` if answers have tags.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a benchmark: a panic is a failure")]

use std::io::BufRead;
use std::time::{Duration, Instant};

use headcount_bench::connection::{self, Connection, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const WARM_UPS: usize = 200;
const REQUESTS: usize = 2_000;
/// Time limit of a measurement; slow queries get fewer requests.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// Repeats a request until the count or the time limit is reached. Returns the number of requests
/// and the percentiles as JSON fields.
fn measure(connection: &mut Connection, request: &[u8], expected: &Response) -> String {
    let began = Instant::now();
    let mut took = Vec::with_capacity(REQUESTS);
    for number in 0..WARM_UPS + REQUESTS {
        let sent = Instant::now();
        let response = connection.send(request);
        let elapsed = sent.elapsed();
        assert!(response.status == expected.status && response.body == expected.body, "the response differs from the first");
        // Slow queries need fewer warm-up requests.
        if number >= WARM_UPS || began.elapsed() > TIME_LIMIT / 10 {
            took.push(elapsed);
        }
        if took.len() >= REQUESTS || began.elapsed() > TIME_LIMIT {
            break;
        }
    }
    took.sort_unstable();
    // Nearest rank.
    let at = |percent: usize| took[(took.len() * percent).div_ceil(100) - 1].as_secs_f64() * 1e6;
    format!(r#""requests": {}, "p50_us": {:.1}, "p99_us": {:.1}"#, took.len(), at(50), at(99))
}

fn request(method: &str, path: &str, body: &str, token: &str, extra: &str) -> Vec<u8> {
    connection::request(method, path, &format!("authorization: Bearer {token}\r\n{extra}"), body)
}

/// Returns the header of a client that has an answer.
fn known(answer: &Response) -> String {
    answer.tag.as_ref().map_or(String::new(), |tag| format!("if-none-match: {tag}\r\n"))
}

/// Connections that send the same request again and again.
struct Rate {
    address: String,
    connections: usize,
    time: Duration,
}

impl Rate {
    /// Returns how many requests per second are answered.
    fn measure(&self, request: &[u8]) -> f64 {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let began = Instant::now();
        let answered: usize = runtime.block_on(async {
            let send = |_| tokio::spawn(repeat(self.address.clone(), request.to_vec(), began + self.time));
            let mut answered = 0;
            for sent in (0..self.connections).map(send).collect::<Vec<_>>() {
                answered += sent.await.unwrap();
            }
            answered
        });
        answered as f64 / began.elapsed().as_secs_f64()
    }
}

/// Sends a request on a connection of its own until the time is over. Answers must have no body.
/// Returns how many came.
async fn repeat(address: String, request: Vec<u8>, until: Instant) -> usize {
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (mut answered, mut bytes) = (0, vec![0; 4096]);
    while Instant::now() < until {
        stream.write_all(&request).await.unwrap();
        let mut read = 0;
        while !bytes[..read].ends_with(b"\r\n\r\n") {
            let more = stream.read(&mut bytes[read..]).await.unwrap();
            assert!(more > 0, "an answer is too long, or the server closed the connection");
            read += more;
        }
        let status = &bytes[9..12];
        assert!(status == b"304" || status == b"202", "status {}", String::from_utf8_lossy(status));
        answered += 1;
    }
    answered
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().expect("expected an address");
    let number = |text: String| text.parse().expect("expected a number");
    let rate = arguments.next().map(|connections| Rate {
        address: address.clone(),
        connections: number(connections),
        time: Duration::from_secs(arguments.next().map_or(5, number) as u64),
    });
    let token = std::env::var("HEADCOUNT_TOKEN").unwrap_or_default();
    let mut connection = Connection::to(address);
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let [method, path, body] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("expected three fields per line") };
        let plain = request(method, path, body, &token, "");
        let first = connection.send(&plain);
        if let Some(rate) = &rate {
            println!("{:.0}", rate.measure(&request(method, path, body, &token, &known(&first))));
            return;
        }
        let figures = measure(&mut connection, &request(method, path, body, &token, "cache-control: no-cache\r\n"), &first);
        let kept = measure(&mut connection, &plain, &first);
        let conditional = first.tag.as_ref().map_or("null".to_owned(), |_| {
            let request = request(method, path, body, &token, &known(&first));
            let unchanged = Response { status: 304, tag: None, body: Vec::new() };
            format!("{{{}}}", measure(&mut connection, &request, &unchanged))
        });
        let body = String::from_utf8(first.body).unwrap();
        let body = if body.is_empty() { "null" } else { &body };
        println!(
            r#"{{{figures}, "kept": {{{kept}}}, "conditional": {conditional}, "status": {}, "body": {body}}}"#,
            first.status
        );
    }
}

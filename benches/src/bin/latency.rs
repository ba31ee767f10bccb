//! Measures the latency of sequential requests on one keep-alive connection.
//!
//! Usage: `latency ADDRESS`, with a bearer token in `HEADCOUNT_TOKEN`. Each line of standard input is `METHOD<tab>PATH<tab>BODY`.
//! For each, the program prints a line of JSON: the number of requests, the 50th and 99th percentile in microseconds, the same with
//! `If-None-Match` (304 without a body), and the body. All responses to a line must be equal, byte by byte.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a benchmark: a panic is a failure")]

use std::io::BufRead;
use std::time::{Duration, Instant};

use headcount_bench::connection::{self, Connection, Response};

const WARM_UPS: usize = 200;
const REQUESTS: usize = 2_000;
/// Time limit of a measurement; slow queries get fewer requests.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// Repeats a request until the count or the time limit is reached. Returns the number of requests and the percentiles as JSON fields.
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

fn main() {
    let address = std::env::args().nth(1).expect("expected an address");
    let token = std::env::var("HEADCOUNT_TOKEN").unwrap_or_default();
    let mut connection = Connection::to(address);
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let [method, path, body] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("expected three fields per line") };
        let plain = request(method, path, body, &token, "");
        let first = connection.send(&plain);
        let figures = measure(&mut connection, &plain, &first);
        let conditional = first.tag.as_ref().map_or("null".to_owned(), |tag| {
            let request = request(method, path, body, &token, &format!("if-none-match: {tag}\r\n"));
            let unchanged = Response { status: 304, tag: None, body: Vec::new() };
            format!("{{{}}}", measure(&mut connection, &request, &unchanged))
        });
        let body = String::from_utf8(first.body).unwrap();
        let body = if body.is_empty() { "null" } else { &body };
        println!(r#"{{{figures}, "conditional": {conditional}, "status": {}, "body": {body}}}"#, first.status);
    }
}

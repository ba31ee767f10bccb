//! The naive model as a filter: one JSON request per line of standard input, one answer per line of
//! output. Used by `benches/latency.py --naive`.
//!
//! `answers NOW_MS`; a line is `{"method", "path", "query"?, "body"?}`, a request of the owner, or
//! `{"project", "file"}`, which records the file's events, one per line, in that project. An answer
//! is `{"status", "body"}`, or the number of events per result.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a tool of the tests: a panic is a failed test")]

use headcount_model::{Credential, Json, Method, Request, ServedModel, Subject};
use std::collections::BTreeMap;
use std::io::{BufRead, Write};

fn main() {
    let now_ms = std::env::args().nth(1).and_then(|now| now.parse().ok()).expect("the time, in milliseconds of the epoch");
    let mut model = ServedModel::new(now_ms);
    let mut answers = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let asked = Json::parse(&line.unwrap()).unwrap();
        let answer = match asked.field("file").text() {
            Some(file) => record(&mut model, asked.field("project").text().expect("a project"), file),
            None => answer(&mut model, &asked),
        };
        writeln!(answers, "{answer}").and_then(|()| answers.flush()).unwrap();
    }
}

fn record(model: &mut ServedModel, project: &str, file: &str) -> Json {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for event in std::fs::read_to_string(file).unwrap().lines() {
        let credential = Credential::PublicKey(format!("pk_{project}"));
        let request = Request { credential, ..Request::owner(Method::Post, "/track", event) };
        let (_, answer) = model.request(&request);
        *counts.entry(answer.field("status").text().unwrap_or("refused").to_owned()).or_default() += 1;
    }
    Json::Object(counts.into_iter().map(|(status, count)| (status, Json::from(count))).collect())
}

fn answer(model: &mut ServedModel, asked: &Json) -> Json {
    let method = match asked.field("method").text() {
        Some("POST") => Method::Post,
        Some("PATCH") => Method::Patch,
        _ => Method::Get,
    };
    let mut request = Request::owner(method, asked.field("path").text().expect("a path"), "null");
    request.body = Some(asked.field("body")).filter(|body| **body != Json::Null).map(Json::to_string);
    if let Json::Object(query) = asked.field("query") {
        request.query = query.iter().map(|(name, value)| (name.clone(), value.text().expect("text").to_owned())).collect();
    }
    let (status, body) = model.request(&request);
    Json::object([("status", Json::from(usize::from(status))), ("body", body)])
}

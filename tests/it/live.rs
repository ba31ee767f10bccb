//! `GET /projects/{project_id}/live`: a stream of what happens now.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::Call;
use crate::errors::assert_refused;
use crate::server::TestServer;
use crate::tenant::{BROWSER, Tenant, away_from_midnight};

/// How long something may take that takes a fraction of a second on an idle machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// An event of a stream.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) id: String,
    pub(crate) event: String,
    data: Value,
}

/// A client of a stream.
pub(crate) struct Stream {
    lines: BufReader<TcpStream>,
    pub(crate) head: String,
    /// What the client shows: all frames so far, merged.
    shown: Value,
    last_id: String,
    notified: Vec<u64>,
}

impl Stream {
    pub(crate) fn open(tenant: &Tenant, token: &str, last_id: Option<&str>) -> Stream {
        let resume = last_id.map_or(String::new(), |id| format!("last-event-id: {id}\r\n"));
        Stream::open_with(tenant, &format!("authorization: Bearer {token}\r\n{resume}"))
    }

    /// The same with any credential; each header ends its line.
    pub(crate) fn open_with(tenant: &Tenant, headers: &str) -> Stream {
        Stream::open_at(tenant.server.address(), &tenant.path("live"), headers)
    }

    /// The same of any server.
    pub(crate) fn open_at(address: SocketAddr, path: &str, headers: &str) -> Stream {
        let mut socket = TcpStream::connect(address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(socket, "GET {path} HTTP/1.1\r\nhost: a\r\naccept-encoding: gzip\r\n{headers}\r\n").unwrap();
        let mut lines = BufReader::new(socket);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(lines.read_line(&mut head).unwrap() > 0, "{head}");
        }
        Stream { lines, head: head.to_lowercase(), shown: json!({}), last_id: String::new(), notified: Vec::new() }
    }

    /// The next event; `None` at the end.
    fn next(&mut self) -> Option<Sent> {
        let mut sent = Sent { id: String::new(), event: String::new(), data: Value::Null };
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).expect("the stream goes on") == 0 {
                return None;
            }
            // The lengths of chunks have no colon.
            let Some((name, value)) = line.trim_end().split_once(": ") else {
                if line == "\n" && !sent.event.is_empty() {
                    return Some(sent);
                }
                continue;
            };
            match name {
                "id" => sent.id = value.to_owned(),
                "event" => sent.event = value.to_owned(),
                "data" => sent.data = serde_json::from_str(value).expect("JSON"),
                _ => {}
            }
        }
    }

    /// Reads one event and shows it.
    pub(crate) fn read(&mut self) -> Option<Sent> {
        let sent = self.next()?;
        match sent.event.as_str() {
            "snapshot" => self.shown = sent.data.clone(),
            "delta" => {
                let fields = sent.data.as_object().unwrap().clone();
                self.shown.as_object_mut().unwrap().extend(fields);
            }
            "notification" => self.notified.push(sent.data["position"].as_u64().unwrap()),
            _ => {}
        }
        if !sent.id.is_empty() {
            self.last_id.clone_from(&sent.id);
        }
        Some(sent)
    }

    /// Reads until the shown figures are so.
    #[track_caller]
    pub(crate) fn read_until(&mut self, is_so: impl Fn(&Value) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !is_so(&self.shown) {
            assert!(Instant::now() < until, "shown: {}", self.shown);
            assert!(self.read().is_some(), "the stream ended; shown: {}", self.shown);
        }
    }
}

fn minutes(shown: &Value, figure: &str) -> u64 {
    shown["minutes"].as_array().map_or(0, |minutes| minutes.iter().map(|minute| minute[figure].as_u64().unwrap()).sum())
}

#[test]
fn a_stream_shows_what_was_and_what_comes() {
    let tenant = Tenant::new();
    tenant.recorded(&json!({"name": "pageview", "user_id": "ada"}));
    tenant.recorded(&json!({"name": "a", "timestamp": "2021-05-05T00:00:00Z", "user_id": "ben"}));
    let mut stream = Stream::open(&tenant, &tenant.token, None);
    assert!(stream.head.starts_with("http/1.1 200"), "{}", stream.head);
    for header in ["content-type: text/event-stream", "cache-control: no-store", "x-accel-buffering: no"] {
        assert!(stream.head.contains(header), "{}", stream.head);
    }
    assert!(!stream.head.contains("content-encoding"), "{}", stream.head);
    let first = stream.read().unwrap();
    assert_eq!(first.event, "snapshot");
    let today = json!({"events": 1, "unique_users": 1, "sessions": 1, "pageviews": 1, "revenue": 0, "orders": 0});
    assert_eq!((&first.data["today"], &first.data["online"]), (&today, &json!({"users_5m": 1})));
    assert_eq!((first.data["minutes"].as_array().unwrap().len(), minutes(&first.data, "events")), (30, 1));
    assert_eq!(first.data["currency"], "USD");

    let order = json!({"name": "order", "anonymous_id": "x", "value": 5, "notify": true, "message": "sold", "channel": "sales"});
    let position = tenant.recorded(&order)["position"].clone();
    stream.read_until(|shown| shown["today"]["revenue"] == 5);
    assert_eq!(stream.notified, [position.as_u64().unwrap()]);
    assert_eq!((&stream.shown["today"]["events"], minutes(&stream.shown, "users")), (&json!(2), 2));
    // A link: the two are one.
    tenant.recorded(&json!({"name": "a", "anonymous_id": "x", "user_id": "ada"}));
    stream.read_until(|shown| shown["today"]["events"] == 3);
    assert_eq!((&stream.shown["today"]["unique_users"], &stream.shown["online"]["users_5m"]), (&json!(1), &json!(1)));
}

/// More than are read at once.
#[test]
fn a_stream_shows_all_of_a_busy_half_hour() {
    let tenant = Tenant::new();
    let events: Vec<Value> = (0..4_500).map(|number| json!({"name": "a", "user_id": format!("u{}", number % 7)})).collect();
    let sent = Call::post("/i/batch").key(&tenant.key).agent(BROWSER).json(&json!({ "events": events }));
    assert_eq!(tenant.send(sent).ok(202)["recorded"], 4_500);
    let mut stream = Stream::open(&tenant, &tenant.token, None);
    stream.read_until(|shown| minutes(shown, "events") == 4_500);
    assert_eq!(stream.shown["today"]["events"], 4_500);
}

#[test]
fn an_erasure_is_a_snapshot_without_the_person() {
    let tenant = Tenant::new();
    tenant.recorded(&json!({"name": "pageview", "user_id": "ben"}));
    let mut away = Stream::open(&tenant, &tenant.token, None);
    away.read_until(|shown| shown["online"]["users_5m"] == 1);
    let seen = away.last_id.clone();
    drop(away);
    tenant.recorded(&json!({"name": "pageview", "user_id": "ada", "notify": true, "message": "ada is here"}));
    let mut stream = Stream::open(&tenant, &tenant.token, None);
    stream.read_until(|shown| shown["online"]["users_5m"] == 2);
    let erasures = |id: &str| id.split('-').nth(1).unwrap().to_owned();
    tenant.post("/privacy-requests", &json!({"type": "erasure", "user_id": "ada"})).ok(201);
    let is_without = |shown: &Value| {
        (&shown["today"]["events"], &shown["online"]["users_5m"], minutes(shown, "events")) == (&json!(1), &json!(1), 1)
    };
    let (until, mut began_anew) = (Instant::now() + PATIENCE, false);
    while !is_without(&stream.shown) {
        let sent = stream.read().unwrap();
        // A heartbeat keeps the stream going.
        assert!(Instant::now() < until, "shown: {}", stream.shown);
        assert_ne!(sent.event, "notification");
        // The clock may bring a delta before the erasure.
        began_anew |= sent.event == "snapshot" && erasures(&sent.id) != erasures(&seen);
    }
    assert!(began_anew, "it is a snapshot that no longer has the person");
    // Who was away during the erasure gets the notifications that are left, and begins anew.
    let position = tenant.recorded(&json!({"name": "pageview", "user_id": "ben", "notify": true}))["position"].clone();
    stream.read_until(|shown| shown["today"]["events"] == 2);
    let mut again = Stream::open(&tenant, &tenant.token, Some(&seen));
    assert_eq!(again.read().unwrap().event, "notification");
    assert_eq!(again.read().unwrap().event, "snapshot");
    assert_eq!((again.notified, &again.shown["online"]["users_5m"]), (vec![position.as_u64().unwrap()], &json!(1)));
}

/// Each event is a pageview of somebody new with an order, so that all figures of a frame are one
/// number.
#[test]
fn a_frame_is_of_one_moment() {
    const EVENTS: u64 = 3_000;
    away_from_midnight();
    let tenant = Tenant::new();
    let mut stream = Stream::open(&tenant, &tenant.token, None);
    std::thread::scope(|scope| {
        let _sender = scope.spawn(|| {
            for from in (0..EVENTS).step_by(20) {
                let event = |number| json!({"name": "pageview", "user_id": format!("u{number}"), "value": 1});
                let batch: Vec<Value> = (from..from + 20).map(event).collect();
                let sent = Call::post("/i/batch").key(&tenant.key).agent(BROWSER).json(&json!({ "events": batch }));
                assert_eq!(tenant.send(sent).ok(202)["recorded"], 20);
            }
        });
        stream.read_until(|shown| {
            let Some(today) = shown.get("today") else { return false };
            let events = today["events"].as_u64().unwrap();
            for figure in ["unique_users", "sessions", "pageviews", "orders"] {
                assert_eq!(today[figure], events, "{figure} of {shown}");
            }
            let figures = (&today["revenue"], &shown["online"]["users_5m"], minutes(shown, "events"), minutes(shown, "users"));
            assert_eq!(figures, (&json!(events), &json!(events), events, events), "{shown}");
            events == EVENTS
        });
    });
}

#[test]
fn money_is_for_those_who_may_read_it() {
    let tenant = Tenant::new();
    let member = tenant.token("member", &["analytics:read"], None);
    // Streams of both kinds, on each worker: they send the same frames.
    let tokens = [&tenant.token, &member].repeat(4);
    let mut streams: Vec<Stream> = tokens.iter().map(|token| Stream::open(&tenant, token, None)).collect();
    for stream in &mut streams {
        stream.read_until(|shown| shown["today"]["events"] == 0);
    }
    tenant.recorded(&json!({"name": "order", "user_id": "ada", "value": 5}));
    let members = json!({"events": 1, "unique_users": 1, "sessions": 1, "pageviews": 0});
    let mut owners = members.clone();
    owners.as_object_mut().unwrap().extend([("revenue".to_owned(), json!(5)), ("orders".to_owned(), json!(1))]);
    for (stream, token) in streams.iter_mut().zip(tokens) {
        stream.read_until(|shown| shown["today"]["events"] == 1);
        let expected = if *token == member { (&members, &Value::Null) } else { (&owners, &json!("USD")) };
        assert_eq!((&stream.shown["today"], &stream.shown["currency"]), expected);
    }
}

#[test]
fn a_currency_that_changes_is_shown() {
    let tenant = Tenant::new();
    let mut stream = Stream::open(&tenant, &tenant.token, None);
    stream.read_until(|shown| shown["currency"] == "USD");
    tenant.patch(&format!("/projects/{}", tenant.project), &json!({"currency": "EUR"})).ok(200);
    stream.read_until(|shown| shown["currency"] == "EUR");
}

#[test]
fn a_stream_that_is_cut_again_and_again_ends_with_the_figures_of_the_api() {
    let tenant = Tenant::new();
    let (mut notified, mut sent) = (Vec::new(), Vec::new());
    let mut shown = json!({});
    let (mut last_id, mut events) = (String::new(), 0_u64);
    for round in 0_u64..100 {
        let user = format!("u{}", round % 17);
        let event = json!({"name": "pageview", "user_id": user, "value": round, "notify": round % 3 == 0});
        let position = tenant.recorded(&event)["position"].as_u64().unwrap();
        if round % 3 == 0 {
            sent.push(position);
        }
        let mut stream = Stream::open(&tenant, &tenant.token, Some(last_id.as_str()).filter(|id| !id.is_empty()));
        stream.shown = shown;
        // Cut after the first frame, or in the middle of what follows.
        events += 1;
        stream.read_until(|shown| shown["today"]["events"] == events);
        if round % 4 == 0 {
            events += 2;
            tenant.recorded(&json!({"name": "b", "user_id": user}));
            tenant.recorded(&json!({"name": "b", "user_id": user}));
            let _any = stream.read();
        }
        notified.extend(stream.notified);
        (shown, last_id) = (stream.shown, stream.last_id);
    }
    let mut stream = Stream::open(&tenant, &tenant.token, Some(&last_id));
    stream.shown = shown;
    stream.read_until(|shown| shown["today"]["events"] == 150);
    notified.extend(&stream.notified);
    let metrics = tenant.metrics(&tenant.project);
    let today = &stream.shown["today"];
    assert_eq!((&today["revenue"], &today["orders"]), (&metrics["total_revenue"], &metrics["orders"]));
    assert_eq!((&today["unique_users"], &today["pageviews"]), (&json!(17), &json!(100)));
    assert_eq!((events, minutes(&stream.shown, "events")), (150, 150));
    notified.dedup();
    // The first one came before the first stream.
    assert_eq!(notified, sent[1..], "each once, in order");
}

/// Reads to the end. Returns the reason, and how long it took.
pub(crate) fn bye(stream: &mut Stream) -> (String, Duration) {
    let began = Instant::now();
    loop {
        let sent = stream.read().expect("a reason before the end");
        if sent.event == "bye" {
            assert!(stream.read().is_none(), "it is closed");
            return (sent.data["reason"].as_str().unwrap().to_owned(), began.elapsed());
        }
    }
}

#[test]
fn a_stream_ends_with_a_reason() {
    let server = Arc::new(TestServer::start());
    let tenant = Tenant::on(&server);
    let made = tenant.post("/api-tokens", &json!({"name": "t", "role": "member", "scopes": ["analytics:read"]})).ok(201);
    let mut stream = Stream::open(&tenant, made["token"].as_str().unwrap(), None);
    stream.read().unwrap();
    tenant.delete(&format!("/api-tokens/{}", made["token_id"].as_str().unwrap())).ok(204);
    let (reason, took) = bye(&mut stream);
    assert_eq!(reason, "unauthorized");
    // 100 ms on an idle machine.
    assert!(took < Duration::from_secs(3), "{took:?}");

    let doomed = tenant.project(&json!({}));
    let of_doomed = Tenant { project: doomed.id.clone(), key: doomed.key, ..Tenant::on(&server) };
    let mut stream = Stream::open(&of_doomed, &tenant.token, None);
    stream.read().unwrap();
    tenant.delete(&format!("/projects/{}", doomed.id)).ok(204);
    assert_eq!(bye(&mut stream).0, "deleted");

    let mut stream = Stream::open(&tenant, &tenant.token, None);
    stream.read().unwrap();
    let began = Instant::now();
    let stopping = std::thread::spawn(move || bye(&mut stream).0);
    assert!(server.stop().success());
    assert_eq!(stopping.join().unwrap(), "drain");
    assert!(began.elapsed() < Duration::from_secs(10), "a stream doesn't hold the end up");
}

#[test]
fn streams_of_a_project_are_bounded() {
    let tenant = Tenant::new();
    let mut streams: Vec<Stream> = (0..256).map(|_| Stream::open(&tenant, &tenant.token, None)).collect();
    assert!(streams.iter().all(|stream| stream.head.starts_with("http/1.1 200")));
    let one_more = || tenant.get(&tenant.path("live"));
    assert_refused("one more", &one_more(), 503, "overloaded", None);
    tenant.send(Call::post("/i").key(&tenant.key).agent(BROWSER).json(&json!({"name": "a", "user_id": "ada"}))).ok(202);
    for stream in &mut streams {
        stream.read_until(|shown| shown["today"]["events"] == 1);
    }
    streams.pop();
    // That the client is gone shows when something is sent, at the second comment at the latest:
    // after 30 seconds.
    let until = Instant::now() + 3 * PATIENCE;
    loop {
        let stream = Stream::open(&tenant, &tenant.token, None);
        if stream.head.starts_with("http/1.1 200") {
            break;
        }
        assert!(Instant::now() < until, "a place is given back: {}", stream.head);
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_stream_asks_for_the_scope_and_takes_no_parameter() {
    let tenant = Tenant::new();
    let other = tenant.token("owner", &["events:read"], None);
    let refused = tenant.send(Call::get(tenant.path("live")).bearer(&other));
    assert_refused("scope", &refused, 403, "insufficient_scope", None);
    assert_refused("parameter", &tenant.get(&tenant.path("live?a=1")), 400, "unknown_parameter", Some("a"));
    let head = tenant.send(Call::new("HEAD", tenant.path("live")).bearer(&tenant.token));
    assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
}

//! Owners that are gone, or answer late, wrongly or not at all.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use ureq::http::Request;

use super::nodes::{FakeOwner, Nodes, PATIENCE, bytes, get, refusal, send, text};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\nok";

impl Nodes {
    fn event(&self) -> Request<String> {
        let uri = format!("{}/i", self.first.url);
        let body = json!({"name": "e"}).to_string();
        Request::post(uri).header("x-service-pk", &self.there.public_key).body(body).unwrap()
    }

    fn import(&self) -> Request<String> {
        let body = json!({"events": [{"name": "e"}]}).to_string();
        self.about_there("POST", "/import").header("content-type", "application/json").body(body).unwrap()
    }

    fn question(&self) -> Request<String> {
        self.about_there("GET", "/revenue/metrics").body(String::new()).unwrap()
    }

    async fn forwarded(&self, outcome: &str) -> u64 {
        self.first.metric(&format!("headcount_forwarded_requests_total{{outcome=\"{outcome}\"}}")).await
    }
}

fn overloaded() -> (u16, String) {
    (503, "overloaded".to_owned())
}

#[actix_web::test]
async fn nobody_forwards_twice() {
    let nodes = Nodes::start().await;
    let partition = headcount_common::partition_of(nodes.there.id);
    // Each takes the other for the owner.
    nodes.other.owners.give_up(partition);
    nodes.other.look_for(&nodes.there, &nodes.first.url);
    for request in [nodes.event(), nodes.import(), nodes.question()] {
        let (head, body) = text(request).await;
        assert_eq!((head.status().as_u16(), head.headers()["retry-after"].to_str().unwrap()), (503, "1"), "{body}");
        assert!(body.contains("another machine has the figures of this project"), "{body}");
    }
    assert_eq!(nodes.forwarded("answered").await, 3);
    assert_eq!(nodes.other.metric("headcount_forwarded_requests_total{outcome=\"no_owner\"}").await, 3);
    assert_eq!(nodes.other.metric("headcount_forwarded_requests_total{outcome=\"answered\"}").await, 0);
}

#[actix_web::test]
async fn without_an_owner_everything_can_be_repeated() {
    let mut nodes = Nodes::start().await;
    assert_eq!(text(nodes.question()).await.0.status(), 200);
    nodes.other.stop().await;
    for request in [nodes.event(), nodes.import(), nodes.question()] {
        assert_eq!(refusal(request).await, overloaded());
    }
    assert_eq!(nodes.forwarded("not_sent").await, 3);
    // An address that answers nothing, and none at all.
    nodes.first.look_for(&nodes.there, "http://127.0.0.1:1");
    assert_eq!(refusal(nodes.event()).await, overloaded());
    nodes.first.owners.note_elsewhere(headcount_common::partition_of(nodes.there.id), None);
    for request in [nodes.event(), nodes.import(), nodes.question()] {
        let (head, _) = text(request).await;
        assert_eq!((head.status().as_u16(), head.headers()["retry-after"].to_str().unwrap()), (503, "1"));
    }
    assert_eq!(nodes.forwarded("no_owner").await, 3);
    // To strangers the project is one that does not exist.
    let (registry, now) = (nodes.first.engine.registry(), nodes.first.engine.clock().now());
    let other = registry.create_organization("other", now).unwrap().api_token.expose().to_owned();
    for (token, status, code) in [(other.as_str(), 404, "not_found"), ("sk_unknown", 401, "invalid_credential")] {
        let mut question = nodes.question();
        question.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
        assert_eq!(refusal(question).await, (status, code.to_owned()));
    }
    // The owner is here from now on.
    nodes.first.own(&nodes.there);
    assert_eq!(text(nodes.question()).await.0.status(), 200);
}

#[actix_web::test]
async fn what_may_be_recorded_is_never_sent_again() {
    let nodes = Nodes::start().await;
    // The first request on each connection is answered, the second one read only.
    let fake = FakeOwner::start(|stream, number| number == 0 && stream.write_all(OK.as_bytes()).is_ok());
    nodes.first.look_for(&nodes.there, &fake.url);
    let unknown = (500, "outcome_unknown".to_owned());
    let mut sent = 0;
    for (request, expected) in [(nodes.event(), unknown.clone()), (nodes.import(), unknown), (nodes.question(), overloaded())] {
        assert_eq!(text(nodes.question()).await.1, "ok");
        assert_eq!(refusal(request).await, expected);
        sent += 2;
        assert_eq!(fake.requests().len(), sent, "each was sent once");
    }
    assert_eq!((nodes.forwarded("lost").await, fake.connections()), (3, 3));
}

#[actix_web::test]
async fn a_frozen_owner_is_not_waited_for_once_another_one_has_its_place() {
    let nodes = Nodes::start().await;
    let (frozen, thaw) = (Arc::new(AtomicBool::new(true)), Duration::from_millis(10));
    let is_frozen = Arc::clone(&frozen);
    let fake = FakeOwner::start(move |stream, _| {
        while is_frozen.load(Ordering::Relaxed) {
            std::thread::sleep(thaw);
        }
        stream.write_all(OK.as_bytes()).is_ok()
    });
    nodes.first.look_for(&nodes.there, &fake.url);
    let began = Instant::now();
    let (event, question) = (refusal(nodes.event()), refusal(nodes.question()));
    let replace = async {
        actix_web::rt::time::sleep(Duration::from_secs(1)).await;
        nodes.first.look_for(&nodes.there, "http://127.0.0.1:1");
    };
    let (event, question, ()) = futures_util::join!(event, question, replace);
    assert_eq!(event, (500, "outcome_unknown".to_owned()), "it may be recorded");
    assert_eq!(question, overloaded());
    assert!(began.elapsed() < PATIENCE / 2, "{:?}", began.elapsed());
    assert_eq!(nodes.forwarded("lost").await, 2);
    frozen.store(false, Ordering::Relaxed);
}

#[actix_web::test]
async fn a_live_stream_of_a_frozen_owner_ends_once_another_one_has_its_place() {
    let nodes = Nodes::start().await;
    let (frozen, thaw) = (Arc::new(AtomicBool::new(true)), Duration::from_millis(10));
    let is_frozen = Arc::clone(&frozen);
    let fake = FakeOwner::start(move |stream, _| {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n8\r\n: ping\n\n\r\n";
        let is_sent = stream.write_all(head.as_bytes()).is_ok();
        while is_frozen.load(Ordering::Relaxed) {
            std::thread::sleep(thaw);
        }
        is_sent
    });
    nodes.first.look_for(&nodes.there, &fake.url);
    let began = Instant::now();
    let mut answer = send(nodes.about_there("GET", "/live").body(String::new()).unwrap()).await;
    assert_eq!(answer.status(), 200);
    nodes.first.look_for(&nodes.there, "http://127.0.0.1:1");
    let read = actix_web::web::block(move || answer.body_mut().read_to_string()).await.unwrap();
    assert!(read.is_err(), "{read:?}");
    assert!(began.elapsed() < PATIENCE / 2, "{:?}", began.elapsed());
    frozen.store(false, Ordering::Relaxed);
}

#[actix_web::test]
async fn a_connection_that_was_closed_while_idle_is_no_failure() {
    let nodes = Nodes::start().await;
    let fake = FakeOwner::start(|stream, _| {
        stream.write_all(OK.as_bytes()).unwrap();
        false
    });
    nodes.first.look_for(&nodes.there, &fake.url);
    for _ in 0..5 {
        assert_eq!(text(nodes.event()).await.1, "ok");
        // Until the node has seen the end of the connection.
        actix_web::rt::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!((fake.requests().len(), fake.connections()), (5, 5));
    let fake = FakeOwner::answering(OK);
    nodes.first.look_for(&nodes.there, &fake.url);
    for _ in 0..5 {
        assert_eq!(text(nodes.event()).await.1, "ok");
    }
    assert_eq!((fake.requests().len(), fake.connections()), (5, 1), "connections are kept");
}

#[actix_web::test]
async fn headers_of_the_connection_and_of_the_cluster_stay() {
    let nodes = Nodes::start().await;
    let fake = FakeOwner::answering(
        "HTTP/1.1 418 I'm a teapot\r\nconnection: keep-alive, x-hop\r\nkeep-alive: timeout=7\r\nx-hop: 1\r\nupgrade: h2c\r\n\
         headcount-forwarded: secret\r\nx-request-id: other\r\nx-kept: 1\r\nset-cookie: a=1\r\nset-cookie: b=2\r\n\
         location: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n",
    );
    nodes.first.look_for(&nodes.there, &fake.url);
    let request = nodes
        .about_there("GET", "/revenue/metrics?a=%20b&c")
        .header("connection", "x-named, close")
        .header("te", "trailers")
        .header("x-named", "1")
        .header("x-forwarded-for", "192.0.2.1")
        .header("x-forwarded-proto", "https")
        .header("headcount-forwarded", "from outside")
        .header("x-request-id", "mine")
        .header("x-kept", "yes");
    let (head, _) = bytes(request.body(String::new()).unwrap()).await;
    assert_eq!(head.status(), 418);
    for name in ["keep-alive", "x-hop", "upgrade", "headcount-forwarded"] {
        assert!(!head.headers().contains_key(name), "{name}: {head:?}");
    }
    assert_eq!((&head.headers()["x-kept"], &head.headers()["x-request-id"]), (&"1".parse().unwrap(), &"mine".parse().unwrap()));
    assert_eq!(head.headers().get_all("set-cookie").iter().count(), 2);
    let request = fake.requests().remove(0).to_ascii_lowercase();
    let path = format!("get /projects/{}/revenue/metrics?a=%20b&c http/1.1", nodes.there.id).to_ascii_lowercase();
    assert!(request.starts_with(&path), "{request}");
    let host = format!("host: {}", nodes.first.url.strip_prefix("http://").unwrap());
    let token = nodes.first.engine.node_token().expose().to_owned();
    let forwarded = format!("headcount-forwarded: {token} proto=http for=127.0.0.1\r\n");
    for expected in [&*host, "x-kept: yes", "x-request-id: mine", "authorization: bearer sk_", &forwarded] {
        assert!(request.contains(expected), "{expected}: {request}");
    }
    for unexpected in ["te:", "x-named", "x-forwarded", "from outside", "connection:"] {
        assert!(!request.lines().any(|line| line.starts_with(unexpected)), "{unexpected}: {request}");
    }
    assert_eq!(request.matches("headcount-forwarded").count(), 1);
}

#[actix_web::test]
async fn an_owner_that_answers_late_and_slowly_is_waited_for() {
    let nodes = Nodes::start().await;
    let fake = FakeOwner::start(|stream, _| {
        std::thread::sleep(Duration::from_millis(700));
        stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").unwrap();
        for _ in 0..3 {
            stream.write_all(b"4\r\npart\r\n").unwrap();
            std::thread::sleep(Duration::from_millis(300));
        }
        stream.write_all(b"0\r\n\r\n").is_ok()
    });
    nodes.first.look_for(&nodes.there, &fake.url);
    let began = Instant::now();
    let export = nodes.about_there("GET", "/export").body(String::new()).unwrap();
    let mut reader = send(export).await.into_body().into_reader();
    let read = actix_web::rt::task::spawn_blocking(move || {
        let mut part = [0; 64];
        let count = reader.read(&mut part).unwrap();
        let first = (count, began.elapsed());
        let mut rest = String::new();
        reader.read_to_string(&mut rest).unwrap();
        (first, rest, began.elapsed())
    });
    let (first, rest, elapsed) = read.await.unwrap();
    assert_eq!((first.0, rest.as_str()), (4, "partpart"));
    assert!(first.1 + Duration::from_millis(500) < elapsed, "the first part comes before the last: {first:?} {elapsed:?}");
}

#[actix_web::test]
async fn an_answer_that_breaks_off_is_none_or_breaks_off() {
    let nodes = Nodes::start().await;
    let chunk = "x".repeat(100_000);
    let answers = [
        ("transfer-encoding: chunked\r\n\r\n4\r\npart\r\n".to_owned(), true),
        ("content-length: 100\r\n\r\npart".to_owned(), true),
        (format!("content-length: 300000\r\n\r\n{chunk}"), false),
    ];
    for (answer, is_short) in answers {
        let answer = format!("HTTP/1.1 200 OK\r\n{answer}");
        let fake = FakeOwner::start(move |stream, _| {
            stream.write_all(answer.as_bytes()).unwrap();
            false
        });
        nodes.first.look_for(&nodes.there, &fake.url);
        if is_short {
            assert_eq!(refusal(nodes.question()).await, overloaded());
            assert_eq!(refusal(nodes.event()).await, (500, "outcome_unknown".to_owned()), "it is probably recorded");
            continue;
        }
        let mut reader = send(nodes.question()).await.into_body().into_reader();
        let read = move || reader.read_to_string(&mut String::new()).is_err();
        assert!(actix_web::rt::task::spawn_blocking(read).await.unwrap());
    }
}

/// Questions whose answers are more than a client that reads nothing gets.
const MANY_ANSWERS: usize = 400;

#[actix_web::test]
async fn a_client_that_reads_nothing_keeps_no_connection_to_the_owner() {
    let nodes = Nodes::start().await;
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: 60000\r\n\r\n{}", "x".repeat(60_000));
    let fake = FakeOwner::start(move |stream, _| stream.write_all(answer.as_bytes()).is_ok());
    nodes.first.look_for(&nodes.there, &fake.url);
    let (id, token) = (nodes.there.id, nodes.token.clone());
    let question = format!("GET /projects/{id}/revenue/metrics HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {token}\r\n\r\n");
    let mut clients = Vec::new();
    for _ in 0..5 {
        let stream = TcpStream::connect(nodes.first.url.strip_prefix("http://").unwrap()).unwrap();
        // More than the node and the kernel take for a client that reads nothing: it is in the
        // middle of an answer then.
        let (mut writer, many) = (stream.try_clone().unwrap(), question.repeat(MANY_ANSWERS));
        clients.push((stream, std::thread::spawn(move || drop(writer.write_all(many.as_bytes())))));
        let mut answered = usize::MAX;
        while answered != fake.requests().len() {
            answered = fake.requests().len();
            actix_web::rt::time::sleep(Duration::from_millis(500)).await;
        }
    }
    assert!(fake.requests().len() < 5 * MANY_ANSWERS, "the clients do not hold the node up");
    assert_eq!(text(nodes.question()).await.1.len(), 60_000);
    assert!(fake.connections() < 4, "{} connections for questions one after the other", fake.connections());
    for (stream, writing) in clients {
        stream.shutdown(std::net::Shutdown::Both).unwrap();
        writing.join().unwrap();
    }
}

/// More than the requests to one node that a project may have under way.
const MANY_SLOW: usize = 400;

#[actix_web::test]
async fn clients_that_send_slowly_hold_up_nobody() {
    let nodes = Nodes::start().await;
    let address = nodes.first.url.strip_prefix("http://").unwrap();
    let key = &nodes.there.public_key;
    let mut slow = Vec::new();
    for number in 0..MANY_SLOW {
        let path = if number % 2 == 0 { "/i" } else { "/i/batch" };
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "POST {path} HTTP/1.1\r\nhost: a\r\nx-service-pk: {key}\r\ncontent-length: 1000\r\n\r\n{{").unwrap();
        slow.push(stream);
    }
    let began = Instant::now();
    assert_eq!(text(nodes.event()).await.0.status(), 202);
    assert_eq!(text(nodes.question()).await.0.status(), 200);
    // A place is waited for for 2 s, and a body for 10 s.
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    drop(slow);
    assert_eq!(text(nodes.event()).await.0.status(), 202);
    assert_eq!(nodes.count("e").await, 2);
}

/// Waits until a flag is set.
async fn until(flag: &AtomicBool, what: &str) {
    let began = Instant::now();
    while !flag.load(Ordering::Relaxed) {
        assert!(began.elapsed() < PATIENCE, "{what}");
        actix_web::rt::time::sleep(Duration::from_millis(20)).await;
    }
}

#[actix_web::test]
async fn a_client_that_goes_away_ends_the_request() {
    let nodes = Nodes::start().await;
    let has_ended = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&has_ended);
    let fake = FakeOwner::start(move |stream, _| {
        stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").unwrap();
        while stream.write_all(b"4\r\npart\r\n").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
        flag.store(true, Ordering::Relaxed);
        false
    });
    nodes.first.look_for(&nodes.there, &fake.url);
    let stream = send(nodes.about_there("GET", "/live").body(String::new()).unwrap()).await;
    assert_eq!(stream.status(), 200);
    drop(stream);
    until(&has_ended, "the owner goes on sending").await;
}

#[actix_web::test]
async fn a_slow_reader_stops_the_owner() {
    let nodes = Nodes::start().await;
    let sent = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = Arc::clone(&sent);
    let fake = FakeOwner::start(move |stream, _| {
        stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").unwrap();
        let chunk = [b"10000\r\n", &[b'x'; 65_536][..], b"\r\n"].concat();
        while stream.write_all(&chunk).is_ok() {
            counted.fetch_add(65_536, Ordering::Relaxed);
        }
        false
    });
    nodes.first.look_for(&nodes.there, &fake.url);
    let stream = send(nodes.about_there("GET", "/export").body(String::new()).unwrap()).await;
    actix_web::rt::time::sleep(Duration::from_millis(1_500)).await;
    let (before, bound) = (sent.load(Ordering::Relaxed), 32 << 20);
    actix_web::rt::time::sleep(Duration::from_millis(500)).await;
    // What the kernel buffers of two connections, and little more.
    assert!(before < bound && sent.load(Ordering::Relaxed) < bound, "{} bytes", sent.load(Ordering::Relaxed));
    drop(stream);
}

#[actix_web::test]
async fn a_body_that_breaks_off_is_not_recorded() {
    let nodes = Nodes::start().await;
    let address = nodes.first.url.strip_prefix("http://").unwrap().to_owned();
    let key = nodes.there.public_key.clone();
    let answer = actix_web::rt::task::spawn_blocking(move || {
        let mut stream = TcpStream::connect(&address).unwrap();
        write!(stream, "POST /i HTTP/1.1\r\nhost: a\r\nx-service-pk: {key}\r\ncontent-length: 100\r\n\r\n{{\"name\":").unwrap();
        std::thread::sleep(Duration::from_millis(200));
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    });
    let answer = answer.await.unwrap();
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert_eq!(nodes.other.engine.vitals().log_position, 0);
    // The node goes on.
    assert_eq!(text(get(&format!("{}/healthz", nodes.first.url))).await.0.status(), 200);
    assert_eq!(text(nodes.event()).await.0.status(), 202);
}

#[actix_web::test]
async fn a_body_that_is_refused_early_is_no_lost_request() {
    let nodes = Nodes::start().await;
    for _ in 0..5 {
        let (address, key) = (nodes.first.url.strip_prefix("http://").unwrap().to_owned(), nodes.there.public_key.clone());
        let answer = actix_web::rt::task::spawn_blocking(move || {
            let mut stream = TcpStream::connect(&address).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let length = 5 << 20;
            let head = format!("POST /i/batch HTTP/1.1\r\nhost: a\r\nx-service-pk: {key}\r\ncontent-length: {length}\r\n\r\n");
            stream.write_all(head.as_bytes()).unwrap();
            // The answer may come before the end of the body.
            let _ = stream.write_all(&vec![b' '; length]);
            let mut answer = [0; 512];
            let count = stream.read(&mut answer).unwrap();
            String::from_utf8_lossy(&answer[..count]).into_owned()
        });
        let answer = answer.await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    }
}

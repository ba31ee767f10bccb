//! Clients that send slowly, read slowly or not at all: what they may cost.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::Call;
use crate::segment::basic;
use crate::server::TestServer;
use crate::tenant::Tenant;

/// How long a connection may stay open that the server has to close: its deadlines are 5 to 15
/// seconds.
const PATIENCE: Duration = Duration::from_secs(45);

fn connect(server: &TestServer) -> TcpStream {
    let stream = TcpStream::connect(server.address()).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
    stream
}

/// Sends `request` over and over on so many connections, and reads nothing, until nobody takes
/// more. How much memory the process then has more than before, in MiB.
fn growth_of_unread(server: &TestServer, connections: usize, request: &str) -> u64 {
    let block = request.repeat(64 * 1024 / request.len());
    let mut streams: Vec<(TcpStream, usize)> = (0..connections).map(|_| (connect(server), 0)).collect();
    streams.iter().for_each(|(stream, _)| stream.set_nonblocking(true).expect("it is a socket"));
    let before = server.resident_mib();
    let mut most = before;
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(6) && most < before + 400 {
        for (stream, sent) in &mut streams {
            match stream.write(&block.as_bytes()[*sent..]) {
                Ok(more) => *sent = (*sent + more) % block.len(),
                Err(error) => assert!(
                    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe),
                    "{error}"
                ),
            }
        }
        most = most.max(server.resident_mib());
        std::thread::sleep(Duration::from_millis(20));
    }
    server.send(&Call::get("/healthz")).ok(200);
    most - before
}

#[test]
fn answers_that_nobody_reads_take_no_memory() {
    let server = TestServer::start();
    for request in [
        "GET /openapi.json HTTP/1.1\r\nhost: a\r\n\r\n",
        "HEAD /docs HTTP/1.1\r\nhost: a\r\n\r\n",
        "OPTIONS /i HTTP/1.1\r\nhost: a\r\norigin: https://a.example\r\n\r\n",
        "GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n",
    ] {
        let growth = growth_of_unread(&server, 100, request);
        // Without a bound, it is hundreds within seconds.
        assert!(growth < 60, "{growth} MiB more for {request:?}");
    }
}

#[test]
fn connections_that_are_held_take_little_memory() {
    let server = TestServer::start();
    let key = server.initial("public_key");
    let long = "x".repeat(100_000);
    let body = "x".repeat(10_000);
    for request in [
        String::new(),
        "GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n".to_owned(),
        format!("GET /healthz HTTP/1.1\r\nhost: a\r\nx-long: {long}"),
        format!("POST /i?pk={key} HTTP/1.1\r\nhost: a\r\ncontent-length: 60000\r\n\r\n{body}"),
        format!("POST /i?pk={key} HTTP/1.1\r\nhost: a\r\nuser-agent: {long}\r\ncontent-length: 2\r\n\r\n{{}}"),
    ] {
        let before = server.resident_mib();
        let mut held: Vec<TcpStream> = (0..800).map(|_| connect(&server)).collect();
        for stream in &mut held {
            // It may be refused at any point, and then closed.
            let _ = stream.write_all(request.as_bytes());
        }
        std::thread::sleep(Duration::from_millis(500));
        let growth = server.resident_mib().saturating_sub(before);
        let shown: String = request.chars().take(60).collect();
        assert!(growth < 60, "{growth} MiB more for {shown:?}");
        drop(held);
        server.send(&Call::get("/healthz")).ok(200);
    }
}

/// Opens so many connections, and sends a head with this length and `sent` bytes of the body on
/// each. They stay open.
fn hold(server: &TestServer, connections: usize, head: &str, length: usize, sent: usize) -> Vec<TcpStream> {
    let request = format!("{head}content-type: application/json\r\ncontent-length: {length}\r\n\r\n{}", " ".repeat(sent));
    let mut held: Vec<TcpStream> = (0..connections).map(|_| connect(server)).collect();
    for stream in &mut held {
        stream.set_write_timeout(Some(Duration::from_secs(2))).expect("a timeout");
        // It may be refused at any point, and then closed.
        let _ = stream.write_all(request.as_bytes());
    }
    held
}

#[test]
fn bodies_that_are_held_take_little_memory_on_every_path() {
    let server = Arc::new(TestServer::start_with(&["--memory", "128MiB"]));
    let tenant = Tenant::on(&server);
    let other = Tenant::on(&server);
    let (key, token) = (format!("x-service-pk: {}\r\n", tenant.key), format!("authorization: Bearer {}\r\n", tenant.token));
    let basic = format!("authorization: {}\r\n", basic(&tenant.key));
    for (line, credential, connections, bytes) in [
        ("POST /v1/m".to_owned(), "", 1_500, 65_000),
        ("PATCH /organization".to_owned(), &*token, 60, 3 << 20),
        ("POST /projects".to_owned(), &token, 60, 3 << 20),
        (format!("POST {}", tenant.path("analytics/report")), &token, 1_500, 65_000),
        (format!("POST {}", tenant.path("batch")), &token, 60, 3 << 20),
        ("POST /i/batch".to_owned(), &key, 60, 3 << 20),
        ("POST /v1/batch".to_owned(), &basic, 60, 3 << 20),
        ("POST /v1/batch".to_owned(), "", 60, 3 << 20),
    ] {
        let before = server.resident_mib();
        let held = hold(&server, connections, &format!("{line} HTTP/1.1\r\nhost: a\r\n{credential}"), bytes + 1, bytes);
        std::thread::sleep(Duration::from_millis(300));
        let growth = server.resident_mib().saturating_sub(before);
        // If each were kept, it would be more than 130 MiB. A connection takes some 30 KiB while it
        // is answered.
        assert!(growth < 100, "{growth} MiB more for {line}");
        // Another organization at the same address is served meanwhile: its events, its questions,
        // its changes.
        other.recorded(&json!({"name": "a", "user_id": "ada"}));
        other.post(&other.path("analytics/report"), &json!({})).ok(200);
        other.patch("/organization", &json!({"name": "another"})).ok(200);
        drop(held);
    }
}

#[test]
fn one_key_does_not_hold_up_others_at_its_address() {
    let server = Arc::new(TestServer::start_with(&["--memory", "128MiB"]));
    let tenant = Tenant::on(&server);
    let others = [Tenant::on(&server), Tenant::on(&server)];
    const KIB: usize = 1 << 10;
    for (path, length, sent) in [
        ("/i", 64 * KIB, 0),
        ("/i", 64 * KIB, 32 * KIB),
        ("/i/batch", 4_096 * KIB, 0),
        ("/i/batch", 4_096 * KIB, 64 * KIB),
        ("/v1/track", 64 * KIB, 32 * KIB),
        ("/v1/batch", 4_096 * KIB, 64 * KIB),
    ] {
        // Segment's calls without a header have their key in the body: nobody knows whose they are.
        let key = if path.starts_with("/v1") { String::new() } else { format!("x-service-pk: {}\r\n", tenant.key) };
        let held = hold(&server, 1_100, &format!("POST {path} HTTP/1.1\r\nhost: a\r\n{key}"), length, sent);
        for other in &others {
            for _ in 0..10 {
                other.recorded(&json!({"name": "a", "user_id": "ada"}));
            }
            // The organization whose key it is can go on to manage itself.
            tenant.patch("/organization", &json!({"name": "flooded"})).ok(200);
        }
        drop(held);
    }
}

#[test]
fn buffers_of_connections_do_not_stay_large() {
    let server = TestServer::start();
    let long = "x".repeat(100_000);
    let chunk = format!("c000\r\n{}\r\n", "x".repeat(0xc000));
    for request in [
        format!("GET /healthz HTTP/1.1\r\nhost: a\r\nx-long: {long}\r\n\r\n"),
        format!("POST /i HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n{chunk}"),
    ] {
        let before = server.resident_mib();
        let held: Vec<TcpStream> = (0..800)
            .map(|_| {
                let mut stream = connect(&server);
                stream.write_all(request.as_bytes()).expect("it is sent");
                read_answer(&stream);
                stream
            })
            .collect();
        let growth = server.resident_mib().saturating_sub(before);
        // If each kept what it read at once, it would be 50 or 100 MiB.
        assert!(growth < 35, "{growth} MiB more for {:?}", request.chars().take(30).collect::<String>());
        drop(held);
    }
}

#[test]
fn a_large_head_is_the_last_one_of_its_connection() {
    let server = TestServer::shared();
    let request = |path: &str, bytes: usize| {
        format!("GET {path} HTTP/1.1\r\nhost: a\r\ncookie: {}\r\nconnection: keep-alive\r\n\r\n", "x".repeat(bytes))
    };
    for (path, status) in [("/healthz", 200), ("/openapi.json", 200), ("/no-such-path", 404)] {
        let mut stream = connect(&server);
        // One of an ordinary size is not.
        stream.write_all(request("/healthz", 4_000).as_bytes()).expect("it is sent");
        assert!(!read_answer(&stream).contains("connection: close"), "{path}");
        stream.write_all(request(path, 30_000).as_bytes()).expect("it is sent");
        let (answer, took) = read_to_end(&stream);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{path}: {answer}");
        assert!(took < Duration::from_secs(5), "{path}: closed after {took:?}");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
        assert_eq!(length.parse(), Ok(body.len()), "{path}: the body is whole");
        assert!(head.contains("connection: close"), "{path}: {head}");
    }
}

#[test]
fn long_user_agents_are_not_kept() {
    let server = TestServer::start();
    let call = Call::post("/i").key(server.initial("public_key")).text("application/json", r#"{"name": "a"}"#);
    let send = |i: usize, bytes: usize| {
        let agent = format!("Mozilla/5.0 (X11; Linux x86_64; rv:{i}.0) Gecko/20100101 Firefox/{i}.0 {}", "x".repeat(bytes));
        server.send(&call.clone().agent(&agent)).ok(202);
    };
    (0..100).for_each(|i| send(i, 100));
    let before = server.resident_mib();
    (0..600).for_each(|i| send(i, 110_000));
    let growth = server.resident_mib().saturating_sub(before);
    assert!(growth < 25, "{growth} MiB more");
}

/// All that the server sends until it closes the connection, and how long that took.
fn read_to_end(mut stream: &TcpStream) -> (String, Duration) {
    let began = Instant::now();
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "after {:?}", began.elapsed()),
    }
    (String::from_utf8_lossy(&bytes).into_owned(), began.elapsed())
}

/// Reads one answer that is not empty, and leaves the connection open.
fn read_answer(mut stream: &TcpStream) -> String {
    let mut text = String::new();
    let mut byte = [0];
    while !text.ends_with("\r\n\r\n") {
        stream.read_exact(&mut byte).expect("an answer");
        text.push(char::from(byte[0]));
    }
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
    let mut body = vec![0; length.parse().expect("a number")];
    stream.read_exact(&mut body).expect("a body");
    text + &String::from_utf8_lossy(&body)
}

#[test]
fn pipelined_requests_are_answered_in_their_order() {
    let server = TestServer::shared();
    let mut stream = connect(&server);
    let chunked = "POST /i HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n";
    let requests = [
        "GET /version HTTP/1.1\r\nhost: a\r\nx-request-id: r0\r\n\r\n".to_owned(),
        "GET /docs HTTP/1.1\r\nhost: a\r\nx-request-id: r1\r\n\r\n".to_owned(),
        chunked.replace("host", "x-request-id: r2\r\nhost"),
        "\r\nOPTIONS /i HTTP/1.1\r\nhost: a\r\nx-request-id: r3\r\n\r\n".to_owned(),
        "GET /openapi.json HTTP/1.1\nhost: a\nx-request-id: r4\n\n".to_owned(),
        "GET /healthz HTTP/1.1\r\nhost: a\r\nx-request-id: r5\r\nconnection: close\r\n\r\n".to_owned(),
    ];
    stream.write_all(requests.concat().as_bytes()).expect("it is sent");
    let (answers, _) = read_to_end(&stream);
    let ids: Vec<&str> = answers.lines().filter_map(|line| line.strip_prefix("x-request-id: ")).collect();
    assert_eq!(ids, ["r0", "r1", "r2", "r3", "r4", "r5"], "{answers}");
}

#[test]
fn a_client_that_stops_reading_is_disconnected() {
    let server = TestServer::shared();
    let mut stream = connect(&server);
    let request = "GET /openapi.json HTTP/1.1\r\nhost: a\r\n\r\n";
    stream.set_nonblocking(true).expect("it is a socket");
    let began = Instant::now();
    let mut sent = 0;
    let error = loop {
        assert!(began.elapsed() < PATIENCE, "it is still connected");
        match stream.write(&request.as_bytes()[sent..]) {
            Ok(more) => sent = (sent + more) % request.len(),
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(Duration::from_millis(50)),
            Err(error) => break error,
        }
    };
    assert!(matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{error}");
    assert!(began.elapsed() > Duration::from_secs(8), "a slow client is cut off after {:?}", began.elapsed());
}

#[test]
fn a_client_that_reads_slowly_has_its_answer() {
    let server = TestServer::shared();
    let whole = server.send(&Call::get("/openapi.json")).body;
    let mut stream = connect(&server);
    let request = "GET /openapi.json HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).expect("it is sent");
    let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
    loop {
        let read = stream.read(&mut part).expect("an answer");
        if read == 0 {
            break;
        }
        bytes.extend_from_slice(&part[..read]);
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(bytes.ends_with(&whole), "{} bytes of {}", bytes.len(), whole.len());
}

#[test]
fn every_head_of_a_connection_has_a_deadline() {
    let server = TestServer::shared();
    let mut stream = connect(&server);
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n").expect("it is sent");
    assert!(read_answer(&stream).starts_with("HTTP/1.1 200"));
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: a\r\nx-slow: ").expect("it is sent");
    // It goes on to send, but not fast enough.
    let mut writer = stream.try_clone().expect("a socket");
    let dribble = std::thread::spawn(move || {
        while writer.write_all(b"x").is_ok() {
            std::thread::sleep(Duration::from_millis(250));
        }
    });
    let (rest, took) = read_to_end(&stream);
    assert_eq!(rest, "");
    assert!(took < Duration::from_secs(30), "closed after {took:?}");
    dribble.join().expect("it ends");
}

#[test]
fn a_refused_body_is_not_read_for_ever() {
    let server = TestServer::shared();
    for path in ["/i", "/no-such-path", "/i/batch"] {
        let mut stream = connect(&server);
        let head = format!("POST {path} HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n");
        stream.write_all(head.as_bytes()).expect("it is sent");
        let began = Instant::now();
        let chunk = format!("1000\r\n{}\r\n", "x".repeat(4096));
        while stream.write_all(chunk.as_bytes()).is_ok() {
            assert!(began.elapsed() < PATIENCE, "{path}: it still reads");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn a_body_that_stops_arriving_is_refused_in_time() {
    let server = TestServer::start();
    let key = server.initial("public_key");
    // The first request of the connection has arrived as a whole, the second has not.
    let whole = format!("POST /i?pk={key} HTTP/1.1\r\nhost: a\r\ncontent-length: 12\r\n\r\n{{\"name\":\"a\"}}");
    let mut stream = connect(&server);
    stream.write_all(whole.as_bytes()).expect("it is sent");
    assert!(read_answer(&stream).starts_with("HTTP/1.1 202"));
    let began = Instant::now();
    stream.write_all(&whole.as_bytes()[..whole.len() - 1]).expect("it is sent");
    let answer = read_answer(&stream);
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("\"body_timeout\""), "{answer}");
    assert!((8..14).contains(&began.elapsed().as_secs()), "after {:?}", began.elapsed());
}

#[test]
fn an_upgrade_is_answered_at_once() {
    let server = TestServer::start();
    let key = server.initial("public_key");
    let upgrade = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: AAAA\r\n";
    let body = r#"{"name": "a", "user_id": "ada"}"#;
    for (request, status) in [
        (format!("GET /healthz HTTP/1.1\r\nhost: a\r\n{upgrade}\r\n"), 200),
        (format!("GET /live HTTP/1.1\r\nhost: a\r\n{upgrade}\r\n"), 404),
        (format!("POST /i?pk={key} HTTP/1.1\r\nhost: a\r\n{upgrade}\r\n"), 400),
        (format!("POST /i?pk={key} HTTP/1.1\r\nhost: a\r\n{upgrade}content-length: {}\r\n\r\n{body}", body.len()), 202),
    ] {
        let mut stream = connect(&server);
        let began = Instant::now();
        stream.write_all(request.as_bytes()).expect("it is sent");
        let answer = read_answer(&stream);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{request}: {answer}");
        assert!(began.elapsed() < Duration::from_secs(5), "{request}: {:?}", began.elapsed());
    }
}

/// A client that goes away while it waits takes its question with it. Here it only ends its side,
/// so that it sees what becomes of its request.
#[test]
fn questions_end_with_their_clients_and_events_do_not() {
    let server = Arc::new(TestServer::start_with(&["--view-memory=0"]));
    let tenant = Tenant::on(&server);
    for batch in 0..8 {
        let event =
            |number: i64| json!({"name": "pageview", "user_id": format!("u{}", number % 977), "url": format!("/{number}")});
        let events: Vec<Value> = (batch * 2_500..(batch + 1) * 2_500).map(event).collect();
        let sent = tenant.send(Call::post("/i/batch").key(&tenant.key).json(&json!({ "events": events })));
        assert_eq!(sent.status, 202, "{}", sent.text());
    }
    let send = |path: &str, credential: &str, body: &Value| {
        let mut stream = connect(&server);
        let body = body.to_string();
        let head = format!("host: a\r\n{credential}\r\ncontent-type: application/json\r\ncontent-length: {}", body.len());
        write!(stream, "POST {path} HTTP/1.1\r\n{head}\r\n\r\n{body}").expect("it is sent");
        stream.shutdown(Shutdown::Write).expect("it is open");
        stream
    };
    // Few scans run at once: the others wait.
    let question = json!({"start_date": "2024-01-01", "group_by": "entry_url"});
    let asked: Vec<TcpStream> = (0..20)
        .map(|_| send(&tenant.path("analytics/aggregate"), &format!("authorization: Bearer {}", tenant.token), &question))
        .collect();
    let given_up = asked.iter().filter(|stream| read_to_end(stream).0.starts_with("HTTP/1.1 400")).count();
    assert!(given_up >= 10, "{given_up} of 20 were given up");
    let event = send("/track", &format!("x-service-pk: {}", tenant.key), &json!({"name": "order", "user_id": "u"}));
    assert!(read_to_end(&event).0.starts_with("HTTP/1.1 202"));
    tenant.post(&tenant.path("analytics/aggregate"), &question).ok(200);
}

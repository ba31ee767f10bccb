//! Requests to local servers.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::*;
use crate::resolver::Lookup;

const AGENT: &str = "headcount/test";

/// A server that answers each connection with `answer`, given the head of the request. Ends with
/// the process.
fn server(answer: impl Fn(String, &mut TcpStream) + Send + 'static) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let (mut head, mut byte) = (Vec::new(), [0]);
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
                head.push(byte[0]);
            }
            answer(String::from_utf8_lossy(&head).into_owned(), &mut stream);
        }
    });
    port
}

fn ok(body: &[u8]) -> Vec<u8> {
    [format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len()).as_bytes(), body].concat()
}

/// A client that may connect to the loopback interface.
fn local() -> Outbound {
    Outbound::new(AGENT, "127.0.0.0/8".parse().unwrap())
}

fn get(url: &str) -> OutboundRequest {
    OutboundRequest {
        method: Method::Get,
        url: Url::parse(url).unwrap(),
        headers: Vec::new(),
        body: None,
        timeout: Duration::from_secs(20),
        most_body_bytes: Some(1 << 20),
    }
}

fn code(outcome: Result<OutboundResponse, OutboundError>) -> &'static str {
    outcome.map_or_else(|error| error.code(), |response| panic!("{response:?}"))
}

#[test]
fn a_request_is_sent_as_given_and_its_response_read() {
    let (send, received) = std::sync::mpsc::channel();
    let port = server(move |head, stream| {
        let mut body = [0; 5];
        stream.read_exact(&mut body).unwrap();
        send.send((head, body)).unwrap();
        stream.write_all(b"HTTP/1.1 503 Unavailable\r\nretry-after: 7\r\ncontent-length: 4\r\n\r\nbusy").unwrap();
    });
    let request = OutboundRequest {
        method: Method::Post,
        headers: vec![("content-type", "application/json".into()), ("headcount-signature", "t=1".into())],
        body: Some(b"hello".to_vec()),
        ..get(&format!("http://127.0.0.1:{port}/hook?a=b"))
    };
    let response = local().send(&request).unwrap();
    assert_eq!((response.status, response.header("retry-after"), &*response.body), (503, Some("7"), &b"busy"[..]));
    let (head, body) = received.recv().unwrap();
    assert_eq!((head.lines().next(), &body), (Some("POST /hook?a=b HTTP/1.1"), b"hello"));
    let head = head.to_ascii_lowercase();
    for expected in
        ["user-agent: headcount/test", "content-length: 5", "content-type: application/json", "headcount-signature: t=1"]
    {
        assert!(head.contains(&format!("\r\n{expected}\r\n")), "{expected}: {head}");
    }
}

#[test]
fn addresses_that_are_not_global_are_refused_in_every_spelling() {
    let port = server(|_, _| panic!("nothing may connect"));
    let nobody = Outbound::new(AGENT, AllowList::default());
    for host in
        ["127.0.0.1", "2130706433", "0x7f.1", "017700000001", "[::1]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "0", "127.1"]
    {
        let url = format!("http://{host}:{port}/");
        assert!(matches!(nobody.parse(&url), Err(UrlError::Blocked(_))), "{host}");
        assert_eq!(code(nobody.send(&get(&url))), "blocked_address", "{host}");
    }
    assert_eq!(code(nobody.send(&get(&format!("http://localhost:{port}/")))), "blocked_address");
    // Another port than the one that is allowed.
    let other = Outbound::new(AGENT, "127.0.0.1:1, localhost:2".parse().unwrap());
    assert_eq!(code(other.send(&get(&format!("http://localhost:{port}/")))), "blocked_address");
}

#[test]
fn only_plain_urls_are_parsed() {
    for (url, error) in [
        ("ftp://example.com/", UrlError::Scheme),
        ("file:///etc/passwd", UrlError::Scheme),
        ("http://user@example.com/", UrlError::User),
        ("https://:secret@example.com/", UrlError::User),
    ] {
        assert_eq!(local().parse(url), Err(error), "{url}");
    }
    for url in ["", "example.com", "http://", "http://exa mple/", "http://[::1/", "http://1.2.3.4.5/", "http://example.com:0/"] {
        assert!(matches!(local().parse(url), Err(UrlError::Malformed(_))), "{url}");
    }
    assert_eq!(local().parse("https://EXAMPLE.com").unwrap().as_str(), "https://example.com/");
}

/// A look-up that answers with each of the addresses in turn.
fn in_turn(addresses: &'static [Ipv4Addr], calls: &Arc<AtomicUsize>) -> Lookup {
    let calls = Arc::clone(calls);
    Arc::new(move |_, port| {
        let call = calls.fetch_add(1, Ordering::Relaxed);
        Ok(vec![SocketAddr::from((addresses[call % addresses.len()], port))])
    })
}

#[test]
fn a_name_that_changes_its_address_is_decided_by_the_one_connected_to() {
    const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(127, 0, 0, 1), Ipv4Addr::new(127, 0, 0, 2)];
    let port = server(|_, stream| stream.write_all(&ok(b"first")).unwrap());
    let calls = Arc::default();
    let client = Outbound::with_lookup(AGENT, "127.0.0.1".parse().unwrap(), in_turn(&ADDRESSES, &calls));
    let url = format!("http://rebinding.example:{port}/");
    assert_eq!(client.send(&get(&url)).unwrap().body, b"first");
    assert_eq!(code(client.send(&get(&url))), "blocked_address");
    assert_eq!(calls.load(Ordering::Relaxed), 2, "each request looks up once, and connects to what it found");
}

#[test]
fn failures_have_codes() {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    assert_eq!(code(local().send(&get(&format!("http://127.0.0.1:{free}/")))), "connect_failed");
    let cut = server(|_, stream| stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc").unwrap());
    assert_eq!(code(local().send(&get(&format!("http://127.0.0.1:{cut}/")))), "connect_failed");
    let other = server(|_, stream| stream.write_all(b"220 smtp.example ESMTP\r\n").unwrap());
    assert_eq!(code(local().send(&get(&format!("http://127.0.0.1:{other}/")))), "connect_failed");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let plain = listener.local_addr().unwrap().port();
    std::thread::spawn(move || listener.accept().unwrap().0.write_all(b"220 smtp.example ESMTP\r\n").unwrap());
    assert_eq!(code(local().send(&get(&format!("https://127.0.0.1:{plain}/")))), "tls_failed");
    let unknown: Lookup = Arc::new(|_, _| Err(std::io::Error::other("no such name")));
    let client = Outbound::with_lookup(AGENT, AllowList::default(), unknown);
    assert_eq!(code(client.send(&get("http://nowhere.example/"))), "dns_failed");
}

#[test]
fn slow_answers_end_in_time() {
    let quick = |url: &str| OutboundRequest { timeout: Duration::from_millis(300), ..get(url) };
    let drip = |text: &'static [u8]| {
        server(move |_, stream| {
            let _ = stream.write_all(text);
            while stream.write_all(b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(20));
            }
        })
    };
    let (body, header) = (drip(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n"), drip(b"HTTP/1.1 200 OK\r\na: "));
    for port in [body, header] {
        assert_eq!(code(local().send(&quick(&format!("http://127.0.0.1:{port}/")))), "timeout");
    }
}

#[test]
fn names_that_take_long_are_waited_for_by_others_within_their_time() {
    let (calls, release) = (Arc::new(AtomicUsize::new(0)), Arc::new((std::sync::Mutex::new(false), std::sync::Condvar::new())));
    let lookup: Lookup = {
        let (calls, release) = (Arc::clone(&calls), Arc::clone(&release));
        Arc::new(move |host, _| {
            if host == "stuck.example" {
                calls.fetch_add(1, Ordering::Relaxed);
                let released = release.1.wait_while(release.0.lock().unwrap(), |released| !*released);
                drop(released.unwrap());
            }
            Err(std::io::Error::other("no such name"))
        })
    };
    let client = Outbound::with_lookup(AGENT, AllowList::default(), lookup);
    let start = |url: &'static str, timeout| {
        let (client, request) = (client.clone(), OutboundRequest { timeout, ..get(url) });
        std::thread::spawn(move || code(client.send(&request)))
    };
    let stuck: Vec<_> = (0..40).map(|_| start("http://stuck.example/", Duration::from_millis(300))).collect();
    assert!(stuck.into_iter().all(|thread| thread.join().unwrap() == "timeout"));
    assert_eq!(calls.load(Ordering::Relaxed), 32, "no more look-ups than that are under way");
    let waiting = start("http://other.example/", Duration::from_secs(60));
    *release.0.lock().unwrap() = true;
    release.1.notify_all();
    assert_eq!(waiting.join().unwrap(), "dns_failed", "it had its turn");
}

#[test]
fn bodies_and_headers_are_bounded() {
    let endless = server(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n");
        while stream.write_all(b"x-filler: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n").is_ok() {}
    });
    assert_eq!(code(local().send(&get(&format!("http://127.0.0.1:{endless}/")))), "connect_failed");
    let port = server(|head, stream| {
        let body = vec![b'a'; 1 << 20];
        let response = if head.starts_with("GET /more") { ok(&[&body[..], b"b"].concat()) } else { ok(&body) };
        let _ = stream.write_all(&response);
    });
    let url = |path: &str| format!("http://127.0.0.1:{port}{path}");
    assert_eq!(local().send(&get(&url("/"))).unwrap().body.len(), 1 << 20);
    assert_eq!(code(local().send(&get(&url("/more")))), "too_large");
    let unread = OutboundRequest { most_body_bytes: None, ..get(&url("/more")) };
    assert_eq!(local().send(&unread).unwrap().body, b"");
}

/// 1 MiB of zeros, as gzip of 1 KiB.
#[test]
fn the_limit_is_on_the_decoded_body() {
    let port = server(|head, stream| {
        assert!(head.to_ascii_lowercase().contains("accept-encoding: gzip"), "{head}");
        let packed = include_bytes!("zeros.gz");
        let head = format!("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n", packed.len());
        let _ = stream.write_all(&[head.as_bytes(), packed].concat());
    });
    let url = format!("http://127.0.0.1:{port}/");
    assert_eq!(local().send(&get(&url)).unwrap().body, vec![0; 1 << 20]);
    let less = OutboundRequest { most_body_bytes: Some((1 << 20) - 1), ..get(&url) };
    assert_eq!(code(local().send(&less)), "too_large");
}

#[test]
fn redirects_are_for_the_caller() {
    let port = server(|_, stream| {
        stream.write_all(b"HTTP/1.1 302 Found\r\nlocation: //169.254.169.254/latest\r\ncontent-length: 0\r\n\r\n").unwrap();
    });
    let response = local().send(&get(&format!("http://127.0.0.1:{port}/"))).unwrap();
    let target = response.redirect().unwrap().unwrap();
    assert_eq!((response.status, target.as_str()), (302, "http://169.254.169.254/latest"));
    assert_eq!(code(local().send(&OutboundRequest { url: target, ..get("http://x/") })), "blocked_address");
}

//! A website takes a bounded amount of memory and time, whatever it sends. A process of its own,
//! whose peak is measured.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is a failed test")]

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::time::{Duration, Instant};

use headcount_outbound::Outbound;
use headcount_outbound::url::Url;
use headcount_profiles::{Research, SiteFindings};

/// What a website may take beyond what the process had before. The site is in the same process, and
/// has as much as it sends.
const MAX_KIB: u64 = 16 << 10;
/// How long reading it may take here. Pages come from this machine at once.
const MAX_TIME: Duration = Duration::from_secs(20);

/// The most memory that the process had since the last call of [`forget_peak`].
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// Counts the peak from here on (proc(5), `clear_refs`).
fn forget_peak() {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
}

/// Serves a website on each of several ports: `answer` gets the number of the port and the path,
/// and returns a header and a body.
fn serve(origins: usize, answer: impl Fn(&[u16], usize, &str) -> (String, String) + Clone + Send + 'static) -> Vec<u16> {
    let listeners: Vec<_> = (0..origins).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()).collect();
    let ports: Vec<u16> = listeners.iter().map(|listener| listener.local_addr().unwrap().port()).collect();
    for (number, listener) in listeners.into_iter().enumerate() {
        let (answer, ports) = (answer.clone(), ports.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let (mut head, mut byte) = (Vec::new(), [0]);
                while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
                    head.push(byte[0]);
                }
                let path = String::from_utf8_lossy(&head).split(' ').nth(1).unwrap_or_default().to_owned();
                let (header, body) = answer(&ports, number, &path);
                let status = if header.starts_with("location") { 302 } else { 200 };
                let head =
                    format!("HTTP/1.1 {status} X\r\n{header}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
                let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
            }
        });
    }
    ports
}

/// Reads the website on the first of the ports.
#[track_caller]
fn read(name: &str, ports: &[u16]) -> SiteFindings {
    forget_peak();
    let (before, began) = (peak_kib(), Instant::now());
    let outbound = Outbound::new("headcount/test", "127.0.0.1".parse().unwrap());
    let outcome = Research::new(outbound).read(&Url::parse(&format!("http://127.0.0.1:{}/", ports[0])).unwrap());
    let (took, more) = (began.elapsed(), peak_kib() - before);
    println!("{name}: {more} KiB, {took:?}");
    assert!(more < MAX_KIB && took < MAX_TIME, "{name}: {more} KiB, {took:?}");
    outcome
}

/// As many copies of a text as a page may have bytes.
fn filled(head: &str, part: &str, most: usize) -> String {
    format!("{head}{}", part.repeat((most - head.len()) / part.len()))
}

/// Websites of one page.
fn page(name: &str, head: &str, part: &str) -> SiteFindings {
    let body = filled(head, part, 2 << 20);
    let answer = move |_: &[u16], _: usize, path: &str| {
        let none = ("content-type: text/plain".to_owned(), String::new());
        if path == "/" { ("content-type: text/html".to_owned(), body.clone()) } else { none }
    };
    let outcome = read(name, &serve(1, answer));
    assert!(outcome.failure.is_none(), "{name}: {:?}", outcome.failure);
    outcome
}

#[test]
fn a_website_chooses_neither_memory_nor_time() {
    for (name, part) in [
        ("one wildcard each", "Disallow:/%x*$\n"),
        ("the shortest rules", "allow:*\n"),
        ("many wildcards", "Disallow:/*a*b*c*d*e*f*g*h*i*j*k*l*m*n*o*p*q*r*s*t*u*v*w*x*y*z*a*b*c*d*e*f*$\n"),
        ("nearly what the path is", "Disallow:*aaaa*aaaa*aaaa*aaaa*aaab\n"),
    ] {
        let rules = filled("User-agent: *\n", part, 512 << 10);
        // Each origin redirects to the next one, to a path that the patterns nearly match.
        let answer = move |ports: &[u16], number: usize, path: &str| match (path, ports.get(number + 1)) {
            ("/robots.txt", _) => ("content-type: text/plain".to_owned(), rules.clone()),
            (_, Some(next)) => (format!("location: http://127.0.0.1:{next}/{}", "a".repeat(1_900)), String::new()),
            (_, None) => ("content-type: text/html".to_owned(), "<title>Acme</title>".to_owned()),
        };
        read(name, &serve(4, answer));
    }
    page("attributes of one tag", "<title>Acme</title><p ", "a b c d e ");
    page("tags with attributes", "<title>Acme</title>", "<p a=b c=d>");
    page("names of meta", "<title>Acme</title>", "<meta name=a content=b>");
    page("a long base", &format!("<base href='/{}'>", "b".repeat(900 << 10)), "<a href=about>about</a>");
    let outcome = page("objects", "<script type='application/ld+json'>[", "{\"\":0},");
    assert_eq!(outcome.fields.name, None);
    let objects = filled("[", "{\"\":0},", 250 << 10);
    page("documents of objects", "", &format!("<script type='application/ld+json'>{objects}0]</script>"));
    page("text", "", "\u{20ac}");
    page("one comment", "<!--", "x");
}

//! Credentials that are revoked while clients hammer with them. The times are printed; what is
//! asserted is the order.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::Call;
use crate::live::{Stream, bye};
use crate::server::TestServer;
use crate::tenant::{BROWSER, Tenant};

/// Connections that hammer.
const HAMMERS: usize = 4;
/// How long something may take that takes a fraction of a second on an idle machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A request: when it was sent, when its answer was there, and the status.
type Hit = (Instant, Instant, u16);

/// Clients that send one request over and over, each on a connection of its own.
struct Hammers {
    threads: Vec<JoinHandle<Vec<Hit>>>,
    answered: Arc<AtomicUsize>,
    refused: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
}

impl Hammers {
    fn start(server: &Arc<TestServer>, call: &Call) -> Hammers {
        let mut hammers =
            Hammers { threads: Vec::new(), answered: Arc::default(), refused: Arc::default(), stop: Arc::default() };
        for _ in 0..HAMMERS {
            let (server, call) = (Arc::clone(server), call.clone());
            let (answered, refused, stop) =
                (Arc::clone(&hammers.answered), Arc::clone(&hammers.refused), Arc::clone(&hammers.stop));
            hammers.threads.push(std::thread::spawn(move || {
                let mut hits = Vec::new();
                while !stop.load(Ordering::SeqCst) {
                    let sent = Instant::now();
                    let status = server.send(&call).status;
                    hits.push((sent, Instant::now(), status));
                    if status == 401 { &refused } else { &answered }.fetch_add(1, Ordering::SeqCst);
                }
                hits
            }));
        }
        hammers.wait(&hammers.answered);
        hammers
    }

    /// Waits for some more of such answers.
    #[track_caller]
    fn wait(&self, count: &AtomicUsize) {
        let (began, enough) = (Instant::now(), count.load(Ordering::SeqCst) + 20);
        while count.load(Ordering::SeqCst) < enough {
            assert!(began.elapsed() < PATIENCE, "{} answers", count.load(Ordering::SeqCst));
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits until they are refused, and ends them.
    #[track_caller]
    fn end(self) -> Vec<Hit> {
        self.wait(&self.refused);
        self.stop.store(true, Ordering::SeqCst);
        self.threads.into_iter().flat_map(|hammer| hammer.join().unwrap()).collect()
    }
}

/// Revokes what the clients hammer with, and checks what became of their requests. Returns how long
/// after the revocation was sent the last one was answered that was not refused.
#[track_caller]
fn revoke(tenant: &Tenant, hammers: Hammers, path: &str, right: u16) -> Duration {
    let before = Instant::now();
    tenant.delete(path).ok(204);
    let after = Instant::now();
    let hits = hammers.end();
    for (sent, answered, status) in &hits {
        assert!([right, 401].contains(status), "{status}");
        assert!(*sent < after || *status == 401, "sent {:?} after the 204 of {path}: {status}", *sent - after);
        assert!(*answered > before || *status == right, "before it was revoked: {status}");
    }
    let last = hits.iter().filter(|(_, _, status)| *status == right).map(|(_, answered, _)| *answered).max();
    last.map_or(Duration::ZERO, |last| last.saturating_duration_since(before))
}

fn made(tenant: &Tenant, path: &str, body: &Value) -> Value {
    tenant.post(path, body).ok(201)
}

fn text(made: &Value, field: &str) -> String {
    made[field].as_str().unwrap_or_else(|| panic!("no {field} in {made}")).to_owned()
}

#[test]
fn a_revoked_token_is_refused_from_the_next_request_on() {
    let server = Arc::new(TestServer::start());
    let tenant = Tenant::on(&server);
    tenant.peopled();
    let mut slowest = Duration::ZERO;
    for round in 0..6 {
        let member = (round % 2 == 1).then(|| {
            let person = json!({"email": format!("{round}@acme.com"), "role": "admin"});
            text(&made(&tenant, "/members", &person), "member_id")
        });
        let scopes = ["revenue:read", "companies:read"];
        let body = json!({"name": "t", "role": "admin", "scopes": scopes, "member_id": member});
        let token = made(&tenant, "/api-tokens", &body);
        let path = if round % 3 == 0 { tenant.path("revenue/metrics") } else { "/companies/top?range_days=7".to_owned() };
        let hammers = Hammers::start(&server, &Call::get(path).bearer(&text(&token, "token")));
        let revoked = match member {
            Some(member) => format!("/members/{member}"),
            None => format!("/api-tokens/{}", text(&token, "token_id")),
        };
        slowest = slowest.max(revoke(&tenant, hammers, &revoked, 200));
    }
    println!("the last answer to a revoked token: {} ms after the revocation was sent", slowest.as_millis());
    assert!(slowest < PATIENCE, "{slowest:?}");
}

#[test]
fn a_removed_key_is_refused_from_the_next_event_on() {
    let server = Arc::new(TestServer::start());
    let tenant = Tenant::on(&server);
    let key = text(&made(&tenant, &tenant.path("keys"), &json!({})), "public_key");
    let event = json!({"name": "a", "user_id": "ada"});
    let hammers = Hammers::start(&server, &Call::post("/track").key(&key).agent(BROWSER).json(&event));
    let took = revoke(&tenant, hammers, &tenant.path(&format!("keys/{key}")), 202);
    println!("the last event by a removed key: {} ms after the removal was sent", took.as_millis());
    tenant.recorded(&event);
}

#[test]
fn streams_of_a_revoked_token_end_while_its_owner_hammers() {
    let server = Arc::new(TestServer::start());
    let tenant = Tenant::on(&server);
    let token = made(&tenant, "/api-tokens", &json!({"name": "t", "role": "member", "scopes": ["analytics:read"]}));
    let secret = text(&token, "token");
    let mut other = Stream::open(&tenant, &tenant.token, None);
    let (opened, has_opened) = mpsc::channel();
    let streams: Vec<_> = (0..30)
        .map(|_| {
            let (mut stream, opened) = (Stream::open(&tenant, &secret, None), opened.clone());
            std::thread::spawn(move || {
                stream.read().expect("a snapshot");
                opened.send(()).unwrap();
                (bye(&mut stream).0, Instant::now())
            })
        })
        .collect();
    streams.iter().for_each(|_| has_opened.recv_timeout(PATIENCE).expect("a snapshot"));
    let path = tenant.path("analytics/count-unique-users-per-day");
    let hammers = Hammers::start(&server, &Call::post(path).bearer(&secret).json(&json!({})));
    let before = Instant::now();
    let answered = revoke(&tenant, hammers, &format!("/api-tokens/{}", text(&token, "token_id")), 200);
    let mut slowest = Duration::ZERO;
    for stream in streams {
        let (reason, at) = stream.join().unwrap();
        assert_eq!(reason, "unauthorized");
        assert!(at > before, "it ended before the token was revoked");
        slowest = slowest.max(at - before);
    }
    println!(
        "after the revocation was sent: the last answer {} ms, the end of the last stream {} ms",
        answered.as_millis(),
        slowest.as_millis()
    );
    assert!(slowest < PATIENCE, "{slowest:?}");
    tenant.recorded(&json!({"name": "a", "user_id": "ada"}));
    other.read_until(|shown| shown["today"]["events"] == 1);
}

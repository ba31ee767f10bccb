//! Everything at work at once: an outsider floods a project's public endpoint while its own
//! exports, streams, webhooks and builds go on, all with slow counterparts. Another tenant is
//! served, the server is ready, memory is bounded, and what was acknowledged is counted.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Answer, Call};
use crate::profile_builds::Site;
use crate::server::TestServer;
use crate::tenant::{BROWSER, Tenant};
use crate::webhooks::Receiver;

/// How long all of it goes on, and how often the other tenant is served at least.
const FLOOD: Duration = Duration::from_secs(10);
const ROUNDS: u64 = 10;
/// How long what happens in the background may take afterwards.
const PATIENCE: Duration = Duration::from_secs(90);
/// What the flooded project has before, for its exports.
const EVENTS_BEFORE: usize = 8_000;
const LIVE_READERS: usize = 200;
/// More memory than before, at most: with everything in it that is bounded by `--memory` and
/// `--admission-bytes`.
const MORE_MIB: u64 = 200;

/// Threads that go on until they are stopped.
#[derive(Default)]
struct AtWork {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl AtWork {
    fn repeat(&mut self, mut work: impl FnMut() + Send + 'static) {
        let stop = Arc::clone(&self.stop);
        self.threads.push(std::thread::spawn(move || {
            while !stop.load(Ordering::SeqCst) {
                work();
            }
        }));
    }

    fn end(self) {
        self.stop.store(true, Ordering::SeqCst);
        self.threads.into_iter().for_each(|thread| thread.join().expect("it goes on"));
    }
}

/// What became of the flood.
#[derive(Default)]
struct Flooded {
    recorded: AtomicU64,
    /// Events of which nobody knows whether they were recorded.
    unknown: AtomicU64,
    refused: AtomicU64,
    bytes: AtomicU64,
}

impl Flooded {
    /// Counts the answer to a request of `events` events.
    fn note(&self, answer: &Answer, events: u64, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::SeqCst);
        match answer.status {
            202 => {
                let recorded = answer.json()["recorded"].as_u64().unwrap_or(1);
                self.recorded.fetch_add(recorded, Ordering::SeqCst);
            }
            500 if answer.json()["error"]["code"] == "outcome_unknown" => drop(self.unknown.fetch_add(events, Ordering::SeqCst)),
            400 | 401 | 413 => {}
            503 => {
                assert!(answer.header("retry-after").is_some(), "{}", answer.text());
                self.refused.fetch_add(1, Ordering::SeqCst);
            }
            status => panic!("{status} {}", answer.text()),
        }
    }
}

/// A batch of about 3 MiB, in which everything is new each time.
fn large_batch(number: u64) -> (Vec<u8>, u64) {
    let event = |at: u64| {
        let id = number * 1_000 + at;
        json!({"name": "flood", "anonymous_id": format!("x{id}"), "url": format!("https://shop.example/{id}"), "group_id": format!("g{id}"),
               "notify": at == 0, "message": "flood", "metadata": {"text": "x".repeat(3_000), "number": id}})
    };
    let events: Vec<Value> = (0..1_000).map(event).collect();
    (json!({ "events": events }).to_string().into_bytes(), 1_000)
}

/// Floods the public endpoint, from several addresses: large batches, single events, and what can't
/// be read.
fn flood(tenant: &Tenant, work: &mut AtWork) -> Arc<Flooded> {
    let flooded = Arc::<Flooded>::default();
    for number in 0..4 {
        let (server, noted, key) = (Arc::clone(&tenant.server), Arc::clone(&flooded), tenant.key.clone());
        let from = move |call: Call| call.key(&key).agent(BROWSER).header("x-forwarded-for", format!("203.0.113.{number}"));
        let (batch, events) = large_batch(number);
        let mut connection = None;
        work.repeat(move || {
            let (call, events, bytes) = match number {
                0 | 1 => (from(Call::post("/i/batch")).text("application/json", batch.clone()), events, batch.len()),
                2 => (
                    from(Call::post("/track"))
                        .json(&json!({"name": "flood", "user_id": "one", "notify": true, "message": "flood"})),
                    1,
                    100,
                ),
                _ => (from(Call::post("/i/batch")).text("application/json", &batch[..batch.len() - 7]), 0, batch.len()),
            };
            match connection.get_or_insert_with(|| server.connect()).send(&call) {
                Ok((answer, is_open)) => {
                    noted.note(&answer, events, bytes);
                    connection = connection.take().filter(|_| is_open);
                }
                // A refusal that was closed before it could be read.
                Err(_) => {
                    noted.unknown.fetch_add(events, Ordering::SeqCst);
                    connection = None;
                }
            }
        });
    }
    flooded
}

/// Bodies that are announced and hardly sent.
fn dribble(tenant: &Tenant, work: &mut AtWork) {
    let (address, key) = (tenant.server.address(), tenant.key.clone());
    let mut streams: Vec<TcpStream> = Vec::new();
    work.repeat(move || {
        while streams.len() < 16 {
            let mut stream = TcpStream::connect(address).expect("a connection");
            let number = streams.len() % 8;
            let head = format!(
                "POST /i/batch?pk={key} HTTP/1.1\r\nhost: a\r\nx-forwarded-for: 203.0.113.{}\r\ncontent-length: 4000000\r\n\r\n",
                100 + number
            );
            stream.write_all(head.as_bytes()).expect("it is sent");
            stream.set_nonblocking(true).expect("it is a socket");
            streams.push(stream);
        }
        // A connection that was refused is opened again.
        let block = [b' '; 16 << 10];
        streams.retain_mut(|stream| match stream.write(&block) {
            Ok(_) => true,
            Err(error) => error.kind() == ErrorKind::WouldBlock,
        });
        std::thread::sleep(Duration::from_millis(100));
    });
}

/// A request with a token whose answer is not read, but for its status; `None` if that is not 200.
fn unread(tenant: &Tenant, path: &str) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(tenant.server.address()).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let head = format!("GET {path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {}\r\n\r\n", tenant.token);
    stream.write_all(head.as_bytes()).expect("it is sent");
    let mut status = [0; 12];
    stream.read_exact(&mut status).expect("an answer");
    stream.set_read_timeout(Some(Duration::from_millis(20))).expect("a timeout");
    (&status == b"HTTP/1.1 200").then_some(stream)
}

/// Streams, nearly all of which are never read, and an export that is read slowly, again and again.
fn slow_readers(tenant: &Tenant, work: &mut AtWork) {
    let path = tenant.path("live");
    let mut streams: Vec<TcpStream> = (0..LIVE_READERS).map(|_| unread(tenant, &path).expect("a stream")).collect();
    let (mut next, mut export, exporting) = (0, None::<TcpStream>, tenant.same());
    work.repeat(move || {
        // A byte at a time of some of them. Who reads nothing for long is closed.
        next = (next + 1) % (LIVE_READERS / 10);
        let _ = streams[next].read(&mut [0]);
        export = match export.take() {
            None => unread(&exporting, &exporting.path("export")),
            Some(mut stream) => match stream.read(&mut [0; 8 << 10]) {
                Ok(1..) => Some(stream),
                Err(error) if error.kind() == ErrorKind::WouldBlock => Some(stream),
                _ => None,
            },
        };
        std::thread::sleep(Duration::from_millis(20));
    });
}

/// A receiver that takes requests and never answers. It ends with the process of the tests.
fn silent_receiver() -> (String, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let taken = Arc::<AtomicU64>::default();
    let counted = Arc::clone(&taken);
    std::thread::spawn(move || {
        let mut held = Vec::new();
        for stream in listener.incoming() {
            counted.fetch_add(1, Ordering::SeqCst);
            held.push(stream);
        }
    });
    (url, taken)
}

/// Has the tenant's own work go on: webhooks with a silent receiver, builds of slow websites,
/// exports of a person. Returns how many requests of webhooks came.
fn own_work(tenant: &Tenant, work: &mut AtWork) -> Arc<AtomicU64> {
    let (url, taken) = silent_receiver();
    for _ in 0..4 {
        tenant.post("/webhooks", &json!({"project_id": tenant.project, "url": url})).ok(201);
    }
    tenant.patch("/organization", &json!({"capabilities": ["target_accounts"], "actions_balance": 100})).ok(200);
    for _ in 0..4 {
        let site = Site::start(&[("/", 200, "content-type: text/html\r\n", "slow")]).url();
        tenant.post("/company-profiles", &json!({"website": site})).ok(201);
        tenant.post("/company-profiles/build", &json!({"website": site})).ok(202);
    }
    let asking = tenant.same();
    work.repeat(move || {
        let asked = asking.post("/privacy-requests", &json!({"type": "export", "user_id": "u1"}));
        assert!([201, 409, 503].contains(&asked.status), "{}", asked.text());
        std::thread::sleep(Duration::from_millis(500));
    });
    taken
}

/// Serves the other tenant, and asks whether the server is ready. Returns how many rounds there
/// were, and how long the longest took.
fn serve(other: &Tenant, webhook: &Receiver) -> (u64, Duration) {
    let from = |call: Call| call.header("x-forwarded-for", "198.51.100.1");
    let (began, mut rounds, mut longest) = (Instant::now(), 0, Duration::ZERO);
    while began.elapsed() < FLOOD || rounds < ROUNDS {
        let round = Instant::now();
        rounds += 1;
        let event =
            json!({"name": "sale", "user_id": format!("u{rounds}"), "value": 2, "notify": true, "message": rounds.to_string()});
        let sent = from(Call::post("/track").key(&other.key)).agent(BROWSER).json(&event);
        assert_eq!(other.send(sent).ok(202)["status"], "recorded");
        let metrics = other.send(from(Call::get(other.path("revenue/metrics")).bearer(&other.token))).ok(200);
        assert_eq!(metrics["orders"], rounds);
        assert_eq!(other.users(&other.project), rounds);
        let ready = other.send(Call::get("/readyz"));
        assert_eq!(ready.status, 200, "{}", ready.text());
        longest = longest.max(round.elapsed());
        assert!(began.elapsed() < PATIENCE, "{rounds} rounds");
        std::thread::sleep(Duration::from_millis(20));
    }
    let notified = webhook.wait(usize::try_from(rounds).expect("few"));
    let messages: Vec<Value> = notified.iter().map(|one| one.json()["data"]["message"].clone()).collect();
    assert_eq!(messages, (1..=rounds).map(|round| json!(round.to_string())).collect::<Vec<_>>());
    (rounds, longest)
}

/// A build of the other tenant's own website, which is quick.
fn build(other: &Tenant) {
    let site = Site::start(&[("/", 200, "content-type: text/html\r\n", "<title>Quick</title>")]).url();
    let run = other.post("/company-profiles/build", &json!({"website": site})).ok(202);
    let path = format!("/company-profiles/builds/{}", run["run_id"].as_str().expect("an id"));
    when(other, &path, |run| run["status"] == "succeeded");
}

#[track_caller]
fn when(tenant: &Tenant, path: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let until = Instant::now() + PATIENCE;
    loop {
        let shown = tenant.get(path);
        if shown.status == 200 && is_so(&shown.json()) {
            return shown.json();
        }
        assert!(Instant::now() < until, "{}", shown.text());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Looks at the memory of the server, over and over.
fn watch_memory(server: &Arc<TestServer>, work: &mut AtWork) -> Arc<Mutex<u64>> {
    let (server, peak) = (Arc::clone(server), Arc::new(Mutex::new(0)));
    let seen = Arc::clone(&peak);
    work.repeat(move || {
        let now = server.resident_mib();
        let mut peak = seen.lock().expect("it is not poisoned");
        *peak = now.max(*peak);
        drop(peak);
        std::thread::sleep(Duration::from_millis(20));
    });
    peak
}

#[test]
fn another_tenant_is_served_while_everything_is_at_work() {
    let settings = ["--memory", "128MiB", "--outbound-allow", "127.0.0.1", "--trusted-proxies", "127.0.0.1/32"];
    let server = Arc::new(TestServer::start_with(&settings));
    let (flooded, other) = (Tenant::on(&server), Tenant::on(&server));
    for part in 0..EVENTS_BEFORE / 2_000 {
        let event = |number: usize| json!({"name": "before", "user_id": format!("u{}", number % 50), "metadata": {"part": part}});
        let events: Vec<Value> = (0..2_000).map(event).collect();
        let batch = Call::post("/i/batch").key(&flooded.key).agent(BROWSER).json(&json!({ "events": events }));
        assert_eq!(flooded.send(batch).ok(202)["recorded"], 2_000);
    }
    let webhook = Receiver::start(&[204]);
    other.post("/webhooks", &json!({"project_id": other.project, "url": webhook.url()})).ok(201);

    let before = server.resident_mib();
    let mut work = AtWork::default();
    let peak = watch_memory(&server, &mut work);
    let taken = own_work(&flooded, &mut work);
    slow_readers(&flooded, &mut work);
    dribble(&flooded, &mut work);
    let flood = flood(&flooded, &mut work);
    build(&other);
    let (rounds, longest) = serve(&other, &webhook);
    work.end();

    let count = |counter: &AtomicU64| counter.load(Ordering::SeqCst);
    let (recorded, unknown, mib) = (count(&flood.recorded), count(&flood.unknown), count(&flood.bytes) >> 20);
    let more = peak.lock().expect("it is not poisoned").saturating_sub(before);
    println!(
        "{rounds} rounds of the other tenant, the longest {} ms; {mib} MiB of the flood, {recorded} events recorded, {} requests refused; \
         {before} MiB before, at most {more} MiB more",
        longest.as_millis(),
        count(&flood.refused),
    );
    assert!(recorded > 0 && count(&flood.refused) > 0, "it was no overload");
    assert!(count(&taken) >= 1, "its webhooks sent nothing");
    assert!(more < MORE_MIB, "{more} MiB more");
    // What was acknowledged is counted, and nothing else.
    let by_name =
        flooded.post(&flooded.path("analytics/aggregate"), &json!({"start_date": "2020-01-01", "group_by": "name"})).ok(200);
    let of_flood =
        by_name["rows"].as_array().expect("rows").iter().find(|row| row["value"] == "flood").expect("the flood")["count"]
            .as_u64();
    assert!(of_flood.is_some_and(|events| (recorded..=recorded + unknown).contains(&events)), "{by_name}");
    when(&flooded, "/privacy-requests", |list| {
        list["privacy_requests"]
            .as_array()
            .is_some_and(|requests| requests.iter().all(|request| request["status"] == "completed"))
    });
}

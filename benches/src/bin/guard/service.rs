//! The stages of several threads: requests to a server on loopback, and the embedded engine.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use headcount::server::{HttpConfig, RunningServer, Server};
use headcount_actors::domain::time::Day;
use headcount_actors::ingest::{Field, NewEvent};
use headcount_actors::{CheckpointPolicy, Engine, EngineConfig};
use headcount_bench::connection::{Connection, request};
use headcount_bench::sample::{BROWSER, DAY_MS, DAYS, START_MS, body};
use headcount_control::Initial;
use headcount_storage::log::LogOptions;
use tokio::runtime::{Builder, Runtime};

use crate::SEGMENT_BYTES;
use crate::marks::{MarkingClock, Marks, guard_mark, report};

const WARM_UP: usize = 100;
const REQUESTS: usize = 200;
const WARM_UP_BATCHES: usize = 6;
const BATCHES: usize = 10;
/// How many events a batch has.
const BATCH: usize = 100;
/// How long threads have to finish what follows an answer.
const SETTLING: Duration = Duration::from_millis(50);

struct Service {
    engine: Engine,
    made: Initial,
    server: RunningServer,
    connection: Connection,
    marks: Arc<Marks>,
}

/// Runs them.
pub(crate) fn run() {
    let dir = tempfile::tempdir().unwrap();
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let mut service = Service::start(dir.path());
    service.events();
    service.batches();
    service.polls();
    service.questions();
    service.embedded(&runtime);
    let Service { engine, server, .. } = service;
    runtime.block_on(async move {
        server.stop().await.unwrap();
        engine.close().await;
    });
}

impl Service {
    fn start(dir: &Path) -> Self {
        // What a timer begins would be counted.
        let interval = Duration::from_secs(1 << 20);
        let marks = Arc::new(Marks::default());
        let shard_marks = Arc::clone(&marks);
        let config = EngineConfig {
            shards: 1,
            // Callgrind is slow, and other work of the machine goes first.
            apply_timeout: interval,
            min_free_bytes: 0,
            checkpoints: CheckpointPolicy { interval, ..CheckpointPolicy::default() },
            log: LogOptions { segment_bytes: SEGMENT_BYTES, ..LogOptions::default() },
            clock: Arc::new(MarkingClock(Arc::clone(&marks))),
            probe: Some(Arc::new(move |_| shard_marks.shard.mark_if_due())),
            ..EngineConfig::new(dir)
        };
        let engine = Engine::open(config).unwrap();
        let made = engine.registry().initialize(engine.clock().now()).unwrap();
        let config = HttpConfig { workers: 1, ..HttpConfig::new("127.0.0.1:0") };
        let server = Server::start(engine.clone(), config).unwrap();
        let connection = Connection::to(server.addresses()[0]);
        Self { engine, made, server, connection, marks }
    }

    /// Returns a request of a page in a browser.
    fn page(&self, path: &str, body: &str) -> Vec<u8> {
        let headers = format!(
            "user-agent: {BROWSER}\r\nx-service-pk: {}\r\norigin: https://app.example.com\r\nreferer: https://app.example.com/\r\n\
             accept: */*\r\naccept-language: en-US,en;q=0.9\r\naccept-encoding: gzip, deflate, br, zstd\r\n",
            self.made.public_key
        );
        request("POST", path, &headers, body)
    }

    /// Returns a question about unique users from `day` on.
    fn question(&self, day: i32, days: i32, headers: &str) -> Vec<u8> {
        let first = Day::from_ymd(2026, 6, 1).unwrap().plus(day);
        let body = format!(r#"{{"start_date":"{first}","end_date":"{}"}}"#, first.plus(days - 1));
        let path = format!("/projects/{}/analytics/count-unique-users-per-day", self.made.project_id);
        request("POST", &path, &format!("authorization: Bearer {}\r\n{headers}", self.made.api_token.expose()), &body)
    }

    /// Has the threads of requests mark their place. Returns the marks of the HTTP worker and of
    /// the shard.
    fn mark(&mut self) -> (usize, usize) {
        std::thread::sleep(SETTLING);
        self.marks.http.ask();
        self.marks.shard.ask();
        let event = self.page("/i", &body(0));
        assert!(self.connection.send(&event).status == 202);
        (self.marks.http.last(), self.marks.shard.last())
    }

    /// Sends the requests of a stage. All must be answered with `status`. Reports those after the
    /// first `warm_up`, which have `events` each.
    fn measure(&mut self, stage: &str, requests: &[Vec<u8>], (warm_up, events): (usize, usize), status: u16) {
        let (warm_up, measured) = requests.split_at(warm_up);
        self.send_all(warm_up, status);
        self.mark();
        self.send_all(measured, status);
        let (http, shard) = self.mark();
        let count = measured.len() * events;
        report(stage, count, "http", http);
        // An unchanged answer needs no shard.
        if status != 304 {
            report(stage, count, "shard", shard);
        }
    }

    fn send_all(&mut self, requests: &[Vec<u8>], status: u16) {
        for request in requests {
            let response = self.connection.send(request);
            assert!(response.status == status, "{}: {}", response.status, String::from_utf8_lossy(&response.body));
        }
    }

    fn events(&mut self) {
        let requests: Vec<Vec<u8>> = (0..WARM_UP + REQUESTS).map(|number| self.page("/i", &body(number))).collect();
        self.measure("POST /i", &requests, (WARM_UP, 1), 202);
    }

    fn batches(&mut self) {
        let batch = |batch: usize| {
            let events: Vec<String> = (0..BATCH).map(|number| body((batch + 100) * BATCH + number)).collect();
            self.page("/i/batch", &format!(r#"{{"events":[{}]}}"#, events.join(",")))
        };
        let requests: Vec<Vec<u8>> = (0..WARM_UP_BATCHES + BATCHES).map(batch).collect();
        self.measure("POST /i/batch", &requests, (WARM_UP_BATCHES, BATCH), 202);
    }

    fn polls(&mut self) {
        let first = self.connection.send(&self.question(0, DAYS as i32, ""));
        let poll = self.question(0, DAYS as i32, &format!("if-none-match: {}\r\n", first.tag.unwrap()));
        self.measure("unchanged poll", &vec![poll; WARM_UP + REQUESTS], (WARM_UP, 1), 304);
    }

    /// Each question has days of its own, so that no answer is known.
    fn questions(&mut self) {
        let windows = (0..20).flat_map(|day| (1..=15).map(move |days| (day, days)));
        let requests: Vec<Vec<u8>> = windows.map(|(day, days)| self.question(day, days, "")).collect();
        self.measure("question", &requests, (WARM_UP, 1), 200);
    }

    fn embedded(&mut self, runtime: &Runtime) {
        let event = |number: usize| {
            let user = number * 7919 % 5_000;
            NewEvent::new("pageview")
                .user(format!("u{user}"))
                .anonymous(format!("a{user:016}"))
                .with(Field::Url, format!("https://app.example.com/docs/section-{}/page-{}", number % 20, number % 400))
                .with(Field::GroupId, format!("co{}", user % 500))
                .at_ms(START_MS + (number as i64) * DAY_MS / 1_000)
        };
        let events: Vec<NewEvent> = (0..WARM_UP + REQUESTS).map(event).collect();
        let (warm_up, measured) = events.split_at(WARM_UP);
        self.track(warm_up, runtime);
        self.mark();
        guard_mark();
        self.track(measured, runtime);
        let main = guard_mark();
        let (_, shard) = self.mark();
        report("Engine::track", REQUESTS, "main", main);
        report("Engine::track", REQUESTS, "shard", shard);
    }

    fn track(&self, events: &[NewEvent], runtime: &Runtime) {
        runtime.block_on(async {
            for event in events {
                self.engine.track(self.made.project_id, event).await.unwrap();
            }
        });
    }
}

//! The requests of one connection, and the interpretation of their answers.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::events::{EventWriter, write_digits};
use super::http::{Connection, Response};
use super::ledger::Ledger;
use super::measured::RequestOutcome;
use super::mix::{Mix, RequestKind};
use super::spread::{Destination, Spread, mixed};

/// The questions of a dashboard: method, and path with the project as `{}`.
const QUESTIONS: [(&str, &str); 9] = [
    ("POST", "/projects/{}/analytics/count-unique-users-per-day"),
    ("GET", "/projects/{}/revenue/metrics"),
    ("GET", "/projects/{}/revenue/timeseries"),
    // Past days: new events don't change this answer.
    ("GET", "/projects/{}/revenue/timeseries?start_date=2024-01-01&end_date=2024-01-31"),
    ("GET", "/projects/{}/revenue/by-attribution"),
    ("GET", "/projects/{}/revenue/by-attribution?model=last_touch&level=identity"),
    ("GET", "/projects/{}/revenue/ltv-cohorts"),
    ("GET", "/projects/{}/intake"),
    ("GET", "/companies/top"),
];
/// The number of users that are tried to find one that was sent.
const PROFILE_TRIES: u64 = 8;

/// The state that all connections share.
pub(crate) struct Target {
    /// The shares of the kinds of requests.
    pub(crate) mix: Mix,
    /// The events.
    pub(crate) events: EventWriter,
    /// The projects that receive them.
    pub(crate) destinations: Vec<Destination>,
    /// The distribution of events over projects.
    pub(crate) spread: Spread,
    /// The acknowledged events.
    pub(crate) ledger: Ledger,
    /// The events of a batch.
    pub(crate) batch: u64,
    /// Percentage of events that are sent twice.
    pub(crate) duplicates: u64,
    /// The expected status of events.
    pub(crate) expect: u16,
    /// The header `Host`.
    pub(crate) host: String,
    /// The path prefix of every endpoint.
    pub(crate) base: String,
    /// The request of `--raw`.
    pub(crate) fixed: Vec<u8>,
    /// The number of the next event.
    pub(crate) next_event: AtomicU64,
}

/// A request in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exchange {
    /// Its kind.
    pub(crate) kind: RequestKind,
    project: usize,
    /// The number of its first event, or of its question.
    first: u64,
    is_repeat: bool,
}

/// The state of one connection.
pub(crate) struct LoadVisitor {
    target: Arc<Target>,
    /// The project of its dashboard.
    project: usize,
    question: usize,
    etags: Vec<Vec<u8>>,
    /// The last recorded event, and its project.
    last: Option<(u64, usize)>,
    expected: Vec<u8>,
}

impl Target {
    /// Writes the first lines of a request.
    fn begin(&self, method: &str, path: &str, request: &mut Vec<u8>) {
        for part in [method, " ", &self.base, path, " HTTP/1.1\r\nhost: ", &self.host, "\r\n"] {
            request.extend_from_slice(part.as_bytes());
        }
    }

    fn is_batch_repeat(&self, first: u64, offset: u64) -> bool {
        // Only odd events may repeat the one before, so no event comes three times.
        offset % 2 == 1 && self.duplicates > 0 && mixed(first + offset) % 100 < 2 * self.duplicates
    }

    /// The numbers of the distinct events of a batch.
    fn distinct(&self, first: u64) -> impl Iterator<Item = u64> {
        (0..self.batch).filter(move |offset| !self.is_batch_repeat(first, *offset)).map(move |offset| first + offset)
    }

    fn destination(&self, project: usize) -> Option<&Destination> {
        self.destinations.get(project)
    }
}

impl LoadVisitor {
    /// Creates the visitor of a connection.
    pub(crate) fn new(target: Arc<Target>, number: u64) -> Self {
        let project = target.spread.project(number);
        Self { target, project, question: 0, etags: vec![Vec::new(); QUESTIONS.len()], last: None, expected: Vec::new() }
    }

    /// How many questions a dashboard asks.
    pub(crate) fn questions() -> usize {
        QUESTIONS.len()
    }

    /// Writes the request with this number.
    pub(crate) fn write(&mut self, number: u64, request: &mut Vec<u8>) -> Exchange {
        self.write_kind(self.target.mix.kind(number), number, request)
    }

    /// Writes a request of this kind.
    pub(crate) fn write_kind(&mut self, kind: RequestKind, number: u64, request: &mut Vec<u8>) -> Exchange {
        request.clear();
        match kind {
            RequestKind::Poll => self.write_question(RequestKind::Poll, request),
            RequestKind::Profile => self.write_profile(number, request),
            RequestKind::Batch => self.write_batch(request),
            RequestKind::Raw => {
                request.extend_from_slice(&self.target.fixed);
                Exchange { kind: RequestKind::Raw, project: 0, first: 0, is_repeat: false }
            }
            _ => self.write_single(number, request),
        }
    }

    /// Writes the next question of the visitor's dashboard.
    pub(crate) fn write_question(&mut self, kind: RequestKind, request: &mut Vec<u8>) -> Exchange {
        request.clear();
        let at = self.question % QUESTIONS.len();
        self.question = at + 1;
        let (method, path) = QUESTIONS.get(at).copied().unwrap_or(("GET", "/"));
        let destination = self.target.destination(self.project);
        let project = destination.and_then(|it| it.project.as_deref()).unwrap_or_default();
        self.target.begin(method, &path.replace("{}", project), request);
        push_token(destination, request);
        match self.etags.get(at) {
            Some(etag) if !etag.is_empty() => {
                request.extend_from_slice(b"if-none-match: ");
                request.extend_from_slice(etag);
                request.extend_from_slice(b"\r\n");
            }
            _ => {}
        }
        let end: &[u8] =
            if method == "POST" { b"content-type: application/json\r\ncontent-length: 2\r\n\r\n{}" } else { b"\r\n" };
        request.extend_from_slice(end);
        Exchange { kind, project: self.project, first: at as u64, is_repeat: false }
    }

    fn write_profile(&mut self, number: u64, request: &mut Vec<u8>) -> Exchange {
        let target = Arc::clone(&self.target);
        let random = (0..PROFILE_TRIES).map(|attempt| mixed(number.wrapping_mul(PROFILE_TRIES) + attempt));
        let project = target.spread.project(number);
        let users = target.spread.users_of(project);
        let mut known =
            random.map(|random| users.start + random % users.size.max(1)).filter(|user| target.ledger.has_user(*user));
        let mine = || self.last.map(|(event, project)| (EventWriter::user(event, target.spread.users_of(project)), project));
        let Some((user, project)) = known.next().map(|user| (user, project)).or_else(mine) else {
            // No user was sent yet.
            return if target.mix.has(RequestKind::Single) {
                self.write_single(number, request)
            } else {
                self.write_batch(request)
            };
        };
        target.begin("GET", &format!("/identities/profile?user_id={}", target.events.user_id(user)), request);
        push_token(target.destination(project), request);
        request.extend_from_slice(b"\r\n");
        Exchange { kind: RequestKind::Profile, project, first: user, is_repeat: false }
    }

    fn write_single(&mut self, number: u64, request: &mut Vec<u8>) -> Exchange {
        let target = &self.target;
        let repeated = self.last.filter(|_| target.duplicates > 0 && mixed(number) % 100 < target.duplicates);
        let (first, project) = repeated.unwrap_or_else(|| {
            let first = target.next_event.fetch_add(1, Ordering::Relaxed);
            (first, target.spread.project(first))
        });
        target.begin("POST", "/i", request);
        let body = push_key(target.destination(project), request);
        target.events.write(first, target.spread.users_of(project), request);
        write_length(request, body);
        Exchange { kind: RequestKind::Single, project, first, is_repeat: repeated.is_some() }
    }

    fn write_batch(&mut self, request: &mut Vec<u8>) -> Exchange {
        let target = &self.target;
        let first = target.next_event.fetch_add(target.batch, Ordering::Relaxed);
        let project = target.spread.project(first);
        let users = target.spread.users_of(project);
        target.begin("POST", "/i/batch", request);
        let body = push_key(target.destination(project), request);
        request.extend_from_slice(b"{\"events\":[");
        for offset in 0..target.batch {
            if offset > 0 {
                request.push(b',');
            }
            let number = first + offset - u64::from(target.is_batch_repeat(first, offset));
            target.events.write(number, users, request);
        }
        request.extend_from_slice(b"]}");
        write_length(request, body);
        Exchange { kind: RequestKind::Batch, project, first, is_repeat: false }
    }

    /// Interprets an answer, and notes the acknowledged events.
    pub(crate) fn read(
        &mut self,
        exchange: Exchange,
        answer: &io::Result<Response>,
        connection: &Connection,
    ) -> io::Result<RequestOutcome> {
        let answer = match answer {
            Ok(answer) => *answer,
            Err(error) => {
                if matches!(exchange.kind, RequestKind::Single | RequestKind::Batch) {
                    self.target.ledger.uncertain(exchange.project);
                }
                return Err(copy_of(error));
            }
        };
        let status = answer.status;
        let outcome = |is_expected, events| Ok(RequestOutcome { status, is_expected, events });
        match exchange.kind {
            RequestKind::Single | RequestKind::Batch => {
                let events = self.acknowledge(exchange, status, connection.body(answer));
                outcome(status == self.target.expect && (events.is_some() || status != 202), events.unwrap_or(0))
            }
            RequestKind::Poll | RequestKind::Dashboard => {
                let etag = connection.etag(answer).unwrap_or_default();
                if let Some(known) = usize::try_from(exchange.first).ok().and_then(|at| self.etags.get_mut(at)) {
                    known.clear();
                    known.extend_from_slice(etag);
                }
                outcome(matches!(status, 200 | 304), 0)
            }
            RequestKind::Profile | RequestKind::Idle => outcome(status == 200, 0),
            RequestKind::Raw => outcome(status == self.target.expect, u64::from(status == self.target.expect)),
        }
    }

    /// Notes the events that an answer acknowledges. Returns the number of recorded events if the
    /// answer matches the request.
    fn acknowledge(&mut self, exchange: Exchange, status: u16, body: &[u8]) -> Option<u64> {
        let target = Arc::clone(&self.target);
        let Exchange { project, first, .. } = exchange;
        let is_single = exchange.kind == RequestKind::Single;
        let recorded = if is_single { u64::from(!exchange.is_repeat) } else { target.distinct(first).count() as u64 };
        let duplicates = if is_single { u64::from(exchange.is_repeat) } else { target.batch - recorded };
        self.expected.clear();
        if is_single {
            let word: &[u8] = if exchange.is_repeat { b"\"status\":\"duplicate\"" } else { b"\"status\":\"recorded\"" };
            self.expected.extend_from_slice(word);
        } else {
            let text = format!("\"recorded\":{recorded},\"duplicates\":{duplicates},\"dropped\":0,\"errors\":[]");
            self.expected.extend_from_slice(text.as_bytes());
        }
        if status != 202 || memchr::memmem::find(body, &self.expected).is_none() {
            // A refused request is not recorded. Any other outcome is unknown.
            if status == 202 || status == 500 {
                target.ledger.uncertain(project);
            }
            return None;
        }
        if is_single {
            target.ledger.recorded(project, (first..=first).filter(|_| !exchange.is_repeat), &target.events);
        } else {
            target.ledger.recorded(project, target.distinct(first), &target.events);
        }
        target.ledger.duplicates(project, duplicates);
        self.last = Some((first, project));
        Some(recorded)
    }
}

fn copy_of(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

fn push_token(destination: Option<&Destination>, request: &mut Vec<u8>) {
    request.extend_from_slice(b"authorization: Bearer ");
    request.extend_from_slice(destination.map(|it| it.token.as_bytes()).unwrap_or_default());
    request.extend_from_slice(b"\r\n");
}

/// Ends the head of a request with a public key and room for the length of its body. Returns where
/// the body begins.
fn push_key(destination: Option<&Destination>, request: &mut Vec<u8>) -> usize {
    request.extend_from_slice(b"content-type: application/json\r\nx-service-pk: ");
    request.extend_from_slice(destination.map(|it| it.key.as_bytes()).unwrap_or_default());
    request.extend_from_slice(b"\r\ncontent-length: 00000000\r\n\r\n");
    request.len()
}

/// Writes the length of a body before it: padding it with zeros is cheaper than a second buffer.
fn write_length(request: &mut [u8], body: usize) {
    const LENGTH_DIGITS: usize = 8;
    const END: usize = 4;
    let length = request.len() - body;
    if let Some(place) = request.get_mut(body - END - LENGTH_DIGITS..body - END) {
        write_digits(length as u64, place);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn target(mix: &str, projects: usize, batch: u64, duplicates: u64) -> Arc<Target> {
        let spread = Spread::new(projects, 1_000, 0);
        let destination =
            |id: usize| Destination { project: Some(format!("prj_{id}")), key: format!("pk_{id}"), token: format!("sk_{id}") };
        Arc::new(Target {
            mix: Mix::parse(mix).unwrap(),
            events: EventWriter::new("run", duplicates > 0),
            destinations: (0..projects).map(destination).collect(),
            spread,
            ledger: Ledger::new(projects, spread),
            batch,
            duplicates,
            expect: 202,
            host: "here:1".into(),
            base: "/base".into(),
            fixed: Vec::new(),
            next_event: AtomicU64::new(0),
        })
    }

    /// The head of a request, and its body, which is as long as the head says.
    fn parts(request: &[u8]) -> (String, Vec<u8>) {
        let at = memchr::memmem::find(request, b"\r\n\r\n").unwrap() + 4;
        let head = String::from_utf8(request[..at].to_vec()).unwrap();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).map_or(0, |text| text.parse().unwrap());
        assert_eq!(request.len() - at, length, "{head}");
        (head, request[at..].to_vec())
    }

    fn acknowledge(visitor: &mut LoadVisitor, exchange: Exchange, status: u16, body: &str) -> Option<u64> {
        visitor.acknowledge(exchange, status, body.as_bytes())
    }

    #[test]
    fn a_single_event_goes_to_its_project_and_counts_once_it_is_acknowledged() {
        let target = target("single=1", 3, 1, 0);
        let mut visitor = LoadVisitor::new(Arc::clone(&target), 0);
        let mut request = Vec::new();
        let mut sent = [0; 3];
        for number in 0..300 {
            let exchange = visitor.write(number, &mut request);
            let (head, body) = parts(&request);
            assert!(head.starts_with("POST /base/i HTTP/1.1\r\nhost: here:1\r\n"), "{head}");
            assert!(head.contains(&format!("x-service-pk: pk_{}\r\n", exchange.project)), "{head}");
            let event: Value = serde_json::from_slice(&body).unwrap();
            let user = EventWriter::user(exchange.first, target.spread.users_of(exchange.project));
            assert_eq!(event["user_id"], target.events.user_id(user));
            let recorded = acknowledge(&mut visitor, exchange, 202, "{\"status\":\"recorded\",\"duplicate\":false}");
            assert_eq!(recorded, Some(1));
            sent[exchange.project] += 1;
        }
        for (project, sent) in sent.into_iter().enumerate() {
            assert_eq!(target.ledger.of(project).0.events, sent);
        }
        let exchange = visitor.write(300, &mut request);
        let before = target.ledger.of(exchange.project);
        // Refused, so it was not recorded.
        assert_eq!(acknowledge(&mut visitor, exchange, 429, "{}"), None);
        assert_eq!(target.ledger.of(exchange.project), before);
        // Accepted, but the answer doesn't match the request: the outcome is unknown.
        assert_eq!(acknowledge(&mut visitor, exchange, 202, "{\"status\":\"dropped\"}"), None);
        assert_eq!(target.ledger.of(exchange.project), (before.0, true));
    }

    #[test]
    fn a_repeated_event_is_the_last_one_that_was_acknowledged() {
        let target = target("single=1", 2, 1, 50);
        let mut visitor = LoadVisitor::new(Arc::clone(&target), 0);
        let (mut request, mut last, mut repeats) = (Vec::new(), None, 0);
        for number in 0..200 {
            let exchange = visitor.write(number, &mut request);
            let body = parts(&request).1;
            if exchange.is_repeat {
                repeats += 1;
                assert_eq!(Some(body), last);
                assert_eq!(acknowledge(&mut visitor, exchange, 202, "{\"status\":\"recorded\"}"), None);
                assert_eq!(acknowledge(&mut visitor, exchange, 202, "{\"status\":\"duplicate\"}"), Some(0));
            } else {
                assert_eq!(acknowledge(&mut visitor, exchange, 202, "{\"status\":\"recorded\"}"), Some(1));
                last = Some(body);
            }
        }
        assert!((60..140).contains(&repeats), "{repeats}");
        let sum = |of: fn(&crate::ledger::Acknowledged) -> u64| (0..2).map(|at| of(&target.ledger.of(at).0)).sum::<u64>();
        assert_eq!((sum(|it| it.events), sum(|it| it.duplicates)), (200 - repeats, repeats));
    }

    #[test]
    fn a_batch_says_how_many_of_its_events_are_repeated() {
        let target = target("batch=1", 1, 100, 10);
        let mut visitor = LoadVisitor::new(Arc::clone(&target), 0);
        let mut request = Vec::new();
        let (mut recorded, mut orders) = (0, 0);
        for number in 0..20 {
            let exchange = visitor.write(number, &mut request);
            let (head, body) = parts(&request);
            assert!(head.starts_with("POST /base/i/batch "), "{head}");
            let body: Value = serde_json::from_slice(&body).unwrap();
            let events = body["events"].as_array().unwrap();
            assert_eq!(events.len(), 100);
            let distinct: std::collections::BTreeMap<&str, &Value> =
                events.iter().map(|event| (event["external_id"].as_str().unwrap(), event)).collect();
            let count = distinct.len() as u64;
            let answer = format!("{{\"recorded\":{count},\"duplicates\":{},\"dropped\":0,\"errors\":[]}}", 100 - count);
            assert_eq!(
                acknowledge(&mut visitor, exchange, 202, "{\"recorded\":100,\"duplicates\":0,\"dropped\":0,\"errors\":[]}")
                    .is_none(),
                count < 100
            );
            assert_eq!(acknowledge(&mut visitor, exchange, 202, &answer), Some(count));
            recorded += count;
            orders += distinct.values().filter(|event| event["name"] == "purchase").count() as u64;
        }
        let of = target.ledger.of(0).0;
        assert_eq!((of.events, of.orders, of.duplicates), (recorded, orders, 2_000 - recorded));
        assert!((1_700..1_900).contains(&recorded), "{recorded}");
    }

    #[test]
    fn questions_go_round_with_the_tag_of_their_last_answer() {
        let target = target("poll=1", 1, 1, 0);
        let mut visitor = LoadVisitor::new(Arc::clone(&target), 0);
        let mut request = Vec::new();
        for (at, (method, path)) in QUESTIONS.iter().enumerate() {
            let exchange = visitor.write(at as u64, &mut request);
            let (head, body) = parts(&request);
            let path = path.replace("{}", "prj_0");
            assert!(head.starts_with(&format!("{method} /base{path} HTTP/1.1\r\n")), "{head}");
            assert!(head.contains("authorization: Bearer sk_0\r\n") && !head.contains("if-none-match"), "{head}");
            assert_eq!(body, if *method == "POST" { &b"{}"[..] } else { b"" });
            visitor.etags[usize::try_from(exchange.first).unwrap()] = format!("\"{at}\"").into_bytes();
        }
        for at in 0..QUESTIONS.len() {
            visitor.write(0, &mut request);
            let (head, _) = parts(&request);
            assert!(head.contains(&format!("if-none-match: \"{at}\"\r\n")), "{head}");
        }
    }

    #[test]
    fn profiles_are_of_users_that_were_acknowledged() {
        let target = target("single=1,profile=1", 1, 1, 0);
        let mut visitor = LoadVisitor::new(Arc::clone(&target), 0);
        let mut request = Vec::new();
        // No user was sent, so an event comes instead.
        let exchange = visitor.write_kind(RequestKind::Profile, 0, &mut request);
        assert_eq!(exchange.kind, RequestKind::Single);
        acknowledge(&mut visitor, exchange, 202, "{\"status\":\"recorded\"}");
        for number in 1..100 {
            let exchange = visitor.write_kind(RequestKind::Profile, number, &mut request);
            assert!(exchange.kind == RequestKind::Profile && target.ledger.has_user(exchange.first));
            let (head, _) = parts(&request);
            let path = format!("GET /base/identities/profile?user_id={} ", target.events.user_id(exchange.first));
            assert!(head.starts_with(&path), "{head}");
        }
    }
}

//! Benchmarks folding for unusual histories, to show whether the time is linear or quadratic in the
//! number of events.
//!
//! Usage: `shapes [SHAPE] [EVENTS...]`; by default every shape at 20,000, 40,000 and 80,000 events.

#![allow(clippy::unwrap_used, reason = "a benchmark: a panic is a failure")]

use std::time::Instant as Clock;

use headcount_bench::{event, policy};
use headcount_domain::agent::Agent;
use headcount_domain::queries::{AttributionQuery, Dimension, EntityLevel, Query, Reader, TouchModel};
use headcount_domain::records::NoSource;
use headcount_domain::{Day, Event, Instant, KeyHasher, Project, Window};

/// Time between events: slightly more than the timeout of a session.
const APART_MS: usize = 31 * 60 * 1000;
const LAST_MS: usize = 1_780_272_000_000;

/// A shape: its name, and the function from an event's number and the number of events to the
/// event's body.
type Shape = (&'static str, fn(usize, usize) -> String);

const SHAPES: &[Shape] = &[
    ("a company, oldest first", |number, of| order(of - number, number % 1000)),
    ("a company, newest first", |number, _| order(number, number % 1000)),
    ("an identity, newest first", |number, _| order(number, 0)),
    ("an identity, orders first, then touches", |number, of| orders_then_touches(number, of)),
    ("an identity, a new address with each event", |number, of| identify(of - number, 0, number)),
    ("an address, a new identity with each event", |number, of| identify(of - number, number, 0)),
];

fn at_ms(before: usize) -> usize {
    LAST_MS - before * APART_MS
}

/// Returns an order with a source, `before` intervals before the last one.
fn order(before: usize, user: usize) -> String {
    let (at, source) = (at_ms(before), before % 20);
    format!(
        r#"{{"name":"order","user_id":"u{user}","timestamp":{at},"group_type":"company","group_id":"acme","value":12.5,"url":"https://a.example/?utm_source=s{source}"}}"#
    )
}

/// Returns the orders first, then a touch before each order, oldest first.
fn orders_then_touches(number: usize, of: usize) -> String {
    let half = of / 2;
    let at = at_ms(2 * (half - number % half));
    match number < half {
        true => format!(r#"{{"name":"order","user_id":"u","timestamp":{},"value":12.5}}"#, at + APART_MS),
        false => {
            format!(r#"{{"name":"visit","user_id":"u","timestamp":{at},"url":"https://a.example/?utm_source=s{}"}}"#, number % 20)
        }
    }
}

/// Returns an event that reports the e-mail address of a user.
fn identify(before: usize, user: usize, address: usize) -> String {
    let at = at_ms(before);
    format!(r#"{{"name":"identify","user_id":"u{user}","timestamp":{at},"metadata":{{"email":"a{address}@example.com"}}}}"#)
}

fn measure((name, body): &Shape, events: usize) {
    let (policy, agent, hasher) = (policy(), Agent::default(), KeyHasher::new([9; 16]));
    let events: Vec<Box<Event>> =
        (0..events).map(|number| event(&body(number, events), &policy, &agent, Instant(LAST_MS as i64))).collect();
    let mut project = Project::default();
    let began = Clock::now();
    for (event, position) in events.iter().zip(1..) {
        project.apply(event, position, &hasher, &NoSource).unwrap();
    }
    let took = began.elapsed();
    let window = Window { start: Day(0), end: Day(30_000) };
    let (model, level, dimension) = (TouchModel::FirstTouch, EntityLevel::Account, Dimension::Source);
    let query = AttributionQuery { model, level, dimension, window, limit: 100 };
    let began = Clock::now();
    let mut reader = Reader { id: policy.project, project: &mut project, hasher: &hasher, source: &NoSource };
    let rows = query.answer(&mut reader).unwrap().touches.rows.len();
    let per_event = took.as_secs_f64() * 1e6 / events.len() as f64;
    println!(
        "{name}: {} events in {took:.2?}, {per_event:.1} µs each; {rows} first touches in {:.0?}",
        events.len(),
        began.elapsed()
    );
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let sizes: Vec<usize> = arguments.iter().filter_map(|argument| argument.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![20_000, 40_000, 80_000] } else { sizes };
    let name = arguments.iter().find(|argument| argument.parse::<usize>().is_err());
    for shape in SHAPES.iter().filter(|(shape, _)| name.is_none_or(|name| shape.contains(name.as_str()))) {
        sizes.iter().for_each(|size| measure(shape, *size));
    }
}

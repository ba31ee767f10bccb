//! Compares the answers of the server with those of the naive model.
//!
//! Each project has its own model, since its answers depend on its own events only and the time of
//! the model is proportional to the number of events.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use chrono::{Days, NaiveDate};
use headcount_histories::Rng;
use headcount_model::{Ids, Json, Model, OrganizationSetup, ProjectSetup, Question, Sender, same, served};

use crate::error::{Result, harness, violation};
use crate::events::{PRIVATE_DAYS, ordinary_days, private_day};
use crate::http::{Connection, Request};
use crate::ledger::Ledger;
use crate::tenant::{RATES, TIMEZONE, Tenant};

/// How long an answer may be refused because a partition moves from one node to another.
const MOVED_WITHIN: Duration = Duration::from_secs(30);

/// The models of all projects.
#[derive(Debug)]
pub struct Oracle {
    models: Vec<Model>,
    /// Number of events of the ledger that the models have.
    fed: usize,
}

/// A query about a project, for the model and for the server.
struct Query {
    question: Question,
    path: String,
    body: Option<String>,
}

impl Oracle {
    /// Creates models without events.
    ///
    /// # Panics
    /// If `RATES` or `TIMEZONE` are invalid.
    #[must_use]
    pub fn new(tenant: &Tenant) -> Self {
        let Ok(Json::Object(rates)) = Json::parse(RATES) else { panic!("RATES is an object") };
        let organization = OrganizationSetup {
            timezone: TIMEZONE.parse().unwrap(),
            currency: "USD".to_owned(),
            fx_rates: served::rates(&rates),
        };
        let model = |currency: &str| {
            let mut model = Model::new(organization.clone());
            model.add_project("it", ProjectSetup { currency: currency.to_owned(), ..ProjectSetup::default() });
            model
        };
        Self { models: tenant.projects.iter().map(|project| model(project.currency)).collect(), fed: 0 }
    }

    /// Feeds new events of the ledger to the models. The server must have recorded all of them.
    ///
    /// # Errors
    /// A model refuses an event, which is a defect of the generator.
    pub fn feed(&mut self, ledger: &Ledger) -> Result<()> {
        for number in self.fed..ledger.len() {
            let model = &mut self.models[ledger.plan(number).project];
            let recorded = model.record("it", &ledger.body(number), now_ms(), &Sender::browser());
            recorded.map_err(|refused| harness(format!("the model refuses {}: {}", ledger.body(number), refused.param)))?;
        }
        self.fed = ledger.len();
        Ok(())
    }

    /// Compares every answer of each server with the models, and returns the number of answers of
    /// one.
    ///
    /// # Errors
    /// A violation if answers differ.
    pub async fn check(&self, addresses: &[SocketAddr], tenant: &Tenant, rng: &mut Rng) -> Result<usize> {
        let queries: Vec<Vec<Query>> = tenant.projects.iter().map(|project| queries(&project.id, rng)).collect();
        let expected: Vec<Vec<Json>> = std::thread::scope(|scope| {
            let work = self.models.iter().zip(&queries);
            let threads: Vec<_> = work
                .map(|(model, queries)| {
                    let answers = move || queries.iter().map(|query| model.answer(now_ms(), &query.question).body).collect();
                    scope.spawn(answers)
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("the model answers")).collect()
        });
        let mut differences = Vec::new();
        // The nodes of a cluster may move partitions between them at any time.
        let patience = if addresses.len() > 1 { MOVED_WITHIN } else { Duration::ZERO };
        let pairs = queries.iter().flatten().zip(expected.iter().flatten());
        for address in addresses {
            let mut connection = Connection::open(*address).await?;
            for (query, expected) in pairs.clone() {
                let got = ask(*address, &mut connection, tenant, query, patience).await?;
                if let Err(difference) = same(expected, &got, &mut Ids::default()) {
                    let body = query.body.as_deref().unwrap_or_default();
                    differences.push(format!("{address}: {} {body}: {difference}", query.path));
                }
            }
        }
        if differences.is_empty() {
            return Ok(pairs.count());
        }
        let shown = differences.iter().take(4).map(String::as_str).collect::<Vec<_>>().join("\n    ");
        let asked = pairs.count() * addresses.len();
        Err(violation(format!("{} of {asked} answers differ from the model's:\n    {shown}", differences.len())))
    }
}

/// Returns every answer of the server, with the request as text.
///
/// # Errors
/// A violation if a request fails.
pub async fn answers(address: SocketAddr, tenant: &Tenant, rng: &mut Rng) -> Result<Vec<(String, Json)>> {
    let mut connection = Connection::open(address).await?;
    let mut answers = Vec::new();
    for query in tenant.projects.iter().flat_map(|project| queries(&project.id, rng)) {
        let got = ask(address, &mut connection, tenant, &query, Duration::ZERO).await?;
        answers.push((format!("{} {}", query.path, query.body.unwrap_or_default()), got));
    }
    Ok(answers)
}

/// Asks for an answer, again while it is refused, for that long.
async fn ask(
    address: SocketAddr,
    connection: &mut Connection,
    tenant: &Tenant,
    query: &Query,
    patience: Duration,
) -> Result<Json> {
    let request = match &query.body {
        Some(body) => Request::with_body("POST", &query.path, &tenant.token, body),
        None => Request::get(&query.path, &tenant.token),
    };
    let began = Instant::now();
    loop {
        let response =
            connection.send(&request).await.map_err(|error| violation(format!("no response to {}: {error}", query.path)))?;
        match response.status {
            200 => return Ok(response.json()),
            503 if began.elapsed() < patience => {
                tokio::time::sleep(Duration::from_millis(50)).await;
                // The server closes a connection whose body it refused to read.
                *connection = Connection::open(address).await?;
            }
            status => return Err(violation(format!("{} answered {status}: {}", query.path, response.body))),
        }
    }
}

/// Returns queries of every operation: over all ordinary days, some of them, one of them, and all
/// private days.
fn queries(id: &str, rng: &mut Rng) -> Vec<Query> {
    let (first, last) = ordinary_days();
    let some = first + Days::new(rng.below(60) as u64);
    let one = first + Days::new(rng.below(90) as u64);
    let windows = [
        (first, last),
        (some, some + Days::new(rng.below(30) as u64)),
        (one, one),
        (private_day(0), private_day(PRIVATE_DAYS - 1)),
    ];
    let mut queries: Vec<Query> = windows.iter().flat_map(|window| window_queries(id, *window)).collect();
    queries.push(unique_users(id, (first, last), Some("checkout")));
    queries
}

fn window_queries(id: &str, window: (NaiveDate, NaiveDate)) -> [Query; 3] {
    let (start, end) = (window.0.to_string(), window.1.to_string());
    let revenue = |operation: &str| Query {
        question: Question::get(&format!("/projects/it/revenue/{operation}"), &[("start_date", &start), ("end_date", &end)]),
        path: format!("/projects/{id}/revenue/{operation}?start_date={start}&end_date={end}"),
        body: None,
    };
    [unique_users(id, window, None), revenue("metrics"), revenue("timeseries")]
}

fn unique_users(id: &str, (start, end): (NaiveDate, NaiveDate), event_name: Option<&str>) -> Query {
    const OPERATION: &str = "analytics/count-unique-users-per-day";
    let mut body = Json::object([("start_date", Json::from(start.to_string())), ("end_date", Json::from(end.to_string()))]);
    if let (Some(name), Json::Object(fields)) = (event_name, &mut body) {
        fields.insert("event_name".to_owned(), Json::from(name));
    }
    let text = body.to_string();
    let question = Question::post(&format!("/projects/it/{OPERATION}"), body);
    Query { question, path: format!("/projects/{id}/{OPERATION}"), body: Some(text) }
}

/// Returns the current time in milliseconds since 1970.
#[must_use]
pub fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

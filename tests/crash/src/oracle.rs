//! The naive model beside the server: the same questions to both.
//!
//! A project's answers need its own events only, so each project has a model of its own: working an answer out takes the model time
//! in proportion to its events.

use std::net::SocketAddr;

use chrono::{Days, NaiveDate};
use headcount_histories::Rng;
use headcount_model::{Ids, Json, Model, OrganizationSetup, ProjectSetup, Question, Sender, same, served};

use crate::events::{PRIVATE_DAYS, ordinary_days, private_day};
use crate::http::{Connection, Request};
use crate::ledger::Ledger;
use crate::trouble::{Result, harness, violation};
use crate::world::{RATES, TIMEZONE, World};

/// See the module.
#[derive(Debug)]
pub struct Oracle {
    models: Vec<Model>,
    /// How many events of the ledger the models have.
    fed: usize,
}

/// A question about a project, and what it is in HTTP.
struct Asked {
    question: Question,
    path: String,
    body: Option<String>,
}

impl Oracle {
    /// Models without events.
    ///
    /// # Panics
    /// If the constants are wrong.
    #[must_use]
    pub fn new(world: &World) -> Self {
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
        Self { models: world.projects.iter().map(|project| model(project.currency)).collect(), fed: 0 }
    }

    /// Feeds the models what the ledger has beyond the last time. All of it has to be recorded by now.
    ///
    /// # Errors
    /// The model refuses an event: the generator is wrong.
    pub fn feed(&mut self, ledger: &Ledger) -> Result<()> {
        for number in self.fed..ledger.len() {
            let model = &mut self.models[ledger.plan(number).project];
            let recorded = model.record("it", &ledger.body(number), now_ms(), &Sender::browser());
            recorded.map_err(|refused| harness(format!("the model refuses {}: {}", ledger.body(number), refused.param)))?;
        }
        self.fed = ledger.len();
        Ok(())
    }

    /// Compares every answer with the models'. Returns how many there were.
    ///
    /// # Errors
    /// A violation where they differ.
    pub async fn check(&self, address: SocketAddr, world: &World, rng: &mut Rng) -> Result<usize> {
        let asked: Vec<Vec<Asked>> = world.projects.iter().map(|project| questions(&project.id, rng)).collect();
        let expected: Vec<Vec<Json>> = std::thread::scope(|scope| {
            let works = self.models.iter().zip(&asked);
            let threads: Vec<_> = works
                .map(|(model, asked)| {
                    let answers = move || asked.iter().map(|asked| model.answer(now_ms(), &asked.question).body).collect();
                    scope.spawn(answers)
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("the model answers")).collect()
        });
        let mut connection = Connection::open(address).await?;
        let mut differences = Vec::new();
        let pairs = asked.iter().flatten().zip(expected.iter().flatten());
        for (asked, expected) in pairs.clone() {
            let got = ask(&mut connection, world, asked).await?;
            if let Err(difference) = same(expected, &got, &mut Ids::default()) {
                differences.push(format!("{} {}: {difference}", asked.path, asked.body.as_deref().unwrap_or_default()));
            }
        }
        if differences.is_empty() {
            return Ok(pairs.count());
        }
        let shown = differences.iter().take(4).map(String::as_str).collect::<Vec<_>>().join("\n    ");
        Err(violation(format!("{} of {} answers differ from the model's:\n    {shown}", differences.len(), pairs.count())))
    }
}

/// Every answer of the server, as text.
///
/// # Errors
/// A violation where there is none.
pub async fn answers(address: SocketAddr, world: &World, rng: &mut Rng) -> Result<Vec<(String, Json)>> {
    let mut connection = Connection::open(address).await?;
    let mut answers = Vec::new();
    for asked in world.projects.iter().flat_map(|project| questions(&project.id, rng)) {
        let got = ask(&mut connection, world, &asked).await?;
        answers.push((format!("{} {}", asked.path, asked.body.unwrap_or_default()), got));
    }
    Ok(answers)
}

async fn ask(connection: &mut Connection, world: &World, asked: &Asked) -> Result<Json> {
    let request = match &asked.body {
        Some(body) => Request::with_body("POST", &asked.path, &world.token, body),
        None => Request::get(&asked.path, &world.token),
    };
    let reply = connection.send(&request).await.map_err(|error| violation(format!("{} has no answer: {error}", asked.path)))?;
    if reply.status != 200 {
        return Err(violation(format!("{} answered {}: {}", asked.path, reply.status, reply.body)));
    }
    Ok(reply.json())
}

/// Every operation, over all ordinary days, some of them, one of them, and all private days.
fn questions(id: &str, rng: &mut Rng) -> Vec<Asked> {
    let (first, last) = ordinary_days();
    let some = first + Days::new(rng.below(60) as u64);
    let one = first + Days::new(rng.below(90) as u64);
    let windows = [
        (first, last),
        (some, some + Days::new(rng.below(30) as u64)),
        (one, one),
        (private_day(0), private_day(PRIVATE_DAYS - 1)),
    ];
    let mut questions: Vec<Asked> = windows.iter().flat_map(|window| of_window(id, *window)).collect();
    questions.push(unique_users(id, (first, last), Some("checkout")));
    questions
}

fn of_window(id: &str, window: (NaiveDate, NaiveDate)) -> [Asked; 3] {
    let (start, end) = (window.0.to_string(), window.1.to_string());
    let revenue = |operation: &str| Asked {
        question: Question::get(&format!("/projects/it/revenue/{operation}"), &[("start_date", &start), ("end_date", &end)]),
        path: format!("/projects/{id}/revenue/{operation}?start_date={start}&end_date={end}"),
        body: None,
    };
    [unique_users(id, window, None), revenue("metrics"), revenue("timeseries")]
}

fn unique_users(id: &str, (start, end): (NaiveDate, NaiveDate), event_name: Option<&str>) -> Asked {
    const OPERATION: &str = "analytics/count-unique-users-per-day";
    let mut body = Json::object([("start_date", Json::from(start.to_string())), ("end_date", Json::from(end.to_string()))]);
    if let (Some(name), Json::Object(fields)) = (event_name, &mut body) {
        fields.insert("event_name".to_owned(), Json::from(name));
    }
    let text = body.to_string();
    let question = Question::post(&format!("/projects/it/{OPERATION}"), body);
    Asked { question, path: format!("/projects/{id}/{OPERATION}"), body: Some(text) }
}

/// The time of day, in milliseconds since 1970.
#[must_use]
pub fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

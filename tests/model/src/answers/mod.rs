//! Questions and their answers.

mod aggregate;
mod artifact;
mod attribution;
mod chains;
mod cohorts;
mod companies;
mod events;
mod explain;
mod fields;
mod figures;
mod funnels;
mod goals;
mod groups;
mod identities;
mod intake;
mod journeys;
mod params;
mod retention;
mod revenue;
mod traffic;
mod unique_users;
mod whole_days;

use crate::facts::Facts;
use crate::frozen::Days;
use crate::json::Json;
use crate::model::Model;
use crate::subject::Method;
use crate::time::{Window, day_of};
use chrono::NaiveDate;
use chrono_tz::Tz;
use params::Params;

pub use artifact::artifact;
pub(crate) use attribution::{account_or_identity, touch};
pub(crate) use companies::id_name as company_id_name;
pub(crate) use identities::find as find_identities;

/// A read-only request. Its path names the project: `/projects/{shop}/revenue/metrics`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// `Get` or `Post`.
    pub method: Method,
    /// The path. `{…}` stands for the id of the project with this name, or for an id in an earlier
    /// answer.
    pub path: String,
    /// The fields of the query.
    pub query: Vec<(String, String)>,
    /// The body.
    pub body: Option<Json>,
}

impl Question {
    /// Creates a `GET` request.
    #[must_use]
    pub fn get(path: &str, query: &[(&str, &str)]) -> Question {
        let query = query.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        Question { method: Method::Get, path: path.to_owned(), query, body: None }
    }

    /// Creates a `POST` request.
    #[must_use]
    pub fn post(path: &str, body: Json) -> Question {
        Question { method: Method::Post, path: path.to_owned(), query: Vec::new(), body: Some(body) }
    }
}

/// An answer. Identifiers are [`Json::Id`]s; fields that the model can't derive (messages, ids of
/// requests) are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: Json,
}

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Wrong {
    /// 400, with the code and the field if the contract specifies them.
    Invalid { code: Option<&'static str>, param: Option<String> },
    /// 404
    NotFound,
}

impl Wrong {
    fn param(name: &str) -> Wrong {
        Wrong::Invalid { code: None, param: Some(name.to_owned()) }
    }

    fn unknown(name: &str) -> Wrong {
        Wrong::Invalid { code: Some("unknown_parameter"), param: Some(name.to_owned()) }
    }

    fn answer(self) -> Answer {
        let error = |kind: &str| Json::object([("error", Json::object([("type", Json::from(kind))]))]);
        let (code, param) = match self {
            Wrong::NotFound => {
                return Answer { status: 404, body: error("not_found") };
            }
            Wrong::Invalid { code, param } => (code, param),
        };
        let mut body = error("invalid_request");
        if let Json::Object(fields) = &mut body
            && let Some(Json::Object(error)) = fields.get_mut("error")
        {
            error.extend(code.map(|code| ("code".to_owned(), Json::from(code))));
            error.extend(param.map(|param| ("param".to_owned(), Json::from(param))));
        }
        Answer { status: 400, body }
    }
}

/// The inputs of an answer.
struct Asked<'a> {
    model: &'a Model,
    facts: Facts<'a>,
    timezone: Tz,
    now_ms: i64,
    today: NaiveDate,
}

impl Asked<'_> {
    /// Returns the day of an event.
    fn day(&self, index: usize) -> NaiveDate {
        day_of(self.facts.events[index].at_ms, self.timezone)
    }

    /// Returns the days of a project, frozen and live.
    fn days<'f>(&'f self, project: &'f str) -> Days<'f> {
        self.model.days(&self.facts, project)
    }

    /// Whether an event counts in organization-wide answers about a window: those know no days
    /// below a floor.
    fn is_kept_in(&self, index: usize, window: Window) -> bool {
        let floor = self.model.floor(&self.facts.events[index].project);
        window.holds(self.day(index)) && floor.is_none_or(|floor| self.day(index) >= floor)
    }

    /// Returns the latest floor of a project after the first day of a window, or null.
    fn complete_from(&self, window: Window) -> Json {
        let floors = self.model.projects.keys().filter_map(|project| self.model.floor(project));
        Json::from(floors.filter(|floor| *floor > window.first).max().map(|floor| floor.to_string()))
    }
}

/// Computes the answer.
///
/// # Panics If the model does not know the path.
pub(crate) fn answer(model: &Model, now_ms: i64, question: &Question) -> Answer {
    let timezone = model.organization.timezone;
    let asked = Asked { model, facts: model.facts(), timezone, now_ms, today: day_of(now_ms, timezone) };
    let path: Vec<&str> = question.path.split('/').skip(1).collect();
    let params = Params::of(question);
    let answered = match path[..] {
        ["projects", project, operation @ ("events" | "explain" | "intake")] => in_project(&asked, project, operation, params),
        ["projects", project, "analytics", "funnel", "people"] => in_project(&asked, project, "people", params),
        ["projects", project, "analytics" | "revenue", operation] => in_project(&asked, project, operation, params),
        ["identities", "profile"] => identities::profile(&asked, params),
        ["identities", "referrers"] => identities::referrers(&asked, params),
        ["identities", "top-pages"] => identities::top_pages(&asked, params),
        ["identities", "top"] => identities::top(&asked, params),
        ["companies", "lookup"] => companies::lookup(&asked, params),
        ["companies", "top"] => companies::top(&asked, params),
        ["companies", company, "metrics"] => companies::metrics(&asked, unbraced(company), params),
        ["companies", company, "top-users"] => companies::top_users(&asked, unbraced(company), params),
        ["groups", "metrics"] => groups::metrics(&asked, params),
        ["groups", "top"] => groups::top(&asked, params),
        _ => panic!("the model has no {}", question.path),
    };
    match answered {
        Ok(body) => Answer { status: 200, body },
        Err(wrong) => wrong.answer(),
    }
}

fn in_project(asked: &Asked<'_>, project: &str, operation: &str, params: Params) -> Result<Json, Wrong> {
    let project = unbraced(project);
    if !asked.model.projects.contains_key(project) {
        return Err(Wrong::NotFound);
    }
    match operation {
        "events" => events::list(asked, project, params),
        "explain" => explain::explain(asked, project, params),
        "intake" => intake::intake(asked, project, params),
        "aggregate" => aggregate::aggregate(asked, project, params),
        "report" => figures::report(asked, project, params),
        "breakdown" => figures::breakdown(asked, project, params),
        "goals" => goals::goals(asked, project, params),
        "funnel" => funnels::funnel(asked, project, params),
        "people" => funnels::people(asked, project, params),
        "journeys" => journeys::journeys(asked, project, params),
        "traffic" => traffic::traffic(asked, project, params),
        "count-unique-users-per-day" => unique_users::count(asked, project, params),
        "fields" => fields::list(asked, project, params),
        "retention" => retention::retention(asked, project, params),
        "metrics" => revenue::metrics(asked, project, params),
        "timeseries" => revenue::timeseries(asked, project, params),
        "by-attribution" => attribution::by_attribution(asked, project, params),
        "ltv-cohorts" => cohorts::ltv_cohorts(asked, project, params),
        _ => panic!("the model has no {operation}"),
    }
}

/// Converts `{shop}` to `shop`.
fn unbraced(name: &str) -> &str {
    name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(name)
}

/// Sorts rows by their main figure, descending, and ties by name, ascending in byte order.
fn ranked<Row, Figure: Ord, Name: Ord>(
    mut rows: Vec<Row>,
    figure: impl Fn(&Row) -> Figure,
    name: impl Fn(&Row) -> Name,
) -> Vec<Row> {
    rows.sort_by(|left, right| figure(right).cmp(&figure(left)).then_with(|| name(left).cmp(&name(right))));
    rows
}

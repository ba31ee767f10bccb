//! Answers of the domain, printed as the HTTP interface prints them.

use std::future::Future;
use std::str::FromStr;
use std::task::{Context, Poll, Waker};

use headcount_domain::figures::ComparedWindows;
use headcount_domain::queries::{
    AttributionQuery, CohortsQuery, CompanyMetrics, CountOf, GroupMetrics, IdentityRanking, IdentitySelector, IntakeQuery,
    RetentionQuery, company_by_domain, company_by_id, company_top_users, counts, group_metrics, profile, top_companies,
    top_groups,
};
use headcount_domain::{Currency, Day, Instant, Window};
use headcount_histories::Step;
use headcount_model::{Json, Question};

use super::shown::{Refused, number, text, unconverted};
use super::{Folded, Held, reports, scanned};

/// Whether the domain answers this.
pub(crate) fn is_answered(step: &Step) -> bool {
    let Step::Ask(question) = step else { return true };
    // What a parameter may be is the HTTP interface's affair.
    let known = |name: &str| {
        matches!(
            name,
            "start_date"
                | "end_date"
                | "model"
                | "level"
                | "dimension"
                | "limit"
                | "range_days"
                | "email"
                | "user_id"
                | "domain"
                | "group_type"
                | "group_key"
                | "event_name"
                | "filters"
                | "interval"
                | "cohorts"
                | "sort"
                | "group_by"
                | "metadata_field"
                | "sum_metadata_field"
        )
    };
    let fields = match &question.body {
        Some(Json::Object(fields)) => fields.keys().all(|name| known(name)),
        _ => true,
    };
    let by_engine = ["/events", "/explain", "/breakdown"].iter().any(|operation| question.path.ends_with(operation));
    fields && question.query.iter().all(|(name, _)| known(name)) && !by_engine && !reports::reads_events(question)
}

/// Runs what never waits.
fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("nothing to wait for"),
    }
}

struct Params<'q>(&'q Question);

impl Params<'_> {
    fn text(&self, name: &str) -> Option<String> {
        let in_body = self.0.body.as_ref().and_then(|body| body.field(name).text().map(str::to_owned));
        in_body.or_else(|| self.0.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone()))
    }

    fn word<T: FromStr + Default>(&self, name: &str) -> Result<T, Refused> {
        self.text(name).map_or(Ok(T::default()), |text| text.parse().map_err(|_| Refused(400)))
    }

    fn count(&self, name: &str, most: usize, default: usize) -> Result<usize, Refused> {
        let Some(text) = self.text(name) else { return Ok(default) };
        text.parse().ok().filter(|count| (1..=most).contains(count)).ok_or(Refused(400))
    }

    fn window(&self, held: &Held, now: Instant) -> Result<Window, Refused> {
        let (start, end) = (self.text("start_date"), self.text("end_date"));
        let window = Window::resolve(start.as_deref(), end.as_deref(), held.policy.timezone, now);
        window.map_err(|_| Refused(400))
    }

    fn range(&self, held: &Held, now: Instant) -> Result<Window, Refused> {
        let days = self.count("range_days", 365, 30)?;
        Ok(Window::last_days(u32::try_from(days).unwrap(), held.policy.timezone, now))
    }
}

pub(crate) fn ask(folded: &mut Folded, question: &Question) -> (u16, Json) {
    match answer(folded, question) {
        Ok(body) => (200, with_complete_from(folded, question, body)),
        Err(Refused(status)) => {
            let kind = if status == 404 { "not_found" } else { "invalid_request" };
            (status, Json::object([("error", Json::object([("type", Json::from(kind))]))]))
        }
    }
}

/// Adds what every organization-wide answer has.
fn with_complete_from(folded: &Folded, question: &Question, body: Json) -> Json {
    let Json::Object(mut fields) = body else { return body };
    if !question.path.starts_with("/projects/") {
        let any = folded.projects.values().next().unwrap().lock().unwrap().policy.timezone;
        let params = Params(question);
        let window = match question.path.starts_with("/identities/") && question.path != "/identities/top" {
            true => Window::resolve(params.text("start_date").as_deref(), params.text("end_date").as_deref(), any, folded.now)
                .unwrap(),
            false => {
                Window::last_days(u32::try_from(params.count("range_days", 365, 30).unwrap_or(30)).unwrap(), any, folded.now)
            }
        };
        fields.insert("complete_from".to_owned(), complete_from(folded, window));
    }
    Json::Object(fields)
}

fn answer(folded: &mut Folded, question: &Question) -> Result<Json, Refused> {
    let params = Params(question);
    if let Some(rest) = question.path.strip_prefix("/projects/{") {
        let (project, operation) = rest.split_once("}/").unwrap();
        let now = folded.now;
        return of_project(folded.projects.get_mut(project).unwrap().get_mut().unwrap(), operation, &params, now);
    }
    let path: Vec<&str> = question.path.split('/').skip(1).collect();
    let any = folded.projects.values().next().unwrap();
    let (window, range, currency) = {
        let held = any.lock().unwrap();
        (params.window(&held, folded.now), params.range(&held, folded.now), held.policy.organization_currency)
    };
    match path[..] {
        ["identities", "top"] => top_identities(folded, &params, range?, currency),
        ["identities", operation] => of_identity(folded, operation, &params, window?),
        ["companies", "lookup"] => {
            let (range, domain) = (range?, params.text("domain").ok_or(Refused(400))?);
            company(currency, block_on(company_by_domain(folded, &domain, range)).unwrap())
        }
        ["companies", "top"] => {
            let limit = params.count("limit", 100, 20)?;
            let top = block_on(top_companies(folded, range?, limit)).unwrap();
            let row = |row: &headcount_domain::queries::TopCompany| {
                Json::object([
                    ("company_id", text(&row.company_id)),
                    ("name", Json::from(row.name.clone())),
                    ("domain", Json::from(row.domain.clone())),
                    ("events", number(row.events)),
                    ("users", number(row.users)),
                    ("revenue", number(row.revenue)),
                    ("last_seen", text(&row.last_seen)),
                ])
            };
            Ok(list("companies", top.rows.iter().map(row), top.truncated))
        }
        ["companies", id, "metrics"] => company(currency, block_on(company_by_id(folded, id, range?)).unwrap()),
        ["companies", id, "top-users"] => {
            let limit = params.count("limit", 100, 20)?;
            let users = block_on(company_top_users(folded, id, range?, limit)).unwrap().ok_or(Refused(404))?;
            let row = |row: &headcount_domain::queries::TopUser| {
                Json::object([
                    ("resolved_identifier", text(&row.resolved_identifier)),
                    ("identity_id", text(&row.identity_id)),
                    ("user_id", Json::from(row.user_id.clone())),
                    ("email", Json::from(row.email.clone())),
                    ("events", number(row.events)),
                    ("last_seen", text(&row.last_seen)),
                ])
            };
            Ok(list("users", users.rows.iter().map(row), users.truncated))
        }
        ["groups", operation] => of_group(folded, operation, &params, range?),
        _ => panic!("{} is not asked here", question.path),
    }
}

fn top_identities(folded: &Folded, params: &Params<'_>, range: Window, currency: Currency) -> Result<Json, Refused> {
    let (order, limit) = (params.word("sort")?, params.count("limit", 100, 20)?);
    let mut ranking = IdentityRanking::new(range, order, limit);
    block_on(ranking.add(folded, &scanned::active_identities(folded, range))).unwrap();
    let top = ranking.finish();
    let row = |row: &headcount_domain::queries::TopIdentity| {
        Json::object([
            ("identity_id", text(&row.identity_id)),
            ("resolved_identifier", text(&row.resolved_identifier)),
            ("user_id", Json::from(row.user_id.clone())),
            ("email", Json::from(row.email.clone())),
            ("events", number(row.events)),
            ("revenue", number(row.revenue)),
            ("last_seen", text(&row.last_seen)),
        ])
    };
    let Json::Object(mut body) = list("identities", top.rows.iter().map(row), top.truncated) else {
        unreachable!("a list is in an object")
    };
    body.insert("currency".to_owned(), text(&currency));
    Ok(Json::Object(body))
}

fn of_identity(folded: &Folded, operation: &str, params: &Params<'_>, window: Window) -> Result<Json, Refused> {
    let who = match (params.text("email"), params.text("user_id")) {
        (Some(email), None) => IdentitySelector::Email(email),
        (None, Some(user)) => IdentitySelector::User(user),
        _ => return Err(Refused(400)),
    };
    let (of, many, one) = match operation {
        "profile" => {
            let profile = block_on(profile(folded, &who, window)).unwrap().ok_or(Refused(404))?;
            return Ok(Json::object([
                ("identity_id", text(&profile.identity_id)),
                ("events", number(profile.events)),
                ("pageviews", number(profile.pageviews)),
                ("sessions", number(profile.sessions)),
                ("duration_avg_sec", number(profile.duration_avg_sec)),
                ("duration_p90_sec", number(profile.duration_p90_sec)),
                ("bounce_rate", number(profile.bounce_rate)),
                ("active_days", number(profile.active_days)),
                ("first_seen", text(&profile.first_seen)),
                ("last_seen", text(&profile.last_seen)),
                ("revenue", number(profile.revenue)),
            ]));
        }
        "referrers" => (CountOf::Referrers, "referrers", "referrer"),
        _ => (CountOf::Pages, "pages", "url"),
    };
    let limit = params.count("limit", 50, 10)?;
    let counts = block_on(counts(folded, &who, of, window, limit)).unwrap().ok_or(Refused(404))?;
    let row = |(name, count): &(String, u64)| Json::object([(one, text(name)), ("count", number(count))]);
    let rows = Json::list(counts.counts.rows.iter().map(row));
    Ok(Json::object([
        ("identity_id", text(&counts.identity_id)),
        (many, rows),
        ("truncated", Json::from(counts.counts.truncated)),
    ]))
}

fn of_group(folded: &Folded, operation: &str, params: &Params<'_>, range: Window) -> Result<Json, Refused> {
    let kind = params.text("group_type").ok_or(Refused(400))?;
    if kind == "company" || !headcount_domain::intake::admission::is_group_type(&kind) {
        return Err(Refused(400));
    }
    let row = |row: &GroupMetrics| {
        Json::object([
            ("group_type", text(&row.group_type)),
            ("group_key", text(&row.group_key)),
            ("name", Json::from(row.name.clone())),
            ("events", number(row.events)),
            ("users", number(row.users)),
            ("last_seen", text(&row.last_seen)),
        ])
    };
    if operation == "metrics" {
        let key = params.text("group_key").ok_or(Refused(400))?;
        return block_on(group_metrics(folded, &kind, &key, range)).unwrap().as_ref().map(row).ok_or(Refused(404));
    }
    let top = block_on(top_groups(folded, &kind, range, params.count("limit", 100, 20)?)).unwrap();
    Ok(list("groups", top.rows.iter().map(row), top.truncated))
}

/// The latest floor of a project after the first day of a window.
fn complete_from(folded: &Folded, window: Window) -> Json {
    let floors = folded.projects.values().filter_map(|held| held.lock().unwrap().state.floor());
    Json::from(floors.filter(|floor| *floor > window.start).max().map(|floor| floor.to_string()))
}

fn company(currency: Currency, metrics: Option<CompanyMetrics>) -> Result<Json, Refused> {
    let company = metrics.ok_or(Refused(404))?;
    Ok(Json::object([
        ("company_id", text(&company.company_id)),
        ("name", Json::from(company.name.clone())),
        ("domain", Json::from(company.domain.clone())),
        ("events", number(company.events)),
        ("users", number(company.users)),
        ("sessions", number(company.sessions)),
        ("revenue", number(company.revenue)),
        ("orders", number(company.orders)),
        ("currency", text(&currency)),
        ("first_seen", text(&company.first_seen)),
        ("last_seen", text(&company.last_seen)),
    ]))
}

fn of_project(held: &mut Held, operation: &str, params: &Params<'_>, now: Instant) -> Result<Json, Refused> {
    if scanned::needs_events(params.0) {
        let window = params.window(held, now)?.above(held.state.floor(), params.text("start_date").is_some());
        return scanned::answer(held, params.0, window.map_err(|_| Refused(400))?);
    }
    let currency = Json::from(held.policy.currency.as_str());
    match operation {
        "revenue/by-attribution" => {
            let window = params.window(held, now)?;
            let limit = params.count("limit", 100, 20)?;
            let (model, level, dimension) = (params.word("model")?, params.word("level")?, params.word("dimension")?);
            let answer = held.ask(&AttributionQuery { model, level, dimension, window, limit }).unwrap();
            let row = |row: &headcount_domain::queries::TouchRevenue| {
                Json::object([
                    ("dimension", text(&row.dimension)),
                    ("revenue", number(row.revenue)),
                    ("orders", number(row.orders)),
                ])
            };
            let Json::Object(mut body) = list("rows", answer.touches.rows.iter().map(row), answer.touches.truncated) else {
                unreachable!("a list is in an object")
            };
            body.extend([("currency".to_owned(), currency), ("unconverted".to_owned(), unconverted(&answer.unconverted))]);
            Ok(Json::Object(body))
        }
        "revenue/ltv-cohorts" => {
            let (level, limit) = (params.word("level")?, params.count("limit", 60, 24)?);
            let answer = held.ask(&CohortsQuery { level, limit }).unwrap();
            let row = |row: &headcount_domain::queries::Cohort| {
                Json::object([
                    ("cohort", text(&row.month)),
                    ("entities", number(row.entities)),
                    ("revenue", number(row.revenue)),
                    ("orders", number(row.orders)),
                    ("ltv", number(row.ltv)),
                ])
            };
            let Json::Object(mut body) = list("cohorts", answer.cohorts.rows.iter().map(row), answer.cohorts.truncated) else {
                unreachable!("a list is in an object")
            };
            body.extend([("currency".to_owned(), currency), ("unconverted".to_owned(), unconverted(&answer.unconverted))]);
            Ok(Json::Object(body))
        }
        "analytics/retention" => retention(held, params, now),
        "analytics/report" => {
            let windows = ComparedWindows { window: params.window(held, now)?, previous: None };
            Ok(reports::report(held, windows, params.word("interval")?, now))
        }
        "analytics/traffic" => {
            let (window, limit) = (params.window(held, now)?, params.count("limit", 1_000, 100)?);
            Ok(reports::traffic(held, window, limit))
        }
        "intake" => {
            let (window, timezone) = (params.range(held, now)?, held.policy.timezone);
            let intake = held.ask(&IntakeQuery { window, timezone }).unwrap();
            assert_eq!(intake.last, held.log.iter().map(|(event, _)| event.received).max());
            Ok(Json::object([("recorded", number(intake.recorded)), ("without_consent", number(intake.without_consent))]))
        }
        _ => of_days(held, operation, params.window(held, now)?),
    }
}

fn retention(held: &mut Held, params: &Params<'_>, now: Instant) -> Result<Json, Refused> {
    let (interval, cohorts) = (params.word("interval")?, params.count("cohorts", 60, 12)?);
    let (today, timezone) = (held.policy.timezone.day_of(now), held.policy.timezone.name());
    let answer = held.ask(&RetentionQuery { interval, cohorts: u8::try_from(cohorts).unwrap(), today }).unwrap();
    let row = |row: &headcount_domain::queries::RetentionCohort| {
        Json::object([
            ("cohort", text(&row.cohort)),
            ("users", number(row.users)),
            ("returned", Json::list(row.returned.iter().map(number))),
        ])
    };
    let Json::Object(mut body) = list("cohorts", answer.rows.iter().map(row), answer.truncated) else {
        unreachable!("a list is in an object")
    };
    body.extend([("interval".to_owned(), text(&interval)), ("timezone".to_owned(), Json::from(timezone))]);
    Ok(Json::Object(body))
}

fn of_days(held: &Held, operation: &str, window: Window) -> Result<Json, Refused> {
    let currency = Json::from(held.policy.currency.as_str());
    Ok(match operation {
        "analytics/count-unique-users-per-day" => {
            let users = held.state.unique_users(window);
            let day = |(day, users): &(Day, u64)| Json::object([("day", text(day)), ("unique_users", number(users))]);
            Json::object([
                ("series", Json::list(users.series.iter().map(day))),
                ("total_unique_users", number(users.total)),
                ("start_date", text(&window.start)),
                ("end_date", text(&window.end)),
                ("timezone", Json::from(held.policy.timezone.name())),
            ])
        }
        "revenue/metrics" => {
            let metrics = held.state.revenue_metrics(window);
            Json::object([
                ("total_revenue", number(metrics.total_revenue)),
                ("orders", number(metrics.orders)),
                ("aov", number(metrics.aov)),
                ("arpa", number(metrics.arpa)),
                ("arpu", number(metrics.arpu)),
                ("currency", currency),
                ("unconverted", unconverted(&metrics.unconverted)),
            ])
        }
        "revenue/timeseries" => {
            let series = held.state.revenue_series(window);
            let day = |(day, revenue, orders): &(Day, _, i64)| {
                Json::object([("day", text(day)), ("revenue", number(revenue)), ("orders", number(orders))])
            };
            Json::object([
                ("currency", currency),
                ("series", Json::list(series.series.iter().map(day))),
                ("unconverted", unconverted(&series.unconverted)),
            ])
        }
        other => panic!("{other} is not asked here"),
    })
}

fn list(name: &'static str, rows: impl Iterator<Item = Json>, truncated: bool) -> Json {
    Json::object([(name, Json::list(rows)), ("truncated", Json::from(truncated))])
}

//! The worked cases: small histories with the expected answers of headcount, computed by hand.

use crate::compare::{Ids, same};
use crate::json::Json;
use crate::subject::{Credential, Method, Request, Subject};
use crate::time::{day_of, shown};
use chrono::{Days, NaiveTime, TimeZone};
use chrono_tz::Tz;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

/// The number of attempts of a question with `until`, and the pause between them.
const PATIENCE: (usize, Duration) = (100, Duration::from_millis(100));

/// A case file.
#[derive(Clone, Debug)]
pub struct Case {
    /// The name of the file, without its extension.
    pub name: String,
    content: Json,
}

/// The place where the result of a case differs.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The case.
    pub case: String,
    /// `events[2]`, `queries[0]`, …
    pub place: String,
    /// The request, and how the answer differs.
    pub what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.case, self.place, self.what)
    }
}

/// Reads all cases of a directory, in order of name.
///
/// # Panics If a file can't be read, or is not JSON.
#[must_use]
pub fn read_all(directory: &Path) -> Vec<Case> {
    let files = std::fs::read_dir(directory).expect("the directory of cases");
    let paths = files.map(|file| file.expect("a file").path());
    let mut cases: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .map(|path| {
            let text = std::fs::read_to_string(&path).expect("a case");
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            Case { name, content: Json::parse(&text).expect("JSON") }
        })
        .collect();
    cases.sort_by(|left, right| left.name.cmp(&right.name));
    cases
}

/// Runs a case on a subject without events.
///
/// # Errors The first answer that differs from the expected one.
pub fn run(case: &Case, subject: &mut dyn Subject) -> Result<(), Failure> {
    let organization = case.content.field("organization");
    let timezone = organization.field("timezone").text().unwrap_or("UTC").parse().expect("an IANA timezone");
    let now_ms = subject.now_ms();
    let mut run = Run { case, subject, timezone, now_ms, keys: BTreeMap::new(), kept: BTreeMap::new() };
    run.setup(organization)?;
    for (index, event) in case.content.field("events").items().iter().enumerate() {
        let sent = run.event(event);
        let recorded = Json::object([("status", Json::from("recorded"))]);
        run.expect(&format!("events[{index}]"), &sent, 202, &recorded, 1)?;
    }
    for (index, query) in case.content.field("queries").items().iter().enumerate() {
        run.query(&format!("queries[{index}]"), query)?;
    }
    Ok(())
}

struct Run<'a> {
    case: &'a Case,
    subject: &'a mut dyn Subject,
    timezone: Tz,
    now_ms: i64,
    /// The public keys of projects, by project name.
    keys: BTreeMap<String, String>,
    /// The values of `{…}`.
    kept: BTreeMap<String, String>,
}

impl Run<'_> {
    fn setup(&mut self, organization: &Json) -> Result<(), Failure> {
        let patch = Request::owner(Method::Patch, "/organization", &organization.to_string());
        self.expect("organization", &patch, 200, &Json::object([]), 1)?;
        for project in self.case.content.field("projects").items() {
            let create = Request::owner(Method::Post, "/projects", &project.to_string());
            let made = self.expect("projects", &create, 201, &Json::object([]), 1)?;
            let text = |name: &str| made.field(name).text().unwrap_or_default().to_owned();
            let name = project.field("name").text().expect("a name").to_owned();
            self.keys.insert(name.clone(), text("public_key"));
            self.kept.insert(name, text("project_id"));
        }
        Ok(())
    }

    fn event(&self, event: &Json) -> Request {
        let key = self.keys[event.field("project").text().expect("a project")].clone();
        Request {
            method: Method::Post,
            path: "/track".to_owned(),
            query: Vec::new(),
            body: Some(self.resolved(event.field("body")).to_string()),
            credential: Credential::PublicKey(key),
            headers: Vec::new(),
        }
    }

    fn query(&mut self, place: &str, query: &Json) -> Result<(), Failure> {
        let request = if *query.field("project") == Json::Null { self.question(query) } else { self.event(query) };
        let status = query.field("status").number().and_then(|status| u16::try_from(status.whole()?).ok());
        let expected = self.resolved(query.field("expect"));
        let tries = if *query.field("until") == Json::Bool(true) { PATIENCE.0 } else { 1 };
        let got = self.expect(place, &request, status.unwrap_or(200), &expected, tries)?;
        if let Json::Object(keep) = query.field("keep") {
            for (name, path) in keep {
                let found = path.text().and_then(|path| got.at(path)).and_then(Json::text);
                let found = found.ok_or_else(|| self.failure(place, format!("nothing at {path} of {got}")))?;
                self.kept.insert(name.clone(), found.to_owned());
            }
        }
        Ok(())
    }

    fn question(&self, query: &Json) -> Request {
        let fields = match query.field("query") {
            Json::Object(fields) => fields.clone(),
            _ => BTreeMap::new(),
        };
        let shown = |value: &Json| match self.resolved(value) {
            Json::Text(text) => text,
            other => other.to_string(),
        };
        let body = query.field("body");
        Request {
            method: match query.field("method").text() {
                Some("GET") => Method::Get,
                Some("POST") => Method::Post,
                Some("PATCH") => Method::Patch,
                other => panic!("no method {other:?}"),
            },
            path: self.filled(query.field("path").text().expect("a path")),
            query: fields.iter().map(|(name, value)| (name.clone(), shown(value))).collect(),
            body: (*body != Json::Null).then(|| self.resolved(body).to_string()),
            credential: Credential::Owner,
            headers: Vec::new(),
        }
    }

    /// Sends a request until the answer is as expected, at most `tries` times.
    fn expect(&mut self, place: &str, request: &Request, status: u16, expected: &Json, tries: usize) -> Result<Json, Failure> {
        // An empty `expect` accepts any answer, not only an empty object.
        let anything = *expected == Json::object([]);
        let mut tried = 0;
        loop {
            let (got_status, got) = self.subject.request(request);
            let difference = match got_status == status {
                false => Some(format!("expected status {status}, got {got_status}")),
                true if anything => None,
                true => same(expected, &got, &mut Ids::default()).err().map(|difference| difference.to_string()),
            };
            let Some(difference) = difference else {
                return Ok(got);
            };
            tried += 1;
            if tried >= tries {
                return Err(self.failure(place, format!("{difference}\n  asked {request:?}\n  answered {got}")));
            }
            sleep(PATIENCE.1);
        }
    }

    fn failure(&self, place: &str, what: String) -> Failure {
        Failure { case: self.case.name.clone(), place: place.to_owned(), what }
    }

    /// Resolves `{…}` and relative times in a value of the file.
    fn resolved(&self, value: &Json) -> Json {
        match value {
            Json::Text(text) => Json::from(self.filled(text)),
            Json::List(items) => Json::list(items.iter().map(|item| self.resolved(item))),
            Json::Object(fields) if fields.contains_key("days_ago") => self.relative(value),
            Json::Object(fields) => Json::Object(fields.iter().map(|(key, value)| (key.clone(), self.resolved(value))).collect()),
            other => other.clone(),
        }
    }

    fn relative(&self, value: &Json) -> Json {
        let days = value.field("days_ago").number().and_then(|days| u64::try_from(days.whole()?).ok());
        let day = day_of(self.now_ms, self.timezone) - Days::new(days.expect("a number of days"));
        let Some(time) = value.field("time").text() else {
            return Json::from(day.to_string());
        };
        let time = NaiveTime::parse_from_str(time, "%H:%M:%S").expect("a time of day");
        let at = self.timezone.from_local_datetime(&day.and_time(time)).earliest().expect("a time that exists");
        shown(at.timestamp_millis())
    }

    fn filled(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, value) in &self.kept {
            text = text.replace(&format!("{{{name}}}"), value);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::served::ServedModel;
    use crate::time::instant_ms;

    fn cases() -> (Vec<Case>, i64) {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cases");
        (read_all(&directory), instant_ms("2026-11-20T15:00:00Z").unwrap())
    }

    #[test]
    fn another_number_fails() {
        let (cases, now_ms) = cases();
        let mut refund = cases.into_iter().find(|case| case.name == "04-refund").unwrap();
        let text = refund.content.to_string().replace(r#""total_revenue": 90"#, r#""total_revenue": 90.000001"#);
        refund.content = Json::parse(&text).unwrap();
        let failure = run(&refund, &mut ServedModel::new(now_ms)).unwrap_err();
        assert_eq!(failure.place, "queries[0]");
        assert!(failure.what.starts_with("total_revenue: expected 90.000001, got 90"), "{failure}");
    }

    #[test]
    fn the_model_answers_all_cases() {
        let (cases, now_ms) = cases();
        assert!(cases.len() >= 18);
        let failures: Vec<_> = cases
            .iter()
            .filter_map(|case| run(case, &mut ServedModel::new(now_ms)).err())
            .map(|failure| failure.to_string())
            .collect();
        assert!(failures.is_empty(), "{}", failures.join("\n"));
    }
}

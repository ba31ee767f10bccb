//! Properties of events by name, and filters on them.

use super::params::Params;
use super::{Asked, Wrong, ranked};
use crate::acquisition::{channel, origin, value};
use crate::decimal::Decimal;
use crate::event::Event;
use crate::json::Json;
use crate::time::Window;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the property with this name: built-in, or `metadata.<path>`. `None` for unknown names.
pub(super) fn property(asked: &Asked<'_>, index: usize, name: &str) -> Option<Json> {
    match name.strip_prefix("metadata.") {
        Some(path) => Some(scalar(metadata(&asked.facts.events[index], path))),
        None => of_session(asked, index, name).or_else(|| built_in(asked, index, name)),
    }
}

/// Returns a field of an event's session that only questions about sessions know; `None` for other
/// names.
fn of_session(asked: &Asked<'_>, index: usize, name: &str) -> Option<Json> {
    let session = asked.facts.session(index);
    let from = session.filter(|_| has_entry(asked, index)).map(|session| origin(asked.facts.brought_by(session)));
    Some(Json::from(match name {
        "source" => from.map(|origin| origin.source),
        "medium" => from.map(|origin| origin.medium),
        "campaign" => from.map(|origin| origin.campaign),
        "exit_url" => session.and_then(|session| {
            let floor = asked.model.floor(&asked.facts.events[index].project);
            let kept = session.events.iter().rev().filter(|&&at| floor.is_none_or(|floor| asked.day(at) >= floor));
            kept.filter_map(|&at| asked.facts.events[at].url.as_ref()).map(|url| url.page.clone()).next()
        }),
        _ => return None,
    }))
}

/// Returns the value as filters and groups see it: objects and lists are null.
pub(super) fn scalar(value: Json) -> Json {
    match value {
        Json::Object(_) | Json::List(_) => Json::Null,
        scalar => scalar,
    }
}

/// Returns the metadata at a dotted path, trying the whole path as a key first.
pub(super) fn metadata(event: &Event, path: &str) -> Json {
    let Json::Object(fields) = &event.metadata else {
        return Json::Null;
    };
    let whole = fields.get(path);
    whole.or_else(|| path.split('.').try_fold(&event.metadata, nested)).cloned().unwrap_or(Json::Null)
}

/// Lists the properties in the metadata of the events of a window.
pub(super) fn list(asked: &Asked<'_>, project: &str, mut params: Params) -> Result<Json, Wrong> {
    let window = params.event_window(asked, project)?;
    let limit = params.count("limit", 1..=1_000, 1_000)?;
    params.done()?;

    let mut fields: BTreeMap<String, (usize, BTreeSet<&str>)> = BTreeMap::new();
    for index in asked.facts.of_project(project).filter(|&index| window.holds(asked.day(index))) {
        let event = &asked.facts.events[index];
        let mut paths = BTreeSet::new();
        leaves(&event.metadata, None, &mut paths);
        for path in paths.into_iter().filter(|path| !path.is_empty()) {
            let kind = match scalar(metadata(event, &path)) {
                Json::Bool(_) => "boolean",
                Json::Number(_) => "number",
                Json::Text(_) => "text",
                _ => continue,
            };
            let (events, types) = fields.entry(path).or_default();
            *events += 1;
            types.insert(kind);
        }
    }
    let rows = ranked(fields.into_iter().collect(), |(_, (events, _))| *events, |(path, _)| path.clone());
    // The types are in the order of the alphabet.
    let row = |(path, (events, types)): &(String, (usize, BTreeSet<&str>))| {
        Json::object([
            ("field", Json::from(format!("metadata.{path}"))),
            ("types", Json::list(types.iter().map(|kind| Json::from(*kind)))),
            ("events", Json::from(*events)),
        ])
    };
    Ok(Json::object([("fields", Json::list(rows.iter().take(limit).map(row))), ("truncated", Json::from(rows.len() > limit))]))
}

/// Collects the paths of everything that is no object, joined with dots.
fn leaves(at: &Json, path: Option<&str>, found: &mut BTreeSet<String>) {
    match (at, path) {
        (Json::Object(fields), _) => {
            for (key, value) in fields {
                leaves(value, Some(&path.map_or_else(|| key.clone(), |path| format!("{path}.{key}"))), found);
            }
        }
        (_, Some(path)) => drop(found.insert(path.to_owned())),
        (_, None) => {}
    }
}

fn nested<'a>(at: &'a Json, step: &str) -> Option<&'a Json> {
    match at {
        Json::Object(fields) => fields.get(step),
        _ => None,
    }
}

/// Whether the entry of an event's session is an event that is kept. Of others only what the
/// session knows of them is: the channel.
fn has_entry(asked: &Asked<'_>, index: usize) -> bool {
    let floor = asked.model.floor(&asked.facts.events[index].project);
    asked.facts.session(index).is_some_and(|session| floor.is_none_or(|floor| asked.day(session.entry()) >= floor))
}

/// Returns a built-in field of an event; `null` if the event has none. The model does not have the
/// country, which is derived from an address.
pub(super) fn built_in(asked: &Asked<'_>, index: usize, name: &str) -> Option<Json> {
    let event = &asked.facts.events[index];
    let utm = || event.url.as_ref().and_then(|url| url.query(name)).map(value);
    let page = |event: &Event| event.url.as_ref().map(|url| url.page.clone());
    let session = || asked.facts.session(index);
    Some(Json::from(match name {
        "name" => Some(event.name.clone()),
        "language" | "screen" | "channel" | "consent_source" => event.others.get(name).cloned(),
        "hostname" => event.hostname.clone(),
        "url" => page(event),
        "path" => event.url.as_ref().and_then(|url| url.path.clone()),
        "entry_url" => session().filter(|_| has_entry(asked, index)).and_then(|session| asked.facts.entry_page(session)),
        "referrer" => event.referrer.clone(),
        "utm_source" | "utm_medium" | "utm_campaign" | "utm_term" | "utm_content" => utm(),
        "acquisition_channel" => session().map(|session| channel(asked.facts.brought_by(session))),
        "currency" => event.money.as_ref().map(|money| money.currency.clone()),
        "group_type" => event.group.as_ref().map(|(kind, _)| kind.clone()),
        "group_id" => event.group.as_ref().map(|(_, id)| id.clone()),
        "user_id" => event.user_id.clone(),
        "browser" => event.agent.as_ref().and_then(|agent| Some(agent.browser.as_ref()?.0.clone())),
        "browser_version" => event.agent.as_ref().and_then(|agent| agent.browser.as_ref()?.1.clone()),
        "os" => event.agent.as_ref().and_then(|agent| agent.os.clone()),
        "device" => event.agent.as_ref().map(|agent| agent.device.to_owned()),
        _ => return None,
    }))
}

/// A condition on a property.
struct Filter {
    field: String,
    operator: String,
    value: Json,
}

impl Filter {
    fn holds(&self, property: &Json) -> bool {
        match self.operator.as_str() {
            "is" => self.is(property),
            "is_not" => !self.is(property),
            "contains" => self.contains(property),
            "not_contains" => !self.contains(property),
            "starts_with" => self.compares_texts(property, |text, part| text.starts_with(part)),
            "ends_with" => self.compares_texts(property, |text, part| text.ends_with(part)),
            "matches" => property.text().is_some_and(|text| fits(self.value.text().unwrap_or_default(), text)),
            "is_set" => *property != Json::Null,
            "is_not_set" => *property == Json::Null,
            _ => self.compares(property),
        }
    }

    fn is(&self, property: &Json) -> bool {
        match &self.value {
            Json::List(allowed) => allowed.contains(property),
            value => value == property,
        }
    }

    fn contains(&self, property: &Json) -> bool {
        self.compares_texts(property, |text, part| text.contains(part))
    }

    fn compares_texts(&self, property: &Json, holds: fn(&str, &str) -> bool) -> bool {
        let part = lower(self.value.text().unwrap_or_default());
        property.text().is_some_and(|text| holds(&lower(text), &part))
    }

    fn compares(&self, property: &Json) -> bool {
        let (Some(found), Some(bound)) = (property.number(), self.value.number()) else {
            return false;
        };
        match self.operator.as_str() {
            "gt" => found > bound,
            "gte" => found >= bound,
            "lt" => found < bound,
            _ => found <= bound,
        }
    }
}

/// Whether a text fits a pattern: the first character of the pattern, and all that it stands for.
pub(super) fn fits(pattern: &str, text: &str) -> bool {
    let Some(first) = pattern.chars().next() else { return text.is_empty() };
    if first != '*' {
        return text.strip_prefix(first).is_some_and(|rest| fits(&pattern[first.len_utf8()..], rest));
    }
    let rest = pattern.trim_start_matches('*');
    let stops = |run: &str| pattern.len() - rest.len() == 1 && run.contains('/');
    let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    ends.into_iter().any(|end| !stops(&text[..end]) && fits(rest, &text[end..]))
}

/// Lower-cases each character by itself.
pub(super) fn lower(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).collect()
}

/// The predicate of a question: `event_name` and `filters`.
pub(super) struct Chosen {
    event_name: Option<String>,
    /// A pattern of the paths of pageviews.
    page: Option<String>,
    /// What must hold, too.
    and: Vec<Chosen>,
    /// All filters of at least one list of each clause hold.
    clauses: Vec<Vec<Vec<Filter>>>,
    people: Vec<People>,
}

/// A condition on the identity of an event.
struct People {
    events: Chosen,
    at_least: usize,
    is_negated: bool,
    within: Json,
}

impl People {
    fn read(json: &Json) -> People {
        let is_negated = *json.field("did") == Json::Null;
        let chosen = Chosen::of_events(json.field(if is_negated { "did_not" } else { "did" }));
        let at_least = json.field("at_least").number().and_then(Decimal::whole).unwrap_or(1);
        let at_least = usize::try_from(at_least).expect("a positive number");
        People { events: chosen, at_least, is_negated, within: json.field("within").clone() }
    }

    /// Whether the condition holds for the identity of an event, in a question about `window`.
    fn holds(&self, asked: &Asked<'_>, index: usize, window: Window) -> bool {
        let (identity, project) = (&asked.facts.identities[index], &asked.facts.events[index].project);
        let floor = asked.model.floor(project);
        let counts = |other: &usize| {
            let day = asked.day(*other);
            let is_within = match (self.within.text(), self.within.field("days").number().and_then(Decimal::whole)) {
                (Some("ever"), _) => true,
                (_, Some(days)) => day <= window.last && i128::from((window.last - day).num_days()) < days,
                _ => window.holds(day),
            };
            is_within && floor.is_none_or(|floor| day >= floor) && asked.facts.identities[*other] == *identity
        };
        let fitting = asked.facts.of_project(project).filter(counts).filter(|other| self.events.holds(asked, *other));
        identity.is_some() && (fitting.count() >= self.at_least) != self.is_negated
    }
}

const OPERATORS: [&str; 13] = [
    "is",
    "is_not",
    "contains",
    "not_contains",
    "starts_with",
    "ends_with",
    "matches",
    "gt",
    "gte",
    "lt",
    "lte",
    "is_set",
    "is_not_set",
];

impl Filter {
    fn read(json: &Json, param: &str) -> Result<Filter, Wrong> {
        let text = |name: &str| json.field(name).text().unwrap_or_default().to_owned();
        let operator = text("operator");
        if !OPERATORS.contains(&operator.as_str()) {
            return Err(Wrong::param(&format!("{param}.operator")));
        }
        Ok(Filter { field: text("field"), operator, value: json.field("value").clone() })
    }
}

/// Reads a list of filters.
fn read_clauses(given: &[Json]) -> Result<Vec<Vec<Vec<Filter>>>, Wrong> {
    let mut clauses = Vec::new();
    for (index, clause) in given.iter().enumerate() {
        let param = format!("filters[{index}]");
        let mut lists = Vec::new();
        for (index, list) in clause.field("any").items().iter().enumerate() {
            let filter = |(number, filter)| Filter::read(filter, &format!("{param}.any[{index}][{number}]"));
            lists.push(list.items().iter().enumerate().map(filter).collect::<Result<_, Wrong>>()?);
        }
        if lists.is_empty() {
            lists.push(vec![Filter::read(clause, &param)?]);
        }
        clauses.push(lists);
    }
    Ok(clauses)
}

impl Chosen {
    pub(super) fn of(params: &mut Params) -> Result<Chosen, Wrong> {
        let event_name = params.text("event_name")?;
        let given = match params.take("filters") {
            // In a query.
            Some(Json::Text(json)) => Some(Json::parse(&json).map_err(|_| Wrong::param("filters"))?),
            given => given,
        };
        let clauses = read_clauses(given.as_ref().map_or(&[], Json::items))?;
        let people = params.take("people").unwrap_or(Json::Null);
        let mut people: Vec<People> = people.items().iter().map(People::read).collect();
        let mut chosen = Chosen { event_name, page: None, and: Vec::new(), clauses, people: Vec::new() };
        if let Some(segment) = params.take("segment") {
            chosen.clauses.extend(Chosen::of_goal(&segment).clauses);
            people.extend(segment.field("people").items().iter().map(People::read));
        }
        chosen.people = people;
        Ok(chosen)
    }

    /// The predicate of a goal, in the form of `POST …/goals`, or the filters of a segment.
    pub(super) fn of_goal(goal: &Json) -> Chosen {
        let text = |name: &str| goal.field(name).text().map(str::to_owned);
        let clauses = read_clauses(goal.field("filters").items()).unwrap_or_else(|_| panic!("valid filters, not {goal}"));
        Chosen { event_name: text("event_name"), page: text("page"), and: Vec::new(), clauses, people: Vec::new() }
    }

    /// The predicate of a condition on people, or of a step of a funnel: those of a goal, and a
    /// goal.
    pub(super) fn of_events(json: &Json) -> Chosen {
        let mut chosen = Chosen::of_goal(json);
        if *json.field("goal") != Json::Null {
            chosen.and.push(Chosen::of_goal(json.field("goal")));
        }
        chosen
    }

    /// Whether the predicate holds for the event, and its conditions on people in a question about
    /// `window`.
    pub(super) fn chooses(&self, asked: &Asked<'_>, index: usize, window: Window) -> bool {
        self.holds(asked, index) && self.people.iter().all(|condition| condition.holds(asked, index, window))
    }

    /// Whether the predicate holds for the event.
    ///
    /// # Panics For fields that the model does not have.
    pub(super) fn holds(&self, asked: &Asked<'_>, index: usize) -> bool {
        let event = &asked.facts.events[index];
        let named = self.event_name.as_ref().is_none_or(|name| event.name == *name);
        let path = event.url.as_ref().and_then(|url| url.path.as_deref());
        let is_on = |page: &String| event.is_pageview() && path.is_some_and(|path| fits(page, path));
        let named = named && self.page.as_ref().is_none_or(is_on);
        let property = |filter: &Filter| property(asked, index, &filter.field).expect("a field of the model");
        let all = |list: &Vec<Filter>| list.iter().all(|filter| filter.holds(&property(filter)));
        named && self.and.iter().all(|and| and.holds(asked, index)) && self.clauses.iter().all(|lists| lists.iter().any(all))
    }
}

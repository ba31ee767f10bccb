//! What an alert is: its figure, its window, its condition, and the fields of its definition.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use headcount_api::endpoint::{ApiError, Result};
use headcount_api::extract::definitions::{EventChoice, named_definition, predicate_of};
use headcount_api::extract::{filters, people};
use headcount_control::{Definition, DefinitionId, DefinitionKind, DefinitionPlace, Registry};
use headcount_domain::figures::EventFigures;
use headcount_domain::money::Amount;
use headcount_domain::time::Interval;
use headcount_domain::{Day, Filter, Instant, Predicate, ProjectId, named_values};
use headcount_outbound::url::form_urlencoded;
use ring::digest;
use serde_json::Value;

use crate::condition::Condition;

named_values! {
    /// The figure of an alert.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum AlertFigure by as_str {
        /// The distinct users.
        UniqueUsers = "unique_users",
        /// The sessions.
        Sessions = "sessions",
        /// The pageviews.
        Pageviews = "pageviews",
        /// The events.
        Events = "events",
        /// The share of sessions with exactly one event.
        BounceRate = "bounce_rate",
        /// Orders less refunds.
        Revenue = "revenue",
        /// How many orders.
        Orders = "orders",
        /// The events that fit a goal.
        Conversions = "conversions",
        /// The distinct users of these.
        Converters = "converters",
        /// `converters` of all users.
        Rate = "rate",
    }
}

impl AlertFigure {
    /// Whether the figure shows money.
    pub(crate) const fn is_money(self) -> bool {
        matches!(self, Self::Revenue | Self::Orders)
    }

    /// Whether the figure is one of a goal.
    pub(crate) const fn is_of_goal(self) -> bool {
        matches!(self, Self::Conversions | Self::Converters | Self::Rate)
    }

    /// Whether the figure adds up over a window.
    pub(crate) const fn is_sum(self) -> bool {
        !matches!(self, Self::BounceRate | Self::Rate)
    }

    pub(crate) const fn is_count(self) -> bool {
        self.is_sum() && !matches!(self, Self::Revenue)
    }

    /// Whether the figures of goals have it.
    pub(crate) const fn is_in_goals(self) -> bool {
        !matches!(self, Self::Sessions | Self::Pageviews | Self::BounceRate | Self::Orders)
    }

    /// Returns the figure. `events` are conversions, too.
    pub(crate) fn of(self, figures: &EventFigures) -> Amount {
        let count = |count: u64| Amount::from_micros(i128::from(count) * Amount::from_units(1).micros());
        match self {
            Self::UniqueUsers => count(figures.unique_users),
            Self::Sessions => count(figures.sessions),
            Self::Pageviews => count(figures.pageviews),
            Self::Events | Self::Conversions => count(figures.events),
            Self::BounceRate => figures.bounce_rate(),
            Self::Revenue => figures.revenue,
            Self::Orders => Amount::from_units(figures.orders),
            Self::Converters => count(figures.converters),
            Self::Rate => figures.conversion_rate(),
        }
    }

    /// The figure in words.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::UniqueUsers => "Unique users",
            Self::Sessions => "Sessions",
            Self::Pageviews => "Pageviews",
            Self::Events => "Events",
            Self::BounceRate => "Bounce rate",
            Self::Revenue => "Revenue",
            Self::Orders => "Orders",
            Self::Conversions => "Conversions",
            Self::Converters => "Converters",
            Self::Rate => "Conversion rate",
        }
    }
}

named_values! {
    /// The window of an alert, in days of the project.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum AlertWindow by as_str {
        /// A day.
        Day = "day",
        /// A week, which begins on Monday.
        Week = "week",
        /// A month.
        Month = "month",
    }
}

impl From<AlertWindow> for Interval {
    fn from(window: AlertWindow) -> Self {
        match window {
            AlertWindow::Day => Self::Day,
            AlertWindow::Week => Self::Week,
            AlertWindow::Month => Self::Month,
        }
    }
}

/// The events of an alert's figure.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct AlertEvents {
    /// The predicate of chosen events; `None`: all.
    pub(crate) predicate: Option<Predicate>,
    /// The predicate of the events that fit the goal.
    pub(crate) goal: Option<Predicate>,
}

/// When an alert changes, and where its messages go.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AlertRule {
    pub(crate) figure: AlertFigure,
    pub(crate) over: AlertWindow,
    pub(crate) condition: Condition,
    pub(crate) channels: Vec<DefinitionId>,
    /// Changes before this time send nothing.
    pub(crate) muted_until: Option<Instant>,
}

/// The fields that decide when an alert changes.
pub(crate) const RULE_FIELDS: [&str; 7] = ["figure", "over", "condition", "goal", "filters", "segment", "people"];

/// The fields of a definition: their names, and their JSON.
pub(crate) type AlertFields = BTreeMap<String, String>;

fn json_of<'f>(fields: &'f AlertFields, name: &str) -> Option<&'f str> {
    fields.get(name).map(String::as_str).filter(|json| *json != "null")
}

fn text_of(fields: &AlertFields, name: &str) -> Option<String> {
    json_of(fields, name).and_then(|json| serde_json::from_str(json).ok())
}

impl AlertRule {
    /// Whether the figure can pass the threshold before its window ends: a sum that only grows, unless
    /// something is taken from it. A rate of a few sessions says nothing.
    pub(crate) const fn is_running(&self) -> bool {
        matches!(self.condition, Condition::Above(_)) && self.figure.is_sum()
    }

    /// Reads the fields of a definition; `None` if one is missing or damaged.
    pub(crate) fn of(fields: &AlertFields) -> Option<Self> {
        let channels: Vec<String> = json_of(fields, "channels").map_or(Ok(Vec::new()), serde_json::from_str).ok()?;
        Some(Self {
            figure: text_of(fields, "figure")?.parse().ok()?,
            over: text_of(fields, "over")?.parse().ok()?,
            condition: Condition::parse(json_of(fields, "condition")?)?,
            channels: channels.iter().map(|id| id.parse().ok()).collect::<Option<_>>()?,
            muted_until: match text_of(fields, "muted_until") {
                Some(text) => Some(Instant::parse_rfc3339(&text)?),
                None => None,
            },
        })
    }
}

impl AlertEvents {
    /// Whether a window that begins at `start` has days whose events are not kept any more.
    pub(crate) fn is_below(&self, floor: Option<Day>, start: Day) -> bool {
        self.predicate.is_some() && floor.is_some_and(|floor| start < floor)
    }

    /// Resolves the events of an alert's figure, as a question with the same fields would.
    ///
    /// # Errors
    /// 404 without such a goal or segment; 400 if the figure is one of a goal and none is there, or the
    /// other way round.
    pub(crate) fn of(fields: &AlertFields, place: DefinitionPlace, figure: AlertFigure, registry: &Registry) -> Result<Self> {
        let mut find = |id: &str, kind| named_definition(registry, place, id, kind);
        let read_filters = |json| filters::read_clauses(json, "filters", Filter::in_sessions);
        let choice = EventChoice {
            filters: json_of(fields, "filters").map_or(Ok(Vec::new()), read_filters)?,
            segment: text_of(fields, "segment"),
            people: json_of(fields, "people").map_or(Ok(Vec::new()), |json| people::parse(json, "people"))?,
        };
        let goal = text_of(fields, "goal").map(|id| find(&id, DefinitionKind::Goal)).transpose()?;
        let goal = match (goal, figure.is_of_goal()) {
            (None, true) => return Err(ApiError::missing("goal")),
            (Some(_), false) => return Err(ApiError::parameter("goal", format!("`{figure}` is not a figure of a goal"))),
            (goal, _) => goal,
        };
        let predicate = choice.predicate(None, &mut find)?;
        let goal = goal.as_deref().map(predicate_of).transpose()?;
        // A question with a goal is always one about chosen events.
        let predicate = if goal.is_some() { Some(predicate.unwrap_or_default()) } else { predicate };
        Ok(Self { predicate, goal })
    }
}

/// An alert, with the events of its figure.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Alert {
    pub(crate) id: DefinitionId,
    pub(crate) name: String,
    pub(crate) project: ProjectId,
    pub(crate) rule: AlertRule,
    pub(crate) events: AlertEvents,
    /// The choice of events in the address of the page: parameters, each with `&` after it. `None` if
    /// the page has none for it.
    pub(crate) page_query: Option<String>,
    /// Differs if the rule or its events do. States belong to one of these.
    pub(crate) fingerprint: String,
    pub(crate) created_at: Instant,
}

impl Alert {
    /// Reads a definition.
    ///
    /// # Errors
    /// The definition is damaged, or names a goal or a segment that was removed.
    pub(crate) fn of(definition: &Definition, registry: &Registry) -> Result<Self> {
        let rule = AlertRule::of(&definition.fields).zip(definition.project);
        let (rule, project) = rule.ok_or_else(ApiError::internal)?;
        let place = (definition.organization, definition.project);
        let events = AlertEvents::of(&definition.fields, place, rule.figure, registry)?;
        let (id, name, created_at) = (definition.id.clone(), definition.name.clone(), definition.created_at);
        let asked: Vec<_> = definition.fields.iter().filter(|(name, _)| RULE_FIELDS.contains(&name.as_str())).collect();
        let fingerprint = digest::digest(&digest::SHA256, format!("{asked:?}").as_bytes());
        let fingerprint = STANDARD.encode(&fingerprint.as_ref()[..16]);
        let page_query = page_query(&definition.fields);
        Ok(Self { id, name, project, rule, events, page_query, fingerprint, created_at })
    }
}

/// Returns the choice of events in the address of the page, as `web/src/lib/filters.ts` reads it;
/// `None` if it can't be read.
fn page_query(fields: &AlertFields) -> Option<String> {
    let list = |name| json_of(fields, name).map_or(Ok(Vec::new()), serde_json::from_str::<Vec<Value>>).ok();
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(list("filters")?.iter().map(|filter| ("f", page_filter(filter))));
    query.extend_pairs(list("people")?.iter().map(|condition| ("p", format!("json:{condition}"))));
    query.extend_pairs(text_of(fields, "segment").map(|segment| ("segment", segment)));
    match query.finish() {
        query if query.is_empty() => Some(query),
        query => Some(format!("{query}&")),
    }
}

fn page_filter(filter: &Value) -> String {
    let text = |name: &str| filter.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let value = match filter.get("value") {
        None => String::new(),
        Some(Value::String(text)) if !text.starts_with("json:") => text.clone(),
        Some(other) => format!("json:{other}"),
    };
    if filter.get("any").is_some() {
        return format!("json:{filter}");
    }
    // The page makes filters with these operators; it takes any as a list of alternatives.
    if !PAGE_OPERATORS.contains(&text("operator").as_str()) {
        return format!("json:{}", serde_json::json!({"any": [[filter]]}));
    }
    [text("field"), text("operator"), value].map(|part| part.replace('%', "%25").replace('~', "%7E")).join("~")
}

/// The operators of `web/src/lib/filters.ts`.
const PAGE_OPERATORS: [&str; 9] =
    ["is", "is_not", "contains", "not_contains", "starts_with", "ends_with", "matches", "is_set", "is_not_set"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_shows_the_same_events() {
        let filters = r#"[{"field": "path", "operator": "is", "value": "/a~b&c"}, {"field": "metadata.n", "operator": "is", "value": 3},
                          {"any": [[{"field": "name", "operator": "is_set"}]]}, {"field": "url", "operator": "is_set"},
                          {"field": "value", "operator": "gt", "value": 5}, {"field": "os", "operator": "is", "value": null}]"#;
        let fields = [("filters", filters), ("segment", "\"segment_1\""), ("people", r#"[{"did": {}}]"#)];
        let fields = fields.map(|(name, json)| (name.to_owned(), json.to_owned())).into();
        let query = page_query(&fields).unwrap();
        let read: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let expected = [
            ("f", "path~is~/a%7Eb&c"),
            ("f", "metadata.n~is~json:3"),
            ("f", r#"json:{"any":[[{"field":"name","operator":"is_set"}]]}"#),
            ("f", "url~is_set~"),
            ("f", r#"json:{"any":[[{"field":"value","operator":"gt","value":5}]]}"#),
            ("f", "os~is~json:null"),
            ("p", r#"json:{"did":{}}"#),
            ("segment", "segment_1"),
        ];
        assert_eq!(read, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(page_query(&AlertFields::new()).as_deref(), Some(""));
    }
}

//! Answers that need the events themselves: recomputed from the log by the domain's predicates and
//! groupings.

use std::collections::{BTreeMap, BTreeSet};

use headcount_domain::aggregate::{
    FieldRanking, GroupFigures, GroupKey, Grouping, MAX_GROUPS, MetadataField, Ranking, TypeCounts,
};
use headcount_domain::facts::{Moment, SESSION_GAP_MS};
use headcount_domain::intake::fields::{BuiltIn, Entry, Field, MetadataPath, Scalar, visit_paths};
use headcount_domain::queries::{ActiveIdentity, IdentifiedQuery};
use headcount_domain::{Clause, Day, Event, Filter, Predicate, RecordKey, SentKeys, SortedLinks, Window};
use headcount_model::{Json, Question};

use super::shown::{Refused, number, text};
use super::{Folded, Held, hasher};

/// An event with its identity and the entry of its session.
type Seen<'h> = (&'h Event, Option<RecordKey>, Option<Entry>);

/// Whether the question has filters, an event name, or groups.
pub(super) fn needs_events(question: &Question) -> bool {
    let given = |name: &str| question.body.as_ref().is_some_and(|body| *body.field(name) != Json::Null);
    question.path.ends_with("/aggregate")
        || question.path.ends_with("/fields")
        || ["event_name", "filters", "segment"].into_iter().any(given)
}

pub(super) fn answer(held: &Held, question: &Question, window: Window) -> Result<Json, Refused> {
    if question.path.ends_with("/fields") {
        return fields(held, question, window);
    }
    let body = question.body.as_ref().unwrap();
    let predicate = predicate(body)?;
    let seen = seen(held);
    let matching: Vec<&Seen<'_>> =
        seen.iter().filter(|(event, _, entry)| window.contains(event.day) && predicate.matches(event, entry.as_ref())).collect();
    let mut answer = match question.path.ends_with("/aggregate") {
        true => aggregate(body, &matching)?,
        false => unique_users(window, &matching),
    };
    answer.insert("start_date".to_owned(), text(&window.start));
    answer.insert("end_date".to_owned(), text(&window.end));
    answer.insert("timezone".to_owned(), Json::from(held.policy.timezone.name()));
    Ok(Json::Object(answer))
}

/// The identified identities with an event in a window, and the number of these events, in any
/// order.
pub(super) fn active_identities(folded: &Folded, window: Window) -> Vec<(ActiveIdentity, u64)> {
    let mut active: BTreeMap<ActiveIdentity, u64> = BTreeMap::new();
    for held in folded.projects.values() {
        let mut held = held.lock().unwrap();
        let mut named: BTreeMap<(bool, RecordKey), u64> = BTreeMap::new();
        for (event, _) in held.log.iter().filter(|(event, _)| window.contains(event.day) && !held.state.drops(event)) {
            let is_visitor = event.who.user_id.is_none() && event.who.anonymous_id.is_none();
            let key = SentKeys::of(&event.who, hasher()).named();
            key.into_iter().for_each(|key| *named.entry((is_visitor, key)).or_default() += 1);
        }
        for ((are_visitors, key), events) in named {
            let identity = held.ask(&IdentifiedQuery { ids: vec![key], are_visitors }).unwrap().remove(0);
            identity.into_iter().for_each(|identity| *active.entry(identity).or_default() += events);
        }
    }
    active.into_iter().collect()
}

fn fields(held: &Held, question: &Question, window: Window) -> Result<Json, Refused> {
    let limit = question.query.iter().find(|(name, _)| name == "limit").map_or(Some(1_000), |(_, limit)| limit.parse().ok());
    let limit = limit.filter(|limit| (1..=1_000).contains(limit)).ok_or(Refused(400))?;
    let mut counted: BTreeMap<String, GroupFigures> = BTreeMap::new();
    for (event, _) in held.log.iter().filter(|(event, _)| window.contains(event.day)) {
        visit_paths(event.details.metadata.as_deref().unwrap_or("null"), &mut |path, kind| {
            counted.entry(path.to_owned()).or_default().merge(TypeCounts::of(kind, 1).to_group());
        });
    }
    let mut ranking = FieldRanking::new(limit);
    counted.iter().for_each(|(path, group)| ranking.add(path, TypeCounts::of_group(*group)));
    let fields = ranking.finish();
    let row = |row: &MetadataField| {
        Json::object([
            ("field", Json::from(format!("metadata.{}", row.path))),
            ("types", Json::list(row.types.iter().map(text))),
            ("events", number(row.events)),
        ])
    };
    let rows = Json::list(fields.rows.iter().map(row));
    Ok(Json::object([("fields", rows), ("truncated", Json::from(fields.truncated))]))
}

fn predicate(body: &Json) -> Result<Predicate, Refused> {
    let filter = |filter: &Json| {
        let value = Some(filter.field("value")).filter(|value| **value != Json::Null).map(Json::to_string);
        let part = |name: &str| filter.field(name).text().unwrap_or_default().to_owned();
        Filter::new(&part("field"), &part("operator"), value.as_deref()).map_err(|_| Refused(400))
    };
    let clause = |clause: &Json| match clause.field("any") {
        Json::Null => Ok(Clause::One(filter(clause)?)),
        lists => {
            let list = |list: &Json| list.items().iter().map(filter).collect();
            Clause::any(lists.items().iter().map(list).collect::<Result<_, _>>()?).map_err(|_| Refused(400))
        }
    };
    let filters = body.field("filters").items().iter().chain(body.field("segment").field("filters").items());
    let clauses = filters.map(clause).collect::<Result<_, _>>()?;
    Predicate::new(body.field("event_name").text(), clauses).map_err(|_| Refused(400))
}

/// The interactive events of a session, in order of time.
type Visit<'h> = Vec<&'h Event>;

/// The fields of a session. Of one that began below the floor, no address is known.
fn entry_of(held: &Held, visit: &Visit<'_>) -> Entry {
    let brought_by = visit.iter().find(|event| event.has_source()).unwrap_or(&visit[0]);
    let url = visit.iter().find_map(|event| Entry::of(event).url).filter(|_| !held.state.drops(visit[0]));
    Entry { url, ..Entry::of(brought_by) }
}

/// All events, in order of time, with their identities and the fields of their sessions.
fn seen<'h>(held: &'h Held) -> Vec<Seen<'h>> {
    let keys = |event: &Event| SentKeys::of(&event.who, hasher());
    let mut links: Vec<_> = held.log.iter().filter_map(|(event, position)| keys(event).link(*position)).collect();
    links.sort_unstable();
    let identity = |event: &Event| {
        let links = links.iter().map(|link| Ok::<_, ()>(*link));
        keys(event).named().map(|key| SortedLinks::new(links).resolve(key).unwrap())
    };
    let mut events: Vec<&(Event, u64)> = held.log.iter().collect();
    events.sort_by_key(|(event, position)| Moment { time: event.time, position: *position });
    let mut visits: BTreeMap<RecordKey, Vec<Visit<'_>>> = BTreeMap::new();
    for (event, _) in events.iter().filter(|(event, _)| event.interactive) {
        let Some(identity) = identity(event) else { continue };
        let of_identity = visits.entry(identity).or_default();
        match of_identity.last_mut() {
            Some(visit) if event.time.0 - visit[visit.len() - 1].time.0 <= SESSION_GAP_MS => visit.push(event),
            _ => of_identity.push(vec![event]),
        }
    }
    let sessions: BTreeMap<RecordKey, Vec<(i64, i64, Entry)>> = visits
        .into_iter()
        .map(|(identity, visits)| {
            let session = |visit: &Visit<'_>| (visit[0].time.0, visit[visit.len() - 1].time.0, entry_of(held, visit));
            (identity, visits.iter().map(session).collect())
        })
        .collect();
    let session = |event: &Event, identity: RecordKey| {
        let at = event.time.0;
        let has = |(first, last, _): &&(i64, i64, Entry)| (*first..=last + SESSION_GAP_MS).contains(&at);
        sessions.get(&identity)?.iter().find(has).map(|(.., entry)| entry.clone())
    };
    let seen = |(event, _): &'_ &'h (Event, u64)| {
        let identity = identity(event);
        (event, identity, identity.and_then(|identity| session(event, identity)))
    };
    events.iter().map(seen).collect()
}

fn unique_users(window: Window, matching: &[&Seen<'_>]) -> BTreeMap<String, Json> {
    let active: BTreeSet<(Day, RecordKey)> =
        matching.iter().filter_map(|(event, identity, _)| Some((event.day, (*identity)?))).collect();
    let users: BTreeSet<RecordKey> = active.iter().map(|(_, identity)| *identity).collect();
    let day = |day: Day| {
        let users = active.iter().filter(|(of, _)| *of == day).count();
        Json::object([("day", text(&day)), ("unique_users", number(users))])
    };
    [("series", Json::list(window.days().map(day))), ("total_unique_users", number(users.len()))]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
}

fn aggregate(body: &Json, matching: &[&Seen<'_>]) -> Result<BTreeMap<String, Json>, Refused> {
    let path = |name: &str| body.field(name).text().map(|path| MetadataPath::parse(path).map_err(|_| Refused(400))).transpose();
    let by = match (body.field("group_by").text(), path("metadata_field")?) {
        (Some(field), None) => Field::BuiltIn(field.parse::<BuiltIn>().map_err(|_| Refused(400))?),
        (None, Some(path)) => Field::Metadata(path),
        _ => return Err(Refused(400)),
    };
    let grouping = Grouping::new(by, path("sum_metadata_field")?).map_err(|_| Refused(400))?;
    let limit = body.field("limit").number().map_or(100, |limit| usize::try_from(limit.whole().unwrap()).unwrap());
    if *body.field("start_date") == Json::Null || !(1..=MAX_GROUPS).contains(&limit) {
        return Err(Refused(400));
    }
    let mut groups: BTreeMap<Vec<u8>, GroupFigures> = BTreeMap::new();
    for (event, _, entry) in matching {
        let mut key = Vec::new();
        match entry {
            Some(entry) if grouping.is_by_session() => grouping.write_session_key(entry, &mut key),
            _ => grouping.write_key(event, &mut key),
        }
        groups.entry(key).or_default().merge(grouping.contribution(event));
    }
    let mut ranking = Ranking::new(grouping.sums(), limit);
    groups.iter().for_each(|(key, group)| ranking.add(GroupKey::read(key), *group));
    let answer = ranking.finish();
    let rows = answer.rows.iter().map(|row| {
        let mut shown = vec![("value".to_owned(), scalar(&row.value)), ("count".to_owned(), number(row.count))];
        if let Some(sum) = &row.sum {
            shown.push(("total".to_owned(), sum.total.map_or(Json::Null, number)));
            shown.push(("summed".to_owned(), number(sum.summed)));
        }
        Json::Object(shown.into_iter().collect())
    });
    let rows =
        [("rows", Json::list(rows)), ("total_groups", number(answer.total_groups)), ("truncated", Json::from(answer.truncated))];
    Ok(rows.map(|(name, value)| (name.to_owned(), value)).into())
}

fn scalar(value: &Scalar<'_>) -> Json {
    match value {
        Scalar::Null => Json::Null,
        Scalar::Bool(value) => Json::from(*value),
        Scalar::Number(value) => number(value),
        Scalar::Text(text) => Json::from(&**text),
    }
}

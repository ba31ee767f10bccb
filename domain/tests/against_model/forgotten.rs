//! People who are taken out of a saved state, as out of a base: afterwards it answers as the state
//! of a history that never had them, with the same floors, and goes on like it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use headcount_domain::erasure::{AfterErasure, ErasedKeys};
use headcount_domain::fold::Forgetting;
use headcount_domain::ids::PublicCompany;
use headcount_domain::queries::{AttributionQuery, Dimension, EntityLevel, TouchModel};
use headcount_domain::{Day, Event, IdentityId, IdentitySlot, OrganizationId, RecordKey, Window, text};
use headcount_histories::{History, Rng, Size, Step, above, questions};
use headcount_model::{Json, Question};

use super::{Folded, Held, Logged, NOW_MS, Subject, answers, checkpoint_step_of, hasher, limits_of, trials};

type Log = Vec<(Logged, u64)>;

/// What a project recorded, in order.
fn log_of(held: &Held) -> Log {
    let events = held.log.iter().map(|(event, position)| (Logged::Event(Box::new(event.clone())), *position));
    let mut log: Log = events.chain(held.floors.iter().map(|(day, position)| (Logged::Floor(*day), *position))).collect();
    log.sort_by_key(|(_, position)| *position);
    log
}

fn fold(held: &mut Held, log: Log) {
    for (record, position) in log {
        match record {
            // As a replay does: a history without somebody has the same floors.
            Logged::Event(event) if held.state.drops(&event) => {}
            Logged::Event(event) => held.apply(event, position),
            Logged::Floor(day) => held.raise_floor(day, position),
        }
    }
}

/// The log without what is erased.
fn without(log: &Log, erased: &ErasedKeys) -> Log {
    let rest = |(record, position): &(Logged, u64)| match record {
        Logged::Floor(day) => Some((Logged::Floor(*day), *position)),
        Logged::Event(event) => {
            let mut event = event.clone();
            match erased.erase(*position, &mut event, hasher()) {
                AfterErasure::Unchanged | AfterErasure::WithoutId => Some((Logged::Event(event), *position)),
                AfterErasure::Gone(remainder) => remainder.map(|rest| (Logged::Event(rest), *position)),
            }
        }
    };
    log.iter().filter_map(rest).collect()
}

/// Forgets the people with erased keys, with a start between any two steps. Returns whether there
/// were any.
fn forget(held: &mut Held, erased: &ErasedKeys) -> bool {
    held.saved.save(&mut held.state);
    (held.since, held.begun_at) = (Vec::new(), 0);
    let Some(mut forgetting) = Forgetting::begin(erased, &held.saved).unwrap() else { return false };
    let mut more = true;
    while more {
        more = forgetting.step(&mut held.state, hasher(), &held.saved).unwrap();
        held.saved.save(&mut held.state);
        held.state = held.saved.start(held.state.limits);
    }
    true
}

/// The rows of frozen days whose answers name nobody, and the sums of those that name sources.
fn frozen(held: &Held) -> Vec<String> {
    let Some(last) = held.state.floor().map(|floor| floor.0 - 1) else { return Vec::new() };
    let rollups = &held.state.rollups;
    let mut rows: Vec<String> = Vec::new();
    rows.extend(rollups.unique_users.between(i32::MIN, last).map(|row| format!("users {row:?}")));
    rows.extend(rollups.active_accounts.between(i32::MIN, last).map(|row| format!("accounts {row:?}")));
    rows.extend(rollups.activity.between(i32::MIN, last).map(|row| format!("activity {row:?}")));
    rows.extend(rollups.revenue.between(i32::MIN, last).map(|row| format!("revenue {row:?}")));
    let tables = [&rollups.first_touch_by_identity, &rollups.last_touch_by_identity];
    for cells in tables.into_iter().chain([&rollups.first_touch_by_account, &rollups.last_touch_by_account]) {
        let mut days = BTreeMap::new();
        for ((day, _), sums) in cells.between(i32::MIN, last) {
            let sum: &mut (i64, i64, i128) = days.entry(day).or_default();
            *sum = (sum.0 + sums.entries, sum.1 + sums.orders, sum.2 + sums.revenue.0);
        }
        rows.push(format!("{days:?}"));
    }
    let mut days = BTreeMap::new();
    for ((day, channel, _), visits) in rollups.traffic.between(i32::MIN, last) {
        let sum: &mut (i64, i64) = days.entry((day, channel as u8)).or_default();
        *sum = (sum.0 + visits.sessions, sum.1 + visits.bounces);
    }
    rows.push(format!("{days:?}"));
    rows
}

/// Asks for all sources of all days: frozen rows name nothing that is gone.
fn show_all(held: &mut Held) {
    let window = Window { start: Day(i32::MIN), end: Day(i32::MAX) };
    for level in [EntityLevel::Account, EntityLevel::Identity] {
        for model in [TouchModel::FirstTouch, TouchModel::LastTouch] {
            for dimension in [Dimension::Source, Dimension::Medium, Dimension::Campaign] {
                held.ask(&AttributionQuery { model, level, dimension, window, limit: 100 }).unwrap();
            }
        }
    }
}

/// Everything that an event says about its sender.
fn texts_of(event: &Event) -> BTreeSet<String> {
    let (who, details) = (&event.who, &event.details);
    let acquisition = details.acquisition.iter().flat_map(|from| [&from.source, &from.medium, &from.campaign]);
    let mut texts: BTreeSet<String> = acquisition.map(ToString::to_string).collect();
    texts.extend(
        [&who.user_id, &who.anonymous_id, &details.email, &details.group_id].into_iter().flatten().map(ToString::to_string),
    );
    texts.extend(event.company.iter().chain(&event.email_company).map(|company| company.as_str().to_owned()));
    texts.extend(details.url.iter().map(|url| text::page(url).to_string()));
    texts.retain(|text| text.len() > 3);
    texts
}

/// How a key can be in what is saved: as a key or a value, or as what pages are bounded by.
fn forms_of(RecordKey(key): RecordKey) -> [Vec<u8>; 3] {
    let bound = (key ^ (1 << 127)).cast_signed();
    let zigzag = ((bound << 1) ^ (bound >> 127)).cast_unsigned();
    [key.to_be_bytes(), key.to_le_bytes(), zigzag.to_le_bytes()].map(|form| form.to_vec())
}

fn has(saved: &[Vec<u8>], form: &[u8]) -> bool {
    saved.iter().any(|bytes| bytes.windows(form.len()).any(|window| window == form))
}

/// Whose ids are erased in a history of several projects.
struct Erased {
    /// By project.
    keys: BTreeMap<String, ErasedKeys>,
    until: u64,
}

/// Picks some people.
fn pick(before: &BTreeMap<String, Held>, rng: &mut Rng, until: u64) -> Erased {
    let people: Vec<(String, RecordKey, IdentitySlot)> = before
        .iter()
        .flat_map(|(name, held)| held.saved.people().into_iter().map(|(key, slot)| (name.clone(), key, slot)))
        .collect();
    let has_an_id = |slot: &IdentitySlot| match slot {
        IdentitySlot::Canonical(identity) => matches!(identity.id, IdentityId::User(_) | IdentityId::Anonymous(_)),
        IdentitySlot::Alias { .. } => false,
    };
    let known: Vec<_> = people.iter().filter(|(.., slot)| has_an_id(slot)).collect();
    let mut keys: BTreeMap<String, ErasedKeys> = BTreeMap::new();
    for _ in 0..(1 + rng.below(3)).min(known.len()) {
        let (project, key, _) = *rng.pick(&known);
        for (name, other, slot) in &people {
            let is_linked = matches!(slot, IdentitySlot::Alias { user, .. } if user == key);
            let is_theirs = other == key && (key.is_user() || name == project);
            if is_linked || is_theirs {
                keys.entry(name.clone()).or_default().add(*other, until);
            }
        }
    }
    Erased { keys, until }
}

/// Takes the people out of the states at `until`, and goes on.
struct Pair {
    forgotten: Folded,
    never: Folded,
    found: usize,
}

fn pair(seed: u64, logs: &BTreeMap<String, Log>, setup: impl Fn() -> Folded, rng: &mut Rng) -> Pair {
    let last = logs.values().flatten().map(|(_, position)| *position).max().unwrap_or(0);
    let until = last * (50 + rng.below(51) as u64) / 100;
    let (mut forgotten, mut never) = (setup(), setup());
    let part = |log: &Log, is_before: bool| -> Log {
        let is_in = |(_, position): &&(Logged, u64)| (*position <= until) == is_before;
        log.iter().filter(is_in).map(|(record, position)| (record.clone(), *position)).collect()
    };
    let mut before: BTreeMap<String, Held> =
        std::mem::take(&mut forgotten.projects).into_iter().map(|(name, held)| (name, held.into_inner().unwrap())).collect();
    for (name, held) in &mut before {
        fold(held, part(&logs[name], true));
        held.saved.save(&mut held.state);
        (held.since, held.begun_at) = (Vec::new(), 0);
    }
    let Erased { keys, until } = pick(&before, rng, until);
    let mut found = 0;
    for (name, mut held) in before {
        let (nobody, log) = (ErasedKeys::default(), &logs[&name]);
        let erased = keys.get(&name).unwrap_or(&nobody);
        let other = never.projects.get_mut(&name).unwrap().get_mut().unwrap();
        fold(other, without(&part(log, true), erased));
        other.saved.save(&mut other.state);
        (other.since, other.begun_at) = (Vec::new(), 0);
        let rows = frozen(&held);
        if forget(&mut held, &erased.up_to(until)) {
            found += 1;
            assert_eq!(frozen(&held), rows, "seed {seed}: {name}: a frozen sum changed");
            look_for(&held, other, erased, &format!("seed {seed}: {name}"));
            show_all(&mut held);
            assert!(!forget(&mut held, erased), "nobody is left to be forgotten");
        }
        fold(&mut held, part(log, false));
        fold(other, part(log, false));
        // Scans read files without what is erased.
        held.log.clone_from(&other.log);
        forgotten.projects.insert(name, Mutex::new(held));
    }
    Pair { forgotten, never, found }
}

/// Looks for what is left of the people.
fn look_for(held: &Held, never: &Held, erased: &ErasedKeys, whose: &str) {
    let (saved, other): (Vec<_>, Vec<_>) = (held.saved.bytes().collect(), never.saved.bytes().collect());
    for event in held.log.iter().map(|(event, _)| event) {
        let mut rest = event.clone();
        if erased.erase(0, &mut rest, hasher()) == AfterErasure::Unchanged {
            continue;
        }
        for text in texts_of(event) {
            assert!(!has(&saved, text.as_bytes()) || has(&other, text.as_bytes()), "{whose}: {text} is left");
        }
        let ids = [
            event.who.user_id.as_deref().map(|id| hasher().user(id)),
            event.who.anonymous_id.as_deref().map(|id| hasher().anonymous(id)),
        ];
        for key in ids.into_iter().flatten().filter(|key| erased.contains(*key)) {
            let left = forms_of(key).iter().position(|form| has(&saved, form));
            assert_eq!(left, None, "{whose}: the key {key:?} of {:?} is left", event.who);
        }
    }
}

/// The question about days that the floor leaves, with the id of its company. `None`: it can't be
/// asked.
fn asked_above(folded: &Folded, mut question: Question) -> Option<Question> {
    if let Some((before, rest)) = question.path.clone().split_once("{company:") {
        let (key, after) = rest.split_once('}')?;
        let id = PublicCompany::of(key).to_id(OrganizationId(1));
        question.path = format!("{before}{id}{after}");
    }
    above(question, |project| {
        let floor = folded.projects[project].lock().unwrap().state.floor();
        floor.map(|floor| floor.to_string().parse().unwrap())
    })
}

/// The answer without what cohorts tell of money without a rate: that of all days, also of frozen
/// ones.
fn live((status, body): (u16, Json)) -> (u16, Json) {
    let Json::Object(mut fields) = body else { return (status, body) };
    if fields.contains_key("cohorts") {
        fields.remove("unconverted");
    }
    (status, Json::Object(fields))
}

fn trial(seed: u64) -> (usize, usize) {
    let size = Size { events: 60 + usize::try_from(seed % 3).unwrap() * 60, questions: 30 };
    let history = History::from_seed(seed, NOW_MS, size);
    let history = if seed.is_multiple_of(4) { history } else { history.with_floors() };
    let logs =
        Folded::of(&history).projects.into_iter().map(|(name, held)| (name, log_of(&held.into_inner().unwrap()))).collect();
    let setup = || {
        let mut folded = Folded { limits: limits_of(seed), checkpoint_step: checkpoint_step_of(seed), ..Folded::default() };
        folded.setup(&history);
        folded
    };
    let mut rng = Rng::new(seed);
    let Pair { mut forgotten, mut never, found } = pair(seed, &logs, setup, &mut rng);
    let mut asked = questions(&history, &mut rng, 60);
    asked.extend(history.steps.iter().filter_map(|step| if let Step::Ask(asked) = step { Some(asked.clone()) } else { None }));
    asked.retain(|asked| answers::is_answered(&Step::Ask(asked.clone())));
    let mut compared = 0;
    let asked: Vec<Question> = asked.into_iter().filter_map(|asked| asked_above(&forgotten, asked)).collect();
    for question in asked {
        let (expected, got) = (live(never.ask(&question)), live(forgotten.ask(&question)));
        assert!(expected == got, "seed {seed}: {question:?}\nexpected {expected:?}\ngot      {got:?}");
        compared += 1;
    }
    // All is saved, which compares what is saved with what it says.
    forgotten.restart();
    (found, compared)
}

#[test]
fn a_state_that_forgot_people_answers_like_one_that_never_had_them() {
    let first: u64 = std::env::var("HEADCOUNT_FIRST_SEED").ok().and_then(|number| number.parse().ok()).unwrap_or(0);
    let (mut found, mut compared, count) = (0, 0, trials(150));
    for seed in first..first + count {
        let (of_seed, questions) = trial(seed);
        (found, compared) = (found + of_seed, compared + questions);
    }
    println!("{found} states forgot people, and gave {compared} answers");
    assert!(found as u64 >= count && compared as u64 > 40 * count, "{found} {compared}");
}

//! Random histories of alerts, compared with a naive model that recomputes each figure from all
//! events.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use headcount_actors::domain::ids::OrganizationId;
use headcount_actors::engine::{ErasureState, ErasureSubject};
use headcount_actors::ingest::{NewEvent, Status};
use headcount_actors::{Engine, EngineConfig};
use headcount_common::clock::FixedClock;
use headcount_domain::money::{Amount, ratio_of_counts};
use headcount_outbound::AllowList;
use parking_lot::Mutex;
use tempfile::TempDir;

use super::*;
use crate::alert::{AlertFields, AlertFigure, AlertWindow};
use crate::alert_preview::previewed;
use crate::alert_state::MessageStatus;
use crate::condition::{Against, ChangeSize, Condition};
use crate::sealed::SealedSecret;
use crate::settings::PushSettings;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
const HOUR_MS: i64 = 60 * 60 * 1_000;
/// 2024-02-27, 12:00.
const BEGIN_MS: i64 = 1_709_035_200_000;
const STEPS: u64 = 40;

/// A fixed sequence of numbers for each seed.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).unwrap()]
    }
}

/// An event as it was sent.
#[derive(Debug, Clone)]
struct SentEvent {
    name: &'static str,
    user: Option<String>,
    anonymous: Option<String>,
    value: i64,
    day: Day,
}

/// An alert of the model.
#[derive(Debug)]
struct Expected {
    id: DefinitionId,
    name: String,
    figure: AlertFigure,
    filtered: Option<&'static str>,
    over: AlertWindow,
    condition: Condition,
    /// When it began to fire, and the window.
    firing: Option<Day>,
    last_window: Option<Day>,
    last_fired: i64,
    changes: Vec<(ChangeKind, i64, String, Day)>,
    /// How often it was compared with the same weekdays.
    compared: usize,
}

impl Expected {
    /// The figure of a window, from all events.
    fn figure(&self, sent: &[SentEvent], window: Window) -> Amount {
        let links: BTreeMap<&String, &String> =
            sent.iter().filter_map(|event| event.anonymous.as_ref().zip(event.user.as_ref())).collect();
        let person = |event: &SentEvent| {
            let linked = event
                .anonymous
                .as_ref()
                .map(|id| links.get(id).map_or_else(|| format!("anonymous {id}"), |user| (*user).clone()));
            event.user.clone().or(linked)
        };
        let is_chosen = |event: &&SentEvent| window.contains(event.day) && self.filtered.is_none_or(|name| event.name == name);
        let chosen: Vec<_> = sent.iter().filter(is_chosen).collect();
        let people =
            |events: &mut dyn Iterator<Item = &SentEvent>| events.filter_map(person).collect::<BTreeSet<_>>().len() as u64;
        let orders = || chosen.iter().filter(|event| event.name == "order").copied();
        let whole = |count: usize| Amount::from_units(i64::try_from(count).unwrap());
        match self.figure {
            AlertFigure::Events => whole(chosen.len()),
            AlertFigure::Conversions => whole(orders().count()),
            AlertFigure::Orders => whole(chosen.iter().filter(|event| event.value > 0).count()),
            AlertFigure::Revenue => Amount::from_units(chosen.iter().map(|event| event.value).sum()),
            AlertFigure::UniqueUsers => Amount::from_units(people(&mut chosen.iter().copied()).cast_signed()),
            AlertFigure::Converters => Amount::from_units(people(&mut orders()).cast_signed()),
            AlertFigure::Rate => ratio_of_counts(people(&mut orders()), people(&mut chosen.iter().copied())),
            other => panic!("{other} has no model"),
        }
    }

    /// Evaluates the alert, as the documents say.
    fn evaluate(&mut self, sent: &[SentEvent], now_ms: i64) {
        let interval = Interval::from(self.over);
        let current = interval.window_of(Timezone::UTC.day_of(Instant(now_ms)));
        let last = interval.window_of(current.start.plus(-1));
        let ended_ms = Timezone::UTC.end_of(last.end).0;
        let is_above = matches!(self.condition, Condition::Above(_));
        let is_running = is_above && self.figure != AlertFigure::Rate;
        // Windows that had ended before the alert was made don't count.
        if ended_ms > BEGIN_MS && (!is_running || now_ms - ended_ms <= 48 * HOUR_MS) {
            self.evaluate_in(sent, last, is_running, now_ms);
        }
        if is_running {
            self.evaluate_in(sent, current, false, now_ms);
        }
    }

    /// The figures, in millionths, below and above which the alert fires, whether these are beyond, too,
    /// and the size of the threshold or of the change; `None` if there is nothing to compare with.
    fn limits(&self, sent: &[SentEvent], window: Window) -> Option<(i128, i128, bool, i128)> {
        let change = match self.condition {
            Condition::Above(threshold) => return Some((i128::MIN, threshold.micros(), false, threshold.micros().abs())),
            Condition::Below(threshold) => return Some((threshold.micros(), i128::MAX, false, threshold.micros().abs())),
            Condition::Changes(change) => change,
        };
        let figure = |window: Window| self.figure(sent, window).micros();
        let baseline = match change.against {
            Against::Previous => figure(Interval::from(self.over).window_of(window.start.plus(-1))),
            Against::SameWeekday => {
                let days = [7, 14, 21, 28].map(|days| window.start.plus(-days));
                let busy = days.into_iter().filter(|day| sent.iter().any(|event| event.day == *day));
                let mut figures: Vec<_> = busy.map(|day| figure(Window { start: day, end: day })).collect();
                figures.sort_unstable();
                match figures[..] {
                    [low, high] | [_, low, high, _] => (low + high) / 2,
                    [_, middle, _] => middle,
                    _ => return None,
                }
            }
        };
        let size = match change.size {
            ChangeSize::Absolute(size) => size.micros(),
            ChangeSize::Share(share) => baseline.abs() * share.micros() / 1_000_000,
        };
        let limit = |is_there: bool, limit: i128, otherwise: i128| if is_there { limit } else { otherwise };
        let limits = (limit(change.down, baseline - size, i128::MIN), limit(change.up, baseline + size, i128::MAX));
        (size > 0).then_some((limits.0, limits.1, true, size))
    }

    fn evaluate_in(&mut self, sent: &[SentEvent], window: Window, is_late: bool, now_ms: i64) {
        let limits = self.limits(sent, window);
        let is_next = matches!(self.condition, Condition::Changes(_)) && self.firing.is_some_and(|of| window.start > of);
        // Without a baseline, a change is over in the next window.
        let otherwise = (i128::MIN, i128::MAX, false, 1);
        let Some((low, high, is_beyond, size)) = limits.or(is_next.then_some(otherwise)) else { return };
        let value = self.figure(sent, window).micros();
        let is_count = self.figure != AlertFigure::Rate && self.figure != AlertFigure::Revenue;
        let margin = if is_count { (size / 10).max(1_000_000).min(size) } else { size / 10 };
        let holds = value < low || value > high || is_beyond && (value == low || value == high);
        let is_back = !holds && value >= low.saturating_add(margin) && value <= high.saturating_sub(margin);
        self.compared += usize::from(self.condition.is_against_weekdays());
        let is_new = !is_late || self.last_window.is_none_or(|last| window.start > last);
        let kind = match self.firing {
            None if holds && is_new && now_ms - self.last_fired >= HOUR_MS => {
                (self.firing, self.last_window, self.last_fired) = (Some(window.start), Some(window.start), now_ms);
                ChangeKind::Fired
            }
            Some(_) if is_next && holds => {
                (self.firing, self.last_window, self.last_fired) = (Some(window.start), Some(window.start), now_ms);
                ChangeKind::Fired
            }
            Some(of) if (is_back || is_next) && window.start >= of => {
                self.firing = None;
                if of == window.start { ChangeKind::Corrected } else { ChangeKind::Resolved }
            }
            _ => return,
        };
        self.changes.push((kind, now_ms, value.to_string(), window.start));
    }
}

/// The texts that the channel took, and whether tries fail.
#[derive(Default)]
struct Taken {
    texts: Mutex<Vec<String>>,
    tries: AtomicBool,
    random: Mutex<u64>,
}

impl Taken {
    fn take(&self, body: &[u8]) -> Result<u16, &'static str> {
        let mut random = Random(*self.random.lock());
        let chance = random.below(6);
        *self.random.lock() = random.0;
        match chance {
            0 | 1 if self.tries.load(Ordering::SeqCst) => Ok(500),
            2 if self.tries.load(Ordering::SeqCst) => Err("timeout"),
            _ => {
                let body: serde_json::Value = serde_json::from_slice(body).unwrap();
                self.texts.lock().push(body["text"].as_str().unwrap().lines().next().unwrap().to_owned());
                Ok(204)
            }
        }
    }
}

/// An engine whose alerts the test evaluates.
struct Rig {
    dir: TempDir,
    clock: Arc<FixedClock>,
    taken: Arc<Taken>,
    engine: Engine,
    evaluator: Evaluator,
    organization: OrganizationId,
    project: ProjectId,
}

fn open(dir: &Path, clock: &Arc<FixedClock>, taken: &Arc<Taken>) -> Engine {
    let taken = Arc::clone(taken);
    let settings =
        PushSettings { send: Arc::new(move |_, body| taken.take(&body)), ..PushSettings::guarded(AllowList::default(), false) };
    let mut config = EngineConfig::new(dir);
    config.shards = 1;
    config.min_free_bytes = 0;
    config.clock = Arc::<FixedClock>::clone(clock);
    config.features = vec![Arc::new(move |parts, _| Ok(Arc::new(Pushed::open(parts.clone(), settings.clone())?)))];
    Engine::open(config).unwrap()
}

impl Rig {
    fn new(seed: u64) -> Self {
        let (dir, clock, taken) =
            (tempfile::tempdir().unwrap(), Arc::new(FixedClock::at(Instant(BEGIN_MS))), Arc::new(Taken::default()));
        *taken.random.lock() = seed;
        taken.tries.store(true, Ordering::SeqCst);
        let engine = open(dir.path(), &clock, &taken);
        let made = engine.registry().initialize(Instant(BEGIN_MS)).unwrap();
        let (organization, project) = (made.organization_id, made.project_id);
        let evaluator = Evaluator::new(engine.feature().unwrap());
        Self { dir, clock, taken, engine, evaluator, organization, project }
    }

    /// Makes the channel, the goal and some alerts.
    fn make(&mut self, random: &mut Random) -> Vec<Expected> {
        let (registry, now) = (self.engine.registry(), Instant(BEGIN_MS));
        let pushed: Arc<Pushed> = self.engine.feature().unwrap();
        let secret = SealedSecret::seal(pushed.parts.signer(), self.organization, "https://a.example/").unwrap();
        let quoted = |text: &str| format!("{text:?}");
        let fields = [("kind", quoted("slack")), ("target", quoted("a")), ("secret", serde_json::to_string(&secret).unwrap())];
        let fields = fields.map(|(name, json)| (name.to_owned(), json)).into();
        let channel =
            registry.create_definition((self.organization, None), DefinitionKind::Channel, ("c".into(), fields), now).unwrap();
        let place = (self.organization, Some(self.project));
        let goal = AlertFields::from([("event_name".to_owned(), quoted("order"))]);
        let goal = registry.create_definition(place, DefinitionKind::Goal, ("g".into(), goal), now).unwrap();
        let figures = [
            AlertFigure::Events,
            AlertFigure::UniqueUsers,
            AlertFigure::Revenue,
            AlertFigure::Orders,
            AlertFigure::Conversions,
            AlertFigure::Converters,
            AlertFigure::Rate,
        ];
        let mut alert = |number: usize| {
            let (figure, over) =
                (figures[number % figures.len()], random.one_of(&[AlertWindow::Day, AlertWindow::Week, AlertWindow::Month]));
            let filtered = random.one_of(&[None, None, Some("order"), Some("a")]);
            let threshold = match figure {
                AlertFigure::Rate => Amount::from_micros(i128::from(random.below(10)) * 100_000),
                AlertFigure::Revenue => Amount::from_units(random.below(300).cast_signed()),
                _ => Amount::from_units(random.below(8).cast_signed()),
            };
            let against = if over == AlertWindow::Day { random.one_of(&["previous", "same_weekday"]) } else { "previous" };
            let by = random.one_of(&["\"-50%\"", "\"+100%\"", "\"±25%\"", "-3", "2.5"]);
            let json = match random.below(4) {
                0 => format!(r#"{{"above":{threshold}}}"#),
                1 => format!(r#"{{"below":{threshold}}}"#),
                _ => format!(r#"{{"changes_by":{by},"against":"{against}"}}"#),
            };
            let condition = Condition::parse(&json).unwrap();
            let mut fields = AlertFields::from(
                [("figure", quoted(figure.as_str())), ("over", quoted(over.as_str())), ("condition", json)]
                    .map(|(name, json)| (name.to_owned(), json)),
            );
            fields.insert("channels".into(), format!("[\"{}\"]", channel.id));
            if let Some(name) = filtered {
                fields.insert("filters".into(), format!(r#"[{{"field":"name","operator":"is","value":"{name}"}}]"#));
            }
            if figure.is_of_goal() {
                fields.insert("goal".into(), quoted(&goal.id.to_string()));
            }
            let name = format!("alert {number}");
            let id = registry.create_definition(place, DefinitionKind::Alert, (name.clone(), fields), now).unwrap().id.clone();
            Expected {
                id,
                name,
                figure,
                filtered,
                over,
                condition,
                firing: None,
                last_window: None,
                last_fired: i64::MIN / 2,
                changes: Vec::new(),
                compared: 0,
            }
        };
        (0..8).map(&mut alert).collect()
    }

    /// Evaluates until nothing is left to evaluator or to send now.
    async fn run_all(&mut self) {
        self.evaluator.read();
        for _ in 0..3 {
            self.evaluator.rests.clear();
            self.evaluator.look().await;
            while let Some(ended) = self.evaluator.tasks.join_next().await {
                let ended = ended.unwrap();
                assert!(!matches!(ended, Ended::Evaluated(Evaluated { outcome: Err(_), .. })), "it is evaluated");
                self.evaluator.end(ended);
            }
        }
    }

    async fn restart(self) -> Self {
        let Self { dir, clock, taken, engine, evaluator, organization, project } = self;
        engine.close().await;
        drop((evaluator, engine));
        let engine = open(dir.path(), &clock, &taken);
        let evaluator = Evaluator::new(engine.feature().unwrap());
        Self { dir, clock, taken, engine, evaluator, organization, project }
    }

    async fn erase(&self, user: &str) {
        let (engine, organization, subject) = (self.engine.clone(), self.organization, ErasureSubject::User(user.to_owned()));
        let Ok(number) = tokio::task::spawn_blocking(move || engine.erase(organization, &subject)).await.unwrap() else { return };
        let began = Stopwatch::now();
        while self.engine.erasure(self.organization, number) != Some(ErasureState::Done) {
            assert!(began.elapsed() < Duration::from_secs(60), "the erasure does not end");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn state(&self, id: &DefinitionId) -> Option<AlertState> {
        self.evaluator.pushed.states.get(id)
    }
}

/// Sends a random event. Returns it if it was recorded.
async fn track(rig: &Rig, random: &mut Random, now_ms: i64) -> Option<SentEvent> {
    let at_ms = now_ms - i64::try_from(random.below(6)).unwrap().saturating_sub(3).max(0) * DAY_MS;
    let number = random.below(3);
    let (user, anonymous) = match random.below(4) {
        0 => (Some(format!("alone{number}")), None),
        1 => (Some(format!("linked{number}")), Some(format!("browser{number}"))),
        2 => (Some(format!("linked{number}")), None),
        _ => (None, Some(format!("browser{number}"))),
    };
    let (name, value) = match random.below(3) {
        0 => ("order", i64::try_from(random.below(90)).unwrap() + 10),
        1 => ("refund", -i64::try_from(random.below(90)).unwrap() - 10),
        _ => ("a", 0),
    };
    let mut event = NewEvent::new(name).at_ms(at_ms).value(&value.to_string()).unwrap();
    event = user.iter().fold(event, |event, user| event.user(user));
    event = anonymous.iter().fold(event, |event, id| event.anonymous(id));
    let receipt = rig.engine.track(rig.project, &event).await.unwrap();
    let day = Timezone::UTC.day_of(Instant(at_ms));
    (receipt.status == Status::Recorded).then_some(SentEvent { name, user, anonymous, value, day })
}

fn check(rig: &Rig, expected: &[Expected], what: &str) {
    for alert in expected {
        let state = rig.state(&alert.id);
        let changes = state.iter().flat_map(|state| &state.changes);
        let changes: Vec<_> = changes.map(|change| (change.kind, change.at.0, change.value.clone(), change.window.0)).collect();
        assert_eq!(changes, alert.changes, "{what}: {alert:?}");
    }
}

fn trials(otherwise: u64) -> u64 {
    std::env::var("HEADCOUNT_ALERT_TRIALS").ok().and_then(|trials| trials.parse().ok()).unwrap_or(otherwise)
}

/// One history: events, late ones, links, refunds, erasures, restarts and passing hours.
async fn history(seed: u64) -> (usize, usize) {
    let (mut random, mut rig) = (Random(seed.wrapping_mul(7_919)), Rig::new(seed));
    let (mut expected, mut sent, mut now_ms) = (rig.make(&mut random), Vec::<SentEvent>::new(), BEGIN_MS);
    for step in 0..STEPS {
        match random.below(20) {
            0 => rig = rig.restart().await,
            1 => {
                let user = format!("alone{}", random.below(3));
                rig.erase(&user).await;
                sent.retain(|event| event.user.as_ref() != Some(&user));
            }
            2..=6 => {
                let (hours, days) = random.one_of(&[(20, 0), (30, 0), (8, 7), (1, 7)]);
                now_ms += i64::try_from(random.below(hours)).unwrap() * HOUR_MS + days * DAY_MS;
                rig.clock.set(Instant(now_ms));
            }
            _ => sent.extend(track(&rig, &mut random, now_ms).await),
        }
        rig.run_all().await;
        expected.iter_mut().for_each(|alert| alert.evaluate(&sent, now_ms));
        check(&rig, &expected, &format!("seed {seed}, step {step}"));
    }
    rig.taken.tries.store(false, Ordering::SeqCst);
    for _ in 0..2 {
        now_ms += 2 * HOUR_MS;
        rig.clock.set(Instant(now_ms));
        rig.run_all().await;
        expected.iter_mut().for_each(|alert| alert.evaluate(&sent, now_ms));
    }
    // The channel gets one message at a time.
    for _ in 0..8 {
        rig.run_all().await;
    }
    check(&rig, &expected, &format!("seed {seed}, the end"));
    // Each change was delivered once, or was tried for a day.
    let mut wanted = Vec::new();
    for alert in &expected {
        for change in rig.state(&alert.id).iter().flat_map(|state| &state.changes) {
            let word = if change.kind == ChangeKind::Fired { "Alert" } else { "Resolved" };
            match change.messages[0].status {
                MessageStatus::Delivered => wanted.push(format!("{word}: {}", alert.name)),
                MessageStatus::Dead => assert!(change.messages[0].next_at.0 - change.at.0 > TRIED_MS, "seed {seed}: {change:?}"),
                MessageStatus::Pending => panic!("seed {seed}: {change:?}"),
            }
        }
    }
    let mut got: Vec<_> = rig.taken.texts.lock().iter().map(|text| text.split(" (").next().unwrap().to_owned()).collect();
    wanted.sort();
    got.sort();
    assert_eq!(got, wanted, "seed {seed}");
    rig.engine.close().await;
    (wanted.len(), expected.iter().map(|alert| alert.compared).sum())
}

#[tokio::test(flavor = "multi_thread")]
async fn alerts_change_as_the_model_says() {
    let (trials, mut changes, mut compared) = (trials(15), 0, 0);
    for seed in 0..trials {
        let of_one = history(seed).await;
        (changes, compared) = (changes + of_one.0, compared + of_one.1);
    }
    assert!(changes as u64 > 5 * trials && compared as u64 > trials / 2, "{changes} and {compared} in {trials} histories");
}

/// A history without late events, refunds and erasures fires in the windows that the preview names.
async fn previewed_history(seed: u64) -> usize {
    let (mut random, mut rig) = (Random(seed.wrapping_mul(104_729) + 1), Rig::new(seed));
    let (expected, mut now_ms) = (rig.make(&mut random), BEGIN_MS);
    for _ in 0..STEPS {
        if random.below(3) == 0 {
            now_ms += i64::try_from(random.below(20)).unwrap() * HOUR_MS;
            rig.clock.set(Instant(now_ms));
        } else {
            let value = random.below(90) + 10;
            let event = NewEvent::new(random.one_of(&["order", "a"])).at_ms(now_ms).user(format!("u{}", random.below(9)));
            rig.engine.track(rig.project, &event.value(&value.to_string()).unwrap()).await.unwrap();
        }
        rig.run_all().await;
    }
    let (registry, now, place) = (rig.engine.registry(), Instant(now_ms), (rig.organization, Some(rig.project)));
    let (today, first) = (Timezone::UTC.day_of(now), Timezone::UTC.day_of(Instant(BEGIN_MS)));
    let mut fired = 0;
    for alert in &expected {
        let alert = Alert::of(&registry.definition(place, &alert.id).unwrap(), registry).unwrap();
        let interval = Interval::from(alert.rule.over);
        let mut windows = vec![interval.window_of(first)];
        while windows[windows.len() - 1].end < today {
            windows.push(interval.window_of(windows[windows.len() - 1].end.plus(1)));
        }
        let pushed = &rig.evaluator.pushed;
        let shown = previewed(pushed, rig.project, (&alert.rule, &alert.events), &windows, (Timezone::UTC, now, None)).await;
        let fires = shown.unwrap().into_iter().filter(|window| window.fires).map(|window| window.start_date);
        let state = rig.state(&alert.id);
        let changes = state.iter().flat_map(|state| &state.changes).filter(|change| change.kind == ChangeKind::Fired);
        let changes: Vec<_> = changes.map(|change| change.window.0.to_string()).collect();
        assert_eq!(fires.collect::<Vec<_>>(), changes, "seed {seed}: {alert:?}");
        fired += changes.len();
    }
    rig.engine.close().await;
    fired
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_names_the_windows_that_the_alert_fires_for() {
    let mut fired = 0;
    for seed in 0..trials(10) {
        fired += previewed_history(seed).await;
    }
    assert!(fired > 30, "{fired}");
}

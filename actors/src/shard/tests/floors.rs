//! Records that raise the floor of a project.

use headcount_common::partition_of;
use headcount_domain::acquisition::Acquisition;
use headcount_domain::intake::event::Money;
use headcount_domain::queries::{AttributionQuery, Dimension, EntityLevel, TouchModel};
use headcount_domain::{Amount, Currency, Fault, FloorMove};

use super::*;

const FLOOR: Day = Day(19_001);

fn raise(rig: &mut Rig, project: ProjectId, day: Day) {
    assert_eq!(rig.record(project, LogRecord::Floor(FloorMove { project, day })).len(), 1);
}

fn on(day: Day, mut event: Event) -> Event {
    event.day = day;
    event
}

fn dropped(rig: &mut Rig, project: ProjectId, events: Vec<Event>) -> Vec<bool> {
    let outcomes = rig.record(project, LogRecord::Events(events.into_iter().map(Box::new).collect()));
    outcomes.iter().map(|outcome| outcome.is_dropped).collect()
}

fn floor(rig: &mut Rig, project: ProjectId) -> Option<Day> {
    rig.shard.last(project).unwrap();
    rig.shard.pipeline.context.floors.get(project)
}

/// Two users before the floor; then one whose first event is dropped and whose second takes the
/// same external id.
fn fill(rig: &mut Rig, project: ProjectId, checkpoint: bool) {
    rig.send(project, users(project, 0..2));
    if checkpoint {
        rig.round();
    }
    raise(rig, project, FLOOR);
    let late = vec![event(project, 5), on(FLOOR, event(project, 5)), on(FLOOR, event(project, 5))];
    assert_eq!(dropped(rig, project, late), [true, false, false], "a dropped event does not take its external id");
    assert_eq!(rig.users(project), 3);
}

#[test]
fn a_floor_drops_earlier_events_and_is_replayed() {
    for checkpoints in [(false, false), (true, false), (true, true)] {
        let mut rig = Rig::new(NEVER, 1 << 30);
        let (project, other) = two();
        fill(&mut rig, project, checkpoints.0);
        raise(&mut rig, project, Day(18_000));
        if checkpoints.1 {
            rig.round();
        }
        rig.restart();
        assert_eq!((rig.users(project), floor(&mut rig, project)), (3, Some(FLOOR)), "{checkpoints:?}");
        assert_eq!(floor(&mut rig, other), None);
        assert_eq!(dropped(&mut rig, project, users(project, 7..8)), [true]);
        assert_eq!(rig.users(project), 3);
    }
}

#[test]
fn a_rebuild_raises_the_floor_again() {
    let mut rig = Rig::new(NEVER, 1 << 30);
    let (project, _) = two();
    fill(&mut rig, project, false);
    rig.shard.break_partition((partition_of(project), Fault::defect("a test")));
    let began = Stopwatch::now();
    while rig.shard.has_queued() {
        assert!(began.elapsed() < PATIENCE, "the rebuild comes to no end");
        rig.shard.advance();
    }
    assert_eq!((rig.users(project), floor(&mut rig, project)), (3, Some(FLOOR)));
    assert_eq!(dropped(&mut rig, project, users(project, 7..8)), [true]);
}

const BUYERS: u64 = 12;
const ORDERS: u64 = 40;

/// Orders on many days by some users, whose earlier visits come later, so that attribution is
/// deferred.
fn fill_with_orders(rig: &mut Rig, project: ProjectId) {
    let of = |user: u64, day: i32| Event {
        time: Instant(i64::from(day) * 86_400_000),
        day: Day(day),
        external_id: None,
        ..event(project, user)
    };
    let amount = Amount(5_000_000);
    let currency = Currency::USD;
    let money = Money { amount, currency, in_project: Some(amount), in_organization: Some(amount), counted: true };
    for user in 0..BUYERS {
        let order = |number: u64| Event { money: Some(money), ..of(user, 18_900 + i32::try_from(number).unwrap()) };
        rig.send(project, (0..ORDERS).map(order).collect());
        let source = format!("s{}", user % 3);
        let mut visit = Event { name: "pageview".into(), ..of(user, 18_800) };
        visit.details.acquisition = Some(Acquisition { source: source.into(), ..Acquisition::direct() });
        rig.send(project, vec![visit]);
    }
}

fn attributed(rig: &mut Rig, project: ProjectId) -> Vec<String> {
    let window = Window { start: Day(18_700), end: Day(19_000) };
    let ask = |model| AttributionQuery { model, level: EntityLevel::Identity, dimension: Dimension::Source, window, limit: 10 };
    [TouchModel::FirstTouch, TouchModel::LastTouch]
        .map(|model| format!("{:?}", rig.shard.answer(project, &ask(model)).unwrap()))
        .to_vec()
}

/// Logs the record of a floor, without raising it.
fn enqueue(rig: &mut Rig, project: ProjectId) -> std::sync::mpsc::Receiver<Vec<Outcome>> {
    let record = LogRecord::Floor(FloorMove { project, day: FLOOR });
    let (partition, payload) = (partition_of(project), record.encode().unwrap());
    let first = rig.log.append(&[AppendEntry { partition, count: 1, payload: &payload }]).unwrap();
    let (answer, answered) = channel();
    let reply = Box::new(move |outcomes| drop(answer.send(outcomes)));
    rig.shard.enqueue(Work { partition, project, first, record, permits: Vec::new(), reply });
    answered
}

/// Takes turns until the floor of the project is being raised.
fn begin(rig: &mut Rig) {
    while !rig.shard.pipeline.is_raising() {
        assert!(rig.shard.advance(), "it is raised in one step");
    }
}

#[test]
fn a_floor_over_many_orders_rises_between_other_work() {
    let mut rig = Rig::new(NEVER, 1 << 30);
    let (project, other) = two();
    fill_with_orders(&mut rig, project);
    rig.round();
    let (expected, saved) = (attributed(&mut rig, project), rig.saved(project));
    assert!(saved > 0 && expected[0].contains("s2"), "{expected:?}");
    let answered = enqueue(&mut rig, project);
    begin(&mut rig);
    // No answer differs, and other projects are served and saved.
    assert_eq!((attributed(&mut rig, project), floor(&mut rig, project)), (expected.clone(), None));
    assert!(answered.try_recv().is_err());
    let next = rig.shard.begin_checkpoints(true);
    rig.go_on(next);
    assert_eq!(rig.saved(project), saved, "a checkpoint would be that of no position");
    while rig.shard.advance() {
        assert_eq!(attributed(&mut rig, project), expected);
    }
    assert_eq!(answered.try_recv().unwrap().len(), 1);
    assert_eq!(floor(&mut rig, project), Some(FLOOR));
    rig.round();
    assert!(rig.saved(project) > saved);
    rig.send(other, users(other, 0..2));
    rig.restart();
    assert_eq!((attributed(&mut rig, project), floor(&mut rig, project)), (expected, Some(FLOOR)));
}

/// If the program ends while part of it is only in memory, it is raised again.
#[test]
fn a_floor_that_was_half_raised_is_raised_again() {
    let mut rig = Rig::new(NEVER, 1 << 30);
    let (project, _) = two();
    fill_with_orders(&mut rig, project);
    let expected = attributed(&mut rig, project);
    for is_lost in [true, false] {
        let answered = enqueue(&mut rig, project);
        begin(&mut rig);
        match is_lost {
            true => rig.restart(),
            false => rig.shard.break_partition((partition_of(project), Fault::defect("a test"))),
        }
        assert!(!rig.shard.pipeline.is_raising());
        let began = Stopwatch::now();
        while rig.shard.has_queued() {
            assert!(began.elapsed() < PATIENCE, "the rebuild comes to no end");
            rig.shard.advance();
        }
        assert_eq!((attributed(&mut rig, project), floor(&mut rig, project)), (expected.clone(), Some(FLOOR)));
        assert_eq!(answered.try_recv().is_ok(), !is_lost, "who waits for a lost floor hears that its outcome is unknown");
        if is_lost {
            // Another directory, where the floor has not risen yet.
            rig = Rig::new(NEVER, 1 << 30);
            fill_with_orders(&mut rig, project);
        }
    }
}

/// Events wait for a checkpoint while memory is short. The floor does not, since the checkpoint
/// waits for it.
#[test]
fn a_floor_rises_while_memory_is_short() {
    let mut rig = Rig::new(NEVER, 1 << 30);
    let (project, other) = two();
    fill_with_orders(&mut rig, project);
    rig.round();
    let expected = attributed(&mut rig, project);
    let answered = enqueue(&mut rig, project);
    begin(&mut rig);
    rig.shard.evictor.press();
    rig.send(other, users(other, 0..5));
    assert!(rig.shard.is_backpressured() && !rig.shard.pipeline.is_raising());
    assert_eq!(answered.try_recv().unwrap().len(), 1);
    assert_eq!((attributed(&mut rig, project), floor(&mut rig, project)), (expected, Some(FLOOR)));
    assert_eq!((rig.users(other), rig.shard.has_queued()), (0, true), "events wait");
    rig.round();
    rig.shard.evict_if_needed();
    while rig.shard.advance() {}
    assert_eq!(rig.users(other), 5);
}

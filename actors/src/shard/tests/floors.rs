//! Records that raise the floor of a project.

use headcount_domain::fault::Fault;
use headcount_domain::floor::FloorMove;

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
    rig.shard.pipeline.context.floors.get(&project).map(|floor| *floor)
}

/// Two users before the floor; then one whose first event is dropped and whose second takes the same external id.
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

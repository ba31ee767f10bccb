//! A stop at any moment changes no byte: not of a cell, and not of a record.

use headcount_domain::indexes::dictionary::TermKind;
use headcount_domain::limits::Limits;
use headcount_domain::rollups::Rollups;
use headcount_domain::{Event, Project};
use headcount_histories::{History, Size};

use super::saved::{Saved, let_go};
use super::{Folded, NOW_MS, TINY, hasher, trials};

type Log = Vec<(Event, u64)>;

/// A project that is folded, and what of it was saved.
struct Run {
    state: Project,
    saved: Saved,
}

impl Run {
    fn new(limits: Limits) -> Self {
        Self { state: Project::new(limits), saved: Saved::default() }
    }

    fn fold(&mut self, log: &[(Event, u64)]) {
        for (event, position) in log {
            self.state.apply(event, *position, hasher(), &self.saved).unwrap();
        }
    }

    fn restart(&mut self) {
        self.saved.save(&mut self.state);
        self.state = self.saved.start(self.state.limits);
    }

    /// Everything, as bytes.
    fn bytes(mut self) -> Saved {
        self.restart();
        self.saved
    }
}

/// What the projects of a history recorded.
fn logs(seed: u64, events: usize) -> Vec<Log> {
    let history = History::from_seed(seed, NOW_MS, Size { events, questions: 0 });
    let folded = Folded::of(&history);
    folded.projects.into_values().map(|held| held.into_inner().unwrap().log).collect()
}

fn straight(log: &Log) -> Saved {
    let mut run = Run::new(TINY);
    run.fold(log);
    run.bytes()
}

fn same(straight: &Saved, other: &Saved, what: &str) {
    let differs = straight.cells.iter().find(|(at, bytes)| other.cells.get(at) != Some(bytes)).map(|(at, _)| at);
    assert!(differs.is_none(), "{what}: the part {differs:?} differs");
    assert_eq!(straight.cells.len(), other.cells.len(), "{what}: there are more parts");
    assert!(straight == other, "{what}: a record differs");
}

#[test]
fn a_stop_after_any_event_changes_no_byte() {
    for seed in 0..trials(40) {
        for log in logs(seed, 100) {
            let expected = straight(&log);
            for stop in 0..=log.len() {
                let mut run = Run::new(TINY);
                run.fold(&log[..stop]);
                run.restart();
                run.fold(&log[stop..]);
                same(&expected, &run.bytes(), &format!("seed {seed}, stopped after {stop} events"));
            }
        }
    }
}

#[test]
fn stops_after_every_few_events_change_no_byte() {
    for seed in 0..trials(60) {
        for log in logs(seed, 200) {
            let expected = straight(&log);
            for batch in [1, 2, 3, 7, 19] {
                let mut run = Run::new(TINY);
                for events in log.chunks(batch) {
                    run.fold(events);
                    run.restart();
                }
                same(&expected, &run.bytes(), &format!("seed {seed}, in batches of {batch}"));
            }
        }
    }
}

/// As a running engine does it: events go on while a checkpoint is written, and what they changed
/// is not in it.
#[test]
fn a_checkpoint_is_of_the_moment_at_which_it_began() {
    for seed in 0..trials(40) {
        for log in logs(seed, 100) {
            let expected = straight(&log);
            for begin in (0..=log.len()).step_by(3) {
                let mut run = Run::new(TINY);
                run.fold(&log[..begin]);
                run.saved.begin(&mut run.state);
                let mut rest = log[begin..].chunks(1);
                while !run.saved.go_on(&mut run.state, 1) {
                    run.fold(rest.next().unwrap_or_default());
                }
                // The process dies here: nothing but the checkpoint is left.
                let mut again = Run { state: run.saved.start(TINY), saved: run.saved };
                again.fold(&log[begin..]);
                same(&expected, &again.bytes(), &format!("seed {seed}, a checkpoint begun after {begin} events"));
            }
        }
    }
}

/// With a budget for memory, what was saved is let go of and read back again.
#[test]
fn letting_go_of_what_was_saved_changes_no_byte() {
    for seed in 0..trials(60) {
        for log in logs(seed, 200) {
            let mut run = Run::new(TINY);
            for (step, event) in (0..).zip(log.chunks(1)) {
                run.fold(event);
                if run.saved.is_running() {
                    if run.saved.go_on(&mut run.state, 1) {
                        let_go(&mut run.state);
                    }
                } else if step % 3 == 0 {
                    run.saved.begin(&mut run.state);
                }
            }
            same(&straight(&log), &run.bytes(), &format!("seed {seed}"));
        }
    }
}

/// The rows of a project whose dictionary was full before it began. In which order texts get their
/// numbers is a matter of which events may begin a session as far as the recent page shows, so it
/// depends on pages; what the numbers mean does not.
fn rows(log: &Log, page_items: usize) -> Rollups {
    let mut run = Run::new(Limits { page_items, ..TINY });
    for acquisition in log.iter().filter_map(|(event, _)| event.details.acquisition.as_ref()) {
        for text in [&acquisition.source, &acquisition.medium, &acquisition.campaign] {
            run.state.dictionary.intern(text, TermKind::Source, hasher(), &run.saved).unwrap();
        }
    }
    run.fold(log);
    run.restart();
    run.state.rollups
}

#[test]
fn the_size_of_pages_changes_no_row() {
    for seed in 0..trials(100) {
        for log in logs(seed, 200) {
            let large = rows(&log, 1024);
            for items in [1, TINY.page_items, 40] {
                assert!(large == rows(&log, items), "seed {seed}: pages of {items} items give other rows");
            }
        }
    }
}

//! Runs of orders change no figure: the same events with and without them.

use std::collections::BTreeMap;

use headcount_domain::cells::Cells;
use headcount_domain::contribution::Sign;
use headcount_domain::facts::Touch;
use headcount_domain::limits::Limits;
use headcount_domain::records::NoSource;
use headcount_domain::rollups::{DayAndUnder, DeferredAttribution, TouchSums, Under};
use headcount_domain::{Event, KeyHasher, Project};

use super::events::{last_touch_event, scattered};
use super::pages_of;

type Sums = BTreeMap<(i32, Option<Touch>), TouchSums>;

fn sums(cells: &Cells<DayAndUnder, TouchSums>, deferred: &DeferredAttribution) -> Sums {
    let mut sums = Sums::new();
    for ((day, under), row) in cells.iter() {
        let touch = match under {
            Under::Touch(touch) => touch,
            Under::Deferred(key) => deferred.get(key).expect("every deferred attribution has a row"),
        };
        sums.entry((day, touch)).or_default().add(row, Sign::Plus);
    }
    sums
}

fn folded(events: &[Event], max_inline_run: usize) -> (Sums, Sums, bool) {
    let (mut project, hasher) = (Project::new(Limits { max_inline_run, ..pages_of(16) }), KeyHasher::new([9; 16]));
    for (event, position) in events.iter().zip(1..) {
        project.apply(event, position, &hasher, &NoSource).unwrap();
    }
    let rollups = &project.rollups;
    let has_runs = rollups.last_touch_by_identity.iter().any(|((_, under), _)| matches!(under, Under::Deferred(_)));
    let identity = sums(&rollups.last_touch_by_identity, &rollups.deferred_by_identity);
    (identity, sums(&rollups.last_touch_by_account, &rollups.deferred_by_account), has_runs)
}

#[test]
fn runs_change_no_last_touch() {
    for seed in 0..40 {
        let events: Vec<Event> = (0..160).map(|number| last_touch_event(scattered(seed * 1000 + number), number < 80)).collect();
        for count in [90, 100, 120, 160] {
            let one_by_one = folded(&events[..count], usize::MAX);
            let in_runs = folded(&events[..count], 2);
            assert!(!one_by_one.2 && in_runs.2, "seed {seed}");
            assert_eq!((one_by_one.0, one_by_one.1), (in_runs.0, in_runs.1), "seed {seed}, {count} events");
        }
    }
}

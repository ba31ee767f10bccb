//! Rollups against the model, row by row: a rollup needs no question for that.

use std::collections::{BTreeMap, BTreeSet};

use headcount_domain::rollups::{Rollups, SUMS};
use headcount_histories::{History, Size, Step, Subject};
use headcount_model::rows::{Compared, Rows, compared};

use super::past::model;
use super::{Folded, NOW_MS, answers, has_floors, limits_of, trials};

/// The rows of each rollup, by name, as verification writes them.
fn rows(rollups: &Rollups) -> BTreeMap<&'static str, BTreeMap<String, String>> {
    let mut rows: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
    rollups.compare(&Rollups::new(&limits_of(0)), &mut |describe| {
        let cell = describe();
        rows.entry(cell.rollup).or_default().insert(cell.key, cell.stored.unwrap());
    });
    rows
}

#[test]
fn each_rollup_is_compared_with_the_model() {
    let (rollups, compared): (BTreeSet<_>, _) = (SUMS.iter().map(|rows| rows.name).collect(), compared());
    let without: Vec<_> = rollups.iter().filter(|name| !compared.contains_key(*name)).collect();
    assert!(
        without.is_empty(),
        "nothing compares these with the model, as a file in tests/model/src/answers/rollups does: {without:?}"
    );
    let unknown: Vec<_> = compared.keys().filter(|name| !rollups.contains(*name)).collect();
    assert!(unknown.is_empty(), "the domain has no such rollups: {unknown:?}");
    let mut asked = BTreeSet::new();
    for seed in 0..100 {
        let history = History::from_seed(seed, NOW_MS, Size { events: 10, questions: 60 });
        for step in history.steps.iter().filter(|step| answers::is_answered(step)) {
            if let Step::Ask(question) = step {
                asked.extend(question.path.split_once('}').map(|(_, path)| path.to_owned()));
            }
        }
    }
    for (rollup, by) in compared {
        if let Compared::Answers(path) = by {
            assert!(asked.contains(path), "{rollup} is compared by answers that nobody asks for: {path}");
        }
    }
}

#[test]
fn rows_equal_the_model() {
    let mut all = 0;
    for seed in 0..trials(150) {
        let history = History::from_seed(seed, NOW_MS, Size { events: 150, questions: 0 });
        let history = if has_floors(seed) { history.with_floors() } else { history };
        let mut folded = Folded::of(&history);
        if seed % 2 == 0 {
            folded.restart();
        }
        let model = model(&history);
        for project in &history.projects {
            let got = rows(&folded.projects[&project.name].lock().unwrap().state.rollups);
            for (rollup, expected) in model.rows(&project.name) {
                let got: Rows =
                    got.get(rollup).into_iter().flatten().map(|(key, sum)| (key.clone(), sum.parse().unwrap())).collect();
                all += got.len();
                assert_eq!(got, expected, "seed {seed}, {rollup} of {}\n{history}", project.name);
            }
        }
    }
    assert!(all > 0);
}

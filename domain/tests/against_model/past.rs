//! Lists whose window ends in the past: much happened after it, and members were seen since.

use chrono::{NaiveTime, TimeDelta};
use headcount_domain::Instant;
use headcount_histories::{History, Rng, Size, Step, compare, model_of, questions, sender_of};
use headcount_model::served::ignored;
use headcount_model::{Ids, Model};

use super::{Folded, NOW_MS, Subject, answers, has_floors, trials};

/// The model after the steps of a history.
pub(super) fn model(history: &History) -> Model {
    let mut model = model_of(history);
    for step in &history.steps {
        match step {
            Step::Track { project, body } => drop(model.record(project, body, NOW_MS, &sender_of(body))),
            Step::Batch { project, bodies } => {
                bodies.iter().for_each(|body| drop(model.record(project, body, NOW_MS, &sender_of(body))));
            }
            Step::Rates(rates) => model.set_rates(rates.clone()),
            Step::Settings { project, body } => model.ignore_referrers(project, ignored(body)),
            Step::Floor { project, day } => model.raise_floor(project, *day),
            Step::Restart | Step::Clock { .. } | Step::Ask(_) => {}
        }
    }
    model
}

#[test]
fn lists_of_the_past_equal_the_model() {
    for seed in 0..trials(60) {
        let history = History::from_seed(seed, NOW_MS, Size { events: 120, questions: 0 });
        let history = if has_floors(seed) { history.with_floors() } else { history };
        if history.live {
            continue;
        }
        let (mut folded, model, mut ids) = (Folded::of(&history), model(&history), Ids::default());
        let mut rng = Rng::new(seed);
        let mut asked = questions(&history, &mut rng, 60);
        asked
            .extend(history.steps.iter().filter_map(|step| if let Step::Ask(asked) = step { Some(asked.clone()) } else { None }));
        asked.retain(|asked| answers::is_answered(&Step::Ask(asked.clone())) && !asked.path.contains("{company:"));
        for day in &history.days {
            let noon = day.and_time(NaiveTime::MIN) + TimeDelta::hours(12);
            let now_ms = noon.and_utc().timestamp_millis();
            folded.now = Instant(now_ms);
            for question in &asked {
                let outcome = compare(model.answer(now_ms, question), folded.ask(question), &mut ids);
                assert!(outcome.is_ok(), "seed {seed}, on {day}: {question:?}\n{outcome:#?}\n{history}");
            }
        }
    }
}

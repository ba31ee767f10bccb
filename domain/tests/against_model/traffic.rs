//! Sessions by source, medium, campaign and channel against the model.

use headcount_domain::queries::{Listed, Traffic, TrafficQuery, TrafficRow};
use headcount_domain::{Day, Window};
use headcount_histories::{History, Size, Subject};
use headcount_model::traffic::{self, traffic};

use super::past::model;
use super::{Folded, NOW_MS, has_floors, trials};

fn shown(traffic: Traffic) -> traffic::Traffic {
    let rows = |list: Listed<TrafficRow>| list.rows.into_iter().map(|row| (row.name, row.sessions, row.bounces)).collect();
    traffic::Traffic {
        sessions: traffic.sessions,
        bounces: traffic.bounces,
        by_source: rows(traffic.by_source),
        by_medium: rows(traffic.by_medium),
        by_campaign: rows(traffic.by_campaign),
        by_channel: rows(traffic.by_channel),
    }
}

/// The windows of a history: each of its days, and all of them.
fn windows(history: &History) -> Vec<(String, String)> {
    let mut windows: Vec<_> = history.days.iter().map(|day| (day.to_string(), day.to_string())).collect();
    windows.push(("2022-01-01".to_owned(), "2027-12-31".to_owned()));
    windows
}

#[test]
fn sessions_and_what_brought_them() {
    let mut sessions = 0;
    for seed in 0..trials(200) {
        let history = History::from_seed(seed, NOW_MS, Size { events: 150, questions: 0 });
        let history = if has_floors(seed) { history.with_floors() } else { history };
        let mut folded = Folded::of(&history);
        if seed % 2 == 0 {
            folded.restart();
        }
        let model = model(&history);
        for (first, last) in windows(&history) {
            for project in &history.projects {
                let held = folded.projects.get_mut(&project.name).unwrap().get_mut().unwrap();
                let window = Window { start: Day::parse(&first).unwrap(), end: Day::parse(&last).unwrap() };
                let got = held.ask(&TrafficQuery { window, limit: usize::MAX }).unwrap();
                let mut visits = model.visits(&project.name);
                visits.retain(|visit| (&first..=&last).contains(&&visit.day.to_string()));
                let expected = traffic(&visits);
                sessions += got.sessions;
                assert_eq!(shown(got), expected, "seed {seed}, {} from {first} to {last}", project.name);
            }
        }
    }
    assert!(sessions > 0);
}

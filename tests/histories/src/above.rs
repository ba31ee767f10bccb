//! Questions about the days that floors leave.

use chrono::NaiveDate;
use headcount_model::{Json, Question};

const START: &str = "start_date";

/// Returns the question with a window that begins at the floor of its project, if it begins before,
/// and without a former period, which would reach below. `None`: its answer depends on what is
/// frozen whatever the window.
#[must_use]
pub fn above(mut question: Question, floor_of: impl Fn(&str) -> Option<NaiveDate>) -> Option<Question> {
    let project =
        question.path.strip_prefix("/projects/{").and_then(|rest| rest.split_once('}')).map(|(name, _)| name.to_owned());
    if question.path.ends_with("/intake") {
        // Receipts are known of all events together.
        return None;
    }
    let Some(floor) = project.and_then(|project| floor_of(&project)) else { return Some(question) };
    if ["/ltv-cohorts", "/retention"].iter().any(|operation| question.path.ends_with(operation)) {
        return Some(question);
    }
    let floor = floor.to_string();
    let is_before = |start: &str| start.get(..floor.len()).is_none_or(|day| *day <= *floor);
    match &mut question.body {
        Some(Json::Object(fields)) => {
            fields.remove("compare");
            if fields.get(START).and_then(Json::text).is_none_or(is_before) {
                fields.insert(START.to_owned(), Json::from(floor));
            }
        }
        _ => match question.query.iter_mut().find(|(name, _)| name == START) {
            Some((_, start)) if is_before(start) => *start = floor,
            Some(_) => {}
            None => question.query.push((START.to_owned(), floor)),
        },
    }
    Some(question)
}

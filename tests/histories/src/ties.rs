//! Lists whose rows are in the order of the server's ids where nothing else decides. The model does
//! not know these ids.

use headcount_model::{Answer, Json, Question};

/// A list, and what its rows are ordered by.
struct Ordered {
    list: &'static str,
    by: &'static [&'static str],
    /// The most rows that can be asked for.
    most: usize,
}

fn ordered(question: &Question) -> Option<Ordered> {
    if question.path.ends_with("/top-users") {
        return Some(Ordered { list: "users", by: &["events", "resolved_identifier", "last_seen"], most: 100 });
    }
    let people = Ordered { list: "people", by: &["at"], most: 500 };
    question.path.ends_with("/funnel/people").then_some(people)
}

fn is_of_people(question: &Question) -> bool {
    question.path.ends_with("/funnel/people")
}

/// Whether an answer is a list that is cut between equal rows, or that has people of one instant
/// whom no name tells apart. `answer` answers another question.
pub(crate) fn has_no_order(question: &Question, expected: &Answer, answer: impl Fn(&Question) -> Answer) -> bool {
    let Some(Ordered { list, by, most }) = ordered(question) else { return false };
    let rank = |row: &Json| by.iter().map(|field| row.field(field).clone()).collect::<Vec<_>>();
    let rows = expected.body.field(list).items();
    let unnamed = |pair: &[Json]| {
        let names = [0, 1].map(|at| pair[at].field("resolved_identifier"));
        rank(&pair[0]) == rank(&pair[1]) && (names[0] == names[1] || names.contains(&&Json::Null))
    };
    if is_of_people(question) && rows.windows(2).any(unnamed) {
        return true;
    }
    let mut whole = question.clone();
    match &mut whole.body {
        Some(Json::Object(body)) => drop(body.insert("limit".to_owned(), Json::from(most))),
        _ => {
            whole.query.retain(|(name, _)| name != "limit");
            whole.query.push(("limit".to_owned(), most.to_string()));
        }
    }
    let next = answer(&whole).body.field(list).items().get(rows.len()).map(rank);
    next.is_some() && next == rows.last().map(rank)
}

/// Puts people of one instant in the order of their names, in which the model has them.
pub(crate) fn by_name(question: &Question, got: &mut Json) {
    if let (true, Json::Object(fields)) = (is_of_people(question), got)
        && let Some(Json::List(people)) = fields.get_mut("people")
    {
        for tied in people.chunk_by_mut(|left, right| left.field("at") == right.field("at")) {
            tied.sort_by_key(|row| row.field("resolved_identifier").clone());
        }
    }
}

//! The worked cases of `tests/cases`, asked of a server.
//!
//! A query is left out only if its path is one of [`NOT_YET`](crate::not_yet::NOT_YET).

use std::path::Path;

use headcount_model::{Json, cases};

use crate::not_yet::is_not_yet;
use crate::server::TestServer;
use crate::tenant::Tenant;

/// Cases whose answers must all be as expected, as far as their endpoints exist.
const MUST_ANSWER: [&str; 34] = [
    "01", "02", "03", "04", "05", "06", "07", "08", "09", "10", "11", "12", "13", "14", "15", "16", "17", "18", "19", "20", "21",
    "22", "23", "24", "25", "26", "27", "28", "29", "30", "31", "32", "33", "34",
];

/// Writes a case without the queries that can't be asked yet. How many are asked, and how many are
/// left out.
fn without_not_yet(from: &Path, to: &Path) -> (usize, usize) {
    let text = std::fs::read_to_string(from).expect("a case");
    let mut case = Json::parse(&text).expect("JSON");
    let (mut asked, mut left_out) = (0, 0);
    if let Json::Object(fields) = &mut case
        && let Some(Json::List(queries)) = fields.get_mut("queries")
    {
        queries.retain(|query| {
            let path = query.field("path").text().unwrap_or_default();
            let stays = !is_not_yet(path);
            *(if stays { &mut asked } else { &mut left_out }) += 1;
            stays
        });
    }
    std::fs::write(to, case.to_string()).expect("a copy of a case");
    (asked, left_out)
}

#[test]
fn the_worked_cases_have_their_answers() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let copies = tempfile::tempdir().expect("a directory");
    let mut counts = Vec::new();
    for case in cases::read_all(&directory) {
        let file = format!("{}.json", case.name);
        counts.push(without_not_yet(&directory.join(&file), &copies.path().join(&file)));
    }
    let server = TestServer::shared();
    let mut failures = Vec::new();
    for (case, (asked, left_out)) in cases::read_all(copies.path()).iter().zip(&counts) {
        let outcome = cases::run(case, &mut Tenant::on(&server));
        let shown = if outcome.is_ok() { "ok" } else { "FAILED" };
        println!("{:<45} {asked:>2} asked, {left_out:>2} left out: {shown}", case.name);
        failures.extend(outcome.err().map(|failure| failure.to_string()));
        let must = MUST_ANSWER.iter().any(|number| case.name.starts_with(number));
        assert!(!must || *asked > 0, "{}: nothing is asked", case.name);
    }
    assert!(counts.len() >= 20, "{} cases", counts.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

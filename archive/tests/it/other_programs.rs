//! DuckDB and pyarrow read a project's folder as it is.
//!
//! It needs a Python that has both: the one that `HEADCOUNT_ARCHIVE_PYTHON` names, else that of
//! `target/archive-venv` (`python3 -m venv target/archive-venv && target/archive-venv/bin/pip
//! install duckdb pyarrow`). Without one it says that it was skipped; one that the variable names
//! and that has not both is a failure.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use headcount_archive::{Archive, CompactOptions, SealOptions, WriterOptions, merge_next, month_of};
use headcount_domain::{Amount, Day};
use serde_json::Value;

use crate::support::{MARCH, PROJECT, plausible, sample, scratch, seal, series};

fn python() -> Option<PathBuf> {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    let named = std::env::var_os("HEADCOUNT_ARCHIVE_PYTHON").map(PathBuf::from);
    let python = named.unwrap_or(target.join("archive-venv/bin/python"));
    let works = Command::new(&python).args(["-c", "import duckdb, pyarrow"]).output().is_ok_and(|output| output.status.success());
    if !works {
        eprintln!("SKIPPED: {} has no duckdb and pyarrow, so that nobody else has read the archive", python.display());
        assert!(std::env::var_os("HEADCOUNT_ARCHIVE_PYTHON").is_none(), "the Python that was named must work");
    }
    works.then_some(python)
}

fn run(python: &PathBuf, archive: &Archive) -> Value {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/read_archive.py");
    let output = Command::new(python).arg(script).current_dir(archive.dir()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_documented_query_equals_a_naive_sum() {
    let Some(python) = python() else { return };
    let root = scratch();
    let mut archive = Archive::open(root.path(), PROJECT).unwrap();
    let mut all = series(1..=3_000);
    all.extend((3_001..=3_500).map(|position| plausible(position, (position * 60_000).cast_signed())));
    let writer = WriterOptions { row_group_bytes: 100_000, ..WriterOptions::default() };
    all.chunks(700).for_each(|rows| seal(&mut archive, rows, SealOptions { writer, ..SealOptions::default() }));
    // Some files, and one that is merged; what is merged lies beside them still.
    merge_next(&mut archive, month_of(MARCH).next(), &CompactOptions::default(), &|| true).unwrap();
    seal(&mut archive, &[plausible(4_000, 0)], SealOptions::default());
    all.push(plausible(4_000, 0));
    let mut expected: BTreeMap<Day, (Amount, u64)> = BTreeMap::new();
    for row in all.iter().filter(|row| !row.set_aside) {
        let Some(money) = row.event.money.as_ref().filter(|money| money.counted) else { continue };
        if let Some(amount) = money.in_project {
            let (sum, orders) = expected.entry(row.event.day).or_default();
            *sum += amount;
            *orders += u64::from(money.amount.is_positive());
        }
    }
    let found = run(&python, &archive);
    let expected: Vec<Value> = expected
        .into_iter()
        .map(|(day, (sum, orders))| serde_json::json!([day.to_string(), format!("{:.6}", sum.0 as f64 / 1e6), orders]))
        .collect();
    assert!(expected.len() > 2);
    assert_eq!(found["timeseries"], Value::from(expected));
    assert_eq!(found["rows"], all.len());
    let plans = ["free", "pro", "team"].map(|plan| {
        let has_plan = |row: &&headcount_archive::row::Row| {
            row.event.details.metadata.as_deref().is_some_and(|json| json.contains(&format!("\"plan\":\"{plan}\"")))
        };
        serde_json::json!([format!("\"{plan}\""), all.iter().filter(has_plan).count()])
    });
    assert_eq!(found["plans"], Value::from(plans.to_vec()), "by the column of the path");
    assert_eq!(found["plans_of_metadata"], found["plans"], "by the metadata");
}

#[test]
fn every_column_is_read_with_its_type_and_its_value() {
    let Some(python) = python() else { return };
    let root = scratch();
    let mut archive = Archive::open(root.path(), PROJECT).unwrap();
    seal(&mut archive, &sample(), SealOptions::default());
    let found = run(&python, &archive);
    let expected: Value = serde_json::from_str(include_str!("../read_archive.expected.json")).unwrap();
    assert_eq!(found["pyarrow"], expected);
    assert_eq!(found["checksums"], true, "pages have checksums, and pyarrow compares them");
}

//! Event to row to event is the identity, whatever the event.

use std::path::{Path, PathBuf};

use headcount_archive::export::{ExportFormat, RowEncoder};
use headcount_archive::{
    ArchiveFile, Columns, ExportFile, ExportFileError, FileWriter, Row, Selection, WriterOptions, visit_scalars,
};
use headcount_domain::intake::fields::{MetadataPath, Scalar};
use headcount_domain::time::Month;
use proptest::prelude::*;

use crate::support::{PROJECT, any_rows, json, plausible, sample, scratch};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn rows_are_read_as_they_were_written(rows in any_rows(), row_group_bytes in prop_oneof![Just(1_usize), 200..20_000_usize], from in any::<u64>()) {
        let dir = scratch();
        let options = WriterOptions { row_group_bytes, ..WriterOptions::default() };
        let mut writer = FileWriter::create(dir.path(), PROJECT, Month(0), None, options).unwrap();
        rows.iter().for_each(|row| writer.push(row).unwrap());
        let entry = writer.finish().unwrap().unwrap();
        prop_assert_eq!(entry.rows, rows.len() as u64);
        let file = ArchiveFile::open(dir.path(), PROJECT, &entry).unwrap();
        let found: Vec<_> = file.rows(0).map(Result::unwrap).collect();
        prop_assert_eq!(&found, &rows);
        let from = from % (entry.name.last + 2);
        let rest: Vec<_> = file.rows(from).map(Result::unwrap).collect();
        let expected: Vec<_> = rows.iter().filter(|row| row.position >= from).cloned().collect();
        prop_assert_eq!(rest, expected);
    }

    #[test]
    fn exports_in_parquet_are_read_as_they_were_written(rows in any_rows()) {
        let rows: Vec<Row> = rows.into_iter().map(|row| Row { set_aside: false, ..row }).collect();
        let dir = scratch();
        let path = exported(dir.path(), &rows);
        let found: Result<Vec<_>, _> = ExportFile::open(&path).unwrap().collect();
        prop_assert_eq!(found.unwrap(), rows);
    }

    /// A column of a path holds what a filter finds, and nothing where it finds nothing.
    #[test]
    fn columns_of_paths_hold_what_filters_find(documents in proptest::collection::vec(json(), 1..20)) {
        let mut paths = std::collections::BTreeSet::new();
        documents.iter().for_each(|json| visit_scalars(json, |path, _| { paths.insert(path.to_owned()); }));
        for json in &documents {
            let mut found = std::collections::BTreeMap::new();
            visit_scalars(json, |path, text| { assert!(found.insert(path.to_owned(), text.into_owned()).is_none(), "{path} twice"); });
            for path in &paths {
                let expected = MetadataPath::parse(path).unwrap().find(json);
                let column = found.get(path).map_or(Scalar::Null, |text| Scalar::parse(text).unwrap());
                prop_assert_eq!(column, expected, "{} of {}", path, json);
            }
        }
    }
}

fn exported(dir: &Path, rows: &[Row]) -> PathBuf {
    let mut encoder = RowEncoder::new(ExportFormat::Parquet, PROJECT);
    rows.iter().for_each(|row| encoder.push(row).unwrap());
    let path = dir.join("export.parquet");
    std::fs::write(&path, encoder.finish().unwrap()).unwrap();
    path
}

#[test]
fn a_changed_or_cut_export_is_refused_or_reads_the_same() {
    let dir = scratch();
    let rows: Vec<Row> = sample().into_iter().map(|row| Row { set_aside: false, ..row }).collect();
    let path = exported(dir.path(), &rows);
    let whole = std::fs::read(&path).unwrap();
    let read = || -> Result<Vec<Row>, ExportFileError> { ExportFile::open(&path)?.collect() };
    assert_eq!(read().unwrap(), rows);
    let mut refused = 0;
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 1 << (at % 8);
        std::fs::write(&path, &changed).unwrap();
        match read() {
            Ok(found) => assert_eq!(found, rows, "byte {at}"),
            Err(_) => refused += 1,
        }
    }
    assert!(refused > whole.len() - 16, "{refused} of {}", whole.len());
    for length in (0..whole.len()).step_by(7) {
        std::fs::write(&path, &whole[..length]).unwrap();
        assert!(matches!(read(), Err(ExportFileError::Damaged(_) | ExportFileError::Foreign(_))), "{length} bytes");
    }
}

#[test]
fn an_export_of_several_row_groups_and_long_texts() {
    let dir = scratch();
    let metadata = format!("{{\"k\":\"{}\"}}", "x".repeat(60_000));
    let rows: Vec<Row> = (1..200)
        .map(|position| {
            let mut row = Row { set_aside: false, ..plausible(position, 1_000) };
            row.event.details.metadata = Some(metadata.as_str().into());
            row
        })
        .collect();
    let found: Result<Vec<_>, _> = ExportFile::open(&exported(dir.path(), &rows)).unwrap().collect();
    assert!(found.unwrap() == rows, "they differ");
}

#[test]
fn every_path_that_a_filter_finds_is_visited() {
    let json = r#"{"a":{"b":{"c":1}},"a.b":2,"d.e":{"f":3},"g":{"h.i":4,"":5},"":{"j":6},"k":[7],"l":null,"m":{"n":8},"m":9}"#;
    let mut found = Vec::new();
    visit_scalars(json, |path, text| found.push((path.to_owned(), text.into_owned())));
    found.sort();
    let expected = [(".j", "6"), ("a.b", "2"), ("a.b.c", "1"), ("g.", "5"), ("m", "9")];
    assert_eq!(found, expected.map(|(path, text)| (path.to_owned(), text.to_owned())));
}

#[test]
fn some_columns_of_some_row_groups() {
    let dir = scratch();
    let rows = crate::support::series(1..=1_000);
    let options = WriterOptions { row_group_bytes: 40_000, ..WriterOptions::default() };
    let mut writer = FileWriter::create(dir.path(), PROJECT, Month(0), None, options).unwrap();
    rows.iter().for_each(|row| writer.push(row).unwrap());
    let entry = writer.finish().unwrap().unwrap();
    let file = ArchiveFile::open(dir.path(), PROJECT, &entry).unwrap();
    assert!(file.row_groups().len() > 5, "{}", file.row_groups().len());
    assert!(file.has_column("metadata.cart.id") && file.has_column("metadata.plan") && !file.has_column("metadata.cart"));
    let selection =
        Selection { positions: 400..=450, ..Selection::all(Columns::Named(&["position", "metadata.plan", "metadata.none"])) };
    let batches: Vec<_> = file.batches(&selection).map(Result::unwrap).collect();
    let positions: Vec<i64> = batches
        .iter()
        .flat_map(|batch| {
            assert_eq!(batch.num_columns(), 2);
            let column = batch.column_by_name("position").unwrap();
            arrow_array::cast::AsArray::as_primitive::<arrow_array::types::Int64Type>(column).values().to_vec()
        })
        .collect();
    assert!(positions.len() < 400 && (400..=450).all(|position| positions.contains(&position)), "{positions:?}");
    let none = Selection { days: entry.last_day.next()..=entry.last_day.plus(9), ..Selection::all(Columns::Row) };
    assert_eq!(file.batches(&none).count(), 0);
}

//! Files of each version stay readable, and today's columns are those of today's version.

use std::fs;
use std::path::{Path, PathBuf};

use headcount_archive::schema::{COLUMNS, SCHEMA_VERSION, Value, message};
use headcount_archive::{Archive, SealOptions};

use serde_json::{Value as Json, json};

use crate::support::{PROJECT, contents, sample, seal};

/// If set, rewrites the files of the current version.
const UPDATE: &str = "HEADCOUNT_UPDATE_FIXTURES";

fn fixtures(version: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(format!("v{version}"))
}

#[test]
fn files_of_version_1_are_read() {
    let root = fixtures("1");
    if std::env::var_os(UPDATE).is_some() && SCHEMA_VERSION == "1" {
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(&root).unwrap();
        seal(&mut Archive::open(&root, PROJECT).unwrap(), &sample(), SealOptions::default());
    }
    assert_eq!(contents(&root), sample());
    let archive = Archive::open(&root, PROJECT).unwrap();
    assert!(archive.damaged_files(true).unwrap().is_empty());
    let file = archive.file(&archive.manifest().files()[0]).unwrap();
    assert!(file.has_column("metadata.plan") && file.has_column("metadata.cart.items"));
}

#[test]
fn the_columns_are_those_of_the_version() {
    let mut text = Vec::new();
    parquet::schema::printer::print_schema(&mut text, &message(COLUMNS, &[]).unwrap());
    let path = fixtures(SCHEMA_VERSION).join("columns.txt");
    if std::env::var_os(UPDATE).is_some() {
        fs::write(&path, &text).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap();
    assert_eq!(
        String::from_utf8(text).unwrap(),
        expected,
        "other columns are another version, and the former one stays readable"
    );
}

/// What pyarrow prints of a value.
fn shown(value: Value<'_>) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Integer(number) => json!(number),
        Value::Boolean(yes) => json!(yes),
        Value::Timestamp(at) => {
            let text = at.to_string().replace('T', " ").replace('Z', "000+00:00").replace(".000000", "");
            json!(text)
        }
        Value::Date(day) => json!(day.to_string()),
        Value::Decimal(amount) => json!(format!("{}.{:06}", amount.0 / 1_000_000, amount.0 % 1_000_000)),
        Value::Bytes16(bytes) => json!(format!("{bytes:032x}")),
        Value::Text(text) => json!(text),
    }
}

/// Formats that are written row by row take the same values from the same table.
#[test]
fn values_of_rows_are_those_of_the_files() {
    let expected: Json = serde_json::from_str(include_str!("../read_archive.expected.json")).unwrap();
    let rows = sample();
    for column in COLUMNS {
        let found: Vec<Json> = rows.iter().map(|row| shown(column.value(row))).collect();
        assert_eq!(expected[0][column.name].as_array().unwrap()[1..], found, "{}", column.name);
        assert!(!column.required || !found.contains(&Json::Null));
    }
    let archive_only: Vec<_> = COLUMNS.iter().filter(|column| column.archive_only).map(|column| column.name).collect();
    assert_eq!(archive_only, ["set_aside"]);
}

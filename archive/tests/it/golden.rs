//! Files of each version stay readable, and today's columns are those of today's version.

use std::fs;
use std::path::{Path, PathBuf};

use headcount_archive::archive::Archive;
use headcount_archive::schema::{SCHEMA_VERSION, message};
use headcount_archive::seal::SealOptions;

use crate::support::{PROJECT, contents, sample, seal};

/// Set, it writes the files of today's version anew.
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
    parquet::schema::printer::print_schema(&mut text, &message(&[]).unwrap());
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

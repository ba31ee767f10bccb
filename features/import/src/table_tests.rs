//! Imports of what `export` writes, in every form.

use std::io::Write;
use std::path::Path;

use headcount_archive::export::{ExportFormat, RowEncoder, parse_row};
use headcount_domain::ProjectId;

use super::tests::{after_a_batch, args, open, orders};
use super::*;

const ROWS: u64 = 4_000;

/// Rows of orders of 1 dollar, each by a user of its own, in one of the forms of exports.
fn export(format: ExportFormat, rows: u64) -> Vec<u8> {
    let mut encoder = RowEncoder::new(format, ProjectId(7));
    for number in 0..rows {
        let json = format!(
            r#"{{"_v":1,"position":{},"timestamp":"2015-05-17T10:05:03.000Z","received_at":"2015-05-17T10:05:03.000Z",
            "day":"2015-05-17","name":"purchase","consented":true,"interactive":true,"user_id":"u{number}","value":1,"value_in_project":1,
            "value_in_organization":1,"value_counted":true,"currency":"USD","project_currency":"USD","organization_currency":"USD",
            "message":"a \"quoted\",\r\nbroken {number}","event_source":"(direct)","event_medium":"(none)","event_campaign":"(none)",
            "event_channel":"Direct","metadata":{{"plan":"pro","text":"ä,b"}}}}"#,
            number + 1
        );
        encoder.push(&parse_row(json.as_bytes(), ProjectId(7)).unwrap().unwrap()).unwrap();
    }
    encoder.finish().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(bytes, 1).unwrap()
}

#[test]
fn every_form_is_imported_once_however_often_it_is_cut_short() {
    let dir = tempfile::tempdir().unwrap();
    let [ndjson, csv, parquet] =
        [ExportFormat::Ndjson, ExportFormat::Csv, ExportFormat::Parquet].map(|format| export(format, ROWS));
    let packed = [zstd(&ndjson), gzip(&csv), zstd(&csv)];
    for (number, bytes) in [ndjson, csv, parquet].into_iter().chain(packed).enumerate() {
        // The name says nothing about the form.
        let (file, data) = (dir.path().join(format!("file-{number}")), dir.path().join(format!("data-{number}")));
        std::fs::write(&file, bytes).unwrap();
        let import = args(&[file.to_str().unwrap()]);
        runtime().unwrap().block_on(async {
            let (mut total, mut runs) = (0, 0);
            loop {
                let (engine, _) = open(&data);
                let summary = into_engine(&engine, &import, after_a_batch(&engine)).await.unwrap();
                assert_eq!((summary.refused, summary.resumed_at_line.is_some()), (0, runs > 0), "form {number}");
                (total, runs) = (total + summary.recorded, runs + 1);
                assert_eq!(orders(&engine).await, (total, i64::try_from(total).unwrap()), "form {number}");
                engine.close().await;
                if summary.finished {
                    break;
                }
            }
            assert!(runs > 1 && total == ROWS, "form {number}: {total} in {runs} runs");
        });
    }
}

async fn failure(engine: &Engine, file: &Path) -> String {
    into_engine(engine, &args(&[file.to_str().unwrap()]), std::future::pending()).await.unwrap_err().0
}

#[test]
fn a_table_that_was_cut_says_so_and_goes_on_once_it_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    runtime().unwrap().block_on(async {
        let (engine, _) = open(&dir.path().join("data"));
        let (csv, parquet) = (export(ExportFormat::Csv, ROWS), export(ExportFormat::Parquet, ROWS));
        let file = dir.path().join("csv");
        std::fs::write(&file, &csv[..csv.len() / 2]).unwrap();
        let said = failure(&engine, &file).await;
        assert!(said.contains("it is truncated or damaged after line") && said.contains("it has no end"), "{said}");
        let half = orders(&engine).await.0;
        assert!(half > ROWS / 3, "{half}");
        std::fs::write(&file, &csv).unwrap();
        let rest = into_engine(&engine, &args(&[file.to_str().unwrap()]), std::future::pending()).await.unwrap();
        assert_eq!((half + rest.recorded, orders(&engine).await.0), (ROWS, ROWS));
        // Rewritten with other rows, it is not taken for the former one.
        std::fs::write(&file, export(ExportFormat::Csv, ROWS / 2)).unwrap();
        let said = failure(&engine, &file).await;
        assert!(said.contains("it was rewritten after its import"), "{said}");

        let file = dir.path().join("parquet");
        std::fs::write(&file, &parquet[..parquet.len() - 10]).unwrap();
        let said = failure(&engine, &file).await;
        assert!(said.contains("it is damaged"), "{said}");
        // Damage in the middle: what comes before is imported.
        let mut damaged = parquet.clone();
        damaged[parquet.len() * 3 / 4] ^= 1;
        std::fs::write(&file, damaged).unwrap();
        let said = failure(&engine, &file).await;
        assert!(said.contains("does not match its checksum"), "{said}");
        assert_eq!(orders(&engine).await.1, i64::try_from(ROWS).unwrap() + said_recorded(&said));
        engine.close().await;
    });
}

fn said_recorded(failure: &str) -> i64 {
    let (_, rest) = failure.rsplit_once('(').unwrap();
    rest.split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn other_tables_and_streams_of_tables_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    runtime().unwrap().block_on(async {
        let (engine, _) = open(&dir.path().join("data"));
        let parquet = export(ExportFormat::Parquet, 10);
        for (content, expected) in [
            (b"name,user_id\na,b\n".to_vec(), "CSV header without `_v`"),
            (gzip(&parquet), "Parquet can only be read from a plain file"),
            (b"PAR1 is all that it has of Parquet".to_vec(), "it is damaged"),
        ] {
            let file = dir.path().join("file");
            std::fs::write(&file, content).unwrap();
            let said = failure(&engine, &file).await;
            assert!(said.contains(expected), "{said}");
        }
        let file = dir.path().join("followed");
        std::fs::write(&file, &parquet).unwrap();
        let follow = into_engine(&engine, &args(&[file.to_str().unwrap(), "--follow"]), std::future::pending()).await;
        assert!(follow.unwrap_err().0.contains("only a plain text file can be followed"));
        engine.close().await;
    });
}

#[test]
fn refused_lines_are_written_to_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let (file, refused) = (dir.path().join("csv"), dir.path().join("refused"));
    let csv = String::from_utf8(export(ExportFormat::Csv, 3)).unwrap();
    std::fs::write(&file, format!("{csv}1,2\r\n")).unwrap();
    runtime().unwrap().block_on(async {
        let (engine, _) = open(&dir.path().join("data"));
        let import = |more: &[&str]| args(&[&[file.to_str().unwrap(), "--refused", refused.to_str().unwrap()], more].concat());
        let summary = into_engine(&engine, &import(&[]), std::future::pending()).await.unwrap();
        assert_eq!((summary.recorded, summary.refused), (3, 1));
        let text = std::fs::read_to_string(&refused).unwrap();
        let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((&lines[0]["line"], &lines[0]["code"]), (&8.into(), &"invalid_record".into()), "{text}");
        assert!(lines[0]["message"].as_str().unwrap().contains("only 2 fields"), "{text}");
        std::fs::write(&file, "{\"name\":[5]}\n").unwrap();
        let again = into_engine(&engine, &import(&["--again"]), std::future::pending()).await.unwrap();
        assert_eq!((again.refused, std::fs::read_to_string(&refused).unwrap().lines().count()), (1, 1), "truncated first");
        let onto_itself = args(&[file.to_str().unwrap(), "--refused", file.to_str().unwrap()]);
        assert!(
            into_engine(&engine, &onto_itself, std::future::pending())
                .await
                .unwrap_err()
                .0
                .contains("--refused must not be the imported file")
        );
        let nowhere = args(&[file.to_str().unwrap(), "--again", "--refused", "/nowhere/refused"]);
        assert!(
            into_engine(&engine, &nowhere, std::future::pending()).await.unwrap_err().0.contains("can't be written to /nowhere")
        );
        engine.close().await;
    });
}

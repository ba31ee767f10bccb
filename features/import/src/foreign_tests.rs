//! Imports of what other products export.

use std::fmt::Write as _;
use std::path::Path;

use headcount_domain::aggregate::{AggregateRow, Grouping};
use headcount_domain::intake::fields::{Field, Scalar};
use headcount_domain::queries::UniqueUsersQuery;
use headcount_domain::{Predicate, ProjectId, Timezone, Window};

use super::tests::{after_a_batch, args, open};
use super::*;

const ROWS: u64 = 6_000;
/// Their sessions, each of which is a visitor.
const SESSIONS: u64 = 1_700;
/// One in this many rows is not an event.
const BROKEN_EVERY: u64 = 1_000;
const BROKEN: u64 = ROWS / BROKEN_EVERY;

/// Rows of which each has two lines, with broken ones among them.
fn umami() -> String {
    let mut csv =
        "\"website_id\",\"session_id\",\"visit_id\",\"event_id\",\"hostname\",\"browser\",\"os\",\"device\",\"screen\",\
        \"language\",\"country\",\"url_path\",\"url_query\",\"referrer_domain\",\"page_title\",\"event_type\",\"event_name\",\
        \"created_at\",\"job_id\"\n"
            .to_owned();
    for row in 0..ROWS {
        let created_at = if row % BROKEN_EVERY == 7 { "soon" } else { "2023-06-02 14:55:06" };
        let (session, country) = (row % SESSIONS, if row % 2 == 0 { "CH" } else { "\\N" });
        writeln!(
            csv,
            "\"w\",\"s{session}\",\"v\",\"e{row}\",\"a.example\",\"chrome\",\"Mac OS\",\"laptop\",\"1470x956\",\"en\",\"{country}\",\
             \"/{row}\",\"\",\"\",\"a \"\"title\"\",\nof two lines\",1,\"\",\"{created_at}\",\"\""
        )
        .unwrap();
    }
    csv
}

/// The same of GoatCounter.
fn goatcounter() -> String {
    let mut csv =
        "2Path,Title,Event,UserAgent,Browser,System,Session,Bot,Referrer,Referrer scheme,Screen size,Location,FirstVisit,\
        Date\n"
            .to_owned();
    for row in 0..ROWS {
        let date = if row % BROKEN_EVERY == 7 { "soon" } else { "2023-06-02T14:55:06Z" };
        let (session, location) = (row % SESSIONS + 1, if row % 2 == 0 { "CH-BS" } else { "" });
        writeln!(
            csv,
            "/{row},\"a \"\"title\"\",\nof two lines\",false,,Chrome 120,macOS 14,{session:x},0,,,\"1920,0,1\",{location},true,{date}"
        )
        .unwrap();
    }
    csv
}

/// Events by the texts of a field.
async fn groups(engine: &Engine, project: ProjectId, field: &str) -> Vec<(String, u64)> {
    let grouping = Grouping::new(Field::parse(field).unwrap(), None).unwrap();
    let rows = engine.scans.aggregate(project, window(engine), Predicate::default(), grouping, 10).await.unwrap().rows;
    let text = |row: AggregateRow| match row.value {
        Scalar::Text(text) => Some((text.into_owned(), row.count)),
        _ => None,
    };
    rows.into_iter().filter_map(text).collect()
}

fn window(engine: &Engine) -> Window {
    Window::resolve(Some("2023-06-01"), Some("2023-06-30"), Timezone::UTC, engine.clock().now()).unwrap()
}

fn project(engine: &Engine) -> ProjectId {
    engine.registry().projects(engine.registry().organizations()[0].id).unwrap()[0].id
}

#[test]
fn exports_of_other_products_are_imported_once_however_often_it_is_cut_short() {
    let dir = tempfile::tempdir().unwrap();
    for (format, csv) in [("umami", umami()), ("goatcounter", goatcounter())] {
        let (file, data) = (dir.path().join(format!("{format}.csv")), dir.path().join(format));
        std::fs::write(&file, csv).unwrap();
        let import = args(&["--format", format, file.to_str().unwrap()]);
        runtime().unwrap().block_on(async {
            let (mut recorded, mut refused, mut lines, mut runs) = (0, 0, Vec::new(), 0);
            loop {
                let (engine, _) = open(&data);
                let summary = into_engine(&engine, &import, after_a_batch(&engine)).await.unwrap();
                assert_eq!(summary.resumed_at_line.is_some(), runs > 0, "{format}");
                (recorded, refused, runs) = (recorded + summary.recorded, refused + summary.refused, runs + 1);
                lines.extend(summary.refused_lines.iter().map(|refused| refused.line));
                engine.close().await;
                if summary.finished {
                    break;
                }
            }
            assert!(runs > 1, "{format}: it was never cut short");
            assert_eq!((recorded, refused), (ROWS - BROKEN, BROKEN), "{format}");
            // After the header, each row has two lines.
            let expected: Vec<u64> = (0..BROKEN).map(|broken| 2 + 2 * (7 + broken * BROKEN_EVERY)).collect();
            assert_eq!(lines, expected, "{format}");
            let (engine, _) = open(&data);
            let project = project(&engine);
            let users = engine.ask(project, UniqueUsersQuery { window: window(&engine) }).await.unwrap();
            assert_eq!(users.total, SESSIONS, "{format}");
            for (field, value, count) in [
                ("location_country", "CH", ROWS / 2),
                ("browser", "Chrome", recorded),
                ("os", "macOS", recorded),
                ("metadata.title", "a \"title\",\nof two lines", recorded),
            ] {
                let groups = groups(&engine, project, field).await;
                assert!(groups.contains(&(value.to_owned(), count)), "{format} {field}: {groups:?}");
            }
            let again = into_engine(&engine, &import, std::future::pending()).await.unwrap();
            assert_eq!((again.lines, again.finished), (0, true), "{format}");
            engine.close().await;
        });
    }
}

#[test]
fn events_of_umami_are_known_by_their_id_in_any_file() {
    let dir = tempfile::tempdir().unwrap();
    runtime().unwrap().block_on(async {
        let (engine, _) = open(&dir.path().join("data"));
        for (name, expected) in [("first.csv", (ROWS - BROKEN, 0)), ("second.csv", (0, ROWS - BROKEN))] {
            let file = dir.path().join(name);
            std::fs::write(&file, umami()).unwrap();
            let import = args(&["--format", "umami", file.to_str().unwrap()]);
            let summary = into_engine(&engine, &import, std::future::pending()).await.unwrap();
            assert_eq!((summary.recorded, summary.duplicates), expected, "{name}");
        }
        engine.close().await;
    });
}

#[test]
fn through_a_server_too() {
    use headcount::server::{HttpConfig, Server};
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("export.csv.gz");
    let mut encoder = flate2::write::GzEncoder::new(std::fs::File::create(&file).unwrap(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, goatcounter().as_bytes()).unwrap();
    encoder.finish().unwrap();
    runtime().unwrap().block_on(async {
        let (engine, made) = open(&dir.path().join("data"));
        let server = Server::start(engine.clone(), HttpConfig::new("127.0.0.1:0")).unwrap();
        let flags =
            headcount::config::Flags { data_dir: Some(dir.path().join("data").display().to_string()), ..Default::default() };
        let settings = headcount::config::Settings::resolve(&flags, |_| None).unwrap();
        let (url, token) = (server.url(), made.unwrap().api_token);
        let import_file = args(&[
            "--format",
            "goatcounter",
            "--hostname",
            "a.example",
            "--url",
            &url,
            "--token",
            &token,
            file.to_str().unwrap(),
        ]);
        for expected in [(ROWS - BROKEN, 0), (0, ROWS - BROKEN)] {
            let summary = import(&settings, &import_file, || Ok(std::future::pending())).await.unwrap();
            assert_eq!((summary.recorded, summary.duplicates, summary.refused), (expected.0, expected.1, BROKEN));
        }
        let countries = groups(&engine, project(&engine), "location_country").await;
        assert!(countries.contains(&("CH".to_owned(), ROWS / 2)), "{countries:?}");
        assert_eq!(groups(&engine, project(&engine), "hostname").await, [("a.example".to_owned(), ROWS - BROKEN)]);
        server.stop().await.unwrap();
        engine.close().await;
    });
}

async fn failure(engine: &Engine, file: &Path, flags: &[&str]) -> String {
    let import = args(&[&[file.to_str().unwrap()], flags].concat());
    into_engine(engine, &import, std::future::pending()).await.unwrap_err().0
}

#[test]
fn other_files_and_cut_ones_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    runtime().unwrap().block_on(async {
        let (engine, _) = open(&dir.path().join("data"));
        let (umami, goatcounter) = (umami(), goatcounter());
        let older = goatcounter.replacen("2Path", "1Path", 1);
        let cut = &umami[..umami.len() - 30];
        for (name, content, flags, expected) in [
            ("a", umami.as_str(), &["--format", "goatcounter"][..], "it is not version 2 of GoatCounter's CSV export"),
            ("b", &older, &["--format", "goatcounter"], "no column `2Path`"),
            ("c", &goatcounter, &["--format", "umami"], "it is not Umami's website_event.csv"),
            ("d", "", &["--format", "umami", "--follow"], "only a plain text file can be followed"),
            ("e", &umami, &["--format", "umami", "--as-new"], "--as-new works only with files that `export` wrote"),
            ("f", &umami, &[], "with --format access logs and the CSV of Umami"),
            ("g", cut, &["--format", "umami"], "it has no end: the file is truncated"),
        ] {
            let file = dir.path().join(name);
            std::fs::write(&file, content).unwrap();
            let said = failure(&engine, &file, flags).await;
            assert!(said.contains(expected), "{name}: {said}");
        }
        // Of the cut file, all but the last row are there; once it is whole, the same command
        // imports that one.
        std::fs::write(dir.path().join("g"), &umami).unwrap();
        let import = args(&["--format", "umami", dir.path().join("g").to_str().unwrap()]);
        let rest = into_engine(&engine, &import, std::future::pending()).await.unwrap();
        assert_eq!((rest.recorded, rest.duplicates), (1, 0));
        engine.close().await;
    });
}

//! Imports into an engine in this process, cut short and resumed.

use std::fmt::Write as _;
use std::fs::File;
use std::path::Path;

use clap::Parser;
use headcount_actors::EngineConfig;
use headcount_actors::ingest::NewEvent;
use headcount_api::command::InitialCredentials;
use headcount_domain::Window;
use headcount_domain::queries::{RevenueMetricsQuery, UniqueUsersQuery};

use super::journal::Journal;
use super::lines;
use super::*;

#[derive(Parser)]
struct Args {
    #[command(flatten)]
    import: ImportArgs,
}

pub(super) fn args(flags: &[&str]) -> ImportArgs {
    Args::parse_from(["import"].iter().chain(flags)).import
}

/// Ends the import when the log has more events than now: between two batches.
pub(super) fn after_a_batch(engine: &Engine) -> impl Future<Output = ()> + use<> {
    let (engine, before) = (engine.clone(), engine.vitals().log_position);
    async move {
        // Without a timer, which the last batch may overtake on a busy machine.
        while engine.vitals().log_position == before {
            tokio::task::yield_now().await;
        }
    }
}

pub(super) fn open(dir: &Path) -> (Engine, Option<InitialCredentials>) {
    let mut config = EngineConfig::new(dir);
    config.shards = 1;
    config.min_free_bytes = 0;
    let engine = Engine::open(config).unwrap();
    let made = engine.registry().is_empty().then(|| {
        let made = InitialCredentials::from(&engine.registry().initialize(engine.clock().now()).unwrap());
        made.save(dir).unwrap();
        made
    });
    (engine, made)
}

/// 80,000 lines: most are empty, the others are orders of 1 dollar, each by a user of its own, and
/// some that are no events.
fn write_events(path: &Path, external_ids: bool) -> (u64, u64) {
    let (mut text, mut events, mut refused) = (String::new(), 0, 0);
    for line in 0..80_000 {
        match line % 1_000 {
            remainder if remainder % 5 != 0 && remainder != 18 => {
                text.push('\n');
            }
            18 => {
                text.push_str("{\"name\":[5]}\n");
                refused += 1;
            }
            _ => {
                let id = if external_ids { format!(",\"external_id\":\"o{line}\"") } else { String::new() };
                writeln!(text, "{{\"name\":\"purchase\",\"timestamp\":1431857103000,\"user_id\":\"u{line}\",\"value\":1{id}}}")
                    .unwrap();
                events += 1;
            }
        }
    }
    std::fs::write(path, text).unwrap();
    (events, refused)
}

pub(super) async fn orders(engine: &Engine) -> (u64, i64) {
    let project = engine.registry().projects(engine.registry().organizations()[0].id).unwrap()[0].id;
    let window =
        Window::resolve(Some("2015-05-01"), Some("2015-05-31"), headcount_domain::time::Timezone::UTC, engine.clock().now())
            .unwrap();
    let users = engine.ask(project, UniqueUsersQuery { window }).await.unwrap().total;
    (users, engine.ask(project, RevenueMetricsQuery { window }).await.unwrap().orders)
}

#[test]
fn an_import_that_is_cut_short_again_and_again_records_everything_once() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("events.ndjson");
    let (events, refused) = write_events(&file, false);
    let import = args(&[file.to_str().unwrap()]);
    runtime().unwrap().block_on(async {
        let (mut total, mut total_refused, mut runs) = (0, 0, 0);
        loop {
            let (engine, _) = open(&dir.path().join("data"));
            // Other events are recorded between the runs, never during one.
            let project = engine.registry().projects(engine.registry().organizations()[0].id).unwrap()[0].id;
            recover_progress(&engine).unwrap();
            engine.track(project, &NewEvent::new("other")).await.unwrap();
            let summary = into_engine(&engine, &import, after_a_batch(&engine)).await.unwrap();
            assert_eq!(summary.resumed_at_line.is_some(), runs > 0);
            (total, total_refused, runs) = (total + summary.recorded, total_refused + summary.refused, runs + 1);
            assert_eq!(orders(&engine).await, (total, i64::try_from(total).unwrap()));
            engine.close().await;
            if summary.finished {
                break;
            }
        }
        assert!(runs > 1, "it was never cut short");
        assert_eq!((total, total_refused), (events, refused));
        let (engine, _) = open(&dir.path().join("data"));
        let again = into_engine(&engine, &import, std::future::pending()).await.unwrap();
        assert_eq!((again.lines, again.finished), (0, true));
        engine.close().await;
    });
}

#[test]
fn what_the_log_has_is_not_recorded_again_though_nobody_was_answered() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("events.ndjson");
    let (events, refused) = write_events(&file, false);
    let import = args(&[file.to_str().unwrap()]);
    runtime().unwrap().block_on(async {
        let (engine, _) = open(&dir.path().join("data"));
        let first = into_engine(&engine, &import, after_a_batch(&engine)).await.unwrap();
        assert!(!first.finished);
        let project = engine.registry().projects(engine.registry().organizations()[0].id).unwrap()[0].id;
        // As after kill -9: the log has the second of the next two batches, and what others
        // recorded before and after it. The journal has neither.
        let (from, journal) = import.resume(Some(engine.data_dir()), project, false).unwrap();
        let mut journal = journal.unwrap();
        let reading = import.reading(project, (from, Some(&journal)), false).unwrap();
        let mut blocks = lines::Blocks::open(import.opening(from, &mut import.reporter().unwrap())).unwrap();
        let [_, block] = [(); 2].map(|()| reading.read(blocks.next_block().unwrap().unwrap()));
        assert!(journal.recording(engine.vitals().log_position).unwrap());
        let policy = engine.registry().policy(project).unwrap().policy.clone();
        let prepared: Vec<_> = block.iter().map(|json| engine.ingest.prepare_import(&policy, json)).collect();
        let mark = journal.mark(&embedded::part(&block, &prepared));
        assert!(!mark.refused.is_empty());
        engine.track(project, &NewEvent::new("other")).await.unwrap();
        let recording =
            engine.ingest.record_imported(project, prepared, Some(&mark), engine.admission.admit_bytes(1).unwrap()).unwrap();
        let count = recording.await.unwrap().batch.recorded as u64;
        engine.track(project, &NewEvent::new("other")).await.unwrap();
        engine.close().await;
        // Not even sealing takes away what the journal lacks.
        let (engine, _) = open(&dir.path().join("data"));
        engine.seal_archive().await.unwrap();
        engine.close().await;
        let (engine, _) = open(&dir.path().join("data"));
        let rest = into_engine(&engine, &import, std::future::pending()).await.unwrap();
        assert!(rest.finished);
        assert_eq!((rest.duplicates, first.recorded + count + rest.recorded), (count, events));
        assert_eq!(first.refused + rest.refused, refused, "those that nobody heard of are refused again");
        assert_eq!(orders(&engine).await, (events, i64::try_from(events).unwrap()));
        engine.close().await;
    });
}

#[test]
fn lines_without_ids_are_recorded_once_though_the_file_is_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("events.ndjson");
    let (events, refused) = write_events(&file, false);
    runtime().unwrap().block_on(async {
        let (engine, _) = open(&dir.path().join("data"));
        let imported = async |flags: &[&str]| {
            let import = args(&[&[file.to_str().unwrap()], flags].concat());
            let summary = into_engine(&engine, &import, std::future::pending()).await.unwrap();
            (summary.recorded, summary.duplicates, summary.refused)
        };
        assert_eq!(imported(&[]).await, (events, 0, refused));
        for _ in 0..2 {
            assert_eq!(imported(&["--again"]).await, (0, events, refused));
        }
        assert_eq!(orders(&engine).await, (events, i64::try_from(events).unwrap()));
        engine.close().await;
    });
}

#[test]
fn times_that_lie_ahead_are_reported_with_their_lines() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("log");
    let at =
        |year: u32| format!("1.2.3.4 - - [17/May/{year}:10:05:03 +0000] \"GET /a HTTP/1.1\" 200 5 \"-\" \"Mozilla/5.0 (X11)\"\n");
    append(&file, &[at(2015), at(9998), at(2016), at(9999)].concat());
    runtime().unwrap().block_on(async {
        let (engine, _) = open(&dir.path().join("data"));
        let import = args(&["--format", "combined", file.to_str().unwrap()]);
        let summary = into_engine(&engine, &import, std::future::pending()).await.unwrap();
        assert_eq!((summary.recorded, summary.clamped, &*summary.clamped_lines), (4, 2, &[2, 4][..]));
        assert!(summary.describe().contains("because their time is in the future: 2 (lines 2, 4)"), "{}", summary.describe());
        engine.close().await;
    });
}

#[test]
fn through_a_server_everything_is_recorded_once_too() {
    use headcount::server::{HttpConfig, Server};
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("events.ndjson");
    let (events, refused) = write_events(&file, false);
    runtime().unwrap().block_on(async {
        let (engine, made) = open(&dir.path().join("data"));
        let server = Server::start(engine.clone(), HttpConfig::new("127.0.0.1:0")).unwrap();
        let flags =
            headcount::config::Flags { data_dir: Some(dir.path().join("data").display().to_string()), ..Default::default() };
        let settings = headcount::config::Settings::resolve(&flags, |_| None).unwrap();
        headcount_api::command::client::write_address(&settings.data_dir, &server.url());
        let flags = args(&[file.to_str().unwrap(), "--project", "default"]);
        // The first run is cut short, and the second resumes it.
        let cut = import(&settings, &flags, || Ok(after_a_batch(&engine))).await.unwrap();
        assert!(!cut.finished && cut.recorded > 0);
        let rest = import(&settings, &flags, || Ok(std::future::pending())).await.unwrap();
        assert!(rest.finished && rest.resumed_at_line.is_some());
        assert_eq!((cut.recorded + rest.recorded, cut.refused + rest.refused), (events, refused));
        let token = made.unwrap().api_token;
        let remote = args(&[file.to_str().unwrap(), "--url", &server.url(), "--token", &token]);
        for (recorded, duplicates) in [(events, 0), (0, events)] {
            let summary = import(&settings, &remote, || Ok(std::future::pending())).await.unwrap();
            assert_eq!((summary.recorded, summary.duplicates), (recorded, duplicates));
        }
        server.stop().await.unwrap();
        engine.close().await;
    });
}

/// Orders of 1 dollar, each by a user of its own.
fn orders_of(lines: std::ops::Range<u32>) -> String {
    let order = |line| format!("{{\"name\":\"purchase\",\"timestamp\":1431857103000,\"user_id\":\"u{line}\",\"value\":1}}\n");
    lines.map(order).collect()
}

fn append(path: &Path, text: &str) {
    use std::io::Write;
    std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

#[test]
fn a_file_that_grows_is_touched_or_renamed_goes_on_and_another_begins_anew() {
    let dir = tempfile::tempdir().unwrap();
    let (file, renamed) = (dir.path().join("log"), dir.path().join("log.1"));
    runtime().unwrap().block_on(async {
        let (engine, _) = open(&dir.path().join("data"));
        let imported = async |file: &Path, flags: &[&str]| {
            let import = args(&[&[file.to_str().unwrap()], flags].concat());
            let summary = into_engine(&engine, &import, std::future::pending()).await.unwrap();
            assert!(summary.finished);
            (summary.recorded, summary.refused, summary.unfinished_line)
        };
        append(&file, &orders_of(0..10));
        assert_eq!(imported(&file, &[]).await, (10, 0, None));
        File::options().append(true).open(&file).unwrap().set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(imported(&file, &[]).await, (0, 0, None), "touched");
        let (begun, rest) = (orders_of(10..15), "{\"name\":\"purchase\",\"timestamp\":1431857103000,");
        append(&file, &format!("{begun}{rest}"));
        assert_eq!(imported(&file, &[]).await, (5, 0, Some(16)), "grown, its last line half written");
        append(&file, "\"user_id\":\"u15\",\"value\":1}");
        assert_eq!(imported(&file, &[]).await, (1, 0, None), "a last line that is whole, but has no end");
        append(&file, &format!("\n{}", orders_of(16..20)));
        std::fs::rename(&file, &renamed).unwrap();
        append(&file, "{}\n");
        let left_behind = || {
            let project = engine.registry().projects(engine.registry().organizations()[0].id).unwrap()[0].id;
            let source = args(&[file.to_str().unwrap()]).source_file(project).unwrap().unwrap();
            Journal::left_behind(engine.data_dir(), &source)
        };
        assert_eq!(left_behind().as_ref(), Some(&renamed));
        assert_eq!(imported(&renamed, &[]).await, (4, 0, None), "renamed and grown");
        assert_eq!(left_behind(), None);
        std::fs::remove_file(&file).unwrap();
        append(&file, &orders_of(20..25));
        assert_eq!(imported(&file, &[]).await, (5, 0, None), "another file");
        std::fs::write(&file, orders_of(25..27)).unwrap();
        assert_eq!(imported(&file, &[]).await, (2, 0, None), "the same file, rewritten");
        assert_eq!(imported(&file, &[]).await, (0, 0, None));
        assert_eq!(imported(&file, &["--again"]).await, (0, 0, None), "read again");
        assert_eq!(imported(&renamed, &[]).await, (0, 0, None));
        assert_eq!(orders(&engine).await, (27, 27));
        engine.close().await;
    });
}

#[test]
fn a_file_is_followed_over_its_rotation() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("log");
    append(&file, &orders_of(0..10));
    runtime().unwrap().block_on(async {
        let (engine, _) = open(&dir.path().join("data"));
        let import = args(&[file.to_str().unwrap(), "--follow"]);
        let until = async |users: u64| {
            while orders(&engine).await.0 < users {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        let story = async {
            until(10).await;
            append(&file, &orders_of(10..12));
            until(12).await;
            std::fs::rename(&file, dir.path().join("log.1")).unwrap();
            append(&dir.path().join("log.1"), &orders_of(12..13));
            append(&file, &orders_of(13..20));
            until(20).await;
        };
        let summary = into_engine(&engine, &import, story).await.unwrap();
        assert_eq!((summary.recorded, summary.finished), (20, true));
        append(&file, &orders_of(20..21));
        let later = into_engine(&engine, &import, until(21)).await.unwrap();
        assert_eq!((later.recorded, later.resumed_at_line), (1, Some(8)));
        assert_eq!(orders(&engine).await, (21, 21));
        engine.close().await;
    });
}

#[test]
fn a_line_that_is_too_long_is_one_refused_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("log");
    append(&file, &format!("{}{}\n{}", orders_of(0..2), "x".repeat(17 << 20), orders_of(2..4)));
    runtime().unwrap().block_on(async {
        let (engine, _) = open(&dir.path().join("data"));
        let import = args(&[file.to_str().unwrap()]);
        let summary = into_engine(&engine, &import, std::future::pending()).await.unwrap();
        assert_eq!((summary.recorded, summary.refused, summary.refused_lines[0].line), (4, 1, 3));
        assert!(!summary.none_recorded());
        engine.close().await;
    });
}

#[test]
fn a_compressed_file_that_was_cut_is_imported_up_to_there() {
    use std::io::Write;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("log.gz");
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(orders_of(0..50_000).as_bytes()).unwrap();
    let packed = encoder.finish().unwrap();
    std::fs::write(&file, &packed[..packed.len() / 2]).unwrap();
    runtime().unwrap().block_on(async {
        let (engine, _) = open(&dir.path().join("data"));
        let import = args(&[file.to_str().unwrap()]);
        let failure = into_engine(&engine, &import, std::future::pending()).await.unwrap_err().0;
        assert!(failure.contains("it is truncated or damaged after line"), "{failure}");
        let half = orders(&engine).await.0;
        assert!(half > 10_000, "{failure}");
        // Once the file is complete, the rest is imported.
        std::fs::write(&file, &packed).unwrap();
        let rest = into_engine(&engine, &import, std::future::pending()).await.unwrap();
        assert_eq!((half + rest.recorded, orders(&engine).await), (50_000, (50_000, 50_000)));
        engine.close().await;
    });
}

#[test]
fn an_access_log_of_2015() {
    let log = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/apache_access.log.gz");
    let dir = tempfile::tempdir().unwrap();
    runtime().unwrap().block_on(async {
        let (engine, _) = open(dir.path());
        let import = args(&["--format", "combined", "--all", "--bots", "record", log.to_str().unwrap()]);
        let summary = into_engine(&engine, &import, std::future::pending()).await.unwrap();
        assert_eq!((summary.lines, summary.recorded, summary.refused), (10_000, 9_999, 1));
        assert_eq!(summary.refused_lines[0].line, 8_899);
        let project = engine.registry().projects(engine.registry().organizations()[0].id).unwrap()[0].id;
        let utc = headcount_domain::time::Timezone::UTC;
        let window = Window::resolve(Some("2015-05-17"), Some("2015-05-20"), utc, engine.clock().now()).unwrap();
        let users = engine.ask(project, UniqueUsersQuery { window }).await.unwrap();
        let by_day: Vec<u64> = users.series.iter().map(|(_, users)| *users).collect();
        assert_eq!(by_day, [365, 660, 586, 532]);
        engine.close().await;
    });
}

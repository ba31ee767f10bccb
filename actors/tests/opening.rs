//! The faults at a start that lead to a rebuild from the log, and those that lead to an error and
//! leave every file unchanged.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is a failed test")]

use std::fs;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use headcount_actors::domain::ids::ProjectId;
use headcount_actors::domain::queries::{RevenueMetricsQuery, UniqueUsersQuery};
use headcount_actors::domain::time::{Day, Window};
use headcount_actors::ingest::{NewEvent, Status};
use headcount_actors::{Engine, EngineConfig};
use headcount_storage::codec;
use headcount_storage::keyspace::{Key, PartitionId};
use headcount_storage::store::{DiskStore, Store, StoreOptions};

/// 2024-03-01T10:00:00Z
const BASE_MS: i64 = 1_709_287_200_000;
const USERS: u64 = 3_000;
const BATCH: usize = 1_000;

fn config(dir: &Path) -> EngineConfig {
    let mut config = EngineConfig::new(dir);
    config.shards = 2;
    config.min_free_bytes = 1 << 20;
    config.log.segment_bytes = 64 << 10;
    config
}

fn order(user: u64) -> NewEvent {
    // Hardly compressible, so that the log gets several segments.
    let id = format!("o-{user}-{:032x}", u128::from(user).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835));
    NewEvent::new("order").user(format!("u{user}")).external_id(id).at_ms(BASE_MS).value("2").unwrap()
}

/// A new data directory with one order each of many users.
async fn filled(dir: &Path) -> (Engine, ProjectId) {
    let engine = Engine::open(config(dir)).unwrap();
    let project = engine.registry().initialize(engine.clock().now()).unwrap().project_id;
    let orders: Vec<_> = (0..USERS).map(order).collect();
    for batch in orders.chunks(BATCH) {
        assert_eq!(engine.track_batch(project, batch).await.unwrap().recorded, batch.len());
    }
    (engine, project)
}

/// Opens it, and compares its answers with the recorded events: every user is known, and every
/// `external_id`.
async fn check(dir: &Path, project: ProjectId) {
    let engine = Engine::open(config(dir)).unwrap();
    for user in [0, USERS / 2, USERS - 1] {
        assert_eq!(engine.track(project, &order(user)).await.unwrap().status, Status::Duplicate, "user {user}");
        // The first event adds an entry if the user is not found.
        let again = NewEvent::new("ping").user(format!("u{user}")).at_ms(BASE_MS);
        assert_eq!(engine.track(project, &again).await.unwrap().status, Status::Recorded);
    }
    let day = Day::parse("2024-03-01").unwrap();
    let window = Window { start: day, end: day };
    let users = engine.ask(project, UniqueUsersQuery { window }).await.unwrap();
    assert_eq!(users.total, USERS);
    let revenue = engine.ask(project, RevenueMetricsQuery { window }).await.unwrap();
    assert_eq!(u64::try_from(revenue.orders), Ok(USERS));
    engine.close().await;
}

fn refusal(dir: &Path) -> String {
    Engine::open(config(dir)).map(drop).unwrap_err().to_string()
}

/// The names in a directory that begin like this.
fn names(dir: &Path, prefix: &str) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| name.starts_with(prefix)).collect();
    names.sort();
    names
}

/// The files in and below a directory with this extension or name, the largest first.
fn files(dir: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if path.to_str().unwrap().ends_with(ending) {
            found.push(path);
        }
    }
    found.sort_by_key(|path| std::cmp::Reverse(path.metadata().unwrap().len()));
    found
}

fn flip(path: &Path, at: u64) {
    let file = fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1], at).unwrap();
}

fn sealed_segment(dir: &Path) -> PathBuf {
    let mut segments = files(&dir.join("log"), ".seg");
    segments.sort();
    assert!(segments.len() > 2, "{segments:?}");
    segments.swap_remove(0)
}

#[tokio::test]
async fn a_new_hash_key_leads_to_a_rebuild_also_after_a_failed_start() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path();
    let (engine, project) = filled(dir).await;
    engine.close().await;
    drop(engine);
    fs::remove_dir_all(dir.join("keys")).unwrap();
    // This start makes a new key and fails afterwards.
    fs::create_dir(dir.join("dead-letters.ndjson")).unwrap();
    let said = refusal(dir);
    assert!(dir.join("keys/hash.key").exists() && said.contains("dead-letters.ndjson"), "{said}");
    fs::remove_dir(dir.join("dead-letters.ndjson")).unwrap();
    check(dir, project).await;
}

#[tokio::test]
async fn the_keys_of_another_copy_lead_to_a_rebuild() {
    let (place, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let dir = place.path();
    let (engine, project) = filled(dir).await;
    engine.close().await;
    drop(engine);
    Engine::open(config(other.path())).unwrap().close().await;
    let own = fs::read(dir.join("keys/hash.key")).unwrap();
    fs::copy(other.path().join("keys/hash.key"), dir.join("keys/hash.key")).unwrap();
    check(dir, project).await;
    fs::write(dir.join("keys/hash.key"), own).unwrap();
    check(dir, project).await;
    // The index alone, with the other key.
    let index = dir.join("fingerprints");
    fs::rename(&index, place.path().join("fingerprints.mine")).unwrap();
    fs::copy(other.path().join("keys/hash.key"), dir.join("keys/hash.key")).unwrap();
    check(dir, project).await;
    fs::remove_dir_all(&index).unwrap();
    fs::rename(place.path().join("fingerprints.mine"), &index).unwrap();
    check(dir, project).await;
}

#[tokio::test]
async fn a_rebuild_that_was_cut_short_anywhere_is_begun_again() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path();
    let (engine, project) = filled(dir).await;
    engine.close().await;
    drop(engine);
    // The store is moved aside, the index is not.
    fs::remove_dir_all(dir.join("store")).unwrap();
    check(dir, project).await;
    // FORMAT is renewed, the old store and index are still there.
    let text = fs::read_to_string(dir.join("FORMAT")).unwrap();
    let renewed: String = text.lines().take(2).map(|line| format!("{line}\n")).collect();
    fs::write(dir.join("FORMAT"), format!("{renewed}incarnation = {:032x}\n", 7)).unwrap();
    check(dir, project).await;
    // The new store is created and has no key yet; the old index is still there.
    fs::remove_dir_all(dir.join("store")).unwrap();
    drop(DiskStore::open(&dir.join("store"), StoreOptions::default()).unwrap());
    check(dir, project).await;
}

/// Rewrites the list of the store's types; `None` removes it, as in a store from before the list
/// existed.
fn list_types(dir: &Path, change: impl Fn(&str) -> Option<String>) {
    let store = DiskStore::open(&dir.join("store"), StoreOptions::default()).unwrap();
    let partition = PartitionId(u16::MAX);
    let key = Key::Meta { partition, item: 1 }.encode();
    let types: Vec<String> = codec::decode(1, &store.get(&key).unwrap().unwrap()).unwrap();
    assert!(types.iter().any(|name| name == "rows 3 revenue version 1, keys of 7 bytes"), "{types:?}");
    let changed: Vec<String> = types.iter().filter_map(|name| change(name)).collect();
    let mut checkpoint = store.begin(partition).unwrap();
    match changed.is_empty() {
        true => checkpoint.delete(&key).unwrap(),
        false => checkpoint.put(&key, &codec::encode(1, &changed).unwrap()).unwrap(),
    }
    checkpoint.commit().unwrap();
}

/// Removes all rows of a rollup from the store.
fn remove_rows(dir: &Path, project: ProjectId, tag: u8) {
    let store = DiskStore::open(&dir.join("store"), StoreOptions::default()).unwrap();
    let mut removed = 0;
    for partition in (0..64).map(PartitionId) {
        let mut keys = Vec::new();
        let visit = &mut |key: &[u8], _: &[u8]| {
            keys.extend(matches!(Key::decode(key), Ok(Key::Cells { tag: found, .. }) if found == tag).then(|| key.to_vec()));
            ControlFlow::Continue(())
        };
        Key::cells_of(partition, project.0).iter().for_each(|prefix| store.scan(prefix, visit).unwrap());
        let mut checkpoint = store.begin(partition).unwrap();
        keys.iter().for_each(|key| checkpoint.delete(key).unwrap());
        checkpoint.commit().unwrap();
        removed += keys.len();
    }
    assert!(removed > 0);
}

#[tokio::test]
async fn a_store_of_another_version_is_upgraded() {
    const REVENUE: u8 = 3;
    let place = tempfile::tempdir().unwrap();
    let dir = place.path();
    let (engine, project) = filled(dir).await;
    engine.close().await;
    drop(engine);
    // A version without this rollup, so that it has no rows.
    remove_rows(dir, project, REVENUE);
    list_types(dir, |name| (!name.contains(" revenue ")).then(|| name.to_owned()));
    check(dir, project).await;
    // A rebuild gives the directory a new incarnation. Without a difference, nothing is rebuilt.
    let incarnation = || fs::read(dir.join("FORMAT")).unwrap();
    let before = incarnation();
    check(dir, project).await;
    assert_eq!(incarnation(), before);
    // A version with other records.
    list_types(dir, |name| Some(name.replace("identity version 1", "identity version 0")));
    check(dir, project).await;
    let after = incarnation();
    assert_ne!(after, before);
    // A version without a list.
    list_types(dir, |_| None);
    check(dir, project).await;
    assert_ne!(incarnation(), after);
}

#[tokio::test]
async fn damage_of_the_log_is_an_error_and_changes_nothing() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path();
    let (engine, project) = filled(dir).await;
    // Without a checkpoint, so that the next start reads the log from its beginning.
    drop(engine);
    let segment = sealed_segment(dir);
    flip(&segment, 5_000);
    for _ in 0..4 {
        let said = refusal(dir);
        assert!(said.contains("log segment") && said.contains("is damaged at byte"), "{said}");
        assert_eq!(names(dir, "store"), ["store"]);
        assert_eq!(names(dir, "fingerprints").len(), usize::from(dir.join("fingerprints").exists()));
    }
    flip(&segment, 5_000);
    check(dir, project).await;
    assert_eq!(names(dir, "store"), ["store"]);
}

#[tokio::test]
async fn an_io_error_of_store_or_index_is_an_error_and_changes_nothing() {
    // On a disk, because directories have a size there: opened as a table or list, they are too
    // short, which is damage.
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let dir = place.path();
    let (engine, project) = filled(dir).await;
    engine.close().await;
    drop(engine);
    let away = place.path().join("away");
    for path in [
        files(&dir.join("store/tables"), ".sst").swap_remove(0),
        files(&dir.join("store/tree"), "db").swap_remove(0),
        files(&dir.join("fingerprints"), ".sst").swap_remove(0),
        files(&dir.join("fingerprints"), "MANIFEST").swap_remove(0),
    ] {
        // A directory can be opened, but not read: EISDIR.
        fs::rename(&path, &away).unwrap();
        fs::create_dir(&path).unwrap();
        let said = refusal(dir);
        let place = path.parent().unwrap().strip_prefix(dir).unwrap();
        let place = place.iter().next().unwrap().to_str().unwrap();
        assert!(said.contains("directory") && said.contains(place), "{}: {said}", path.display());
        assert_eq!(names(dir, "store"), ["store"], "{}: {said}", path.display());
        assert_eq!(names(dir, "fingerprints"), ["fingerprints"], "{}: {said}", path.display());
        fs::remove_dir(&path).unwrap();
        fs::rename(&away, &path).unwrap();
    }
    check(dir, project).await;
    assert_eq!(names(dir, "store"), ["store"]);
}

#[tokio::test]
async fn damage_of_store_or_index_leads_to_a_rebuild() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path();
    let (engine, project) = filled(dir).await;
    engine.close().await;
    drop(engine);
    for (round, directory, ending) in [(1, "store/tables", ".sst"), (2, "store/tree", "db"), (3, "fingerprints", ".sst")] {
        let path = files(&dir.join(directory), ending).swap_remove(0);
        let len = path.metadata().unwrap().len();
        (1..8).for_each(|place| flip(&path, len * place / 8));
        check(dir, project).await;
        let reason = fs::read_to_string(dir.join(format!("store.damaged-{round}/REASON"))).unwrap();
        assert!(reason.contains("damaged"), "{reason}");
        assert_eq!(names(dir, "fingerprints"), ["fingerprints"]);
    }
    assert_eq!(names(dir, "store"), ["store", "store.damaged-2", "store.damaged-3"]);
}

/// As after an update of the program that changed the stored format.
#[tokio::test]
async fn a_store_of_an_earlier_version_leads_to_a_rebuild() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path();
    let (engine, project) = filled(dir).await;
    engine.close().await;
    drop(engine);
    let store = DiskStore::open(&dir.join("store"), StoreOptions::default()).unwrap();
    let mut changed = 0;
    for number in 0..64 {
        let key = Key::Position { partition: PartitionId(number) }.encode();
        let Some(mut value) = store.get(&key).unwrap() else { continue };
        value[0] -= 1;
        let mut checkpoint = store.begin(PartitionId(number)).unwrap();
        checkpoint.put(&key, &value).unwrap();
        checkpoint.commit().unwrap();
        changed += 1;
    }
    assert!(changed > 0);
    drop(store);
    check(dir, project).await;
    let reason = fs::read_to_string(dir.join("store.damaged-1/REASON")).unwrap();
    assert!(reason.contains("version"), "{reason}");
}

#[tokio::test]
async fn a_store_with_tables_of_another_version_is_upgraded() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path();
    let (engine, project) = filled(dir).await;
    engine.close().await;
    drop(engine);
    let store = DiskStore::open(&dir.join("store"), StoreOptions::default()).unwrap();
    let mut changed = 0;
    for number in 0..64 {
        // The manifest of the partition's tables.
        let key = [PartitionId(number).prefix().as_slice(), &[0]].concat();
        let Some(mut manifest) = store.get(&key).unwrap() else { continue };
        manifest[0] -= 1;
        let mut checkpoint = store.begin(PartitionId(number)).unwrap();
        checkpoint.put(&key, &manifest).unwrap();
        checkpoint.commit().unwrap();
        changed += 1;
    }
    assert!(changed > 0);
    drop(store);
    check(dir, project).await;
    let reason = fs::read_to_string(dir.join("store.damaged-1/REASON")).unwrap();
    assert_eq!(reason, "another version of the program made it\n");
}

#[tokio::test]
async fn nothing_moved_aside_is_removed_before_a_start_succeeds() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path();
    let (engine, project) = filled(dir).await;
    engine.close().await;
    drop(engine);
    for number in 1..=3 {
        let earlier = dir.join(format!("store.damaged-{number}"));
        fs::create_dir(&earlier).unwrap();
        fs::write(earlier.join("REASON"), "earlier").unwrap();
    }
    let segment = sealed_segment(dir);
    flip(&segment, 5_000);
    fs::write(dir.join("store/DAMAGED"), "a note").unwrap();
    let said = refusal(dir);
    assert!(said.contains("is damaged at byte"), "{said}");
    let all = ["store", "store.damaged-1", "store.damaged-2", "store.damaged-3", "store.damaged-4"];
    assert_eq!(names(dir, "store"), all);
    assert!(dir.join("fingerprints.damaged-1").exists());
    let _ = refusal(dir);
    assert_eq!(names(dir, "store"), all);
    flip(&segment, 5_000);
    check(dir, project).await;
    assert_eq!(names(dir, "store"), ["store", "store.damaged-3", "store.damaged-4"]);
    assert_eq!(names(dir, "fingerprints"), ["fingerprints"]);
}

#[tokio::test]
async fn damage_that_is_found_while_serving_is_rebuilt_at_the_next_start() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path();
    let (engine, project) = filled(dir).await;
    engine.close().await;
    drop(engine);
    for (round, directory) in [(1, "store/tables"), (2, "fingerprints")] {
        let len = |path: &PathBuf| path.metadata().unwrap().len();
        let path = files(&dir.join(directory), ".sst").into_iter().max_by_key(len).unwrap();
        // The damage is in a block that not every open reads.
        flip(&path, len(&path) / 4);
        let mut later = config(dir);
        later.check_before_serving = Some(Duration::ZERO);
        let engine = Engine::open(later).unwrap();
        let began = Instant::now();
        while !engine.vitals().damage_found {
            assert!(began.elapsed() < Duration::from_secs(60), "the damage in {} is not found", path.display());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(engine.ready().await, Ok(()), "what is asked for and sound is answered");
        engine.close().await;
        drop(engine);
        assert!(!dir.join(format!("store.damaged-{round}")).exists());
        check(dir, project).await;
        let reason = fs::read_to_string(dir.join(format!("store.damaged-{round}/REASON"))).unwrap();
        assert!(reason.contains(".sst"), "{reason}");
    }
}

#[tokio::test]
async fn sound_data_is_not_taken_for_damaged_while_serving() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path();
    let (engine, project) = filled(dir).await;
    engine.close().await;
    drop(engine);
    let mut later = config(dir);
    later.check_before_serving = Some(Duration::ZERO);
    let engine = Engine::open(later).unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!engine.vitals().damage_found);
    engine.close().await;
    drop(engine);
    check(dir, project).await;
    assert_eq!(names(dir, "store"), ["store"]);
}

#[test]
fn the_progress_of_the_replay_is_reported() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (engine, _) = runtime.block_on(filled(dir));
    // Without a checkpoint.
    drop(engine);
    let (folding, folded) = std::sync::mpsc::sync_channel(0);
    let mut slow = config(dir);
    slow.probe = Some(std::sync::Arc::new(move |_| {
        let _ = folding.send(());
    }));
    let progress = std::sync::Arc::clone(&slow.progress);
    assert_eq!(progress.replayed(), None);
    let opening = std::thread::spawn(move || Engine::open(slow).unwrap());
    // Each event waits until it is taken here.
    (0..USERS / 2).for_each(|_| folded.recv().unwrap());
    let began = Instant::now();
    // The other shard has nothing to replay, but may not have reported it yet.
    while progress.replayed().is_none_or(|(reached, _)| reached == 0) {
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", progress.replayed());
        std::thread::sleep(Duration::from_millis(5));
    }
    let (reached, end) = progress.replayed().unwrap();
    assert!(reached <= USERS / 2 && end == USERS, "{reached} of {end}");
    drop(folded);
    let engine = opening.join().unwrap();
    assert_eq!(progress.replayed(), Some((USERS, USERS)));
    runtime.block_on(engine.close());
}

/// The lock on the directory is released when an engine is closed, although handles of the engine
/// may live on.
#[tokio::test]
async fn a_closed_engine_that_is_dropped_later_leaves_the_files_of_the_next_one() {
    let dir = tempfile::tempdir().unwrap();
    let closed = Engine::open(config(dir.path())).unwrap();
    closed.close().await;
    let next = Engine::open(config(dir.path())).unwrap();
    let mark = dir.path().join("control/intake/running.json");
    let is_marked = || !std::fs::read_to_string(&mark).unwrap().contains(r#""at":null"#);
    assert!(is_marked());
    drop(closed);
    assert!(is_marked(), "the next start would not know that this one did not end in order");
    next.close().await;
    assert!(!is_marked());
}

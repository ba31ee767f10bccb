//! If the list of files of a project can't be used, only its own events wait.

use std::fs;
use std::path::Path;

use headcount_actors::domain::fault::FaultKind;
use headcount_actors::domain::filter::Predicate;
use headcount_actors::{AskError, Engine, EngineConfig};
use headcount_archive::Manifest;
use headcount_storage::files::switch::{Errno, Plan, Switch};

use super::{answers, copy, files, forget, new, same, send, small, window};

/// Without merges, which would replace the damaged and restored lists.
fn unmerged(dir: &Path) -> EngineConfig {
    let mut config = small(dir);
    config.archive.month_files = Some(1_000);
    config
}

/// Runs `damage` on a project's folder after a seal, records and seals more, and undoes it. Only
/// that project waits.
async fn damaged_list(damage: &dyn Fn(&Path)) {
    let dir = tempfile::tempdir().unwrap();
    let (data, away) = (dir.path().join("data"), dir.path().join("away"));
    let (engine, projects) = new(unmerged(&data)).await;
    let (projects, hurt) = (&projects[..3], projects[0]);
    send(&engine, projects, 0..200).await;
    engine.seal_archive().await.unwrap();
    let folder = data.join("archive").join(format!("project={hurt}"));
    copy(&folder, &away);
    damage(&folder);
    send(&engine, projects, 200..300).await;
    let kept = files(&data.join("log"), "seg").swap_remove(0);
    for part in 3..6 {
        send(&engine, &projects[1..], part * 100..(part + 1) * 100).await;
        let before = answers(&engine, &projects[1..]).await;
        let sealed = engine.seal_archive().await.unwrap();
        assert!(sealed.waiting == [hurt] && sealed.events >= 100, "{sealed:?}");
        same(&answers(&engine, &projects[1..]).await, &before, "the others, sealed");
    }
    assert!(kept.exists(), "the log has the events that wait");
    let asked = engine.scans.unique_users(hurt, window(), Predicate::new(Some("pageview"), Vec::new()).unwrap()).await;
    let Err(AskError::Lost(fault)) = asked else { panic!("answered without sealed events") };
    assert!(fault.kind == FaultKind::DamagedArchive && fault.message.contains("manifest.json"), "{fault}");
    assert!(engine.vitals().archive_damaged_files > 0 && engine.vitals().seal_waiting_projects == 1);
    let others = answers(&engine, &projects[1..]).await;
    engine.close().await;

    // It also waits after a start, and continues where it stopped.
    let engine = Engine::open(unmerged(&data)).unwrap();
    assert_eq!(engine.seal_archive().await.unwrap().waiting, [hurt]);
    same(&answers(&engine, &projects[1..]).await, &others, "the others, after a start");
    let _ = fs::remove_dir_all(&folder);
    copy(&away, &folder);
    let before = answers(&engine, projects).await;
    let sealed = engine.seal_archive().await.unwrap();
    assert!(sealed.waiting.is_empty() && sealed.events >= 85, "{sealed:?}");
    assert!(!kept.exists(), "the log is trimmed");
    assert_eq!((engine.vitals().archive_damaged_files, engine.vitals().seal_waiting_projects), (0, 0));
    same(&answers(&engine, projects).await, &before, "restored");
    engine.close().await;
    forget(&data);
    let engine = Engine::open(unmerged(&data)).unwrap();
    same(&answers(&engine, projects).await, &before, "rebuilt");
    engine.close().await;
}

#[tokio::test]
async fn a_project_whose_list_is_damaged_waits_alone() {
    damaged_list(&|folder| fs::write(folder.join("manifest.json"), "{}").unwrap()).await;
}

/// New events must not begin a new list, which would hide the former files.
#[tokio::test]
async fn a_project_whose_folder_is_gone_waits_alone() {
    damaged_list(&|folder| fs::remove_dir_all(folder).unwrap()).await;
}

/// Files missing in a former list must not be removed.
#[tokio::test]
async fn a_project_with_a_former_list_waits_alone() {
    let former = |folder: &Path| {
        let project = folder.file_name().unwrap().to_str().unwrap().strip_prefix("project=").unwrap().parse().unwrap();
        // Kept in another folder meanwhile: temporary files in the project's own are removed.
        let elsewhere = tempfile::tempdir().unwrap();
        Manifest::empty(project).write(elsewhere.path()).unwrap();
        fs::copy(elsewhere.path().join("manifest.json"), folder.join("manifest.json")).unwrap();
    };
    damaged_list(&former).await;
}

#[tokio::test]
async fn a_project_without_new_events_holds_nothing_back() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, projects) = new(unmerged(dir.path())).await;
    send(&engine, &projects[..3], 0..100).await;
    engine.seal_archive().await.unwrap();
    fs::write(dir.path().join("archive").join(format!("project={}", projects[0])).join("manifest.json"), "{}").unwrap();
    send(&engine, &projects[1..3], 100..300).await;
    let segments = files(&dir.path().join("log"), "seg").len();
    let sealed = engine.seal_archive().await.unwrap();
    assert!(sealed.waiting.is_empty() && segments > files(&dir.path().join("log"), "seg").len(), "{sealed:?}");
    engine.close().await;
}

#[tokio::test]
async fn every_operation_on_files_fails_once_while_a_project_waits() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let (engine, projects) = new(unmerged(&data)).await;
    let projects = &projects[..3];
    let archive = data.join("archive");
    let folder = archive.join(format!("project={}", projects[0]));
    let (mut number, mut failures) = (0, 0);
    send(&engine, projects, 0..40).await;
    engine.seal_archive().await.unwrap();
    // The list can't be read at all: an error of the disk, not damage.
    let switch = Switch::arm(&folder, Plan { at: 1, failures: u64::MAX, errno: Errno::Io, done: false });
    send(&engine, projects, 40..80).await;
    assert_eq!(engine.seal_archive().await.unwrap().waiting, [projects[0]]);
    drop(switch);
    assert!(engine.seal_archive().await.unwrap().waiting.is_empty());
    for at in 1..60_u64 {
        // The project waits in one round and continues in the next. Either fails once.
        let list = folder.join("manifest.json");
        let intact = fs::read(&list).unwrap();
        let restore = || fs::write(&list, &intact).unwrap();
        let waits = at.is_multiple_of(2);
        number += 40;
        fs::write(&list, "{}").unwrap();
        send(&engine, projects, number..number + 40).await;
        if !waits {
            let _ = engine.seal_archive().await.unwrap();
            restore();
        }
        let asked = if waits { &projects[1..] } else { projects };
        let before = answers(&engine, asked).await;
        let errno = if at.is_multiple_of(3) { Errno::NoSpace } else { Errno::Io };
        let switch = Switch::arm(&archive, Plan { at: at / 2, failures: 1, errno, done: false });
        let outcome = engine.seal_archive().await;
        let failed = switch.failed().first().cloned();
        drop(switch);
        let what = format!("{errno:?} at {at}: {failed:?}, {outcome:?}");
        same(&answers(&engine, asked).await, &before, &what);
        if waits {
            restore();
        }
        let sealed = engine.seal_archive().await.unwrap();
        assert!(sealed.waiting.is_empty(), "{what}, then {sealed:?}");
        failures += usize::from(failed.is_some());
        same(&answers(&engine, asked).await, &before, &what);
    }
    assert!(failures >= 20, "{failures} failures");
    let before = answers(&engine, projects).await;
    engine.close().await;
    forget(&data);
    let engine = Engine::open(unmerged(&data)).unwrap();
    same(&answers(&engine, projects).await, &before, "rebuilt");
    engine.close().await;
}

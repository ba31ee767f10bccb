//! E-mail addresses by which identities were erased.

use headcount_actors::ErasedSearch;

use super::*;

pub(super) const ADDRESS: &str = "zanzibar@acme.example";

pub(super) fn identify(user: &str, email: &str) -> NewEvent {
    NewEvent::new("identify").user(user).metadata(&serde_json::json!({ "email": email })).unwrap()
}

async fn sent(rig: &Rig, event: &NewEvent) -> Status {
    rig.engine.track(rig.projects[0], event).await.unwrap().status
}

fn search(dir: &Path) -> ErasedSearch {
    search_erased(&config(dir), &[], &false.into()).unwrap()
}

fn found_in(search: &ErasedSearch, place: &str) -> Vec<String> {
    search.findings.iter().filter(|found| found.place.starts_with(place)).map(|found| found.what.clone()).collect()
}

/// The directory gets the control data from before an opt-in, so that an event was recorded that
/// would have been dropped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_finds_an_address_under_another_id() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("d");
    let rig = Rig::new(&dir);
    assert_eq!(sent(&rig, &identify("ada", ADDRESS)).await, Status::Recorded);
    let subject = || ErasureSubject::Email("Zanzibar@Acme.example".into());
    let erasure = rig.erase(subject()).await.unwrap();
    rig.finish(erasure, "by address").await;
    assert_eq!(sent(&rig, &identify("eve", ADDRESS)).await, Status::Dropped(DropReason::OptedOut));
    rig.engine.close().await;
    let clean = search(&dir);
    assert!(clean.is_clean() && clean.ids == 2, "{clean:?}");
    let control = home.path().join("control");
    copy(&dir.join("control"), &control);

    let rig = rig.open(&dir);
    let (engine, organization) = (rig.engine.clone(), rig.organization);
    tokio::task::spawn_blocking(move || engine.opt_in(organization, &subject())).await.unwrap().unwrap();
    assert_eq!(sent(&rig, &identify("eve", ADDRESS)).await, Status::Recorded, "from now on");
    rig.engine.close().await;
    assert!(search(&dir).is_clean(), "it is recorded again");
    fs::remove_dir_all(dir.join("control")).unwrap();
    copy(&control, &dir.join("control"));
    let found = search(&dir);
    assert!(found_in(&found, "log/").contains(&"an erased e-mail address".to_owned()), "{found:?}");
    let of_store = found_in(&found, "store/");
    assert!(of_store.contains(&"the keyed hash of a suppressed id or address".to_owned()), "{found:?}");
}

/// A row of a visitor without an id names no person in the files, so the state must suffice to find
/// the row.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_visitor_with_the_address_stays_gone_when_others_are_erased() {
    let home = tempfile::tempdir().unwrap();
    let rig = Rig::new(home.path());
    let visitor = NewEvent::new("identify").metadata(&serde_json::json!({ "email": ADDRESS })).unwrap();
    let agent = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
    let visitor = visitor.with(Field::Ip, "203.0.113.7").with(Field::UserAgent, agent);
    assert_eq!(sent(&rig, &visitor).await, Status::Recorded);
    for other in ["eve", "kim"] {
        assert_eq!(sent(&rig, &of_user(other, 3)).await, Status::Recorded);
    }
    drop(rig.engine.seal_archive().await.unwrap());
    for subject in [ErasureSubject::Email(ADDRESS.into()), ErasureSubject::User("eve".into())] {
        let erasure = rig.erase(subject).await.unwrap();
        rig.finish(erasure, "one after the other").await;
    }
    let companies = top_companies(&rig.engine.organization(rig.organization), window(), 10).await.unwrap();
    assert!(companies.rows.is_empty(), "{companies:?}");
    rig.engine.close().await;
    let found = search(home.path());
    assert!(found.is_clean(), "{found:?}");
    assert_gone(home.path(), "zanzibar", "the visitor");
}

/// Even engines without privacy requests know erased addresses.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_further_erasure_knows_the_address() {
    let home = tempfile::tempdir().unwrap();
    let rig = Rig::new(home.path());
    assert_eq!(sent(&rig, &identify("ada", ADDRESS)).await, Status::Recorded);
    let subject = || ErasureSubject::Email(ADDRESS.into());
    let erasure = rig.erase(subject()).await.unwrap();
    rig.finish(erasure, "by address").await;
    let again = rig.erase(subject()).await.unwrap();
    assert_eq!(rig.engine.erasure(rig.organization, again), Some(ErasureState::Done));
    let unknown = rig.erase(ErasureSubject::Email("nobody@acme.example".into())).await;
    assert!(matches!(unknown, Err(ErasureError::Unknown)), "{unknown:?}");
    assert_eq!(sent(&rig, &identify("eve", "nobody@acme.example")).await, Status::Recorded, "nothing was suppressed");
    rig.engine.close().await;
}

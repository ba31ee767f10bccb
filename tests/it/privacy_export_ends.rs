//! Exports that are not ready, that fail, and whose time is over.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::archive::seal;
use crate::client::{Answer, Call};
use crate::errors::assert_refused;
use crate::privacy_exports::{completed, download, events, exported, made, path_of, when};
use crate::server::TestServer;
use crate::tenant::Tenant;

/// Sealed files that were moved away, so that reading them fails.
struct Aside {
    files: Vec<(PathBuf, PathBuf)>,
}

impl Aside {
    fn put(data: &Path, project: &str) -> Aside {
        let folder = data.join("archive").join(format!("project={project}"));
        let is_sealed = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "parquet");
        let files: Vec<_> = crate::secrets::files(&folder).into_iter().filter(is_sealed).collect();
        assert!(!files.is_empty(), "nothing is sealed in {}", folder.display());
        let aside = |(number, file): (usize, PathBuf)| {
            let aside = data.join(format!("aside-{number}"));
            std::fs::rename(&file, &aside).unwrap();
            (file, aside)
        };
        Aside { files: files.into_iter().enumerate().map(aside).collect() }
    }

    fn put_back(self) {
        for (file, aside) in self.files {
            std::fs::rename(aside, file).unwrap();
        }
    }
}

fn retries(request: &Value) -> usize {
    events(request).iter().filter(|event| **event == "retried").count()
}

/// Asks for the artifact in every way: nobody gets any of it.
#[track_caller]
fn assert_no_artifact(tenant: &Tenant, request: &Value, status: u16, code: &str) {
    let target = format!("{}/download", path_of(request));
    assert_refused(code, &download(tenant, request), status, code, None);
    let ranged = Call::get(&target).header("range", "bytes=0-1").bearer(&tenant.token);
    assert_refused(code, &tenant.send(ranged), status, code, None);
    let known = Call::get(&target).header("if-none-match", "*").bearer(&tenant.token);
    assert_refused(code, &tenant.send(known), status, code, None);
    assert_eq!(tenant.get(&path_of(request)).ok(200)["download_available"], false);
    let stranger = Tenant::on(&tenant.server);
    assert_refused("another organization", &download(&stranger, request), 404, "not_found", None);
    assert_refused("another organization", &stranger.get(&path_of(request)), 404, "not_found", None);
}

#[test]
fn an_export_is_not_ready_until_it_fails_for_the_fifth_time() {
    let server = Arc::new(TestServer::start_with(&["--seal-after", "1h"]));
    let tenant = Tenant::on(&server);
    tenant.recorded(&json!({"name": "pageview", "user_id": "ada"}));
    assert_eq!(seal(&server).map(|(_, events)| events), Some(1), "{}", server.log());
    let aside = Aside::put(server.data_dir(), &tenant.project);
    let request = made(&tenant, json!({"user_id": "ada"}));
    for tries in 1..5 {
        let shown = when(&tenant, &request, |shown| retries(shown) >= tries);
        if retries(&shown) == 4 {
            break;
        }
        // A start makes the next attempt at once.
        server.restart();
    }
    // Its last attempt begins two minutes after the fourth, unless there is a restart.
    let shown = tenant.get(&path_of(&request)).ok(200);
    assert_eq!((&shown["status"], &shown["error"], retries(&shown)), (&json!("processing"), &Value::Null, 4));
    assert_no_artifact(&tenant, &request, 409, "export_not_ready");
    server.restart();
    let failed = when(&tenant, &request, |shown| shown["status"] == "failed");
    assert_eq!(
        (&failed["error"]["code"], retries(&failed), events(&failed).last()),
        (&json!("archive_damaged"), 4, Some(&"failed"))
    );
    assert_no_artifact(&tenant, &request, 409, "export_failed");
    aside.put_back();
    server.restart();
    assert_eq!(exported(&tenant, json!({"user_id": "ada"}))["events"].as_array().unwrap().len(), 1, "a new one");
    assert_no_artifact(&tenant, &request, 409, "export_failed");
    assert_eq!(tenant.get(&path_of(&request)).ok(200), failed);
}

#[test]
fn artifacts_outlive_restarts() {
    let server = Arc::new(TestServer::start());
    let tenant = Tenant::on(&server);
    tenant.recorded(&json!({"name": "pageview", "user_id": "ada"}));
    let request = made(&tenant, json!({"user_id": "ada"}));
    server.kill();
    server.restart();
    let done = completed(&tenant, &request);
    let bytes = download(&tenant, &request).body;
    server.restart();
    assert_eq!(download(&tenant, &request).body, bytes);
    server.kill();
    assert_eq!(download(&tenant, &request).body, bytes);
    let shown = tenant.get(&path_of(&request)).ok(200);
    assert_eq!((&shown["expires_at"], events(&shown).last()), (&done["expires_at"], Some(&"downloaded")));
}

#[test]
fn an_artifact_whose_time_is_over_is_gone_for_ever() {
    let server = Arc::new(TestServer::start_with(&["--export-retention", "1s"]));
    let tenant = Tenant::on(&server);
    tenant.recorded(&json!({"name": "pageview", "user_id": "ada"}));
    let request = made(&tenant, json!({"user_id": "ada"}));
    let expired = when(&tenant, &request, |shown| events(shown).contains(&"expired"));
    assert_eq!((&expired["status"], &expired["download_available"]), (&json!("completed"), &json!(false)));
    assert!(expired["expires_at"].is_string(), "{expired}");
    assert_eq!(std::fs::read_dir(server.data_dir().join("exports")).unwrap().count(), 0);
    let is_gone = || {
        assert_no_artifact(&tenant, &request, 410, "artifact_expired");
        assert_eq!(tenant.get(&path_of(&request)).ok(200), expired);
    };
    is_gone();
    server.restart();
    is_gone();
    server.kill();
    is_gone();
}

#[test]
fn the_ranges_of_an_artifact_are_the_whole() {
    let tenant = Tenant::new();
    for number in 0..200 {
        tenant.recorded(&json!({"name": "pageview", "user_id": "ada", "metadata": {"number": number, "é": "ü".repeat(50)}}));
    }
    let request = made(&tenant, json!({"user_id": "ada"}));
    completed(&tenant, &request);
    let (whole, target) = (download(&tenant, &request), format!("{}/download", path_of(&request)));
    let asked = |range: &str| -> Answer { tenant.send(Call::get(&target).header("range", range).bearer(&tenant.token)) };
    let length = whole.body.len();
    let (mut parts, mut next) = (Vec::new(), 0);
    while next < length {
        let last = next + 9_999;
        let part = asked(&format!("bytes={next}-{last}"));
        let shown = format!("bytes {next}-{}/{length}", last.min(length - 1));
        assert_eq!((part.status, part.header("content-range")), (206, Some(&*shown)));
        assert_eq!(part.etag(), whole.etag());
        parts.extend_from_slice(&part.body);
        next = last + 1;
    }
    assert!(parts == whole.body && length > 40_000, "{length} bytes");
    for (range, expected) in [
        ("bytes=0-0".to_owned(), &whole.body[..1]),
        (format!("bytes={}-", length - 1), &whole.body[length - 1..]),
        (format!("bytes=-{}", length + 1), &whole.body[..]),
    ] {
        let part = asked(&range);
        assert_eq!((part.status, &part.body[..]), (206, expected), "{range}");
    }
    for range in [format!("bytes={length}-"), format!("bytes={}-{}", length + 5, length + 9), "bytes=-0".to_owned()] {
        let refused = asked(&range);
        assert_refused(&range, &refused, 416, "range_not_satisfiable", None);
        assert_eq!(refused.header("content-range"), Some(&*format!("bytes */{length}")), "{range}");
    }
    for ignored in ["bytes=5-2", "lines=1-2", "bytes=a-b"] {
        let all = asked(ignored);
        assert!(all.status == 200 && all.body == whole.body, "{ignored}: {}", all.status);
    }
}

/// An artifact is read from its file as clients take it: it may be larger than what answers may
/// have in memory together.
#[test]
fn an_artifact_is_not_in_memory_while_it_is_read() {
    const CLIENTS: usize = 6;
    let tenant = Tenant::new();
    let texts = vec!["x".repeat(8_000); 4];
    for batch in 0..28 {
        let event =
            |number: u32| json!({"name": "a", "user_id": "ada", "metadata": {"number": batch * 20 + number, "texts": texts}});
        let events: Vec<Value> = (0..20).map(event).collect();
        assert_eq!(tenant.post(&tenant.path("batch"), &json!({ "events": events })).ok(202)["recorded"], 20);
    }
    let request = made(&tenant, json!({"user_id": "ada"}));
    completed(&tenant, &request);
    let (whole, target) = (download(&tenant, &request), format!("{}/download", path_of(&request)));
    assert!(whole.status == 200 && whole.body.len() > 16_000_000, "{} bytes", whole.body.len());
    let head = tenant.send(Call::new("HEAD", &target).bearer(&tenant.token));
    let length = whole.body.len().to_string();
    assert_eq!((head.status, head.header("content-length"), head.body.len()), (200, Some(&*length), 0));

    let asked =
        format!("GET {target} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {}\r\nconnection: close\r\n\r\n", tenant.token);
    let connect = |_| {
        let mut stream = TcpStream::connect(tenant.server.address()).unwrap();
        stream.write_all(asked.as_bytes()).unwrap();
        Some((stream, Vec::new()))
    };
    let mut clients: Vec<Option<(TcpStream, Vec<u8>)>> = (0..CLIENTS).map(connect).collect();
    let mut part = vec![0; 256 << 10];
    while clients.iter().any(Option::is_some) {
        for client in &mut clients {
            let Some((stream, answer)) = client else { continue };
            let count = stream.read(&mut part).unwrap();
            answer.extend_from_slice(&part[..count]);
            if count == 0 {
                let body = answer.len().saturating_sub(whole.body.len());
                let head = String::from_utf8_lossy(&answer[..body.min(300)]);
                assert!(head.starts_with("HTTP/1.1 200") && answer[body..] == whole.body, "{head}");
                *client = None;
            }
        }
    }
}

//! `headcount verify` and `POST /admin/verify`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::client::Call;
use crate::errors::assert_refused;
use crate::server::{TestServer, command};
use crate::tenant::Tenant;

fn with_events() -> (Arc<TestServer>, Tenant) {
    let server = Arc::new(TestServer::start());
    let tenant = Tenant::on(&server);
    for number in 0..30 {
        tenant.recorded(&json!({"name": "order", "user_id": format!("u{}", number % 7), "value": 2, "currency": "USD"}));
    }
    (server, tenant)
}

fn verify(data_dir: &Path, arguments: &[&str]) -> Output {
    command("verify", data_dir).args(arguments).output().unwrap()
}

/// The exit code of `verify --json`, and what it printed.
fn found(data_dir: &Path, arguments: &[&str]) -> (Option<i32>, Value) {
    let output = verify(data_dir, &[&["--json"][..], arguments].concat());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let parsed = serde_json::from_str(&text);
    (output.status.code(), parsed.unwrap_or_else(|_| panic!("{text} {}", String::from_utf8_lossy(&output.stderr))))
}

#[track_caller]
fn assert_clean((code, report): &(Option<i32>, Value), tenant: &Tenant, events: u64) {
    assert_eq!(*code, Some(0), "{report}");
    assert_eq!((&report["status"], &report["differing"]), (&json!("clean"), &json!(0)), "{report}");
    assert_eq!((&report["cells"], &report["damaged"]), (&json!([]), &json!([])));
    let projects = report["projects"].as_array().unwrap();
    let project = projects.iter().find(|project| project["project_id"] == json!(tenant.project)).unwrap();
    assert_eq!(project["events"], json!(events), "{report}");
    assert!(project["position"].as_u64() >= Some(events) && project["frozen"] == 0, "{project}");
}

/// The number of cells that were compared.
fn compared(report: &Value) -> u64 {
    report["projects"].as_array().unwrap().iter().filter_map(|project| project["cells"].as_u64()).sum()
}

#[test]
fn a_server_and_its_stopped_directory_are_clean() {
    let (server, tenant) = with_events();
    assert_clean(&found(server.data_dir(), &[]), &tenant, 30);
    let answer = tenant.send(Call::post("/admin/verify").bearer(&server.operator())).ok(200);
    assert!(compared(&answer) > 10, "{answer}");
    let url = format!("http://{}", server.address());
    let elsewhere = tempfile::tempdir().unwrap();
    assert_clean(&found(elsewhere.path(), &["--url", &url, "--operator-token", &server.operator()]), &tenant, 30);
    server.run("archive", &["seal"]);
    tenant.recorded(&json!({"name": "order", "user_id": "late"}));
    assert_clean(&found(server.data_dir(), &[]), &tenant, 31);
    server.kill();
    assert_clean(&found(server.data_dir(), &[]), &tenant, 31);
    assert!(server.stop().success());
    let stopped = found(server.data_dir(), &[]);
    assert_clean(&stopped, &tenant, 31);
    assert!(compared(&stopped.1) > 10, "{}", stopped.1);
    let (code, quick) = found(server.data_dir(), &["--quick"]);
    assert_eq!((code, &quick["status"], &quick["projects"]), (Some(0), &json!("clean"), &json!([])));
    let text = verify(server.data_dir(), &[]).stdout;
    assert!(String::from_utf8_lossy(&text).starts_with("clean: "), "{}", String::from_utf8_lossy(&text));
}

#[test]
fn the_operator_alone_verifies() {
    let (server, tenant) = with_events();
    let call = || Call::post("/admin/verify");
    assert_refused("a token", &tenant.send(call().bearer(&tenant.token)), 403, "operator_required", None);
    assert_eq!(tenant.send(call()).status, 401);
    let wrong = tenant.send(Call::post("/admin/verify?quick=yes").bearer(&server.operator()));
    assert_refused("quick", &wrong, 400, "invalid_parameter", Some("quick"));
    let unknown = tenant.send(Call::post("/admin/verify?quik=true").bearer(&server.operator()));
    assert_refused("quik", &unknown, 400, "unknown_parameter", Some("quik"));
    let quick = tenant.send(Call::post("/admin/verify?quick=true").bearer(&server.operator())).ok(200);
    assert_eq!((&quick["status"], &quick["projects"]), (&json!("clean"), &json!([])));
}

#[test]
fn a_backup_is_verified_and_left_as_it_is() {
    let (server, tenant) = with_events();
    server.run("archive", &["seal"]);
    tenant.recorded(&json!({"name": "order", "user_id": "late"}));
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("backup");
    server.run("backup", &[dir.to_str().unwrap()]);
    let nowhere = place.path().join("nowhere");
    let arguments = ["--backup", dir.to_str().unwrap()];
    assert_clean(&found(&nowhere, &arguments), &tenant, 31);
    let left: Vec<PathBuf> = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(left, std::slice::from_ref(&dir), "nothing else is left");
    let segment = fs::read_dir(dir.join("log")).unwrap().map(|entry| entry.unwrap().path());
    let segment = segment.filter(|path| path.extension().is_some_and(|extension| extension == "seg")).max().unwrap();
    let mut bytes = fs::read(&segment).unwrap();
    bytes[4_200] ^= 1;
    fs::write(&segment, bytes).unwrap();
    for arguments in [&arguments[..], &[&arguments[..], &["--quick"]].concat()] {
        let (code, report) = found(&nowhere, arguments);
        assert_eq!((code, &report["status"]), (Some(1), &json!("damaged")), "{report}");
        assert_eq!(report["damaged"][0]["file"], json!(format!("log/{}", segment.file_name().unwrap().to_str().unwrap())));
    }
}

#[test]
fn what_can_not_be_verified_has_a_code_of_its_own() {
    let place = tempfile::tempdir().unwrap();
    for arguments in [&[][..], &["--backup", "/nowhere"], &["--url", "http://127.0.0.1:1", "--operator-token", "op_x"]] {
        let output = verify(place.path(), arguments);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(3), "{arguments:?}: {errors}");
        assert!(errors.contains("not verified: "), "{errors}");
    }
}

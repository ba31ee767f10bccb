//! `/privacy-requests`, over HTTP and on the command line.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::errors::assert_refused;
use crate::server::{TestServer, command, restore_without_erased};
use crate::tenant::Tenant;

const PATH: &str = "/privacy-requests";

fn made(tenant: &Tenant, body: &Value) -> Value {
    tenant.post(PATH, body).ok(201)
}

/// A request once it is completed.
#[track_caller]
fn completed(tenant: &Tenant, request: &Value) -> Value {
    let (path, until) = (format!("{PATH}/{}", request["id"].as_str().unwrap()), Instant::now() + Duration::from_secs(30));
    loop {
        let shown = tenant.get(&path).ok(200);
        if shown["status"] == "completed" {
            return shown;
        }
        assert!(Instant::now() < until, "{shown}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn events(request: &Value) -> Vec<&str> {
    request["audit"].as_array().unwrap().iter().map(|entry| entry["event"].as_str().unwrap()).collect()
}

/// What the API says of the first project, in the names of an audit view.
fn figures(tenant: &Tenant) -> Value {
    let metrics = tenant.metrics(&tenant.project);
    json!({
        "events": tenant.get(&tenant.path("intake")).ok(200)["recorded"], "unique_users": tenant.users(&tenant.project),
        "orders": metrics["orders"], "revenue": metrics["total_revenue"], "currency": "USD"
    })
}

fn without_sessions(figures: &Value) -> Value {
    let mut figures = figures.clone();
    figures.as_object_mut().unwrap().remove("sessions");
    figures
}

#[test]
fn an_erasure_shows_figures_before_and_after() {
    let tenant = Tenant::new();
    tenant.recorded(&json!({"name": "pageview", "anonymous_id": "a1", "url": "https://shop.example/"}));
    tenant.recorded(&json!({"name": "identify", "anonymous_id": "a1", "user_id": "ada", "metadata": {"email": "ada@acme.com"}}));
    tenant.recorded(&json!({"name": "order", "user_id": "ada", "value": 5.25, "external_id": "o1"}));
    tenant.recorded(&json!({"name": "order", "user_id": "bob", "value": 7, "timestamp": "2024-03-01T10:00:00Z"}));
    tenant.recorded(&json!({"name": "visit", "pc": ""}));
    let before = figures(&tenant);
    assert_refused("a stranger", &tenant.post(PATH, &json!({"type": "erasure", "user_id": "eve"})), 404, "not_found", None);
    let request = made(&tenant, &json!({"type": "erasure", "anonymous_id": "a1", "project_id": tenant.project}));
    assert_eq!(request["subject"], json!({"anonymous_id": "a1", "project_id": tenant.project}));
    assert_eq!((&request["type"], &request["error"], &request["expires_at"]), (&json!("erasure"), &Value::Null, &Value::Null));
    let late = tenant.track(&json!({"name": "pageview", "user_id": "ada"})).ok(202);
    assert_eq!(late["reason"], "opted_out", "from the answer on");

    let done = completed(&tenant, &request);
    assert_eq!(events(&done), ["created", "started", "erased", "completed"]);
    assert_eq!(done["subject"], json!({"anonymous_id": "[erased]", "project_id": tenant.project}));
    assert!(done["completed_at"].is_string() && done["download_available"] == false);
    let [created, _, erased, end] = &done["audit"].as_array().unwrap()[..] else { panic!("{done}") };
    assert!(created["detail"]["token_id"].as_str().is_some_and(|id| id.starts_with("tok_")));
    assert_eq!(end["detail"], json!({"identities": 1, "events": 3}));
    let detail = &erased["detail"];
    assert_eq!((&detail["project_id"], without_sessions(&detail["before"])), (&json!(tenant.project), before));
    assert_eq!(without_sessions(&detail["after"]), figures(&tenant));
    assert_eq!((&detail["before"]["sessions"], &detail["after"]["sessions"]), (&json!(2), &json!(1)));

    assert_refused("ada", &tenant.get("/identities/profile?user_id=ada"), 404, "not_found", None);
    assert_refused("her address", &tenant.get("/identities/profile?email=ada@acme.com"), 404, "not_found", None);
    let log = tenant.get("/audit-log?action=privacy_request.created");
    let entry = &log.ok(200)["entries"][0];
    assert_eq!((&entry["target"]["id"], &entry["changes"]), (&done["id"], &json!({"type": {"from": null, "to": "erasure"}})));
    assert!(!log.text().contains("\"ada\"") && !log.text().contains("\"a1\""));
}

#[test]
fn erased_people_are_known_by_their_former_ids() {
    let tenant = Tenant::new();
    let email = json!({"email": "Team@Acme.com"});
    for user in ["ada", "bob"] {
        tenant.recorded(&json!({"name": "identify", "user_id": user, "metadata": email}));
    }
    tenant.recorded(&json!({"name": "identify", "user_id": "bob", "metadata": {"email": "bob@acme.com"}}));
    tenant.recorded(&json!({"name": "identify", "user_id": "eve", "metadata": {"email": "eve@acme.com"}}));
    let former = completed(&tenant, &made(&tenant, &json!({"type": "erasure", "email": "team@acme.com"})));
    assert_eq!(former["audit"].as_array().unwrap().last().unwrap()["detail"], json!({"identities": 2, "events": 3}));
    assert_eq!(tenant.users(&tenant.project), 1);
    for subject in [json!({"user_id": "ada"}), json!({"email": "team@acme.com"}), json!({"email": "bob@acme.com"})] {
        let mut body = subject.clone();
        body["type"] = json!("erasure");
        let again = made(&tenant, &body);
        assert_eq!(
            (&again["status"], events(&again)),
            (&json!("completed"), vec!["created", "started", "completed"]),
            "{subject}"
        );
        assert!(again["subject"].as_object().unwrap().values().all(|value| value == "[erased]"), "{again}");
    }
    let pageview = json!({"name": "pageview", "user_id": "bob"});
    assert_eq!(tenant.track(&pageview).ok(202)["reason"], "opted_out");
    let opted = made(&tenant, &json!({"type": "opt_in", "email": "team@acme.com"}));
    assert_eq!((&opted["status"], &opted["subject"]), (&json!("completed"), &json!({"email": "[erased]"})));
    tenant.recorded(&pageview);
    assert_eq!(tenant.users(&tenant.project), 2);
    assert_refused("never erased", &tenant.post(PATH, &json!({"type": "opt_in", "user_id": "eve"})), 404, "not_found", None);

    let list = |query: &str| tenant.get(&format!("{PATH}?{query}")).ok(200);
    let ids = |list: &Value| -> Vec<Value> {
        list["privacy_requests"].as_array().unwrap().iter().map(|request| request["id"].clone()).collect()
    };
    let all = ids(&list(""));
    assert_eq!((all.len(), &all[0], &all[4]), (5, &opted["id"], &former["id"]));
    let page = list(&format!("limit=2&starting_after={}", all[1].as_str().unwrap()));
    assert_eq!((ids(&page), &page["truncated"]), (all[2..4].to_vec(), &json!(true)));
    assert_eq!((ids(&list("type=opt_in")), list("status=pending")["truncated"].clone()), (vec![all[0].clone()], json!(false)));
    let stranger = Tenant::new();
    let theirs = stranger.get(&format!("{PATH}/{}", all[0].as_str().unwrap()));
    assert_refused("another organization's", &theirs, 404, "not_found", None);
    assert_eq!(stranger.get(PATH).ok(200)["privacy_requests"], json!([]));
}

#[test]
fn a_request_names_one_person_and_a_known_type() {
    let tenant = Tenant::new();
    let refused = |body: Value, status: u16, code: &str, param: Option<&str>| {
        assert_refused(&body.to_string(), &tenant.post(PATH, &body), status, code, param);
    };
    refused(json!({"user_id": "ada"}), 400, "missing_parameter", Some("type"));
    refused(json!({"type": "forget", "user_id": "ada"}), 400, "invalid_parameter", Some("type"));
    refused(json!({"type": "erasure"}), 400, "invalid_parameter", None);
    refused(json!({"type": "erasure", "user_id": ""}), 400, "invalid_parameter", None);
    refused(json!({"type": "erasure", "user_id": "a", "email": "a@b.example"}), 400, "invalid_parameter", None);
    refused(json!({"type": "erasure", "user_id": 5}), 400, "invalid_parameter", Some("user_id"));
    let project = &tenant.project;
    refused(json!({"type": "erasure", "user_id": "a", "project_id": project}), 400, "invalid_parameter", Some("project_id"));
    let theirs = Tenant::new().project;
    for project in ["prj_none", &*theirs] {
        refused(json!({"type": "erasure", "anonymous_id": "a", "project_id": project}), 404, "not_found", None);
    }
    refused(json!({"type": "erasure", "email": "no address"}), 404, "not_found", None);
    for query in ["type=forget", "status=open", "starting_after=pr_0000000000000000", "starting_after=x", "limit=0"] {
        let param = query.split('=').next();
        assert_refused(query, &tenant.get(&format!("{PATH}?{query}")), 400, "invalid_parameter", param);
    }
}

#[test]
fn requests_survive_a_restart_and_no_file_has_the_erased_name() {
    let server = Arc::new(TestServer::start());
    let tenant = Tenant::on(&server);
    for number in 0..20 {
        tenant.recorded(&json!({"name": "pageview", "user_id": "zanzibar", "anonymous_id": format!("zanzibar-{number}")}));
        tenant.recorded(&json!({"name": "pageview", "user_id": "others"}));
    }
    let request = made(&tenant, &json!({"type": "erasure", "user_id": "zanzibar"}));
    server.restart();
    let done = completed(&tenant, &request);
    assert_eq!(events(&done).last(), Some(&"completed"));
    server.restart();
    assert_eq!(completed(&tenant, &request), done);
    assert_eq!(tenant.users(&tenant.project), 1);
    assert!(server.stop().success());
    for path in crate::secrets::files(server.data_dir()) {
        let bytes = std::fs::read(&path).expect("a file");
        assert!(!bytes.windows(8).any(|window| window == b"zanzibar"), "{} names the erased", path.display());
    }
}

#[test]
fn commands_run_to_the_end_of_a_request() {
    let server = Arc::new(TestServer::start());
    let dir = server.data_dir().to_owned();
    let run = |arguments: &[&str]| -> Value {
        let output = command("privacy", &dir).args(arguments).arg("--json").output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let key = server.initial("public_key").to_owned();
    for user in ["ada", "bob"] {
        let call = crate::client::Call::post("/track").key(&key).json(&json!({"name": "pageview", "user_id": user}));
        assert_eq!(server.send(&call).status, 202);
    }
    let beside = run(&["erase", "--user-id", "ada", "--wait"]);
    assert_eq!((&beside["status"], &beside["subject"]["user_id"]), (&json!("completed"), &json!("[erased]")));
    assert!(server.stop().success());
    let alone = run(&["erase", "--user-id", "bob"]);
    assert_eq!((&alone["status"], &alone["subject"]["user_id"]), (&json!("completed"), &json!("[erased]")));
    assert_eq!(run(&["opt-in", "--user-id", "ada"])["type"], "opt_in");
    let listed = run(&["list", "--type", "erasure"]);
    assert_eq!(listed["privacy_requests"].as_array().unwrap().len(), 2);
    assert_eq!(run(&["show", alone["id"].as_str().unwrap()]), alone);
    for wrong in [&["erase"][..], &["erase", "--user-id", "a", "--email", "b"], &["erase", "--project", "prj_1"]] {
        assert_eq!(command("privacy", &dir).args(wrong).output().unwrap().status.code(), Some(2), "{wrong:?}");
    }
}

#[test]
fn all_of_many_erasures_at_once_are_accepted_and_done() {
    const PEOPLE: usize = 60;
    let tenant = Tenant::new();
    let user = |number: usize| format!("person-{number}");
    for number in 0..=PEOPLE {
        tenant.recorded(&json!({"name": "order", "user_id": user(number), "anonymous_id": user(number), "value": 1}));
    }
    let requests: Vec<Value> = std::thread::scope(|scope| {
        let erase = |number| {
            let tenant = tenant.same();
            scope.spawn(move || made(&tenant, &json!({"type": "erasure", "user_id": user(number)})))
        };
        let erasing: Vec<_> = (0..PEOPLE).map(erase).collect();
        erasing.into_iter().map(|erasing| erasing.join().unwrap()).collect()
    });
    for (number, request) in requests.iter().enumerate() {
        let done = completed(&tenant, request);
        assert_eq!(done["audit"].as_array().unwrap().last().unwrap()["detail"], json!({"identities": 1, "events": 1}));
        let late = tenant.track(&json!({"name": "pageview", "anonymous_id": user(number)}));
        // The project is held for a moment when others are removed.
        assert!(late.status == 503 || late.ok(202)["reason"] == "opted_out", "{}", late.text());
    }
    assert_eq!((tenant.users(&tenant.project), &tenant.metrics(&tenant.project)["orders"]), (1, &json!(1)));
}

#[test]
fn a_restored_backup_keeps_later_erasures_and_opt_ins() {
    let server = Arc::new(TestServer::start());
    let tenant = Tenant::on(&server);
    for user in ["zanzibar-ada", "zanzibar-eve", "bob"] {
        let metadata = json!({"email": format!("{user}@acme.example")});
        tenant.recorded(&json!({"name": "identify", "user_id": user, "metadata": metadata}));
        tenant.recorded(&json!({"name": "order", "user_id": user, "value": 5}));
    }
    completed(&tenant, &made(&tenant, &json!({"type": "erasure", "user_id": "zanzibar-eve"})));
    let place = tempfile::tempdir().unwrap();
    let backup = place.path().join("saved");
    let saved = backup.to_str().unwrap();
    server.run("backup", &[saved]);
    made(&tenant, &json!({"type": "opt_in", "user_id": "zanzibar-eve"}));
    let erased = completed(&tenant, &made(&tenant, &json!({"type": "erasure", "email": "zanzibar-ada@acme.example"})));
    let expected = without_sessions(&figures(&tenant));

    let run = |name: &str, data_dir: &std::path::Path, arguments: &[&str]| {
        let output = command(name, data_dir).args(arguments).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let verify = ["--erased", "--json", "zanzibar-ada"];
    let refused = run("restore", &place.path().join("x"), &[saved, "--erasures-from", server.data_dir().to_str().unwrap()]);
    assert!(refused.0 == Some(1) && refused.2.contains("is in use by another process"), "{refused:?}");
    server.stopped(|data| {
        let printed = restore_without_erased(data, &backup);
        assert_eq!(printed["taken"], json!({"erasures": 1, "opt_ins": 1, "requests": 3}), "{printed}");
        let (code, found, _) = run("verify", data, &verify);
        assert_eq!(code, Some(1), "the first start finishes it: {found}");
    });
    assert_eq!(without_sessions(&figures(&tenant)), expected, "at once");
    assert_refused("ada", &tenant.get("/identities/profile?user_id=zanzibar-ada"), 404, "not_found", None);
    assert_eq!(tenant.track(&json!({"name": "pageview", "user_id": "zanzibar-ada"})).ok(202)["reason"], "opted_out");
    tenant.recorded(&json!({"name": "pageview", "user_id": "zanzibar-eve"}));
    let shown = tenant.get(&format!("{PATH}/{}", erased["id"].as_str().unwrap())).ok(200);
    assert_eq!(shown, erased, "the request is known");
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let (code, found, errors) = server.stopped(|data| run("verify", data, &verify));
        if code == Some(0) {
            break;
        }
        assert!(Instant::now() < until, "{found}{errors}");
    }
}

//! Exports of `/privacy-requests`: what an artifact has, how it is downloaded, and how it ends.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Answer, Call};
use crate::errors::assert_refused;
use crate::server::{TestServer, command};
use crate::tenant::Tenant;

const PATH: &str = "/privacy-requests";

/// Makes an export, without waiting for it.
pub(crate) fn made(tenant: &Tenant, mut subject: Value) -> Value {
    subject["type"] = json!("export");
    tenant.post(PATH, &subject).ok(201)
}

pub(crate) fn path_of(request: &Value) -> String {
    format!("{PATH}/{}", request["id"].as_str().unwrap())
}

/// A request once `is_so`.
#[track_caller]
pub(crate) fn when(tenant: &Tenant, request: &Value, is_so: impl Fn(&Value) -> bool) -> Value {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let shown = tenant.get(&path_of(request)).ok(200);
        if is_so(&shown) {
            return shown;
        }
        assert!(Instant::now() < until, "{shown}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[track_caller]
pub(crate) fn completed(tenant: &Tenant, request: &Value) -> Value {
    when(tenant, request, |shown| shown["status"] == "completed")
}

pub(crate) fn download(tenant: &Tenant, request: &Value) -> Answer {
    tenant.get(&format!("{}/download", path_of(request)))
}

/// The artifact of a new export.
#[track_caller]
pub(crate) fn exported(tenant: &Tenant, subject: Value) -> Value {
    let request = made(tenant, subject);
    completed(tenant, &request);
    download(tenant, &request).ok(200)
}

pub(crate) fn events(request: &Value) -> Vec<&str> {
    request["audit"].as_array().unwrap().iter().map(|entry| entry["event"].as_str().unwrap()).collect()
}

/// Ada, who is known by two ids in one project, and by her user id in another.
fn with_ada(tenant: &Tenant) -> String {
    let other = tenant.project(&json!({"name": "other", "currency": "EUR"}));
    let at = |minute: u32| format!("2025-03-01T10:{minute:02}:00.000Z");
    let page = "https://shop.example/a?utm_source=news&x=1#top";
    for event in [
        json!({"name": "pageview", "anonymous_id": "a1", "url": page, "timestamp": at(0), "language": "en"}),
        json!({"name": "click", "anonymous_id": "a1", "timestamp": at(5), "metadata": {"deep": [1, {"b": null}]}}),
        json!({"name": "identify", "anonymous_id": "a1", "user_id": "ada", "timestamp": at(10), "external_id": "i1",
               "metadata": {"email": "Ada@Acme.com", "name": "Ada", "plan": {"is": "pro"}}}),
        json!({"name": "order", "user_id": "ada", "value": 5.25, "currency": "eur", "timestamp": "2025-03-02T00:00:00Z",
               "group_type": "team", "group_id": "t-1"}),
        json!({"name": "refund", "user_id": "ada", "value": -1, "timestamp": "2025-03-02T00:10:00Z", "group_id": "acme.com"}),
        json!({"name": "zero", "user_id": "ada", "value": 0, "timestamp": "2025-03-02T00:20:00Z", "notify": true}),
        json!({"name": "pageview", "user_id": "bob", "anonymous_id": "a1", "timestamp": at(1)}),
        json!({"name": "pageview", "user_id": "bob", "anonymous_id": "b1", "timestamp": at(1)}),
        json!({"name": "pageview", "user_id": "ada", "anonymous_id": "b1", "timestamp": "2025-03-03T00:00:00Z"}),
        json!({"name": "visit", "pc": "", "timestamp": at(2)}),
    ] {
        tenant.recorded(&event);
    }
    let event = json!({"name": "identify", "user_id": "ada", "timestamp": at(30), "metadata": {"name": "Ada L.", "email": "x"}});
    tenant.post(&format!("/projects/{}/track", other.id), &event).ok(202);
    other.id
}

#[test]
fn an_artifact_is_complete() {
    let tenant = Tenant::new();
    let other = with_ada(&tenant);
    let team = json!({"name": "group", "user_id": "bob", "group_type": "team", "group_id": "t-1", "metadata": {"name": "Team"}});
    tenant.recorded(&team);
    let artifact = exported(&tenant, json!({"user_id": "ada"}));
    let keys: Vec<&str> = artifact.as_object().unwrap().keys().map(String::as_str).collect();
    let expected =
        ["companies", "events", "format", "generated_at", "groups", "identities", "identity", "orders", "sessions", "subject"];
    assert_eq!(keys, expected);
    assert_eq!((&artifact["format"], &artifact["subject"]), (&json!("headcount.export.v1"), &json!({"user_id": "ada"})));
    let id = tenant.get("/identities/profile?user_id=ada").ok(200)["identity_id"].clone();
    let identity = json!({
        "identity_id": id, "resolved_identifier": "ada@acme.com", "user_id": "ada", "emails": ["ada@acme.com"],
        "anonymous_ids": [{"project_id": tenant.project, "anonymous_id": "a1"}],
        "traits": {"email": "ada@acme.com", "name": "Ada L.", "plan": {"is": "pro"}},
        "first_seen": "2025-03-01T10:00:00.000Z", "last_seen": "2025-03-03T00:00:00.000Z"
    });
    assert_eq!(artifact["identity"], identity);
    assert_eq!(artifact["identities"], json!([identity]));

    assert_events(&tenant, &artifact, &other);
    assert_sums(&tenant, &artifact);
}

/// The schema of what is not null.
fn schema<'d>(document: &'d Value, part: &'d Value) -> &'d Value {
    let mut options = part["oneOf"].as_array().into_iter().flatten();
    let part = options.find(|option| option["type"] != "null").unwrap_or(part);
    part["$ref"].as_str().map_or(part, |path| document.pointer(&path[1..]).expect("a schema"))
}

/// Compares the keys of an object, and of those in it, with the document's. Returns how many
/// objects there were.
fn assert_keys(document: &Value, part: &Value, found: &Value) -> usize {
    let schema = schema(document, part);
    match found {
        Value::Array(items) => items.iter().map(|item| assert_keys(document, &schema["items"], item)).sum(),
        Value::Object(fields) if schema["properties"].is_object() => {
            let properties = schema["properties"].as_object().unwrap();
            let is_closed = schema["additionalProperties"] == false;
            let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            assert!(is_closed && fields.keys().all(|key| properties.contains_key(key)), "{found} is not {schema}");
            assert!(required.into_iter().all(|key| fields.contains_key(key)), "{found} is not {schema}");
            1 + fields.iter().map(|(key, value)| assert_keys(document, &properties[key], value)).sum::<usize>()
        }
        _ => 0,
    }
}

#[test]
fn an_artifact_is_as_the_document_says() {
    let tenant = Tenant::new();
    with_ada(&tenant);
    let artifact = exported(&tenant, json!({"user_id": "ada"}));
    let document = tenant.get("/openapi.json").ok(200);
    let path = "/paths/~1privacy-requests~1{request_id}~1download/get/responses/200/content/application~1json/schema";
    let objects = assert_keys(&document, document.pointer(path).unwrap(), &artifact);
    let count = |name: &str| artifact[name].as_array().unwrap().len();
    let lists: usize = ["events", "sessions", "orders", "companies", "groups"].map(count).iter().sum();
    // And the artifact, its subject, and an identity with an anonymous id, twice.
    assert_eq!(objects, lists + 6, "{artifact}");
}

fn assert_events(tenant: &Tenant, artifact: &Value, other: &str) {
    let (rows, id) = (artifact["events"].as_array().unwrap(), &artifact["identity"]["identity_id"]);
    let names: Vec<&str> = rows.iter().map(|event| event["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["pageview", "click", "identify", "identify", "order", "refund", "zero", "pageview"]);
    assert!(rows.iter().all(|event| event.as_object().unwrap().len() == 40 && event["identity_id"] == *id), "{}", rows[0]);
    assert_eq!(
        (&rows[0]["url"], &rows[0]["language"], &rows[0]["source"], &rows[0]["user_id"], &rows[0]["browser"]),
        (&json!("https://shop.example/a?utm_source=news&x=1#top"), &json!("en"), &json!("news"), &Value::Null, &json!("Chrome"))
    );
    assert_eq!(
        (&rows[1]["metadata"], &rows[1]["value"], &rows[1]["notify"]),
        (&json!({"deep": [1, {"b": null}]}), &Value::Null, &Value::Null)
    );
    assert_eq!(
        (&rows[2]["external_id"], &rows[3]["project_id"], &rows[6]["notify"]),
        (&json!("i1"), &json!(other), &json!(true))
    );
    assert_eq!(
        (&rows[4]["value"], &rows[4]["currency"], &rows[4]["amount"], &rows[4]["counted"]),
        (&json!(5.25), &json!("EUR"), &Value::Null, &json!(true)),
        "there is no rate"
    );
    assert_eq!(rows[7]["anonymous_id"], "b1", "as it was sent, although it is another one's");
    let listed = tenant.get(&tenant.path("events?after_position=0&limit=1")).ok(200)["events"][0].clone();
    assert_eq!(
        (&rows[0]["event_id"], &rows[0]["position"], &rows[0]["received_at"]),
        (&listed["id"], &listed["position"], &listed["received_at"])
    );
}

/// What is made of the events.
fn assert_sums(tenant: &Tenant, artifact: &Value) {
    let (rows, id) = (artifact["events"].as_array().unwrap(), &artifact["identity"]["identity_id"]);
    let sessions = artifact["sessions"].as_array().unwrap();
    let shown: Vec<_> = sessions.iter().map(|session| (session["events"].clone(), session["duration_sec"].clone())).collect();
    assert_eq!(shown, [(json!(2), json!(300)), (json!(3), json!(1200)), (json!(1), json!(0))], "traits make none");
    assert_eq!(
        sessions[0],
        json!({
            "project_id": tenant.project, "identity_id": id, "started_at": "2025-03-01T10:00:00.000Z",
            "ended_at": "2025-03-01T10:05:00.000Z", "duration_sec": 300, "events": 2, "pageviews": 1, "source": "news",
            "medium": "(none)", "campaign": "(none)", "acquisition_channel": sessions[0]["acquisition_channel"],
            "entry_url": "https://shop.example/a", "exit_url": "https://shop.example/a"
        })
    );
    let orders = artifact["orders"].as_array().unwrap();
    let kinds: Vec<_> =
        orders.iter().map(|order| (&order["kind"], &order["value"], &order["amount"], &order["currency"])).collect();
    let (order, refund) =
        ((json!("order"), json!(5.25), Value::Null, json!("EUR")), (json!("refund"), json!(-1), json!(-1), json!("USD")));
    assert_eq!(kinds, [(&order.0, &order.1, &order.2, &order.3), (&refund.0, &refund.1, &refund.2, &refund.3)]);
    assert_eq!((&orders[0]["at"], &orders[0]["event_id"]), (&rows[4]["timestamp"], &rows[4]["event_id"]));
    let company = tenant.get("/companies/lookup?domain=acme.com").ok(200);
    let companies = json!([{"company_id": company["company_id"], "name": null, "domain": "acme.com", "events": 7}]);
    assert_eq!(artifact["companies"], companies, "of all events of the project where she has one");
    assert_eq!((&rows[0]["company_id"], &rows[3]["company_id"]), (&company["company_id"], &Value::Null));
    assert_eq!(artifact["groups"], json!([{"group_type": "team", "group_key": "t-1", "name": "Team", "events": 1}]));
}

#[test]
fn subjects_are_found_by_any_of_their_ids() {
    let tenant = Tenant::new();
    with_ada(&tenant);
    let mut whole = exported(&tenant, json!({"user_id": "ada"}));
    for subject in [
        json!({"email": " ADA@acme.com"}),
        json!({"anonymous_id": "a1"}),
        json!({"anonymous_id": "a1", "project_id": tenant.project}),
    ] {
        let artifact = exported(&tenant, subject.clone());
        assert_eq!(artifact["subject"], subject);
        (whole["subject"], whole["generated_at"]) = (subject, artifact["generated_at"].clone());
        assert_eq!(artifact, whole);
    }
    tenant.recorded(&json!({"name": "identify", "anonymous_id": "z9", "metadata": {"email": "ada@acme.com"}}));
    let both = exported(&tenant, json!({"email": "ada@acme.com"}));
    assert_eq!(both["identities"].as_array().unwrap().len(), 2);
    assert_eq!(
        (&both["identity"]["user_id"], &both["identity"]["anonymous_ids"][0]["anonymous_id"]),
        (&Value::Null, &json!("z9"))
    );
    assert_eq!(both["events"].as_array().unwrap().len(), 9);
    let stranger = json!({"type": "export", "user_id": "eve"});
    assert_refused("a stranger", &tenant.post(PATH, &stranger), 404, "not_found", None);
}

#[test]
fn downloads_have_ranges_and_are_noted() {
    let tenant = Tenant::new();
    with_ada(&tenant);
    let request = made(&tenant, json!({"user_id": "ada"}));
    assert_eq!((&request["type"], &request["completed_at"], &request["error"]), (&json!("export"), &Value::Null, &Value::Null));
    let done = completed(&tenant, &request);
    assert_eq!(done["download_available"], true);
    assert_eq!(events(&done), ["created", "started", "progress", "completed"]);
    assert_eq!(done["audit"][2]["detail"], json!({"done": 8, "total": 8}));
    assert_eq!(done["audit"][3]["detail"], json!({"identities": 1, "events": 8}));
    let whole = download(&tenant, &request);
    let bytes = whole.body.clone();
    let name = format!("attachment; filename=\"headcount-export-{}.json\"", request["id"].as_str().unwrap());
    assert_eq!((whole.header("content-disposition"), whole.header("cache-control")), (Some(&*name), Some("no-store")));
    assert_eq!((whole.header("content-type"), whole.header("accept-ranges")), (Some("application/json"), Some("bytes")));
    let (etag, target) = (whole.etag(), format!("{}/download", path_of(&request)));
    assert!(etag.starts_with('"') && bytes.len() > 2_000, "{etag}");
    let asked = |headers: &[(&str, &str)]| {
        let call = headers.iter().fold(Call::get(&target), |call, (name, value)| call.header(name, *value));
        tenant.send(call.bearer(&tenant.token))
    };
    let part = asked(&[("range", "bytes=10-19")]);
    assert_eq!((part.status, &part.body[..]), (206, &bytes[10..20]));
    assert_eq!(part.header("content-range"), Some(&*format!("bytes 10-19/{}", bytes.len())));
    let tail = asked(&[("range", "bytes=-5"), ("if-range", &etag), ("accept-encoding", "gzip")]);
    assert_eq!((tail.status, &tail.body[..], tail.header("content-encoding")), (206, &bytes[bytes.len() - 5..], None));
    for headers in [[("range", "bytes=0-1"), ("if-range", "\"other\"")], [("range", "bytes=0-1,4-5"), ("accept-encoding", "br")]]
    {
        let all = asked(&headers);
        assert_eq!((all.status, all.body == bytes), (200, true), "{headers:?}");
    }
    let behind = asked(&[("range", &format!("bytes={}-", bytes.len()))]);
    assert_eq!(behind.header("content-range"), Some(&*format!("bytes */{}", bytes.len())));
    assert_refused("behind the end", &behind, 416, "range_not_satisfiable", None);
    assert_eq!(asked(&[("if-none-match", &etag)]).status, 304);
    let noted = tenant.get(&path_of(&request)).ok(200);
    assert_eq!(events(&noted)[4..], ["downloaded"; 5], "the whole three times, and two parts");
    assert!(noted["audit"][4]["detail"]["token_id"].as_str().unwrap().starts_with("tok_"));

    let stranger = Tenant::on(&tenant.server);
    assert_refused("another organization", &download(&stranger, &request), 404, "not_found", None);
    let log = tenant.get("/audit-log?action=privacy_request.created").ok(200);
    assert_eq!(log["entries"][0]["changes"], json!({"type": {"from": null, "to": "export"}}));
}

#[test]
fn an_erasure_takes_artifacts() {
    let tenant = Tenant::new();
    with_ada(&tenant);
    tenant.recorded(&json!({"name": "pageview", "user_id": "cy", "anonymous_id": "c1"}));
    let [of_ada, of_bob, of_cy] = ["ada", "bob", "cy"].map(|user| made(&tenant, json!({"user_id": user})));
    for request in [&of_ada, &of_bob, &of_cy] {
        completed(&tenant, request);
    }
    let erasure = tenant.post(PATH, &json!({"type": "erasure", "user_id": "ada"})).ok(201);
    assert_refused("erased", &tenant.post(PATH, &json!({"type": "export", "user_id": "ada"})), 404, "not_found", None);
    completed(&tenant, &erasure);
    for (request, names) in [(&of_ada, "her own"), (&of_bob, "has her a1")] {
        assert_refused(names, &download(&tenant, request), 410, "artifact_erased", None);
        let shown = tenant.get(&path_of(request)).ok(200);
        assert_eq!((&shown["status"], &shown["download_available"]), (&json!("completed"), &json!(false)));
        assert_eq!(events(&shown).last(), Some(&"artifact_erased"));
    }
    assert_eq!(tenant.get(&path_of(&of_ada)).ok(200)["subject"], json!({"user_id": "[erased]"}));
    download(&tenant, &of_cy).ok(200);
    let again = exported(&tenant, json!({"user_id": "bob"}));
    assert!(!again.to_string().contains("\"a1\""), "{again}");
    assert_refused("an erasure", &download(&tenant, &erasure), 404, "not_found", None);
    assert_refused("erased", &tenant.post(PATH, &json!({"type": "export", "user_id": "ada"})), 404, "not_found", None);
}

#[test]
fn a_deleted_project_takes_artifacts() {
    let tenant = Tenant::new();
    let other = with_ada(&tenant);
    let [of_ada, of_bob] = ["ada", "bob"].map(|user| made(&tenant, json!({"user_id": user})));
    completed(&tenant, &of_ada);
    completed(&tenant, &of_bob);
    assert_eq!(tenant.delete(&format!("/projects/{other}")).status, 204);
    assert_refused("it had an event of it", &download(&tenant, &of_ada), 410, "artifact_erased", None);
    when(&tenant, &of_ada, |shown| events(shown).contains(&"artifact_erased"));
    download(&tenant, &of_bob).ok(200);
    assert_eq!(exported(&tenant, json!({"user_id": "ada"}))["events"].as_array().unwrap().len(), 7);
}

#[test]
fn the_command_exports_and_downloads() {
    let server = Arc::new(TestServer::start());
    let project = server.initial("project_id").to_owned();
    let token = server.initial("api_token").to_owned();
    let event = json!({"name": "pageview", "user_id": "ada"});
    let call = Call::post(format!("/projects/{project}/track")).bearer(&token).json(&event);
    server.send(&call).ok(202);
    let output = server.run("privacy", &["export", "--user-id", "ada", "--wait", "--json"]);
    let request: Value = serde_json::from_str(&output).unwrap();
    assert_eq!((&request["status"], &request["download_available"]), (&json!("completed"), &json!(true)));
    let id = request["id"].as_str().unwrap();
    let artifact: Value = serde_json::from_str(&server.run("privacy", &["download", id])).unwrap();
    assert_eq!(artifact["events"][0]["user_id"], "ada");
    server.stopped(|dir| {
        let run = |arguments: &[&str]| {
            let output = command("privacy", dir).args(arguments).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            output.stdout
        };
        let request: Value = serde_json::from_slice(&run(&["export", "--user-id", "ada", "--json"])).unwrap();
        assert_eq!(request["status"], "completed");
        let file = tempfile::tempdir().unwrap();
        let path = file.path().join("ada.json");
        run(&["download", request["id"].as_str().unwrap(), "-o", path.to_str().unwrap()]);
        let artifact: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(artifact["identity"]["user_id"], "ada");
    });
}

#[test]
fn the_search_finds_what_is_left_of_an_erased_person() {
    let server = Arc::new(TestServer::start());
    let tenant = Tenant::on(&server);
    let event = |user: &str, number: u32| {
        json!({"name": "identify", "user_id": user, "anonymous_id": format!("{user}-device"), "external_id": format!("x{number}"),
               "url": format!("https://shop.example/{user}"), "metadata": {"email": format!("{user}@mail.example")}})
    };
    for (number, user) in (0..).zip(["zanzibar", "quagga", "zanzibar"]) {
        tenant.recorded(&event(user, number));
    }
    completed(&tenant, &made(&tenant, json!({"user_id": "quagga"})));
    // The journal of an import stays, and must have nothing of the lines.
    let imported = tempfile::tempdir().unwrap();
    let file = imported.path().join("lines.ndjson");
    let lines: Vec<String> =
        ["zanzibar", "quagga"].iter().zip(10..).map(|(user, number)| event(user, number).to_string()).collect();
    std::fs::write(&file, lines.join("\n")).unwrap();
    let import = [file.to_str().unwrap(), "--project", &tenant.project, "--token", &tenant.token];
    let import = command("import", server.data_dir()).args(import).output().unwrap();
    assert!(import.status.success(), "{}", String::from_utf8_lossy(&import.stderr));
    assert!(std::fs::read_dir(server.data_dir().join("imports")).unwrap().count() > 0);
    server.send(&Call::post("/admin/archive/seal").bearer(&server.operator())).ok(200);
    tenant.recorded(&event("zanzibar", 3));
    completed(&tenant, &tenant.post(PATH, &json!({"type": "erasure", "user_id": "zanzibar"})).ok(201));
    let search = |arguments: &[&str]| {
        server.stopped(|dir| {
            let output = command("verify", dir).args(["--erased", "--json"]).args(arguments).output().unwrap();
            let shown = String::from_utf8_lossy(&output.stdout).into_owned();
            (output.status.code(), serde_json::from_str::<Value>(&shown).unwrap_or(Value::Null))
        })
    };
    let (code, report) = search(&["zanzibar"]);
    assert_eq!(
        (code, &report["status"], &report["erasures"], &report["ids"]),
        (Some(0), &json!("clean"), &json!(1), &json!(2)),
        "{report}"
    );
    assert!(["events", "pairs", "files", "bytes"].iter().all(|name| report[*name].as_u64() > Some(0)), "{report}");
    let (code, report) = search(&["nobody-at-all", "quagga"]);
    assert_eq!((code, &report["status"]), (Some(1), &json!("found")), "{report}");
    let places = report["found"].as_array().unwrap();
    let has =
        |place: &str| places.iter().any(|found| found["place"].as_str().unwrap().starts_with(place) && found["what"] == "text 2");
    assert!(["archive/", "store/", "exports/"].into_iter().all(has), "{report}");
    let log = search(&["--ids", "/nonexistent"]);
    assert_eq!(log, (Some(3), Value::Null));
    assert_eq!(search(&["abc"]).0, Some(3), "too short");
    let output = command("verify", server.data_dir()).args(["--erased"]).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "a server runs");
}

//! Exports: the same rows over HTTP and from the command line, beside a server and without one.

use std::path::Path;
use std::process::Output;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::client::Call;
use crate::errors::assert_refused;
use crate::server::{TestServer, command};
use crate::tenant::Tenant;

/// 2024-03-01T10:00:00Z
const BASE_MS: i64 = 1_709_287_200_000;
const WINDOW: &str = "start_date=2024-02-01&end_date=2024-04-01";

fn send(tenant: &Tenant, count: i64) {
    let event = |number: i64| {
        json!({"name": if number % 3 == 0 { "order" } else { "say \"hi\", twice" }, "timestamp": BASE_MS - number * 60_000,
               "anonymous_id": format!("a{}", number % 9), "external_id": format!("e{}", number - number % 7 / 6), "message": "a\r\nb",
               "pc": if number % 11 == 0 { "" } else { "analytics" }, "metadata": {"number": number, "text": ["\u{e4}\n", null]}})
    };
    let events: Vec<Value> = (0..count).map(event).collect();
    for events in events.chunks(50) {
        let sent = tenant.send(Call::post("/i/batch").key(&tenant.key).json(&json!({"events": events})));
        assert_eq!(sent.status, 202, "{}", sent.text());
    }
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// All rows of the list, in the order of recording, as an export has them.
fn listed(tenant: &Tenant, query: &str) -> Vec<Value> {
    let page = tenant.get(&tenant.path(&format!("events?after_position=0&limit=1000{query}"))).ok(200);
    let row = |event: &Value| {
        let mut row = event.as_object().expect("an object").clone();
        row.retain(|name, value| {
            !value.is_null() && !["id", "identity_id", "acquisition_channel", "entry_url"].contains(&&**name)
        });
        row.insert("_v".to_owned(), json!(1));
        Value::Object(row)
    };
    page["events"].as_array().expect("events").iter().map(row).collect()
}

#[test]
fn an_export_is_all_events_in_the_order_of_recording() {
    let tenant = Tenant::new();
    send(&tenant, 200);
    let get = |query: &str| tenant.get(&tenant.path(&format!("export{query}")));
    let answer = get("");
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/x-ndjson")));
    assert_eq!(lines(&answer.text()), listed(&tenant, ""));
    let name = "&event_name=order";
    assert_eq!(lines(&get(&format!("?{WINDOW}{name}")).text()), listed(&tenant, &format!("&{WINDOW}{name}")));
    let one = lines(&get("?start_date=2024-03-01&end_date=2024-03-01&filters=%5B%7B%22field%22%3A%22metadata.number%22%2C%22operator%22%3A%22is%22%2C%22value%22%3A4%7D%5D").text());
    assert_eq!((one.len(), &one[0]["metadata"]["number"]), (1, &json!(4)));
    let csv = get("?format=csv").text();
    assert!(csv.starts_with("_v,position,timestamp,received_at,day,name,"), "{csv}");
    assert!(csv.contains("\"say \"\"hi\"\", twice\"") && csv.contains("\"a\r\nb\"") && csv.contains(",\"\","), "quoted: {csv}");
    assert_eq!(csv.matches("\r\n1,").count(), listed(&tenant, "").len());
    let parquet = get("?format=parquet").body;
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    let empty = Tenant::new();
    assert_eq!(empty.get(&empty.path("export")).text(), "");
    let parquet = empty.get(&empty.path("export?format=parquet")).body;
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    for (query, param) in [("?format=xml", "format"), ("?start_date=x", "start_date"), ("?filters=1", "filters")] {
        assert_refused(query, &get(query), 400, "invalid_parameter", Some(param));
    }
    let tag = get("").etag();
    let again = tenant.send(Call::get(tenant.path("export")).bearer(&tenant.token).header("if-none-match", tag));
    assert_eq!(again.status, 304);
}

fn export(server: &TestServer, project: &str, more: &[&str]) -> Output {
    let arguments = ["--project", project];
    command("export", server.data_dir()).args(arguments).args(more).output().expect("the program runs")
}

#[test]
fn the_command_writes_the_same_beside_a_server_and_without_one() {
    let server = Arc::new(TestServer::start());
    let token = server.initial("api_token").to_owned();
    let (project, key) = (server.initial("project_id").to_owned(), server.initial("public_key").to_owned());
    let events: Vec<Value> =
        (0..300).map(|number| json!({"name": "a", "user_id": "u", "metadata": {"number": number}})).collect();
    let sent = server.send(&Call::post("/i/batch").key(&key).agent("Firefox").json(&json!({"events": events})));
    assert_eq!(sent.status, 202, "{}", sent.text());
    let output = tempfile::tempdir().expect("a directory");
    let path = |name: &str| output.path().join(name);
    let text = |path: &Path| path.to_str().expect("a path").to_owned();
    let mut beside = Vec::new();
    for format in ["ndjson", "csv", "parquet"] {
        let file = path(format);
        let done = export(&server, &project, &["--format", format, "-o", &text(&file)]);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        beside.push(std::fs::read(&file).expect("the file"));
        let over_http = server.send(&Call::get(format!("/projects/{project}/export?format={format}")).bearer(&token));
        assert!(over_http.body == *beside.last().unwrap(), "{format}");
    }
    assert_eq!(export(&server, &project, &[]).stdout, beside[0], "standard output");
    let refused = export(&server, &project, &["--filters", "{}", "-o", &text(&path("refused"))]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(server.stop().success());
    for (format, expected) in ["ndjson", "csv", "parquet"].iter().zip(&beside) {
        let done = export(&server, &project, &["--format", format, "-o", &text(&path("alone"))]);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        assert!(std::fs::read(path("alone")).expect("the file") == *expected, "{format}");
    }
    for wrong in [&["--filters", "{}"][..], &["--start-date", "soon"], &["--event-name", ""]] {
        let refused = export(&server, &project, &[wrong, &["-o", &text(&path("refused"))]].concat());
        assert_eq!(refused.status.code(), Some(1), "{wrong:?}");
    }
    let refused = export(&server, "prj_00000000000", &["-o", &text(&path("refused"))]);
    assert_eq!(refused.status.code(), Some(1));
    let mut names: Vec<_> = std::fs::read_dir(output.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["alone", "csv", "ndjson", "parquet"], "a failed export leaves no file");
}

/// The rows of an export, without what each recording decides again.
fn rows(ndjson: &[u8]) -> Vec<Value> {
    let mut rows = lines(std::str::from_utf8(ndjson).expect("UTF-8"));
    for row in &mut rows {
        let row = row.as_object_mut().expect("an object");
        row.remove("position");
        row.remove("received_at");
    }
    rows
}

#[test]
fn what_is_exported_in_any_form_is_imported_as_it_was() {
    let server = TestServer::start();
    let (project, key) = (server.initial("project_id").to_owned(), server.initial("public_key").to_owned());
    let event = |number: i64| {
        json!({"name": "order", "user_id": format!("u{}", number % 20), "value": number as f64 / 4.0, "currency": "EUR",
            "timestamp": BASE_MS + number * 1_000, "url": format!("https://a.example/{number}?utm_source=x"),
            "message": if number % 3 == 0 { "a \"b\",\r\n c" } else { "ä" }, "group_id": "acme.com",
            "privacy_categories": if number % 7 == 0 { "" } else { "analytics" },
            "metadata": {"text": "1,2", "list": [1, null, "\"x\""], "number": 1e300}})
    };
    let events: Vec<Value> = (0..200).map(event).chain((0..20).map(|_| json!({"name": "visit"}))).collect();
    let sent = server.send(&Call::post("/i/batch").key(&key).agent("Firefox").json(&json!({"events": events})));
    assert_eq!(sent.status, 202, "{}", sent.text());
    let dir = tempfile::tempdir().expect("a directory");
    let text = |path: &Path| path.to_str().expect("a path").to_owned();
    let expected = rows(&export(&server, &project, &[]).stdout);
    assert_eq!(expected.len(), 220);
    for format in ["ndjson", "csv", "parquet"] {
        let (file, data) = (dir.path().join(format), dir.path().join(format!("of-{format}")));
        assert!(export(&server, &project, &["--format", format, "-o", &text(&file)]).status.success());
        assert!(command("init", &data).output().expect("it runs").status.success());
        let import = command("import", &data).args([&text(&file), "--min-free-bytes", "0"]).output().expect("it runs");
        assert!(import.status.success(), "{format}: {}", String::from_utf8_lossy(&import.stderr));
        let exported = command("export", &data).output().expect("it runs");
        assert_eq!(rows(&exported.stdout), expected, "{format}");
    }
}

/// Texts that a spreadsheet would run, at the beginning of a cell for it: of whatever separator its
/// locale has.
#[test]
fn texts_of_csv_are_no_formulas_and_come_back_as_they_were() {
    const HOSTILE: [&str; 14] = [
        "=1+1",
        "'=1",
        "''",
        "''=1",
        "-5",
        "+1",
        "@SUM(A1)",
        "\t=1",
        "x;=1+1;y",
        "x;'-1;\"=2",
        "a\r\n=1\n+2",
        "' =1",
        "=cmd|' /C calc'!A0,1",
        "it's; -",
    ];
    let server = TestServer::start();
    let (project, key) = (server.initial("project_id").to_owned(), server.initial("public_key").to_owned());
    let event = |(number, text): (usize, &&str)| {
        let metadata = if number % 3 == 0 {
            json!(-5)
        } else if number % 3 == 1 {
            json!(text)
        } else {
            json!({"k": text, *text: -1})
        };
        json!({"name": text, "user_id": text, "anonymous_id": text, "external_id": text, "message": text, "language": text, "screen": text,
            "group_type": "team", "group_id": text, "consent_source": text, "value": -5, "url": format!("https://a.example/?utm_source={text}"),
            "_acOverrides": {"source": text, "campaign": text}, "metadata": metadata})
    };
    let events: Vec<Value> = HOSTILE.iter().enumerate().map(event).collect();
    let sent = server.send(&Call::post("/i/batch").key(&key).agent("Firefox").json(&json!({"events": events}))).ok(202);
    assert_eq!(sent["recorded"], HOSTILE.len(), "{sent}");
    let expected = rows(&export(&server, &project, &[]).stdout);
    assert!(
        HOSTILE.iter().all(|text| expected.iter().any(|row| row["user_id"] == text.trim() || row["user_id"] == *text)),
        "{expected:?}"
    );

    let csv = String::from_utf8(export(&server, &project, &["--format", "csv"]).stdout).unwrap();
    let cells = csv.split([';', '\t', '\r', '\n']);
    let formulas: Vec<&str> =
        cells.filter(|cell| cell.trim_start_matches(['"', ' ']).starts_with(['=', '+', '-', '@'])).collect();
    assert_eq!(formulas, Vec::<&str>::new(), "where `;` or tabs separate");
    for begin in [",=", ",+", ",@", ",\"=", ",\"-", ",\"+", ",\"@"] {
        assert!(!csv.contains(begin), "where commas separate: {begin} in {csv}");
    }
    assert_eq!(csv.matches(",-5,-5,-5,true,USD,").count(), HOSTILE.len(), "amounts are numbers: {csv}");

    let dir = tempfile::tempdir().expect("a directory");
    let (file, data) = (dir.path().join("csv"), dir.path().join("data"));
    std::fs::write(&file, csv).unwrap();
    assert!(command("init", &data).output().expect("it runs").status.success());
    let import = command("import", &data).args([file.to_str().unwrap(), "--min-free-bytes", "0"]).output().expect("it runs");
    assert!(import.status.success(), "{}", String::from_utf8_lossy(&import.stderr));
    assert_eq!(rows(&command("export", &data).output().expect("it runs").stdout), expected);
}

/// As above, into projects of a running server, compressed and twice.
#[test]
fn what_is_exported_in_any_form_is_imported_through_a_server() {
    let server = TestServer::start();
    let (project, key) = (server.initial("project_id").to_owned(), server.initial("public_key").to_owned());
    let token = server.initial("api_token").to_owned();
    let event = |number: i64| {
        json!({"name": "order", "user_id": format!("u{}", number % 20), "value": number as f64 / 4.0, "currency": "EUR",
            "timestamp": BASE_MS + number * 1_000, "url": format!("https://a.example/{number}?utm_source=x"),
            "external_id": format!("e{number}"), "message": if number % 3 == 0 { "a \"b\",\r\n c" } else { "\u{e4}" },
            "privacy_categories": if number % 7 == 0 { "" } else { "analytics" }, "metadata": {"text": "1,2", "list": [1, null]}})
    };
    let events: Vec<Value> = (0..300).map(event).collect();
    let sent = server.send(&Call::post("/i/batch").key(&key).agent("Firefox").json(&json!({"events": events})));
    assert_eq!(sent.status, 202, "{}", sent.text());
    let dir = tempfile::tempdir().expect("a directory");
    let text = |path: &Path| path.to_str().expect("a path").to_owned();
    let expected = rows(&export(&server, &project, &[]).stdout);
    for format in ["ndjson", "csv", "parquet"] {
        let made = server.send(&Call::post("/projects").bearer(&token).json(&json!({"name": format}))).ok(201);
        let to = made["project_id"].as_str().expect("an id").to_owned();
        let file = dir.path().join(format);
        assert!(export(&server, &project, &["--format", format, "-o", &text(&file)]).status.success());
        // A copy is another file, so that it is read from its beginning, too: every event is a
        // duplicate then.
        let copy = dir.path().join(format!("{format} again"));
        std::fs::copy(&file, &copy).expect("it is copied");
        for (file, what) in [(&file, "300 recorded"), (&copy, "300 duplicates")] {
            let arguments = [&text(file), "--project", &to];
            let import = command("import", server.data_dir()).args(arguments).output().expect("it runs");
            let printed = String::from_utf8_lossy(&[import.stdout, import.stderr].concat()).into_owned();
            assert!(import.status.success() && printed.contains(what), "{format}: {printed}");
            assert_eq!(rows(&export(&server, &to, &[]).stdout), expected, "{format}");
        }
    }
}

/// The greatest amount, between the currencies that are furthest apart.
#[test]
fn the_greatest_converted_amounts_are_imported_as_they_were() {
    let server = Arc::new(TestServer::start());
    let tenant = Tenant::on(&server);
    let rates = json!({"fx_rates": {"EUR": 1_000_000, "JPY": 0.000_000_001}});
    assert_eq!(tenant.patch("/organization", &rates).status, 200);
    let project = || tenant.project(&json!({"currency": "JPY"}));
    let [from, to] = [project(), project()];
    for value in ["1000000000000", "-999999999999.999999", "0.000001"] {
        let event = format!(r#"{{"name": "order", "user_id": "ada", "currency": "EUR", "value": {value}}}"#);
        tenant.send(Call::post("/track").key(&from.key).text("application/json", event)).ok(202);
    }
    let export = |project: &str, format: &str| {
        let file = tenant.get(&format!("/projects/{project}/export?format={format}"));
        assert_eq!(file.status, 200);
        file.text()
    };
    let exported = export(&from.id, "ndjson");
    for amount in ["1000000000000000000000000000", "-999999999999999999000000000", "1000000000"] {
        assert!(exported.contains(&format!(r#""value_in_project":{amount},"#)), "{amount} in {exported}");
    }
    let events: Vec<&str> = exported.lines().collect();
    let body = format!(r#"{{"events": [{}]}}"#, events.join(","));
    let import = Call::post(format!("/projects/{}/import", to.id)).bearer(&tenant.token).text("application/json", body);
    let answer = tenant.send(import).ok(202);
    assert_eq!(answer["recorded"], 3, "{answer}");
    assert_eq!(rows(export(&to.id, "ndjson").as_bytes()), rows(exported.as_bytes()));
    let revenue = |project: &str| tenant.metrics(project)["total_revenue"].to_string();
    assert_eq!(revenue(&to.id), revenue(&from.id));
}

/// Each is refused for its own reason, and nothing of it is recorded.
#[test]
fn rows_that_no_export_has_are_refused() {
    let tenant = Tenant::new();
    send(&tenant, 3);
    tenant.recorded(&json!({"name": "order", "user_id": "ada", "value": 5, "timestamp": BASE_MS, "group_id": "acme.com"}));
    let rows = lines(&tenant.get(&tenant.path("export")).text());
    let row = rows.last().expect("the order");
    let to = tenant.project(&json!({}));
    let path = format!("/projects/{}/import", to.id);
    let import = |row: &Value| tenant.post(&path, &json!({"events": [row]})).ok(202);
    let with = |name: &str, value: Value| {
        let mut row = row.clone();
        row[name] = value;
        row
    };
    let table = [
        ("_v", json!(2), "invalid_parameter", "_v"),
        ("name", json!(""), "invalid_parameter", "name"),
        ("name", Value::Null, "missing_parameter", "name"),
        ("day", json!("2024-03-02"), "timezone_mismatch", "day"),
        ("timestamp", json!("soon"), "invalid_parameter", "timestamp"),
        ("project_currency", json!("EUR"), "currency_mismatch", "project_currency"),
        ("value", json!(1e13), "invalid_parameter", "value"),
        ("value_in_project", json!(-5), "invalid_parameter", "value_in_project"),
        ("device", json!("toaster"), "invalid_parameter", "device"),
        ("company", json!("ACME.com"), "invalid_parameter", "company"),
        ("visitor_id", json!("0".repeat(32)), "invalid_parameter", "visitor_id"),
        ("group_type", json!("A"), "invalid_parameter", "group_type"),
        ("user_id", json!("x".repeat(5_000)), "invalid_parameter", "user_id"),
    ];
    for (name, value, code, param) in table {
        let answer = import(&with(name, value));
        assert_eq!(
            (&answer["recorded"], &answer["errors"][0]["code"], &answer["errors"][0]["param"]),
            (&json!(0), &json!(code), &json!(param)),
            "{name} {answer}"
        );
    }
    let mut anonymous = with("consented", json!(false));
    for name in ["event_source", "event_medium", "event_campaign", "event_channel"] {
        anonymous[name] = Value::Null;
    }
    assert_eq!(import(&anonymous)["errors"][0]["param"], "consented");
    for name in ["user_id", "email", "browser", "browser_version", "os", "device", "email_company"] {
        anonymous[name] = Value::Null;
    }
    for (name, value) in [
        ("url", "https://shop.example/a?q=ada"),
        ("url", "https://shop.example/a#ada"),
        ("url", "https://ada@shop.example/a"),
        ("referrer", "https://other.example/ada"),
        ("message", "ada"),
        ("anonymous_id", "ada"),
    ] {
        let mut telling = anonymous.clone();
        telling[name] = json!(value);
        let answer = import(&telling);
        assert_eq!(answer["errors"][0]["param"], "consented", "{name} {value}: {answer} {telling}");
    }
    assert_eq!(import(&anonymous)["recorded"], 1, "{anonymous}");
    assert_eq!(import(row)["recorded"], 1);
    let member = tenant.token("member", &["events:write"], None);
    let refused = tenant.send(Call::post(&*path).bearer(&member).json(&json!({"events": []})));
    assert_refused("a member", &refused, 403, "insufficient_role", None);
}

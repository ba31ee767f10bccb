//! Where visitors are: by their address and a database, or by what a proxy says.
//!
//! `tests/data/geo/make.py` says which address is where.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::client::Call;
use crate::server::TestServer;
use crate::tenant::{BROWSER, Tenant};

fn database(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/geo").join(name);
    path.to_str().unwrap().to_owned()
}

fn started(settings: &[&str]) -> Arc<TestServer> {
    Arc::new(TestServer::start_with(settings))
}

/// How many users had an event that all of these filters take.
#[track_caller]
fn users(tenant: &Tenant, filters: &Value) -> u64 {
    let body = json!({"start_date": "2020-01-01", "end_date": "2028-12-31", "filters": filters});
    let answer = tenant.post(&tenant.path("analytics/count-unique-users-per-day"), &body).ok(200);
    answer["total_unique_users"].as_u64().unwrap()
}

fn users_in(tenant: &Tenant, country: &str) -> u64 {
    users(tenant, &json!([{"field": "location_country", "operator": "is", "value": country}]))
}

/// Checks the country of this user; empty if it is unknown.
#[track_caller]
fn check(tenant: &Tenant, user: &str, country: &str) {
    let is_user = json!({"field": "user_id", "operator": "is", "value": user});
    let is_there = match country {
        "" => json!({"field": "location_country", "operator": "is_not_set"}),
        country => json!({"field": "location_country", "operator": "is", "value": country}),
    };
    assert_eq!(users(tenant, &json!([is_user, is_there])), 1, "{user} in {country:?}");
}

#[test]
fn without_settings_nobody_is_anywhere() {
    let tenant = Tenant::new();
    let call = Call::post("/track").key(&tenant.key).header("cf-ipcountry", "FR").header("x-forwarded-for", "192.0.2.1");
    assert_eq!(tenant.send(call.json(&json!({"name": "a", "user_id": "ada"}))).status, 202);
    check(&tenant, "ada", "");
}

/// Only the peer's own address counts, which the database puts in the Netherlands.
#[test]
fn who_is_no_trusted_proxy_says_nothing() {
    let settings = ["--geo-db", &database("country.mmdb"), "--geo-header", "CF-IPCountry", "--trusted-proxies", "10.0.0.0/8"];
    let tenant = Tenant::on(&started(&settings));
    let headers = [("cf-ipcountry", "FR"), ("x-forwarded-for", "192.0.2.1"), ("x-real-ip", "192.0.2.1")];
    for (name, value) in headers {
        let call = Call::post("/track").key(&tenant.key).agent(BROWSER).header(name, value);
        let event = json!({"name": "a", "user_id": name, "ip": "192.0.2.1", "location_country": "FR", "country": "FR"});
        assert_eq!(tenant.send(call.json(&event)).status, 202);
        check(&tenant, name, "NL");
    }
}

#[test]
fn a_trusted_proxy_says_whose_request_it_is() {
    let settings = ["--geo-db", &database("country.mmdb"), "--geo-header", "CF-IPCountry", "--trusted-proxies", "127.0.0.0/8"];
    let tenant = Tenant::on(&started(&settings));
    let table: [(&str, &[&str], &str); 17] = [
        // the client's address, the header, the country
        ("192.0.2.1", &[], "CH"),
        ("192.0.2.200", &[], "DE"),
        ("::ffff:192.0.2.1", &[], "CH"),
        ("2001:db8:1::5", &[], "CH"),
        ("2001:db8:2::5", &[], "IN"),
        ("203.0.113.1", &[], ""),
        ("198.51.100.7", &[], ""),
        ("192.0.2.1", &["FR"], "FR"),
        ("192.0.2.1", &["fr"], "FR"),
        ("203.0.113.1", &["FR"], "FR"),
        ("203.0.113.1", &["SE", "FR"], "FR"),
        ("192.0.2.1", &["XX"], "CH"),
        ("192.0.2.1", &["T1"], "CH"),
        ("192.0.2.1", &["FRA"], "CH"),
        ("192.0.2.1", &[""], "CH"),
        ("203.0.113.1", &["XX"], ""),
        ("203.0.113.1", &["\u{e9}"], ""),
    ];
    for (number, (address, sent, country)) in table.into_iter().enumerate() {
        let user = format!("{number}: {address} {sent:?}");
        let mut call = Call::post("/track").key(&tenant.key).agent(BROWSER).header("x-forwarded-for", address);
        for value in sent {
            call = call.header("CF-IPCountry", *value);
        }
        assert_eq!(tenant.send(call.json(&json!({"name": "a", "user_id": user}))).status, 202);
        check(&tenant, &user, country);
    }
    let from = |call: Call| tenant.send(call.header("x-forwarded-for", "192.0.2.200").key(&tenant.key));
    let batch = json!({"events": [{"name": "a", "user_id": "batch 1"}, {"name": "a", "user_id": "batch 2"}]});
    assert_eq!(from(Call::post("/i/batch").json(&batch)).ok(202)["recorded"], 2);
    let pixel = URL_SAFE_NO_PAD.encode(r#"{"name": "a", "user_id": "pixel"}"#);
    assert_eq!(from(Call::get(format!("/i?d={pixel}"))).status, 200);
    for user in ["batch 1", "batch 2", "pixel"] {
        check(&tenant, user, "DE");
    }
}

#[test]
fn a_proxy_alone_can_tell() {
    let tenant = Tenant::on(&started(&["--geo-header", "x-country", "--trusted-proxies", "127.0.0.1"]));
    for (user, sent, country) in [("ada", "SE", "SE"), ("bob", "XX", "")] {
        let call = Call::post("/track").key(&tenant.key).header("X-Country", sent).header("cf-ipcountry", "FR");
        assert_eq!(tenant.send(call.json(&json!({"name": "a", "user_id": user}))).status, 202);
        check(&tenant, user, country);
    }
}

/// Neither its own address nor a header of its request are those of the visitor.
#[test]
fn a_server_tells_an_address_or_nothing() {
    let settings = ["--geo-db", &database("country.mmdb"), "--geo-header", "CF-IPCountry", "--trusted-proxies", "127.0.0.0/8"];
    let tenant = Tenant::on(&started(&settings));
    let send = |path: &str, body: &Value| {
        let call = Call::post(tenant.path(path)).bearer(&tenant.token).header("cf-ipcountry", "FR");
        tenant.send(call.header("x-forwarded-for", "192.0.2.1").json(body))
    };
    let table = [
        (json!("192.0.2.1"), "CH"),
        (json!(" 2001:db8:2::1 "), "IN"),
        (json!("203.0.113.1"), ""),
        (json!("no address"), ""),
        (json!("192.0.2.1:443"), "CH"),
        (json!(""), ""),
        (json!(null), ""),
    ];
    for (ip, country) in &table {
        let answer = send("track", &json!({"name": "a", "user_id": format!("one {ip}"), "ip": ip}));
        assert_eq!(answer.status, 202, "{}", answer.text());
        check(&tenant, &format!("one {ip}"), country);
    }
    let of_batch = |(ip, _): &(Value, &str)| json!({"name": "a", "user_id": format!("batch {ip}"), "ip": ip});
    let events: Vec<Value> = table.iter().map(of_batch).collect();
    assert_eq!(send("batch", &json!({ "events": events })).ok(202)["recorded"], table.len());
    for (ip, country) in &table {
        check(&tenant, &format!("batch {ip}"), country);
    }
}

#[test]
fn without_consent_there_is_no_country() {
    let tenant = Tenant::on(&started(&["--geo-db", &database("country.mmdb")]));
    for (user, more) in [("ada", json!({})), ("bob", json!({"pc": ""})), ("eve", json!({"pc": "marketing"}))] {
        let mut event = json!({"name": "a", "user_id": user, "ip": "192.0.2.1"});
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        assert_eq!(tenant.post(&tenant.path("track"), &event).status, 202);
    }
    assert_eq!(users_in(&tenant, "CH"), 1);
    assert_eq!(users(&tenant, &json!([{"field": "location_country", "operator": "is_set"}])), 1);
}

/// The database of the moment decides; what is recorded stays, whatever a later one says.
#[test]
fn what_was_recorded_stays() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("now.mmdb");
    std::fs::copy(database("country.mmdb"), &path).unwrap();
    let tenant = Tenant::on(&started(&["--geo-db", path.to_str().unwrap()]));
    let send = |user: &str| {
        let event = json!({"name": "a", "user_id": user, "ip": "192.0.2.200"});
        assert_eq!(tenant.post(&tenant.path("track"), &event).status, 202);
    };
    send("before");
    std::fs::copy(database("city.mmdb"), &path).unwrap();
    send("meanwhile");
    tenant.server.restart();
    send("after");
    tenant.server.kill();
    for (user, country) in [("before", "DE"), ("meanwhile", "DE"), ("after", "CH")] {
        check(&tenant, user, country);
    }
}

#[test]
fn addresses_are_not_kept() {
    let tenant = Tenant::on(&started(&["--geo-db", &database("country.mmdb"), "--trusted-proxies", "127.0.0.0/8"]));
    let call = Call::post("/track").key(&tenant.key).agent(BROWSER).header("x-forwarded-for", "192.0.2.200");
    assert_eq!(tenant.send(call.json(&json!({"name": "a"}))).status, 202);
    assert_eq!(tenant.post(&tenant.path("track"), &json!({"name": "b", "ip": "192.0.2.200"})).status, 202);
    assert_eq!(users_in(&tenant, "DE"), 2);
    assert!(tenant.server.stop().success());
    assert!(!tenant.server.log().contains("192.0.2.200"), "in the log of the server");
    let mut files = Vec::new();
    files_below(tenant.server.data_dir(), &mut files);
    assert!(!files.is_empty());
    for file in files {
        let bytes = std::fs::read(&file).unwrap();
        assert!(!bytes.windows(11).any(|window| window == b"192.0.2.200"), "{}", file.display());
    }
}

fn files_below(dir: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files_below(&path, into) } else { into.push(path) }
    }
}

#[test]
fn a_file_that_is_no_database_of_countries_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let whole = std::fs::read(database("country.mmdb")).unwrap();
    std::fs::write(path("cut.mmdb"), &whole[..whole.len() / 2]).unwrap();
    std::fs::write(path("empty.mmdb"), b"").unwrap();
    let table = [
        (path("missing.mmdb"), "No such file"),
        (path("cut.mmdb"), "is damaged, or no .mmdb file"),
        (path("empty.mmdb"), "is damaged, or no .mmdb file"),
        (database("make.py"), "is damaged, or no .mmdb file"),
        (database("asn.mmdb"), "names no countries: it is of the type \"GeoLite2-ASN\""),
    ];
    for (file, why) in table {
        let error = TestServer::refusal(&["--geo-db", &file]);
        assert!(error.contains(&file) && error.contains(why), "{error}");
    }
    let error = TestServer::refusal(&["--geo-header", "no header"]);
    assert!(error.contains("geo_header (from --geo-header): must be the name of a header"), "{error}");
}

/// The organization and project that `init` made.
pub(crate) fn first(server: &Arc<TestServer>) -> Tenant {
    let field = |name: &str| server.initial(name).to_owned();
    Tenant {
        server: Arc::clone(server),
        organization: field("organization_id"),
        project: field("project_id"),
        key: field("public_key"),
        token: field("api_token"),
    }
}

#[test]
fn an_import_tells_countries_too() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let write = |name: &str, addresses: &[&str]| {
        let (mut log, mut events) = (String::new(), String::new());
        for address in addresses {
            writeln!(log, r#"{address} - - [17/May/2025:10:05:03 +0000] "GET / HTTP/1.1" 200 5 "-" "{BROWSER}""#).unwrap();
            writeln!(events, r#"{{"name":"a","user_id":"of {address}","ip":"{address}"}}"#).unwrap();
        }
        std::fs::write(file(&format!("{name}.log")), log).unwrap();
        std::fs::write(file(&format!("{name}.ndjson")), events).unwrap();
    };
    write("one", &["192.0.2.1", "192.0.2.2", "2001:db8:2::1", "203.0.113.1", "visitor.example"]);
    write("two", &["192.0.2.3", "192.0.2.200"]);
    let tenant = first(&started(&["--geo-db", &database("country.mmdb")]));
    let count = || ["CH", "IN", "DE", "NL"].map(|country| users_in(&tenant, country));
    // Through the server, whose database counts.
    tenant.server.run("import", &["--format", "combined", &file("one.log")]);
    assert_eq!(count(), [2, 1, 0, 0]);
    tenant.server.run("import", &[&file("one.ndjson")]);
    assert_eq!(count(), [4, 2, 0, 0]);
    // Into the directory, while no server runs.
    assert!(tenant.server.stop().success());
    let settings = ["--geo-db", &database("country.mmdb"), "--min-free-bytes", "1MiB"];
    let import = |arguments: &[&str]| tenant.server.run("import", &[&settings, arguments].concat());
    import(&["--format", "combined", &file("two.log")]);
    import(&[&file("two.ndjson")]);
    tenant.server.restart();
    assert_eq!(count(), [6, 2, 2, 0]);
}

#[test]
fn the_settings_are_shown() {
    let tenant = first(&TestServer::shared());
    let shown = tenant.server.run("config", &["--json", "--geo-db", "/x/y.mmdb", "--geo-header", "CF-IPCountry"]);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["geo_db"], json!({"value": "/x/y.mmdb", "source": "--geo-db"}));
    assert_eq!(shown["geo_header"], json!({"value": "CF-IPCountry", "source": "--geo-header"}));
}

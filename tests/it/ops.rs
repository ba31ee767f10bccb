//! What operators ask, and the document of the interface.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::client::Call;
use crate::errors::assert_refused;
use crate::paths::{filled, paths};
use crate::tenant::Tenant;

#[test]
fn the_server_says_how_it_is() {
    let tenant = Tenant::new();
    for path in ["/healthz", "/readyz"] {
        let answer = tenant.send(Call::get(path));
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        let head = tenant.send(Call::new("HEAD", path));
        assert_eq!((head.status, head.body.len()), (200, 0), "{path}");
    }
    let version = tenant.send(Call::get("/version")).ok(200);
    let names: Vec<&String> = version.as_object().unwrap().keys().collect();
    assert_eq!(version["name"], "headcount");
    assert_eq!(names, ["api", "name", "version"]);
    assert_eq!(version["version"], env!("CARGO_PKG_VERSION"));
    let api = version["api"].as_str().unwrap();
    assert!(api.len() == 10 && api.split('-').map(str::len).eq([4, 2, 2]), "a date: {api}");
}

/// The samples of `/metrics`: their values by name and labels. Checks the text format on the way.
fn samples(tenant: &Tenant) -> BTreeMap<String, f64> {
    let answer = tenant.send(Call::get("/metrics").header("host", "localhost"));
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(answer.header("content-type").is_some_and(|kind| kind.starts_with("text/plain; version=0.0.4")));
    let text = answer.text();
    assert!(text.ends_with('\n'));
    let (mut kinds, mut helped, mut samples) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
    for line in text.lines() {
        if let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|line| line.split_once(' ')) {
            assert!(helped.insert(name.to_owned()) && !help.is_empty(), "{line}");
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|line| line.split_once(' ')) {
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert!(kinds.insert(name.to_owned(), kind.to_owned()).is_none(), "{line}");
        } else {
            let (name, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
            let family = name.split('{').next().unwrap();
            let of_histogram = ["_bucket", "_sum", "_count"].iter().find_map(|end| family.strip_suffix(end));
            let family = of_histogram.filter(|family| kinds.contains_key(*family)).unwrap_or(family);
            assert!(kinds.contains_key(family) && helped.contains(family), "a sample after its family: {line}");
            let is_counter = kinds[family] == "counter";
            assert!(!is_counter || family.ends_with("_total"), "a counter's name: {line}");
            let value: f64 = value.parse().unwrap_or_else(|_| panic!("{line}"));
            assert!(value.is_finite(), "{line}");
            assert!(samples.insert(name.to_owned(), value).is_none(), "twice: {line}");
        }
    }
    samples
}

#[test]
fn metrics_are_prometheus_text() {
    let tenant = Tenant::new();
    let before = samples(&tenant);
    for _ in 0..10 {
        tenant.recorded(&json!({"name": "a", "user_id": "ada"}));
        assert_eq!(tenant.track(&json!({})).status, 400);
    }
    let after = samples(&tenant);
    let grew = |name: &str| after[name] - before[name];
    assert!(grew("headcount_http_requests_total{class=\"2xx\"}") >= 10.0);
    assert!(grew("headcount_http_requests_total{class=\"4xx\"}") >= 10.0);
    assert!(grew("headcount_http_request_duration_seconds_count") >= 20.0);
    assert!(grew("headcount_log_position") >= 10.0);
    let buckets: Vec<f64> = after.iter().filter(|(name, _)| name.contains("_bucket{")).map(|(_, count)| *count).collect();
    let most = buckets.iter().copied().fold(0.0, f64::max);
    let infinite = after.iter().find(|(name, _)| name.contains("le=\"+Inf\"")).expect("a bucket of all");
    assert!((most - infinite.1).abs() < f64::EPSILON, "buckets are cumulative");
    let names = after.keys().cloned().collect::<Vec<_>>().join("\n");
    assert!(!names.contains("prj_") && !names.contains("org_"), "no label has as many values as there are tenants");
}

#[test]
fn metrics_behind_a_proxy_need_the_scope_admin() {
    let tenant = Tenant::new();
    let ask = |token: Option<&str>| {
        let call = Call::get("/metrics").header("x-forwarded-for", "203.0.113.9");
        tenant.send(if let Some(token) = token { call.bearer(token) } else { call })
    };
    assert_refused("nobody", &ask(None), 401, "invalid_credential", None);
    let reader = tenant.token("owner", &["analytics:read"], None);
    assert_refused("without the scope", &ask(Some(&reader)), 403, "insufficient_scope", None);
    let scoped = tenant.token("owner", &["admin"], Some(&tenant.project));
    assert_refused("of one project", &ask(Some(&scoped)), 403, "project_forbidden", None);
    assert_eq!(ask(Some(&tenant.token)).status, 200);
}

fn document(tenant: &Tenant) -> Value {
    tenant.send(Call::get("/openapi.json")).ok(200)
}

/// Operations of the document, as `(method, path)`.
fn operations(document: &Value) -> BTreeSet<(String, String)> {
    let methods = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];
    let paths = document["paths"].as_object().expect("paths").iter();
    paths
        .flat_map(|(path, item)| item.as_object().unwrap().keys().map(move |method| (method.to_uppercase(), path.clone())))
        .filter(|(method, _)| methods.contains(&&*method.to_lowercase()))
        .collect()
}

#[test]
fn the_document_names_every_operation_and_no_other() {
    let tenant = Tenant::new();
    let documented: BTreeSet<(String, String)> = operations(&document(&tenant))
        .into_iter()
        .map(|(method, path)| {
            let path = path.replace("{project_id}", "{project}").replace("{public_key}", "{key}");
            let path = path.replace("{company_id}", "co_0000000000000000000000").replace("{member_id}", "mem_0000000000000000");
            let path = path.replace("{request_id}", "pr_0000000000000000").replace("{profile_id}", "cp_0000000000000000");
            let path = path.replace("{webhook_id}", "wh_0000000000000000").replace("{run_id}", "run_0000000000000000");
            let path = path.replace("{share_id}", "shr_0000000000000000");
            let definitions = ["segment", "goal", "funnel", "annotation", "channel", "alert"];
            let path = definitions
                .iter()
                .fold(path, |path, kind| path.replace(&format!("{{{kind}_id}}"), &format!("{kind}_0000000000000000")));
            (method, path.replace("{token_id}", "tok_0000000000000000"))
        })
        .collect();
    // OPTIONS is for browsers, HEAD comes with GET.
    let served = paths()
        .into_iter()
        .flat_map(|(path, methods)| methods.into_iter().map(move |method| (method.to_owned(), path.to_owned())));
    let served: BTreeSet<_> = served.filter(|(method, _)| method != "OPTIONS" && method != "HEAD").collect();
    assert_eq!(documented, served);
    for (method, path) in &documented {
        let answer = tenant.send(Call::new(if method == "GET" { "GET" } else { "HEAD" }, filled(path, &tenant)));
        assert!(!answer.text().contains("no such path"), "{method} {path}");
    }
}

#[test]
fn the_document_is_complete() {
    let tenant = Tenant::new();
    let document = document(&tenant);
    assert!(document["openapi"].as_str().is_some_and(|version| version.starts_with("3.1")), "{}", document["openapi"]);
    let mut ids = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let what = format!("{method} {path}");
            assert!(ids.insert(operation["operationId"].as_str().unwrap_or_default().to_owned()), "{what}: an id of its own");
            assert!(
                operation["summary"].as_str().or(operation["description"].as_str()).is_some_and(|text| !text.is_empty()),
                "{what}"
            );
            let responses = operation["responses"].as_object().unwrap_or_else(|| panic!("{what}"));
            assert!(responses.keys().any(|status| status.starts_with('2')), "{what}: {:?}", responses.keys());
            assert!(responses.keys().all(|status| status.len() == 3), "{what}");
            let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
            for name in path.split('{').skip(1).filter_map(|part| part.split('}').next()) {
                let has_it = parameters.iter().any(|parameter| parameter["name"] == name && parameter["in"] == "path");
                assert!(has_it, "{what}: {name}");
            }
        }
    }
    let mut open = Vec::new();
    open_objects("", &document, &mut open);
    assert_eq!(open, Vec::<String>::new(), "schemas of objects say what is in them");
    references(&document, &document);
}

/// Objects that say nothing of their fields.
fn open_objects(place: &str, value: &Value, open: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            let is_object = fields
                .get("type")
                .is_some_and(|kind| kind == "object" || kind.as_array().is_some_and(|kinds| kinds.contains(&json!("object"))));
            let says = ["properties", "additionalProperties", "patternProperties", "oneOf", "allOf", "anyOf"];
            if is_object && !says.iter().any(|name| fields.contains_key(*name)) {
                open.push(place.to_owned());
            }
            fields.iter().for_each(|(name, value)| open_objects(&format!("{place}/{name}"), value, open));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, value)| open_objects(&format!("{place}/{index}"), value, open))
        }
        _ => {}
    }
}

/// Every `$ref` leads somewhere.
fn references(value: &Value, document: &Value) {
    match value {
        Value::Object(fields) => {
            if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
                let pointer = reference.strip_prefix('#').unwrap_or_else(|| panic!("{reference} leads out of the document"));
                assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
            }
            fields.values().for_each(|value| references(value, document));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, document)),
        _ => {}
    }
}

#[test]
fn a_page_shows_the_document() {
    let tenant = Tenant::new();
    let page = tenant.send(Call::get("/docs"));
    assert_eq!(page.status, 200);
    assert!(page.header("content-type").is_some_and(|kind| kind.starts_with("text/html")));
    let text = page.text();
    assert!(text.contains("openapi.json"), "it reads the document");
    assert!(!text.contains("src=\"http") && !text.contains("href=\"http"), "it needs nothing from elsewhere");
}

#[test]
fn metrics_need_no_token_by_a_loopback_name_only() {
    let tenant = Tenant::new();
    let port = tenant.server.address().port();
    for host in ["localhost", "LOCALHOST:1", "127.0.0.1", "127.8.8.8:80", "[::1]", "a.localhost", &format!("127.0.0.1:{port}")] {
        let answer = tenant.send(Call::get("/metrics").header("host", host));
        assert_eq!(answer.status, 200, "{host}: {}", answer.text());
    }
    // A proxy on this machine that adds no header.
    for host in ["stats.example", "stats.example:80", "127.0.0.1.example", "localhost.example", "192.0.2.1", "[2001:db8::1]", ""]
    {
        let answer = tenant.send(Call::get("/metrics").header("host", host));
        assert_refused(host, &answer, 401, "invalid_credential", None);
    }
    for header in
        ["x-forwarded-for", "X-Forwarded-Proto", "x-forwarded-host", "forwarded", "via", "x-real-ip", "cf-connecting-ip"]
    {
        let answer = tenant.send(Call::get("/metrics").header("host", "localhost").header(header, "1.1 a"));
        assert_refused(header, &answer, 401, "invalid_credential", None);
    }
}

#[test]
fn the_document_has_a_version_of_three_numbers() {
    let tenant = Tenant::new();
    let api = tenant.send(Call::get("/version")).field("api");
    let version = document(&tenant)["info"]["version"].as_str().expect("a version").to_owned();
    let numbers: Vec<u32> = version.split('.').map(|part| part.parse().expect("a number")).collect();
    assert_eq!(numbers.len(), 3, "{version}");
    assert!(numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(".") == version, "no leading zeros: {version}");
    assert_eq!(format!("{:04}-{:02}-{:02}", numbers[0], numbers[1], numbers[2]), api);
}

#[test]
fn too_low_a_limit_of_open_files_is_refused_with_what_to_do() {
    let place = tempfile::tempdir().unwrap();
    let script = "ulimit -n 64 && exec \"$0\" serve --data-dir \"$1\" --listen 127.0.0.1:0";
    let mut command = std::process::Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_headcount")]).arg(place.path().join("data"));
    let output = command.stdin(std::process::Stdio::null()).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(
        error.contains("the limit on open files is 64, but headcount needs at least 256") && error.contains("ulimit -n"),
        "{error}"
    );
    assert!(!place.path().join("data").exists(), "nothing was begun");
}

use std::collections::{BTreeMap, BTreeSet};

use actix_web::http::Method;
use actix_web::test::TestRequest;
use serde_json::Value;

use crate::http::endpoints;
use crate::http::tests::server::TestServer;

fn parsed() -> Value {
    serde_json::from_str(endpoints::json()).unwrap()
}

/// Documented methods by path.
fn operations() -> BTreeMap<String, BTreeSet<String>> {
    let document = parsed();
    let methods = |item: &Value| item.as_object().unwrap().keys().map(|method| method.to_uppercase()).collect();
    document["paths"].as_object().unwrap().iter().map(|(path, item)| (path.clone(), methods(item))).collect()
}

/// Every object within a value.
fn objects<'v>(value: &'v Value, found: &mut Vec<&'v serde_json::Map<String, Value>>) {
    match value {
        Value::Object(object) => {
            found.push(object);
            object.values().for_each(|value| objects(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| objects(value, found)),
        _ => {}
    }
}

#[actix_web::test]
async fn exactly_the_documented_methods_are_routed() {
    let server = TestServer::start();
    for (path, documented) in operations() {
        let uri = path.replace(['{', '}'], "");
        for method in [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            let answer = server.send(TestRequest::with_uri(&uri).method(method.clone())).await;
            assert_eq!(answer.status != 405, documented.contains(method.as_str()), "{method} {path}: {}", answer.status);
            let is_unknown = String::from_utf8_lossy(&answer.body).contains("no such path");
            assert!(!is_unknown, "{method} {path}");
            assert_ne!(answer.status, 500, "{method} {path}");
        }
    }
}

#[actix_web::test]
async fn every_refusal_without_a_credential_is_documented() {
    let server = TestServer::start();
    let document = parsed();
    for (path, methods) in operations() {
        for method in methods {
            let uri = path.replace(['{', '}'], "");
            let asked = TestRequest::with_uri(&uri).method(method.parse().unwrap());
            let status = server.send(asked).await.status.as_str().to_owned();
            let responses = document["paths"][&path][method.to_lowercase()]["responses"].as_object().unwrap();
            assert!(responses.contains_key(&status), "{method} {path}: {status}");
            assert!(!responses.contains_key("default"), "{method} {path}");
        }
    }
}

#[test]
fn operations_are_named_once_and_described() {
    let document = parsed();
    let mut names = BTreeSet::new();
    for item in document["paths"].as_object().unwrap().values() {
        for operation in item.as_object().unwrap().values() {
            assert!(names.insert(operation["operationId"].as_str().unwrap().to_owned()), "{operation}");
            assert!(!operation["summary"].as_str().unwrap().is_empty(), "{operation}");
            assert!(operation.get("security").unwrap_or(&document["security"]).is_array(), "{operation}");
        }
    }
}

#[test]
fn every_reference_leads_somewhere() {
    let document = parsed();
    let mut found = Vec::new();
    objects(&document, &mut found);
    for target in found.iter().filter_map(|object| object.get("$ref")?.as_str()) {
        assert!(document.pointer(target.strip_prefix('#').unwrap()).is_some(), "{target}");
    }
}

#[test]
fn objects_are_closed_but_for_events_and_messages() {
    let document = parsed();
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        let mut found = Vec::new();
        objects(schema, &mut found);
        for object in found.iter().filter(|object| object.get("type").is_some_and(|kind| kind == "object")) {
            let is_open = !object.contains_key("additionalProperties");
            // Their properties of any kind are objects, too.
            let may_be = ["EventShape", "MessageShape"].contains(&name.as_str());
            assert_eq!(is_open, may_be && object.contains_key("properties"), "{name}: {object:?}");
        }
    }
}

#[test]
fn every_field_is_described() {
    for (name, schema) in parsed()["components"]["schemas"].as_object().unwrap() {
        for (field, schema) in schema["properties"].as_object().into_iter().flatten() {
            assert!(schema.to_string().contains("\"description\""), "{name}.{field}: {schema}");
        }
    }
}

#[test]
fn an_event_is_documented_as_the_interface_has_it() {
    let document = parsed();
    let event = &document["components"]["schemas"]["EventShape"];
    assert_eq!(event["required"], serde_json::json!(["name"]));
    let fields: BTreeSet<&str> = event["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    let expected = "name timestamp notify message user_id anonymous_id referrer screen language url hostname metadata channel value \
                    currency external_id group_id group_type privacy_categories pc privacy_signals ps consent_source _acOverrides \
                    user_agent ip non_interaction _sent_at";
    assert_eq!(fields, expected.split_whitespace().collect());
    assert!(event["properties"]["metadata"].get("type").is_none());
    for (name, schema) in event["properties"].as_object().unwrap() {
        let is_nullable = schema.to_string().contains("\"null\"") || name == "metadata";
        assert_eq!(is_nullable, name != "name", "{name}: {schema}");
    }
}

#[test]
fn warnings_are_documented_and_may_be_absent() {
    let answer = &parsed()["components"]["schemas"]["TrackAnswer"];
    assert_eq!(answer["properties"]["warnings"]["type"], "array");
    let required: Vec<&str> = answer["required"].as_array().unwrap().iter().filter_map(|name| name.as_str()).collect();
    assert_eq!(required, ["id", "status", "duplicate", "reason", "position", "clamped"]);
}

#[test]
fn rate_limits_are_documented_where_a_public_key_is_known() {
    let document = parsed();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let by_key = ["/i", "/track", "/i/batch"].contains(&path.as_str());
            for (status, response) in operation["responses"].as_object().unwrap() {
                let documented = ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"].map(|name| {
                    let header = &response["headers"][name];
                    header["schema"]["type"] == "integer" && !header["description"].as_str().unwrap().is_empty()
                });
                assert_eq!(documented, [by_key && status != "401"; 3], "{method} {path}: {status}");
                let is_described = response["$ref"].is_string() || !response["description"].as_str().unwrap().is_empty();
                assert!(is_described, "{method} {path}: {status}");
            }
        }
    }
    let refused = &document["paths"]["/i"]["get"]["responses"]["429"];
    assert!(refused["description"].as_str().unwrap().contains("rate_limited"), "{refused}");
    assert!(refused["headers"]["retry-after"].is_object(), "{refused}");
    let setting = &document["components"]["schemas"]["KeyLimitShape"]["properties"];
    assert_eq!((&setting["rate_limit"]["maximum"], &setting["burst"]["minimum"]), (&1_000_000.into(), &0.into()));
}

#[test]
fn the_codes_of_errors_are_documented() {
    let description = parsed()["components"]["schemas"]["ErrorDetail"]["properties"]["code"]["description"].to_string();
    for row in ["| `invalid_json` | `invalid_request` | 400 |", "| `quota_exceeded` | `rate_limited` | 429 |"] {
        assert!(description.contains(row), "{row} is not in {description}");
    }
}

#[actix_web::test]
async fn paths_match_as_a_whole() {
    let server = TestServer::start();
    let project = format!("/projects/{}", server.keys.project_id);
    assert_eq!(server.owner(Method::GET, &project, "").await.status, 200);
    for rest in ["/", "//", "/keys/", "//keys", "/keys//", "/keys/a/b", "/nothing", "/revenue", "/revenue/metrics/", "keys"] {
        let answer = server.owner(Method::GET, &format!("{project}{rest}"), "").await;
        let unknown = answer.refusal();
        assert_eq!((unknown.0, unknown.1.as_str()), (404, "not_found"), "{rest}");
    }
    for path in ["/projects/", "/projects//keys", "/project", "/webhooks/", "/webhooks/a/b"] {
        assert_eq!(server.owner(Method::GET, path, "").await.status, 404, "{path}");
    }
}

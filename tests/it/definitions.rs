//! Segments, goals and annotations of a project, and questions that name a segment.

use serde_json::{Value, json};

use crate::client::Call;
use crate::errors::assert_refused;
use crate::tenant::Tenant;

const PRO: &str = r#"[{"field": "metadata.plan", "operator": "is", "value": "pro"}]"#;

fn filters(json: &str) -> Value {
    serde_json::from_str(json).expect("JSON")
}

fn segment(tenant: &Tenant, filters: &Value) -> String {
    let made = tenant.post(&tenant.path("segments"), &json!({"name": "s", "filters": filters})).ok(201);
    made["segment_id"].as_str().expect("an id").to_owned()
}

#[test]
fn definitions_are_made_changed_and_removed() {
    let tenant = Tenant::new();
    for (kind, id, new, patch, changed) in [
        (
            "segments",
            "segment_id",
            json!({"name": "Pro", "filters": filters(PRO)}),
            json!({"name": "P"}),
            json!({"name": "P", "filters": filters(PRO), "people": []}),
        ),
        (
            "goals",
            "goal_id",
            json!({"name": "Sold", "event_name": "order"}),
            json!({"page": "/thanks/**"}),
            json!({"name": "Sold", "event_name": null, "page": "/thanks/**", "filters": []}),
        ),
        (
            "annotations",
            "annotation_id",
            json!({"day": "2024-03-01", "text": "New prices"}),
            json!({"day": "2024-02-29"}),
            json!({"day": "2024-02-29", "text": "New prices", "author": "default"}),
        ),
    ] {
        let path = tenant.path(kind);
        let tag = tenant.get(&path).etag();
        let made = tenant.post(&path, &new).ok(201);
        let one = format!("{path}/{}", made[id].as_str().expect("an id"));
        assert_ne!(tenant.get(&path).etag(), tag);
        assert_eq!(tenant.get(&path).ok(200), json!({kind: [made], "truncated": false}));
        let mut now = tenant.patch(&one, &patch).ok(200);
        assert_eq!(tenant.get(&path).ok(200)[kind], json!([now]));
        assert_eq!(tenant.patch(&one, &json!({})).ok(200), now, "a patch without fields changes nothing");
        for shown in [id, "created_at"] {
            assert_eq!(now.as_object_mut().expect("an object").remove(shown), Some(made[shown].clone()));
        }
        assert_eq!(now, changed);
        let other = tenant.project(&json!({"name": "other"}));
        let elsewhere = one.replace(&tenant.project, &other.id);
        for answer in [tenant.patch(&elsewhere, &patch), tenant.delete(&elsewhere)] {
            assert_refused(kind, &answer, 404, "not_found", None);
        }
        tenant.delete(&one).ok(204);
        for answer in [tenant.patch(&one, &patch), tenant.delete(&one), tenant.delete(&format!("{path}/x"))] {
            assert_refused(kind, &answer, 404, "not_found", None);
        }
        assert_eq!(tenant.get(&path).ok(200)[kind], json!([]));
    }
    let log = tenant.get("/audit-log?limit=100").ok(200);
    let entries = log["entries"].as_array().expect("entries");
    let of = |kind: &str| {
        entries.iter().filter(|entry| entry["target"]["type"] == kind).map(|entry| entry["action"].clone()).collect()
    };
    for kind in ["segment", "goal", "annotation"] {
        let actions: Vec<Value> = of(kind);
        assert_eq!(actions, [json!("definition.deleted"), json!("definition.updated"), json!("definition.created")], "{kind}");
    }
}

#[test]
fn wrong_definitions_are_refused_by_the_field() {
    let tenant = Tenant::new();
    let many = vec![json!({"field": "name", "operator": "is_set"}); 21];
    for (kind, body, code, param) in [
        ("segments", json!({}), "missing_parameter", "name"),
        ("segments", json!({"name": ""}), "invalid_parameter", "name"),
        ("segments", json!({"name": "a", "filters": many}), "invalid_parameter", "filters"),
        (
            "segments",
            json!({"name": "a", "filters": [{"field": "plan", "operator": "is_set"}]}),
            "invalid_parameter",
            "filters[0].field",
        ),
        ("segments", json!({"name": "a", "filters": [{"any": [[]]}]}), "invalid_parameter", "filters[0].any"),
        ("segments", json!({"name": "a", "event_name": "b"}), "unknown_parameter", "event_name"),
        ("goals", json!({"name": "a"}), "missing_parameter", "event_name"),
        ("goals", json!({"name": "a", "event_name": "b", "page": "/"}), "invalid_parameter", "page"),
        ("goals", json!({"name": "a", "event_name": ""}), "invalid_parameter", "event_name"),
        ("goals", json!({"name": "a", "page": ""}), "invalid_parameter", "page"),
        ("goals", json!({"name": "a", "page": "x".repeat(257)}), "invalid_parameter", "page"),
        ("annotations", json!({"text": "a"}), "missing_parameter", "day"),
        ("annotations", json!({"day": "2024-02-30", "text": "a"}), "invalid_parameter", "day"),
        ("annotations", json!({"day": "2024-02-28", "text": "x".repeat(201)}), "invalid_parameter", "text"),
    ] {
        assert_refused(kind, &tenant.post(&tenant.path(kind), &body), 400, code, Some(param));
    }
    let values: Vec<String> = (0..600).map(|number| format!("a long value with number {number:010}")).collect();
    let long = json!({"name": "a", "filters": [{"field": "name", "operator": "is", "value": values}]});
    assert_refused("long", &tenant.post(&tenant.path("segments"), &long), 400, "invalid_parameter", Some("segment"));
}

#[test]
fn members_read_definitions_and_admins_change_them() {
    let tenant = Tenant::new();
    let path = tenant.path("goals");
    let reader = tenant.token("member", &["analytics:read"], None);
    tenant.send(Call::get(path.clone()).bearer(&reader)).ok(200);
    let new = json!({"name": "a", "event_name": "b"});
    let refused = tenant.send(Call::post(path).bearer(&reader).json(&new));
    assert_refused("a member", &refused, 403, "insufficient_role", None);
}

/// Every question with a segment is the question with the filters of the segment, and has another
/// tag after the segment changed.
#[test]
fn a_segment_is_its_filters() {
    let tenant = Tenant::new();
    for (user, plan, url) in
        [("ada", "pro", "https://a.example/a"), ("ben", "free", "https://a.example/b"), ("cy", "pro", "https://a.example/c")]
    {
        let event = json!({"name": "pageview", "user_id": user, "url": url, "metadata": {"plan": plan}, "timestamp": "2024-03-05T10:00:00Z"});
        tenant.recorded(&event);
    }
    let more = json!([{"field": "path", "operator": "is_not", "value": "/c"}]);
    for (path, question) in [
        ("analytics/count-unique-users-per-day", json!({})),
        ("analytics/aggregate", json!({"group_by": "path"})),
        ("analytics/report", json!({})),
        ("analytics/report", json!({"filters": more})),
        ("analytics/breakdown", json!({"dimension": "path", "filters": more})),
        ("explain", json!({"figure": "unique_users"})),
    ] {
        let path = tenant.path(path);
        let ask = |segment: Option<&str>, filters: &Value| {
            let mut body = question.clone();
            body["start_date"] = json!("2024-03-01");
            body["end_date"] = json!("2024-03-31");
            if let Some(segment) = segment {
                body["segment"] = json!(segment);
            }
            let all = body["filters"].as_array().into_iter().flatten().chain(filters.as_array().into_iter().flatten()).cloned();
            body["filters"] = all.collect();
            tenant.post(&path, &body)
        };
        let id = segment(&tenant, &filters(PRO));
        let (named, written) = (ask(Some(&id), &json!([])), ask(None, &filters(PRO)));
        assert_eq!(named.ok(200), written.ok(200), "{path} {question}");
        assert_ne!(named.ok(200), ask(None, &json!([])).ok(200), "{path} {question}");
        let changed = json!([{"any": [[{"field": "metadata.plan", "operator": "is", "value": "free"}]]}]);
        tenant.patch(&format!("{}/{id}", tenant.path("segments")), &json!({"filters": changed})).ok(200);
        let again = ask(Some(&id), &json!([]));
        assert_ne!(again.etag(), named.etag(), "{path} {question}");
        assert_eq!(again.ok(200), ask(None, &changed).ok(200), "{path} {question}");
        tenant.delete(&format!("{}/{id}", tenant.path("segments"))).ok(204);
        for unknown in [&*id, "segment_0000000000000000", "goal_0000000000000000", ""] {
            assert_refused(unknown, &ask(Some(unknown), &json!([])), 404, "not_found", Some("segment"));
        }
    }
    let unknown = json!({"people": [{"did": {}}, {"did_not": {"goal": "goal_0000000000000000"}}]});
    let refused = tenant.post(&tenant.path("analytics/report"), &unknown);
    assert_refused("no goal", &refused, 404, "not_found", Some("people[1].did_not.goal"));
}

/// Readers of a share choose none of the fields of a segment or a goal, so they may name it.
#[test]
fn a_share_may_name_definitions_whatever_their_fields() {
    let tenant = Tenant::new();
    tenant.recorded(&json!({"name": "order", "user_id": "ada", "metadata": {"plan": "pro"}}));
    tenant.recorded(&json!({"name": "order", "user_id": "ben"}));
    let goal = json!({"name": "Sold to Ada", "event_name": "order", "filters": [{"field": "user_id", "operator": "is", "value": "ada"}]});
    tenant.post(&tenant.path("goals"), &goal).ok(201);
    let id = segment(&tenant, &filters(PRO));
    let made = tenant.post(&tenant.path("shares"), &json!({"name": "board"})).ok(201);
    let (_, secret) = made["url"].as_str().expect("a URL").split_once("#share=").expect("a secret");
    let ask = |path: &str, body: Value| tenant.send(Call::post(tenant.path(path)).bearer(secret).json(&body));
    assert_eq!(ask("analytics/report", json!({"segment": id})).ok(200)["totals"]["events"], 1);
    let answer = ask("analytics/goals", json!({"segment": id})).ok(200);
    assert_eq!((&answer["goals"][0]["converters"], &answer["unique_users"]), (&json!(1), &json!(1)));
    assert!(answer["goals"][0].get("revenue").is_none(), "{answer}");
    let written = ask("analytics/report", json!({"filters": filters(PRO)}));
    assert_refused("the same filters", &written, 403, "share_forbidden", Some("filters[0].field"));
}

/// A goal's conversions are the chosen events that fit it, and its converters their users.
#[test]
fn goals_are_counted_and_their_tag_follows_them() {
    let tenant = Tenant::new();
    for (user, name, url, value) in [
        ("ada", "pageview", "https://a.example/thanks/1", 0),
        ("ada", "order", "https://a.example/cart", 30),
        ("ada", "order", "https://a.example/cart", -10),
        ("ben", "pageview", "https://a.example/thanks/1/2", 0),
        ("cy", "pageview", "https://a.example/", 0),
        ("dan", "page", "https://a.example/thanks/3", 0),
    ] {
        let mut event = json!({"name": name, "user_id": user, "url": url, "timestamp": "2024-03-05T10:00:00Z"});
        if value != 0 {
            event["value"] = json!(value);
            event["currency"] = json!("USD");
        }
        tenant.recorded(&event);
    }
    let path = tenant.path("analytics/goals");
    let window = json!({"start_date": "2024-03-01", "end_date": "2024-03-31", "compare": "previous_period"});
    let empty = tenant.post(&path, &window);
    assert_eq!((&empty.ok(200)["goals"], &empty.ok(200)["unique_users"]), (&json!([]), &json!(4)));
    let make = |goal: Value| tenant.post(&tenant.path("goals"), &goal).ok(201)["goal_id"].as_str().expect("an id").to_owned();
    let sold = make(json!({"name": "Sold", "event_name": "order"}));
    let thanked = make(json!({"name": "Thanked", "page": "/thanks/*"}));
    let answer = tenant.post(&path, &window);
    assert_ne!(answer.etag(), empty.etag());
    let none = json!({"conversions": 0, "converters": 0, "rate": 0, "revenue": 0});
    let row = |id: &str, name: &str, conversions: u64, converters: u64, rate: f64, revenue: i64| json!({"goal_id": id, "name": name, "conversions": conversions, "converters": converters, "rate": rate, "revenue": revenue, "previous": none});
    assert_eq!(answer.ok(200)["goals"], json!([row(&sold, "Sold", 2, 1, 0.25, 20), row(&thanked, "Thanked", 2, 2, 0.5, 0)]));
    let goal_path = format!("{}/{thanked}", tenant.path("goals"));
    tenant.patch(&goal_path, &json!({"page": "/thanks/**"})).ok(200);
    let changed = tenant.post(&path, &window);
    assert_ne!(changed.etag(), answer.etag());
    assert_eq!(changed.ok(200)["goals"][1], row(&thanked, "Thanked", 3, 3, 0.75, 0));

    let with_goal = json!({"start_date": "2024-03-01", "end_date": "2024-03-31", "goal": thanked, "dimension": "name"});
    let rows = tenant.post(&tenant.path("analytics/breakdown"), &with_goal).ok(200)["rows"].clone();
    let shown = |row: &Value| (row["value"].clone(), row["unique_users"].clone(), row["converters"].clone(), row["rate"].clone());
    let expected = [
        (json!("pageview"), json!(3), json!(2), json!(0.666667)),
        (json!("order"), json!(1), json!(0), json!(0)),
        (json!("page"), json!(1), json!(1), json!(1)),
    ];
    assert_eq!(rows.as_array().expect("rows").iter().map(shown).collect::<Vec<_>>(), expected);
    let report = json!({"start_date": "2024-03-05", "end_date": "2024-03-05", "goal": thanked});
    let report = tenant.post(&tenant.path("analytics/report"), &report).ok(200);
    for figures in [&report["totals"], &report["series"][0]] {
        assert_eq!((&figures["unique_users"], &figures["converters"], &figures["rate"]), (&json!(4), &json!(3), &json!(0.75)));
    }
    let plain = tenant.post(&tenant.path("analytics/report"), &json!({})).ok(200);
    assert!(plain["totals"].get("converters").is_none() && plain["totals"].get("rate").is_none());
    let unknown = tenant.post(&tenant.path("analytics/report"), &json!({"goal": "goal_0000000000000000"}));
    assert_refused("no goal", &unknown, 404, "not_found", Some("goal"));
}

//! `explain`: worked examples, pages and cursors, and who may ask. Random histories are in
//! `explained_histories.rs`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Answer, Call};
use crate::errors::assert_refused;
use crate::server::TestServer;
use crate::tenant::Tenant;

fn ask(tenant: &Tenant, body: &Value) -> Answer {
    tenant.post(&tenant.path("explain"), body)
}

/// A question about March 2024 with more fields.
fn of(figure: &str, more: Value) -> Value {
    let mut body = json!({"figure": figure, "start_date": "2024-03-02", "end_date": "2024-03-31"});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

/// The values of a field in a list.
fn all(list: &Value, name: &str) -> Vec<Value> {
    list.as_array().expect("a list").iter().map(|event| event[name].clone()).collect()
}

/// Ada comes by a newsletter over midnight, orders, and gets some money back; Ben comes by himself.
/// Somebody without consent is there too. Returns the ids of the events, in the order of recording.
fn a_shop(tenant: &Tenant) -> Vec<String> {
    let news = "https://shop.example/?utm_source=news";
    let events = [
        json!({"name": "pageview", "user_id": "ada", "timestamp": "2024-03-01T23:50:00Z", "url": news}),
        json!({"name": "pageview", "user_id": "ada", "timestamp": "2024-03-02T00:10:00Z"}),
        json!({"name": "order", "user_id": "ada", "timestamp": "2024-03-03T10:00:00Z", "value": 20.5, "external_id": "o1"}),
        json!({"name": "refund", "user_id": "ada", "timestamp": "2024-03-04T10:00:00Z", "value": -0.5}),
        json!({"name": "order", "anonymous_id": "b", "timestamp": "2024-03-05T10:00:00Z", "value": 7, "currency": "EUR"}),
        json!({"name": "order", "pc": "", "timestamp": "2024-03-06T10:00:00Z", "value": 3}),
        json!({"name": "login", "user_id": "ben", "anonymous_id": "b", "timestamp": "2024-03-05T10:05:00Z"}),
        json!({"name": "order", "user_id": "ben", "timestamp": "2024-03-05T10:05:00Z", "value": 0}),
    ];
    events.iter().map(|event| tenant.recorded(event)["id"].as_str().expect("an id").to_owned()).collect()
}

#[test]
fn a_figure_shows_the_events_that_make_it_up_and_those_that_do_not() {
    let tenant = Tenant::new();
    let ids = a_shop(&tenant);
    let shown = |body: &Value| {
        let answer = ask(&tenant, body).ok(200);
        assert_eq!(answer["next"], Value::Null);
        let list = |name: &str| -> Value {
            let event = |event: &Value| json!([event["event_id"], event["why"]]);
            answer[name].as_array().unwrap().iter().map(event).collect()
        };
        let contributes = all(&answer["rows"], "contributes");
        json!([answer["result"], list("rows"), list("not_counted"), contributes])
    };
    let [of_ada, order, refund, of_ben, without] = [1, 2, 3, 4, 5].map(|index: usize| &ids[index]);
    let (first, no_consent) = ("first_of_user", json!([[without, "no_consent"]]));
    // Ben's first event named the id that was linked to him later.
    let expected = json!([2, [[of_ben, first], [of_ada, first]], no_consent, [1, 1]]);
    assert_eq!(shown(&of("unique_users", json!({}))), expected);
    let first = "first_of_session";
    let expected = json!([
        3,
        [[of_ben, first], [refund, first], [order, first]],
        [[without, "no_consent"], [of_ada, "began_before"]],
        [1, 1, 1]
    ]);
    assert_eq!(shown(&of("sessions", json!({}))), expected);
    let expected =
        json!([23, [[without, "order"], [refund, "refund"], [order, "order"]], [[of_ben, "no_rate"]], [3, -0.5, 20.5]]);
    assert_eq!(shown(&of("revenue", json!({}))), expected);
    let expected = json!([2, [[without, "order"], [order, "order"]], [[of_ben, "no_rate"], [refund, "refund"]], [1, 1]]);
    assert_eq!(shown(&of("orders", json!({}))), expected);
    let news = json!([20, [[refund, "touch"], [order, "touch"]], [], [-0.5, 20.5]]);
    let direct = json!([3, [[without, "direct"]], [[of_ben, "no_rate"]], [3]]);
    for level in ["account", "identity"] {
        for (value, expected) in [("news", &news), ("(direct)", &direct), ("other", &json!([0, [], [], []]))] {
            assert_eq!(shown(&of("attribution", json!({"value": value, "level": level}))), *expected, "{value}");
        }
    }
    let medium = of("attribution", json!({"dimension": "medium", "value": "(none)", "model": "last_touch"}));
    assert_eq!(shown(&medium)[0], json!(23), "a newsletter without a medium, and who came directly");
    let order =
        of("revenue", json!({"event_name": "refund", "filters": [{"field": "user_id", "operator": "is", "value": "ada"}]}));
    assert_eq!(shown(&order), json!([-0.5, [[refund, "refund"]], [], [-0.5]]));
}

#[test]
fn an_event_is_shown_as_it_was_sent() {
    let tenant = Tenant::new();
    let ids = a_shop(&tenant);
    let answer = ask(&tenant, &of("revenue", json!({}))).ok(200);
    let row = &answer["rows"][2];
    let profile = tenant.get("/identities/profile?user_id=ada&start_date=2024-03-01&end_date=2024-03-31").ok(200);
    let expected = json!({
        "event_id": ids[2], "position": row["position"], "at": "2024-03-03T10:00:00.000Z", "name": "order",
        "identity_id": profile["identity_id"], "value": 20.5, "currency": "USD", "contributes": 20.5, "why": "order"
    });
    assert_eq!(*row, expected);
    assert_eq!(answer["rows"][0]["identity_id"], Value::Null, "without consent");
    let uncounted = &answer["not_counted"][0];
    assert_eq!(
        [&uncounted["value"], &uncounted["currency"], &uncounted["contributes"]],
        [&json!(7), &json!("EUR"), &Value::Null]
    );
    let beside = json!([answer["currency"], answer["start_date"], answer["end_date"], answer["timezone"]]);
    assert_eq!(beside, json!(["USD", "2024-03-02", "2024-03-31", "UTC"]));
    let listed = tenant.get(&tenant.path("events?start_date=2024-03-01&end_date=2024-03-31")).ok(200);
    assert_eq!(answer["position"], listed["position"]);
    let zero = ask(&tenant, &of("unique_users", json!({"event_name": "login"}))).ok(200);
    assert_eq!([&zero["rows"][0]["value"], &zero["rows"][0]["currency"]], [&Value::Null; 2]);
}

#[test]
fn money_of_public_keys_is_not_counted_where_servers_alone_may_send_it() {
    let tenant = Tenant::new();
    tenant.patch(tenant.path("").trim_end_matches('/'), &json!({"server_only_revenue": true})).ok(200);
    let ids = a_shop(&tenant);
    for (figure, more) in [("revenue", json!({})), ("orders", json!({})), ("attribution", json!({"value": "news"}))] {
        let answer = ask(&tenant, &of(figure, more)).ok(200);
        assert_eq!((&answer["result"], all(&answer["rows"], "why").len()), (&json!(0), 0), "{figure}");
        let why = all(&answer["not_counted"], "why");
        assert!(why.iter().all(|why| why == "server_only"), "{figure}: {answer}");
        let expected: Vec<&String> =
            if figure == "attribution" { vec![&ids[3], &ids[2]] } else { [5, 4, 3, 2].map(|at: usize| &ids[at]).into() };
        assert_eq!(json!(all(&answer["not_counted"], "event_id")), json!(expected), "{figure}");
    }
}

/// Whom an order belongs to depends on companies, which are recorded later and linked to domains.
#[test]
fn orders_of_an_account_are_under_the_touches_of_all_its_people() {
    let tenant = Tenant::new();
    let event = |user: &str, at: &str, more: Value| {
        let mut event = json!({"name": "visit", "user_id": user, "timestamp": format!("2024-03-{at}T10:00:00Z")});
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        tenant.recorded(&event);
    };
    event("ada", "10", json!({"value": 10}));
    event("ben", "05", json!({"url": "https://shop.example/?utm_source=early"}));
    event("cyd", "08", json!({"url": "https://shop.example/?utm_source=late", "group_type": "company", "group_id": "acme"}));
    let result = |model: &str, level: &str, value: &str| {
        let body = of("attribution", json!({"model": model, "level": level, "value": value}));
        let answer = ask(&tenant, &body).ok(200);
        let query = format!("revenue/by-attribution?start_date=2024-03-02&end_date=2024-03-31&model={model}&level={level}");
        let rows = tenant.get(&tenant.path(&query)).ok(200);
        let row = rows["rows"].as_array().unwrap().iter().find(|row| row["dimension"] == value).cloned();
        assert_eq!(answer["result"], row.map_or(json!(0), |row| row["revenue"].clone()), "{body}");
        answer["result"].clone()
    };
    assert_eq!(result("first_touch", "account", "(direct)"), 10);
    event("ada", "11", json!({"metadata": {"email": "ada@acme.com"}}));
    event("ben", "11", json!({"group_type": "company", "group_id": "acme.com"}));
    assert_eq!(result("first_touch", "account", "early"), 10);
    assert_eq!(result("last_touch", "account", "early"), 10);
    tenant.recorded(&json!({"name": "group", "user_id": "cyd", "timestamp": "2024-03-12T10:00:00Z", "group_type": "company",
                            "group_id": "acme", "metadata": {"domain": "acme.com"}}));
    assert_eq!(result("first_touch", "account", "early"), 10);
    assert_eq!(result("last_touch", "account", "late"), 10);
    assert_eq!(result("last_touch", "identity", "(direct)"), 10);
}

/// Sends orders of a user each, at times that are not in the order of recording.
fn orders(tenant: &Tenant, count: u64) {
    let event = |number: u64| {
        let minute = number * 7 % 59;
        json!({"name": "order", "user_id": format!("u{}", number / 2), "timestamp": format!("2024-03-10T10:{minute:02}:00Z"), "value": number + 1})
    };
    let events: Vec<Value> = (0..count).map(event).collect();
    let sent = tenant.send(Call::post("/i/batch").key(&tenant.key).json(&json!({"events": events})));
    assert_eq!(sent.status, 202, "{}", sent.text());
}

#[test]
fn pages_show_the_events_of_the_first_page_s_position() {
    let tenant = Tenant::new();
    orders(&tenant, 40);
    let whole = ask(&tenant, &of("revenue", json!({"limit": 500}))).ok(200);
    let (mut rows, mut cursor, mut pages) = (Vec::new(), Value::Null, 0);
    loop {
        let page = ask(&tenant, &of("revenue", json!({"limit": 3 + pages, "cursor": cursor}))).ok(200);
        assert_eq!([&page["result"], &page["position"]], [&whole["result"], &whole["position"]]);
        rows.extend(page["rows"].as_array().unwrap().clone());
        pages += 1;
        if pages < 3 {
            // Earlier and later ones, and a link: none of the pages has them.
            tenant.recorded(&json!({"name": "order", "user_id": "u1", "timestamp": "2024-03-10T09:00:00Z", "value": 1_000}));
            tenant.recorded(&json!({"name": "order", "user_id": "late", "timestamp": "2024-03-11T09:00:00Z", "value": 1_000}));
        }
        cursor = page["next"].clone();
        if cursor == Value::Null {
            break;
        }
    }
    assert!(pages > 4, "{pages}");
    assert_eq!(json!(rows), whole["rows"]);
    let positions = all(&json!(rows), "position");
    let key = |row: &Value| (row["at"].as_str().unwrap().to_owned(), row["position"].as_u64().unwrap());
    assert!(rows.is_sorted_by(|one, other| key(one) > key(other)), "the latest first: {positions:?}");
    let now = ask(&tenant, &of("revenue", json!({"limit": 500}))).ok(200);
    assert_eq!(now["result"].as_i64().unwrap(), whole["result"].as_i64().unwrap() + 4_000);
}

#[test]
fn a_cursor_belongs_to_one_question() {
    let tenant = Tenant::new();
    orders(&tenant, 6);
    let filters = json!([{"field": "name", "operator": "is", "value": "order"}]);
    let first = of("attribution", json!({"limit": 2, "value": "(direct)", "filters": filters}));
    let cursor = ask(&tenant, &first).ok(200)["next"].clone();
    assert!(cursor.is_string());
    let with = |more: Value| {
        let mut body = first.clone();
        body["cursor"] = cursor.clone();
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        ask(&tenant, &body)
    };
    assert_eq!(with(json!({"limit": 500})).ok(200)["rows"].as_array().map(Vec::len), Some(4));
    for more in [
        json!({"figure": "revenue", "value": null}),
        json!({"value": "news"}),
        json!({"value": null}),
        json!({"model": "last_touch"}),
        json!({"level": "identity"}),
        json!({"dimension": "medium"}),
        json!({"event_name": "order"}),
        json!({"filters": []}),
        json!({"start_date": "2024-03-01"}),
        json!({"end_date": "2024-03-30"}),
    ] {
        assert_refused(&more.to_string(), &with(more), 400, "invalid_parameter", Some("cursor"));
    }
    let other = tenant.project(&json!({}));
    let mut body = first.clone();
    body["cursor"] = cursor.clone();
    let of_other = tenant.post(&format!("/projects/{}/explain", other.id), &body);
    assert_refused("another project", &of_other, 400, "invalid_parameter", Some("cursor"));
    let long = "A".repeat(20_000);
    for wrong in ["", "x", "****", &cursor.as_str().unwrap()[1..], &long] {
        assert_refused(wrong, &with(json!({"cursor": wrong})), 400, "invalid_parameter", Some("cursor"));
    }
}

#[test]
fn a_cursor_belongs_to_its_filters_however_the_body_is_spelled() {
    let tenant = Tenant::new();
    orders(&tenant, 6);
    let ask = |cursor: &Value, user: &str| {
        let filters = json!([{"field": "user_id", "operator": "is", "value": user}]);
        let dates = r#""start_date": "2024-03-01", "end_date": "2024-03-31""#;
        let body =
            format!(r#"{{"limit": 1e400, "limit": 1, "figure": "revenue", {dates}, "cursor": {cursor}, "filters": {filters}}}"#);
        tenant.send(Call::post(tenant.path("explain")).bearer(&tenant.token).text("application/json", body))
    };
    let cursor = ask(&Value::Null, "u1").ok(200)["next"].clone();
    assert!(cursor.is_string());
    ask(&cursor, "u1").ok(200);
    assert_refused("other filters", &ask(&cursor, "u2"), 400, "invalid_parameter", Some("cursor"));
}

#[test]
fn a_cursor_ends_with_a_restart_and_with_an_erasure() {
    let server = Arc::new(TestServer::start());
    let tenant = Tenant::on(&server);
    orders(&tenant, 6);
    let next = || {
        let page = ask(&tenant, &of("unique_users", json!({"limit": 1}))).ok(200);
        of("unique_users", json!({"limit": 1, "cursor": page["next"]}))
    };
    let before = next();
    ask(&tenant, &before).ok(200);
    server.restart();
    assert_refused("a restart", &ask(&tenant, &before), 410, "cursor_expired", Some("cursor"));
    let before = next();
    ask(&tenant, &before).ok(200);
    let made = tenant.post("/privacy-requests", &json!({"type": "erasure", "user_id": "u1"})).ok(201);
    let (path, until) = (format!("/privacy-requests/{}", made["id"].as_str().unwrap()), Instant::now() + Duration::from_secs(60));
    while tenant.get(&path).ok(200)["status"] != "completed" {
        assert!(Instant::now() < until, "{made} does not end\n{}", server.log());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_refused("an erasure", &ask(&tenant, &before), 410, "cursor_expired", Some("cursor"));
    assert_eq!(ask(&tenant, &of("unique_users", json!({}))).ok(200)["result"], 2);
}

#[test]
fn wrong_questions_are_refused() {
    let tenant = Tenant::new();
    for (more, code, param) in [
        (json!({"figure": null}), "missing_parameter", "figure"),
        (json!({"figure": "events"}), "invalid_parameter", "figure"),
        (json!({"figure": 5}), "invalid_parameter", "figure"),
        (json!({"limit": 0}), "invalid_parameter", "limit"),
        (json!({"limit": 501}), "invalid_parameter", "limit"),
        (json!({"model": "first_touch"}), "unsupported_combination", "model"),
        (json!({"level": "account"}), "unsupported_combination", "level"),
        (json!({"dimension": "source"}), "unsupported_combination", "dimension"),
        (json!({"value": ""}), "unsupported_combination", "value"),
        (json!({"figure": "attribution", "dimension": "country"}), "invalid_parameter", "dimension"),
        (json!({"interval": "day"}), "unknown_parameter", "interval"),
        (json!({"start_date": "2024-04-01"}), "invalid_parameter", "start_date"),
        (json!({"filters": [{"field": "nothing", "operator": "is", "value": 1}]}), "invalid_parameter", "filters[0].field"),
    ] {
        assert_refused(&more.to_string(), &ask(&tenant, &of("sessions", more)), 400, code, Some(param));
    }
    let empty = ask(&tenant, &of("attribution", json!({"value": "news", "limit": 500}))).ok(200);
    assert_eq!(json!([empty["result"], empty["rows"], empty["not_counted"], empty["next"]]), json!([0, [], [], null]));
}

#[test]
fn who_may_not_see_money_sees_no_money() {
    let tenant = Tenant::new();
    a_shop(&tenant);
    let member = tenant.token("member", &["analytics:read", "revenue:read"], None);
    let without_scope = tenant.token("owner", &["analytics:read"], None);
    for (token, code) in [(member, "insufficient_role"), (without_scope, "insufficient_scope")] {
        let ask = |body: &Value| tenant.send(Call::post(tenant.path("explain")).bearer(&token).json(body));
        for figure in ["revenue", "orders", "attribution"] {
            assert_refused(figure, &ask(&of(figure, json!({}))), 403, code, Some("figure"));
        }
        let answer = ask(&of("unique_users", json!({"event_name": "order"}))).ok(200);
        assert_eq!((&answer["result"], answer.get("currency")), (&json!(2), None));
        for event in [&answer["rows"][0], &answer["not_counted"][0]] {
            assert!(event.get("value").is_none() && event.get("currency").is_none(), "{event}");
            assert!(event["event_id"].is_string());
        }
    }
    let made = tenant.post(&tenant.path("shares"), &json!({"name": "board", "revenue": true})).ok(201);
    let url = made["url"].as_str().unwrap();
    let secret = url.split_once("#share=").expect("the secret").1;
    let of_share = tenant.send(Call::post(tenant.path("explain")).bearer(secret).json(&of("unique_users", json!({}))));
    assert_refused("a share", &of_share, 403, "share_forbidden", None);
}

#[test]
fn the_tag_changes_with_the_answer() {
    let tenant = Tenant::new();
    a_shop(&tenant);
    let body = of("revenue", json!({"limit": 1}));
    let path = tenant.path("explain");
    let if_none = |body: &Value, tag: &str, token: &str| {
        tenant.send(Call::post(&*path).bearer(token).json(body).header("if-none-match", tag))
    };
    // A tag holds for at most five minutes, and these may end here.
    let unchanged = (0..2).any(|_| {
        let first = ask(&tenant, &body);
        let next = of("revenue", json!({"limit": 1, "cursor": first.json()["next"]}));
        let second = ask(&tenant, &next);
        // An event of another day leaves it alone.
        tenant.recorded(&json!({"name": "order", "user_id": "ada", "timestamp": "2024-05-01T10:00:00Z", "value": 1}));
        [(&body, first), (&next, second)].iter().all(|(body, answer)| if_none(body, &answer.etag(), &tenant.token).status == 304)
    });
    assert!(unchanged);
    let tag = ask(&tenant, &body).etag();
    tenant.recorded(&json!({"name": "order", "user_id": "ada", "timestamp": "2024-03-20T10:00:00Z", "value": 1}));
    assert_eq!(if_none(&body, &tag, &tenant.token).status, 200);
    let users = of("unique_users", json!({}));
    let (tag, member) = (ask(&tenant, &users).etag(), tenant.token("member", &["analytics:read"], None));
    assert_eq!(if_none(&users, &tag, &member).status, 200, "it lacks money");
}

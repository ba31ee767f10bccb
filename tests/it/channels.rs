//! `/channels`, with a receiver on this machine.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::errors::assert_refused;
use crate::server::TestServer;
use crate::tenant::Tenant;
use crate::webhooks::Receiver;

const PATH: &str = "/channels";

fn tenant() -> Tenant {
    Tenant::on(&Arc::new(TestServer::start_with(&["--outbound-allow", "127.0.0.1"])))
}

fn id(channel: &Value) -> &str {
    channel["channel_id"].as_str().expect("an id")
}

#[test]
fn a_test_is_sent_as_each_kind_takes_it() {
    let tenant = tenant();
    for (kind, place) in [("slack", "/text"), ("discord", "/content"), ("teams", "/attachments/0/content/body/0/inlines/0/text")]
    {
        let receiver = Receiver::start(&[204, 500, 0]);
        let new = json!({"name": "Gröwth", "kind": kind, "url": receiver.url()});
        let made = tenant.post(PATH, &new).ok(201);
        let host = receiver.url().replace("http://", "").replace("/hook", "");
        assert_eq!((&made["kind"], &made["target"]), (&json!(kind), &json!(host)));
        let test = format!("{PATH}/{}/test", id(&made));
        let taken = json!({"delivered": true, "status": 204, "error": null, "accepted": 0, "refused": 0});
        assert_eq!(tenant.post(&test, &json!({})).ok(200), taken);
        let got = receiver.wait(1)[0].json();
        let text = got.pointer(place).and_then(Value::as_str).unwrap_or_else(|| panic!("{got}"));
        assert!(text.contains("Gröwth") && text.contains("test"), "{text}");
        let refused = tenant.post(&test, &json!({})).ok(200);
        assert_eq!((&refused["delivered"], &refused["status"]), (&json!(false), &json!(500)));
        let cut = tenant.post(&test, &json!({})).ok(200);
        assert_eq!((&cut["delivered"], &cut["status"]), (&json!(false), &Value::Null));
        assert!(cut["error"].is_string(), "{cut}");
    }
}

#[test]
fn channels_are_made_changed_and_removed_and_show_no_secret() {
    let tenant = tenant();
    let (first, second) = (Receiver::start(&[200]), Receiver::start(&[200]));
    let secret = format!("{}/T0/s3cr3t", first.url());
    let made = tenant.post(PATH, &json!({"name": " Team ", "kind": "slack", "url": secret})).ok(201);
    let one = format!("{PATH}/{}", id(&made));
    let tag = tenant.get(PATH).etag();
    assert_eq!(tenant.get(PATH).ok(200), json!({"channels": [made], "truncated": false}));
    let changed = tenant.patch(&one, &json!({"name": "Board"})).ok(200);
    assert_eq!((&changed["name"], &changed["target"]), (&json!("Board"), &made["target"]));
    tenant.post(&format!("{one}/test"), &json!({})).ok(200);
    first.wait(1);
    let changed = tenant.patch(&one, &json!({"url": second.url()})).ok(200);
    assert_ne!(changed["target"], made["target"]);
    assert_ne!(tenant.get(PATH).etag(), tag);
    let bot = json!({"name": "Bot", "kind": "telegram", "bot_token": "123:s3cr3t-token", "chat_id": "-100"});
    let bot = tenant.post(PATH, &bot).ok(201);
    assert_eq!(bot["target"], "-100");
    // A restart keeps them, and what they are encrypted with.
    tenant.server.restart();
    assert_eq!(tenant.get(PATH).ok(200)["channels"], json!([changed, bot]));
    tenant.post(&format!("{one}/test"), &json!({})).ok(200);
    second.wait(1);
    for shown in [tenant.get(PATH).text().to_owned(), tenant.get("/audit-log").text().to_owned()] {
        assert!(shown.contains("Board") && !shown.contains("s3cr3t") && !shown.contains("/hook"), "{shown}");
    }
    assert_eq!(tenant.delete(&one).status, 204);
    assert_eq!(tenant.get(PATH).ok(200)["channels"], json!([bot]));
    let other = Tenant::on(&tenant.server);
    let elsewhere = format!("{PATH}/{}", id(&bot));
    assert_refused("another's", &other.patch(&elsewhere, &json!({})), 404, "not_found", None);
    assert_refused("another's", &other.post(&format!("{elsewhere}/test"), &json!({})), 404, "not_found", None);
    assert_refused("removed", &tenant.post(&format!("{one}/test"), &json!({})), 404, "not_found", None);
}

#[test]
fn a_channel_has_what_its_kind_needs_and_nothing_else() {
    let tenant = tenant();
    let url = "https://hooks.example.com/x";
    let table = [
        (json!({"kind": "slack", "url": url}), "missing_parameter", "name"),
        (json!({"name": "a", "url": url}), "missing_parameter", "kind"),
        (json!({"name": "a", "kind": "pager", "url": url}), "invalid_parameter", "kind"),
        (json!({"name": "a", "kind": "slack"}), "missing_parameter", "url"),
        (json!({"name": "a", "kind": "slack", "url": "ftp://a.example"}), "invalid_parameter", "url"),
        (json!({"name": "a", "kind": "discord", "url": "http://10.0.0.1/"}), "invalid_parameter", "url"),
        (json!({"name": "a", "kind": "teams", "url": format!("{url}{}", "x".repeat(2_048))}), "invalid_parameter", "url"),
        (json!({"name": "a", "kind": "slack", "url": url, "chat_id": "1"}), "invalid_parameter", "chat_id"),
        (json!({"name": "a", "kind": "teams", "url": url, "bot_token": "1:a"}), "invalid_parameter", "bot_token"),
        (json!({"name": "a", "kind": "telegram", "url": url}), "missing_parameter", "bot_token"),
        (json!({"name": "a", "kind": "telegram", "bot_token": "1:a"}), "missing_parameter", "chat_id"),
        (json!({"name": "a", "kind": "telegram", "bot_token": "1:a/../b", "chat_id": "1"}), "invalid_parameter", "bot_token"),
        (json!({"name": "a", "kind": "telegram", "bot_token": "1:a", "chat_id": ""}), "invalid_parameter", "chat_id"),
        (json!({"name": "a", "kind": "telegram", "bot_token": "1:a", "chat_id": "1", "url": url}), "invalid_parameter", "url"),
    ];
    for (body, code, param) in table {
        assert_refused(&body.to_string(), &tenant.post(PATH, &body), 400, code, Some(param));
    }
    let made = tenant.post(PATH, &json!({"name": "a", "kind": "slack", "url": url})).ok(201);
    let answer = tenant.patch(&format!("{PATH}/{}", id(&made)), &json!({"bot_token": "1:a"}));
    assert_refused("a change", &answer, 400, "invalid_parameter", Some("bot_token"));
}

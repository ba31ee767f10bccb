//! What an operator asks about the clock.

use actix_web::http::Method;
use actix_web::test::TestRequest;
use headcount_common::clock::FixedClock;
use headcount_domain::Instant;
use headcount_domain::time::MS_PER_DAY;
use serde_json::json;

use crate::http::tests::server::TestServer;

#[actix_web::test]
async fn a_clock_that_is_far_ahead_is_confirmed_by_the_day_that_it_shows() {
    let clock = FixedClock::at(Instant(1_790_000_000_000));
    let server = TestServer::start_by(&clock);
    let operator = server.operator();
    let owner = server.owner(Method::GET, "/admin/clock", "").await;
    assert_eq!(owner.refusal().0, 403, "it is the operator's");
    let state = server.ask(Method::GET, "/admin/clock", &operator, "").await.json();
    let now = "2026-09-21T14:13:20.000Z";
    assert_eq!(state, json!({"shown": now, "believed": now, "doubted": false, "jump": null, "confirmed": []}));

    clock.set(Instant(1_790_000_000_000 + 3_650 * MS_PER_DAY));
    let not_ready = server.send(TestRequest::with_uri("/readyz")).await;
    assert_eq!(not_ready.refusal().0, 503);
    assert!(not_ready.json()["error"]["message"].as_str().unwrap().contains("3650 days ahead"));
    let metrics =
        TestRequest::with_uri("/metrics").insert_header(("host", "localhost")).peer_addr("127.0.0.1:1".parse().unwrap());
    let metrics = String::from_utf8(server.send(metrics).await.body.to_vec()).unwrap();
    // But for what has passed since the start of the test.
    assert!(metrics.contains("\nheadcount_clock_ahead_seconds 31535"), "{metrics}");
    for (body, param) in [
        ("{}", "today"),
        (r#"{"today": "now"}"#, "today"),
        (r#"{"today": "2026-09-21"}"#, "today"),
        (r#"{"today": "2036-09-21"}"#, "today"),
        (r#"{"at": "2036-09-18"}"#, "at"),
    ] {
        let refused = server.ask(Method::POST, "/admin/clock", &operator, body).await.refusal();
        assert_eq!((refused.0, refused.2.as_deref()), (400, Some(param)), "{body}");
    }
    assert_eq!(server.ask(Method::GET, "/admin/clock", &operator, "").await.json()["doubted"], true);
    let confirmed = server.ask(Method::POST, "/admin/clock", &operator, r#"{"today": "2036-09-18"}"#).await.json();
    assert_eq!((&confirmed["doubted"], &confirmed["believed"]), (&json!(false), &confirmed["shown"]));
    assert_eq!(confirmed["confirmed"][0]["to"], "2036-09-18T14:13:20.000Z");
    assert_eq!(server.send(TestRequest::with_uri("/readyz")).await.status, 200);
}

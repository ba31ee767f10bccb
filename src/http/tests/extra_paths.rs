//! Further names of `/hc.js` and `/i`.

use actix_web::http::{Method, header};
use actix_web::test::TestRequest;
use headcount_api::extra_paths::ExtraPaths;

use crate::http::endpoints::taken;
use crate::http::tests::server::TestServer;

fn extra(script: &str, collect: &str) -> ExtraPaths {
    ExtraPaths { script: Some(script.to_owned()), collect: Some(collect.to_owned()) }
}

#[test]
fn what_the_interface_has_is_taken() {
    assert_eq!(taken(&ExtraPaths::default()), None);
    assert_eq!(taken(&extra("/a.js", "/a")), None);
    assert_eq!(taken(&extra("/stats/a.js", "/stats/a")), None);
    for path in [
        "/i",
        "/hc.js",
        "/track",
        "/projects/new",
        "/docs/a.js",
        "/metrics",
        "/admin",
        "/v1/a.js",
        "/ui",
        "/assets/a.js",
        "/session",
    ] {
        assert_eq!(taken(&extra("/a.js", path)), Some(path));
        assert_eq!(taken(&extra(path, "/a")), Some(path));
    }
    assert_eq!(taken(&extra("/a", "/a")), Some("/a"));
}

#[actix_web::test]
async fn the_script_and_the_events_have_both_names() {
    let server = TestServer::start_at(extra("/app/counts.js", "/app/c"));
    let usual = server.send(TestRequest::with_uri("/hc.js")).await;
    let renamed = server.send(TestRequest::with_uri("/app/counts.js")).await;
    assert!(renamed.status == 200 && renamed.body == usual.body);

    let key = &server.keys.public_key;
    for path in ["/i", "/app/c"] {
        let uri = format!("{path}?pk={key}");
        let event = TestRequest::with_uri(&uri).method(Method::POST).insert_header((header::ORIGIN, "https://site.example"));
        let event =
            event.insert_header((header::CONTENT_TYPE, "text/plain;charset=UTF-8")).set_payload("{\"name\":\"pageview\"}");
        let answer = server.send(event).await;
        assert_eq!(
            (answer.status.as_u16(), answer.headers.get(header::ACCESS_CONTROL_ALLOW_ORIGIN).unwrap()),
            (202, &"https://site.example".parse().unwrap())
        );
        // {"name":"pixel"}
        assert_eq!(server.send(TestRequest::with_uri(&format!("{uri}&d=eyJuYW1lIjoicGl4ZWwifQ"))).await.status, 200, "{path}");
        assert_eq!(server.send(TestRequest::with_uri(path).method(Method::OPTIONS)).await.status, 204, "{path}");
        assert_eq!(server.send(TestRequest::with_uri(path).method(Method::HEAD)).await.status, 405, "{path}");
    }
}

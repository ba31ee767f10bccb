//! What a page of this server may do.

use actix_web::http::{Method, header};
use actix_web::test::TestRequest;
use headcount_api::page_policy::{SHARE_PATH, frame_ancestors};
use headcount_control::NewShare;

use crate::http::tests::server::TestServer;

#[actix_web::test]
async fn a_page_may_load_nothing_from_elsewhere() {
    let server = TestServer::start();
    for method in [Method::GET, Method::HEAD] {
        let answer = server.send(TestRequest::with_uri("/docs").method(method)).await;
        let policy = answer.headers.get(header::CONTENT_SECURITY_POLICY).unwrap().to_str().unwrap();
        assert_eq!(
            policy,
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
             base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        );
        assert_eq!(answer.headers.get(header::X_CONTENT_TYPE_OPTIONS).unwrap(), "nosniff");
        assert_eq!(answer.headers.get(header::REFERRER_POLICY).unwrap(), "same-origin");
    }
    let answer = server.send(TestRequest::with_uri("/openapi.json")).await;
    assert!(!answer.headers.contains_key(header::CONTENT_SECURITY_POLICY), "it is no page");
}

#[actix_web::test]
async fn the_page_of_a_share_may_stand_in_frames_of_its_origins() {
    let server = TestServer::start();
    let (registry, now) = (server.engine().registry(), server.engine().clock().now());
    let share = |origins: &[&str], expires_at| {
        let embed_origins = origins.iter().map(ToString::to_string).collect();
        let new = NewShare { name: "s".into(), embed_origins, expires_at, ..NewShare::default() };
        registry.create_share(server.keys.organization_id, server.keys.project_id, new, now).unwrap().0.id
    };
    let embedded = share(&["https://a.example", "http://b.example:8080"], None);
    let table = [
        (format!("{SHARE_PATH}{embedded}"), "https://a.example http://b.example:8080"),
        (format!("{SHARE_PATH}{}", share(&[], None)), "'none'"),
        (format!("{SHARE_PATH}{}", share(&["https://a.example"], Some(now.plus_ms(1)))), "'none'"),
        (format!("{SHARE_PATH}{embedded}/live"), "https://a.example http://b.example:8080"),
        (format!("{SHARE_PATH}other/{embedded}"), "'none'"),
        (format!("{SHARE_PATH}shr_0000000000000000"), "'none'"),
        (format!("/ui/{embedded}"), "'none'"),
        ("/".to_owned(), "'none'"),
    ];
    std::thread::sleep(std::time::Duration::from_millis(2));
    for (path, expected) in table {
        assert_eq!(frame_ancestors(server.state(), &path), expected, "{path}");
    }
    registry.revoke_share(server.keys.organization_id, server.keys.project_id, &embedded, now).unwrap();
    assert_eq!(frame_ancestors(server.state(), &format!("{SHARE_PATH}{embedded}")), "'none'");
}

use actix_web::http::{Method, header};
use actix_web::test::TestRequest;
use headcount_domain::quota::Quotas;
use serde_json::json;

use crate::http::tests::server::{Answer, TestServer};

async fn track(server: &TestServer, page: &str) -> Answer {
    let event = json!({"name": "pageview", "user_id": "u", "url": page});
    let key = ("x-service-pk", server.keys.public_key.clone());
    server.send(TestRequest::post().uri("/i").insert_header(key).set_payload(event.to_string())).await
}

#[actix_web::test]
async fn a_quota_refuses_what_is_new() {
    let server = TestServer::start_with(Quotas { pages: 1, ..Quotas::default() });
    assert_eq!(track(&server, "/a").await.status, 202);
    let refused = track(&server, "/b").await;
    assert_eq!(refused.refusal(), (429, "quota_exceeded".to_owned(), None));
    assert_eq!(refused.headers.get(header::RETRY_AFTER).unwrap(), "3600");
    assert!(refused.json()["error"]["message"].as_str().unwrap().contains("quota of 1 pages"));
    assert_eq!(track(&server, "/a?again").await.status, 202);

    let page = |url: &str| json!({"name": "pageview", "user_id": "u", "url": url});
    let batch = json!({"events": [page("/b"), page("/a"), page("/c")]}).to_string();
    let path = format!("/projects/{}/batch", server.keys.project_id);
    let answer = server.owner(Method::POST, &path, &batch).await;
    assert_eq!((answer.status.as_u16(), &answer.json()["recorded"]), (202, &json!(1)));
    let errors = answer.json()["errors"].clone();
    let found = errors.as_array().unwrap().iter().map(|error| (error["index"].as_u64(), error["code"].as_str()));
    assert_eq!(found.collect::<Vec<_>>(), [(Some(0), Some("quota_exceeded")), (Some(2), Some("quota_exceeded"))]);

    let local = ("127.0.0.1:5000").parse().unwrap();
    let metrics = TestRequest::with_uri("/metrics").insert_header((header::HOST, "localhost")).peer_addr(local);
    let text = String::from_utf8(server.send(metrics).await.body.to_vec()).unwrap();
    for line in ["headcount_quota_refusals_total{quota=\"pages\"} 3", "headcount_projects_at_quota 1"] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
}

use actix_web::http::{Method, header};
use actix_web::test::TestRequest;
use headcount_domain::Quotas;
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

#[actix_web::test]
async fn client_hints_are_those_of_browsers() {
    const CHROME: &str =
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0.0.0 Safari/537.36";
    let server = TestServer::start();
    let hinted = |request: TestRequest| {
        request
            .insert_header((header::USER_AGENT, CHROME))
            .insert_header(("sec-ch-ua", r#""Brave";v="124", "Chromium";v="124", "Not-A.Brand";v="99""#))
            .insert_header(("sec-ch-ua-mobile", "?0"))
            .insert_header(("sec-ch-ua-platform", "\"Windows\""))
            .insert_header(("sec-ch-ua-platform-version", "\"15.0.0\""))
    };
    let page = json!({"name": "pageview", "user_id": "u", "user_agent": CHROME}).to_string();
    let key = ("x-service-pk", server.keys.public_key.clone());
    let of_browser = hinted(TestRequest::post().uri("/i").insert_header(key.clone())).set_payload(page.clone());
    let unreadable = TestRequest::post().uri("/i").insert_header(key).insert_header((header::USER_AGENT, CHROME));
    let unreadable = unreadable.insert_header(("sec-ch-ua", "Brave")).insert_header(("sec-ch-ua-platform", "\"Win"));
    let token = format!("Bearer {}", server.keys.api_token.expose());
    let track = format!("/projects/{}/track", server.keys.project_id);
    let of_server = hinted(TestRequest::post().uri(&track).insert_header((header::AUTHORIZATION, token)));
    let of_server = of_server.insert_header((header::CONTENT_TYPE, "application/json")).set_payload(page.clone());
    for request in [of_browser, unreadable.set_payload(page), of_server] {
        assert_eq!(server.send(request).await.status, 202);
    }
    let path = format!("/projects/{}/analytics/breakdown", server.keys.project_id);
    for (dimension, expected) in [("browser", [("Chrome", 2), ("Brave", 1)]), ("os", [("Windows", 2), ("Windows 11", 1)])] {
        let answer =
            server.owner(Method::POST, &path, &json!({"dimension": dimension, "order_by": "events"}).to_string()).await.json();
        let rows = answer["rows"].as_array().unwrap_or_else(|| panic!("{answer}"));
        let found: Vec<_> = rows.iter().map(|row| (row["value"].as_str().unwrap(), row["events"].as_u64().unwrap())).collect();
        assert_eq!(found, expected, "{answer}");
    }
}

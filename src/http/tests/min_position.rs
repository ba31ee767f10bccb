//! Questions that wait for the position of an event.

use std::time::{Duration, Instant};

use actix_web::http::Method;
use actix_web::test::TestRequest;
use headcount_domain::OrganizationId;
use serde_json::json;

use crate::http::tests::nodes::{Nodes, send};
use crate::http::tests::server::{Answer, TestServer};

/// How long a question waits for the event.
const PATIENCE: Duration = Duration::from_secs(2);

fn position_of(answer: &Answer) -> u64 {
    answer.json()["position"].as_u64().unwrap()
}

#[actix_web::test]
async fn a_question_waits_for_the_position_and_no_longer_than_two_seconds() {
    let server = TestServer::start();
    let project = server.keys.project_id;
    let event = json!({"name": "e", "user_id": "ada"}).to_string();
    let recorded = server.owner(Method::POST, &format!("/projects/{project}/track"), &event).await;
    let position = position_of(&recorded);
    let token = format!("Bearer {}", server.keys.api_token.expose());
    let path = format!("/projects/{project}/revenue/metrics");
    let ask = async |path: &str, token: &str, value: &str| {
        let request = TestRequest::get().uri(path).insert_header(("authorization", token.to_owned()));
        server.send(request.insert_header(("Headcount-Min-Position", value.to_owned()))).await
    };
    assert_eq!(ask(&path, &token, &position.to_string()).await.status, 200);
    let began = Instant::now();
    let late = ask(&path, &token, &(position + 1).to_string()).await;
    assert_eq!((late.refusal().0, late.refusal().1.as_str()), (503, "overloaded"));
    assert!((PATIENCE..PATIENCE * 5).contains(&began.elapsed()), "{:?}", began.elapsed());
    assert!(late.headers.contains_key("retry-after"));
    for wrong in ["", "-1", "1.5", "x"] {
        let refused = ask(&path, &token, wrong).await.refusal();
        assert_eq!((refused.0, refused.2.as_deref()), (400, Some("Headcount-Min-Position")), "{wrong}");
    }
    // Who may not see the project learns nothing of its positions, and does not wait.
    let began = Instant::now();
    assert_eq!(ask(&path, "Bearer sk_x", &(position + 1).to_string()).await.status, 401);
    assert_eq!(ask("/projects/prj_0000000000A/revenue/metrics", &token, "9").await.status, 404);
    // What travels nowhere has no figures.
    assert_eq!(ask(&format!("/projects/{project}"), &token, "x").await.status, 200);
    assert!(began.elapsed() < PATIENCE);
}

#[actix_web::test]
async fn an_organization_that_waits_for_what_is_not_there_leaves_places_to_others() {
    let server = TestServer::start();
    let path = format!("/projects/{}/revenue/metrics", server.keys.project_id);
    let ask = async || {
        let token = format!("Bearer {}", server.keys.api_token.expose());
        let request = TestRequest::get().uri(&path).insert_header(("authorization", token));
        let answer = server.send(request.insert_header(("Headcount-Min-Position", u64::MAX.to_string()))).await;
        (answer.status, answer.json()["error"]["message"].as_str().unwrap().to_owned())
    };
    let (status, message) = ask().await;
    assert!(status == 503 && message.contains("do not reach position"), "{message}");
    let turns = &server.state().waiting.0;
    let mut waiting = Vec::new();
    while let Some(place) = turns.wait(server.keys.organization_id, Duration::ZERO).await {
        waiting.push(place);
    }
    assert_eq!(waiting.len(), 256);
    let (status, message) = ask().await;
    assert!(status == 503 && message.contains("too many questions wait"), "{message}");
    assert!(turns.wait(OrganizationId(1), Duration::ZERO).await.is_some());
    waiting.pop();
    let (_, message) = ask().await;
    assert!(message.contains("do not reach position"), "{message}");
}

#[actix_web::test]
async fn the_owner_waits_whichever_node_is_asked() {
    let nodes = Nodes::start().await;
    let ask = async |position: u64| {
        let request = nodes.about_there("GET", "/revenue/metrics").header("headcount-min-position", position.to_string());
        send(request.body(String::new()).unwrap()).await.status().as_u16()
    };
    assert_eq!(ask(0).await, 200);
    assert_eq!(ask(1).await, 503);
    let event = json!({"name": "e", "user_id": "ada"}).to_string();
    let track = nodes.about_there("POST", "/track").header("content-type", "application/json").body(event).unwrap();
    assert_eq!(send(track).await.status(), 202);
    assert_eq!(ask(1).await, 200);
}

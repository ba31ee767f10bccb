//! `Headcount-Min-Position`: a question that counts an event whose 202 the client has, whoever answers it.
//!
//! The owner of a project has applied an event before it answers 202, and a later owner before it answers anything. So the position is nearly always reached; the header
//! makes an answer without the event an error.

use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::http::header::HeaderName;
use headcount_domain::ids::{OrganizationId, ProjectId};

use crate::http::app::AppState;
use crate::http::extract::auth;
use crate::http::respond::error::ApiError;

const MIN_POSITION: HeaderName = HeaderName::from_static("headcount-min-position");
/// How long a question waits for the event.
const PATIENCE: Duration = Duration::from_secs(2);

/// Waits until the event that the request names is counted here. Takes the request from the limit of its token first, and a place of its organization if it has to wait.
async fn wait(
    state: &AppState,
    request: &HttpRequest,
    (project, organization): (ProjectId, OrganizationId),
) -> Result<(), ApiError> {
    let Some(value) = request.headers().get(MIN_POSITION) else { return Ok(()) };
    auth::anybody(state, request)?;
    let position = value.to_str().ok().and_then(|text| text.parse().ok()).ok_or_else(|| {
        ApiError::parameter("Headcount-Min-Position", "must be the `position` of an event, as 202 answers it: a whole number")
    })?;
    if state.engine.has_applied(project, position).await? {
        return Ok(());
    }
    let place = state.waiting.0.wait(organization, Duration::ZERO).await;
    let _place = place.ok_or_else(|| ApiError::overloaded("too many questions wait for positions that are not there"))?;
    match state.engine.wait_until_applied(project, position, PATIENCE).await {
        Ok(true) => Ok(()),
        Ok(false) => Err(ApiError::overloaded(format!("the figures do not reach position {position} of this project yet"))),
        Err(error) => Err(error.into()),
    }
}

/// Whether a request names a position.
pub(crate) fn is_named(request: &HttpRequest) -> bool {
    request.headers().contains_key(MIN_POSITION)
}

/// Has a question about the project in the path wait for the position that it names.
pub(crate) async fn reach(state: &AppState, request: &HttpRequest) -> Result<(), ApiError> {
    if let Ok(project) = request.match_info().query("project_id").parse()
        // To whom the project does not exist, nothing is said of its positions.
        && auth::is_visible(state, request, project)
        && let Some(organization) = auth::organization_of(state, request)
    {
        wait(state, request, (project, organization)).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use actix_web::http::Method;
    use actix_web::test::TestRequest;
    use serde_json::json;

    use super::*;
    use crate::http::tests::nodes::{Nodes, send};
    use crate::http::tests::server::{Answer, TestServer};

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
}

//! The window of a question whose project lets go of days meanwhile.

use std::cell::Cell;

use actix_web::http::{Method, header};
use actix_web::test::TestRequest;
use headcount_api::extract::auth::{self, MinRole};
use headcount_api::extract::query::NoParameters;
use headcount_api::extract::question::ProjectQuestion;
use headcount_api::request::HttpRequest;
use headcount_api::respond::code::ErrorCode;
use headcount_control::Scope;
use headcount_domain::{Depends, Window};

use crate::http::tests::server::TestServer;

#[actix_web::test]
async fn only_a_default_start_moves_up_with_the_floor_while_the_question_is_answered() {
    let server = TestServer::start();
    let (state, id) = (server.state(), server.keys.project_id);
    let token = (header::AUTHORIZATION, format!("Bearer {}", server.keys.api_token.expose()));
    let request = TestRequest::get().insert_header(token).to_request();
    let (request, _) = HttpRequest::receive(request, vec![("project_id".into(), id.to_string())], None);
    let caller = auth::on_project(state, &request, Scope::AnalyticsRead, MinRole::Member).unwrap();
    let question = ProjectQuestion::<NoParameters>::read(state, &request, caller).unwrap();
    let default = question.event_window(None, None).await.unwrap();
    let starts = Cell::new(Vec::new());
    let ask = async |window: Window, retention_days: u32| {
        starts.set([starts.take(), vec![window.start]].concat());
        let body = format!(r#"{{"retention_days": {retention_days}}}"#);
        assert_eq!(server.owner(Method::PATCH, &format!("/projects/{id}"), &body).await.status, 200);
        let fields = state.engine.scans.metadata_fields(question.subject.project, window, 5);
        question.reply(Depends::on_events(window), fields, |_| window.start.to_string()).await
    };
    let answer = question.in_event_window((None, None), async |window| ask(window, 10).await).await.unwrap();
    assert_eq!((answer.status().as_u16(), starts.take()), (200, vec![default.start, default.end.plus(-9)]));
    let chosen = default.end.plus(-9).to_string();
    let refused = question.in_event_window((Some(&chosen), None), async |window| ask(window, 5).await).await.unwrap_err();
    assert_eq!((refused.code(), starts.take().len()), (ErrorCode::BeforeRetention, 1));
}

//! A server in memory over an engine in a temporary directory, for tests.

use std::sync::Arc;

use actix_web::body::to_bytes;
use actix_web::http::header::HeaderMap;
use actix_web::http::{Method, StatusCode, header};
use actix_web::test::TestRequest;
use actix_web::web::Bytes;
use headcount_actors::domain::quota::Quotas;
use headcount_actors::{Engine, EngineConfig};
use headcount_api::app::AppState;
use headcount_api::call::Worker;
use headcount_api::dispatcher::Dispatcher;
use headcount_api::extra_paths::ExtraPaths;
use headcount_api::request_metrics::RequestMetrics;
use headcount_api::respond::kept::KeptAnswers;
use headcount_api::turns::WaitingQuestions;
use headcount_common::clock::FixedClock;
use headcount_control::{Initial, NewToken, OPERATOR_FILE, OperatorToken, Role, Scope};
use serde_json::Value;
use tempfile::TempDir;

use crate::http::endpoints::{self, routes};
use crate::http::features;

/// The server.
pub(crate) struct TestServer {
    /// What `init` made.
    pub(crate) keys: Initial,
    state: Arc<AppState>,
    _dir: TempDir,
}

/// What it answered.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl TestServer {
    pub(crate) fn start() -> Self {
        Self::start_with(Quotas::default())
    }

    /// The same, with further paths.
    pub(crate) fn start_at(extra_paths: ExtraPaths) -> Self {
        Self::open(extra_paths, |_| {})
    }

    /// The same, with other quotas.
    pub(crate) fn start_with(quotas: Quotas) -> Self {
        Self::open(ExtraPaths::default(), |config| config.quotas = quotas)
    }

    /// The same, with a clock.
    pub(crate) fn start_by(clock: &FixedClock) -> Self {
        Self::open(ExtraPaths::default(), |config| config.clock = Arc::new(clock.clone()))
    }

    fn open(extra_paths: ExtraPaths, set: impl FnOnce(&mut EngineConfig)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut config = EngineConfig { shards: 1, min_free_bytes: 0, ..EngineConfig::new(dir.path()) };
        set(&mut config);
        let engine = Engine::open(config).unwrap();
        let keys = engine.registry().initialize(engine.clock().now()).unwrap();
        let operator = Some(OperatorToken::create(dir.path()).unwrap());
        let request_metrics = RequestMetrics::new().unwrap();
        let features = features::states(&engine);
        let state = AppState {
            engine,
            features,
            trusted_proxies: Vec::new(),
            geo_header: None,
            query_origins: Vec::new(),
            public_url: None,
            extra_paths,
            node_tls: None,
            operator,
            kept: KeptAnswers::default(),
            waiting: WaitingQuestions::default(),
            request_metrics,
            document: endpoints::json,
        };
        Self { keys, state: Arc::new(state), _dir: dir }
    }

    pub(crate) fn state(&self) -> &AppState {
        &self.state
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.state.engine
    }

    /// The operator token.
    pub(crate) fn operator(&self) -> String {
        std::fs::read_to_string(self.engine().data_dir().join(OPERATOR_FILE)).unwrap().trim_end().to_owned()
    }

    /// The secret of a token of the first organization.
    pub(crate) fn token(&self, role: Role, scopes: &[Scope]) -> String {
        let (name, scopes) = ("test".to_owned(), scopes.to_vec());
        let new = NewToken { name, role, scopes, project: None, expires_at: None, member: None };
        let now = self.engine().clock().now();
        self.engine().registry().create_token(self.keys.organization_id, new, now).unwrap().1.expose().to_owned()
    }

    pub(crate) async fn send(&self, request: TestRequest) -> Answer {
        let worker = Worker::new(Arc::clone(&self.state), self.engine().ingest.tracker.clone());
        let routes = Arc::new(routes(&self.state.extra_paths).unwrap());
        let (_, response) = Dispatcher::new(worker, routes).answer(request.to_request()).await;
        let (status, headers) = (response.status(), response.headers().clone());
        Answer { status, headers, body: to_bytes(response.into_body()).await.unwrap() }
    }

    /// Asks with a bearer token, and with a body unless that is empty.
    pub(crate) async fn ask(&self, method: Method, path: &str, token: &str, body: &str) -> Answer {
        let mut request =
            TestRequest::with_uri(path).method(method).insert_header((header::AUTHORIZATION, format!("Bearer {token}")));
        if !body.is_empty() {
            request = request.insert_header(header::ContentType::json()).set_payload(body.to_owned());
        }
        self.send(request).await
    }

    /// Asks as the owner.
    pub(crate) async fn owner(&self, method: Method, path: &str, body: &str) -> Answer {
        let token = self.keys.api_token.expose().to_owned();
        self.ask(method, path, &token, body).await
    }
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Status, code and parameter of a refusal.
    pub(crate) fn refusal(&self) -> (u16, String, Option<String>) {
        let error = &self.json()["error"];
        let text = |name: &str| error[name].as_str().map(str::to_owned);
        (self.status.as_u16(), text("code").unwrap(), text("param"))
    }
}

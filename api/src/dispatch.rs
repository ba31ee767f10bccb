//! The gates: which node answers a request, who may ask, and which handler answers.

use actix_web::http::Method;
use headcount_control::Scope;

use crate::call::{Answer, ApiCall, Handler, at_once};
use crate::client_end::while_client_waits;
use crate::extract::auth::{self, Asker, Caller, MinRole, ProjectCaller};
use crate::forward::travel::Destination;
use crate::forward::{Upload, forward, way_of};
use crate::min_position;
use crate::request::HttpRequest;
use crate::respond::error::ApiError;

/// Who may ask, and what answers.
#[derive(Clone, Copy)]
pub enum Access {
    /// Anybody, or whom the handler itself knows: by a public key, a sign-in, or the root token.
    Open(Handler),
    /// The operator of the server.
    Operator(Handler),
    /// Holders of a token for the whole organization.
    Organization(Scope, MinRole, fn(ApiCall, Caller) -> Answer),
    /// Holders of a token for the project in the path.
    Project(Scope, MinRole, fn(ApiCall, ProjectCaller) -> Answer),
    /// The same, and readers of shares, who may not ask everything.
    Shared(Scope, MinRole, fn(ApiCall, Asker) -> Answer),
}

/// What answers a method of a path.
#[derive(Clone, Copy)]
pub struct Endpoint {
    /// Who may ask, and what answers.
    pub access: Access,
    /// Which node answers.
    pub destination: Destination,
}

impl Endpoint {
    /// Passes a request through the gates: which node answers it, the position that a question waits
    /// for, and its credential.
    fn answer(self, call: ApiCall) -> Answer {
        let Some(travel) = self.destination.travel() else { return self.access.admit(call) };
        match way_of(&call.state, &call.request, self.destination) {
            Err(error) => at_once(Err(error)),
            Ok(Some(node)) => Box::pin(async move {
                let ApiCall { state, request, payload } = call;
                let answer = forward(state.forwarding(), &request, Upload::from(payload), node, travel);
                if travel.reads() { while_client_waits(&request, answer).await } else { answer.await }
            }),
            Ok(None) if waits(self.destination, &call.request) => Box::pin(async move {
                min_position::reach(&call.state, &call.request).await?;
                self.access.admit(call).await
            }),
            Ok(None) => self.access.admit(call),
        }
    }
}

impl Access {
    /// Answers who may ask, and refuses others.
    fn admit(self, call: ApiCall) -> Answer {
        let (state, request) = (&*call.state, &call.request);
        let admitted = match self {
            Self::Open(handler) => return handler(call),
            Self::Operator(handler) => auth::operator(state, request).map(|()| handler(call)),
            Self::Organization(scope, role, handler) => {
                auth::organization_wide(state, request, scope, role).map(|caller| handler(call, caller))
            }
            Self::Project(scope, role, handler) => {
                auth::on_project(state, request, scope, role).map(|caller| handler(call, caller))
            }
            Self::Shared(scope, role, handler) => auth::asker(state, request, scope, role).map(|asker| handler(call, asker)),
        };
        admitted.unwrap_or_else(|refused| at_once(Err(refused)))
    }
}

/// Whether a question waits for a position.
fn waits(destination: Destination, request: &HttpRequest) -> bool {
    matches!(destination, Destination::ProjectOwner(travel) if travel.reads()) && min_position::is_named(request)
}

/// The endpoints of one path. Other methods are answered with 405, or by `otherwise`.
#[derive(Default)]
pub(crate) struct PathEndpoints {
    pub(crate) path: String,
    pub(crate) endpoints: Vec<(Method, Endpoint)>,
    pub(crate) otherwise: Option<Handler>,
}

impl PathEndpoints {
    pub(crate) fn answer(&self, call: ApiCall) -> Answer {
        let mut endpoints = self.endpoints.iter();
        if let Some((_, endpoint)) = endpoints.find(|(method, _)| method == call.request.method()) {
            return endpoint.answer(call);
        }
        match self.otherwise {
            Some(handler) => handler(call),
            None => {
                let methods: Vec<Method> = self.endpoints.iter().map(|(method, _)| method.clone()).collect();
                at_once(Err(ApiError::method_not_allowed(&methods)))
            }
        }
    }
}

//! The dispatcher: from the path and the method of a request to its handler, through the gates in between.
//!
//! All endpoints are one type for the framework, so that its code exists once, and an event passes no layer that it doesn't need.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use actix_service::fn_service;
use actix_web::dev::{AppService, HttpServiceFactory, ResourceDef, ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::web::Data;
use actix_web::{Error, HttpRequest, HttpResponse};

use crate::http::app::AppState;
use crate::http::call::{Answer, ApiCall, Handler, at_once};
use crate::http::client_end::while_client_waits;
use crate::http::forward::travel::Destination;
use crate::http::forward::{Upload, forward, way_of};
use crate::http::min_position;
use crate::http::respond::error::ApiError;

/// What answers a method of a path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Endpoint {
    pub(crate) handler: Handler,
    pub(crate) destination: Destination,
}

impl Endpoint {
    /// Passes a request through the gates: to the node that answers it, and past the position that a question waits for.
    fn answer(self, call: ApiCall) -> Answer {
        let Self { handler, destination } = self;
        let Some(travel) = destination.travel() else { return handler(call) };
        match way_of(&call.state, &call.request, destination) {
            Err(error) => at_once(Err(error)),
            Ok(Some(node)) => Box::pin(async move {
                let ApiCall { state, request, payload } = call;
                let answer = forward(&state, &request, Upload::from(payload), node, travel);
                if travel.reads() { while_client_waits(&request, answer).await } else { answer.await }
            }),
            Ok(None) if waits(destination, &call.request) => Box::pin(async move {
                min_position::reach(&call.state, &call.request).await?;
                handler(call).await
            }),
            Ok(None) => handler(call),
        }
    }
}

/// Whether a question is one that waits for a position.
fn waits(destination: Destination, request: &HttpRequest) -> bool {
    matches!(destination, Destination::ProjectOwner(travel) if travel.reads()) && min_position::is_named(request)
}

/// The endpoints of one path. Other methods are answered with 405, or by `otherwise`.
pub(crate) struct PathEndpoints {
    pub(crate) path: String,
    pub(crate) endpoints: Vec<(Method, Endpoint)>,
    pub(crate) otherwise: Option<Handler>,
    pub(crate) state: Data<AppState>,
}

impl PathEndpoints {
    fn answer(&self, call: ApiCall) -> Answer {
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

    /// Returns the service that the framework calls.
    pub(crate) fn service(self) -> impl Fn(ServiceRequest) -> Answering + Clone {
        let path = Rc::new(self);
        move |request| {
            let call = ApiCall::new(&path.state, request);
            Answering { request: Some(call.request.clone()), answer: path.answer(call) }
        }
    }
}

impl HttpServiceFactory for PathEndpoints {
    fn register(self, config: &mut AppService) {
        let path = ResourceDef::new(self.path.as_str());
        config.register_service(path, None, fn_service(self.service()), None);
    }
}

/// An answer under way.
pub(crate) struct Answering {
    request: Option<HttpRequest>,
    answer: Answer,
}

impl Future for Answering {
    type Output = Result<ServiceResponse, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = ready!(self.answer.as_mut().poll(cx)).unwrap_or_else(HttpResponse::from_error);
        let answered = |request| Ok(ServiceResponse::new(request, answer));
        self.request.take().map_or(Poll::Pending, |request| Poll::Ready(answered(request)))
    }
}

//! A request as gates and handlers see it.

use std::cell::{Ref, RefCell, RefMut};
use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use actix_http::{Extensions, HttpMessage, Message, Payload, RequestHead};
use actix_web::http::header::HeaderMap;
use actix_web::http::{Method, Uri};

use headcount_common::NodeToken;

use crate::first_node::{self, FirstNode};
use crate::request_id::RequestId;

/// The values of the parameters in a path, by name.
pub type PathParameters = Vec<(Arc<str>, String)>;

/// The head of a request, and what gates found out about it. Clones are of the same request.
#[derive(Clone)]
pub struct HttpRequest(Rc<Inner>);

struct Inner {
    head: Message<RequestHead>,
    id: RequestId,
    first_node: Option<FirstNode>,
    parameters: PathParameters,
    connection: Option<Rc<Extensions>>,
    extensions: RefCell<Extensions>,
}

impl HttpRequest {
    /// Separates a request from its body. `nodes` is what the nodes of a cluster know each other by.
    pub fn receive(
        mut request: actix_http::Request,
        parameters: PathParameters,
        nodes: Option<&NodeToken>,
    ) -> (Self, actix_web::dev::Payload) {
        let connection = request.take_conn_data();
        let id = RequestId::of(request.head().headers());
        let first_node = first_node::take(request.headers_mut(), nodes);
        let (head, payload) = request.into_parts();
        let extensions = RefCell::default();
        (Self(Rc::new(Inner { head, id, first_node, parameters, connection, extensions })), payload)
    }

    /// The request line, the headers, and the peer's address.
    pub fn head(&self) -> &RequestHead {
        &self.0.head
    }

    /// The headers.
    pub fn headers(&self) -> &HeaderMap {
        self.head().headers()
    }

    /// The method.
    pub fn method(&self) -> &Method {
        &self.head().method
    }

    /// The path and the query string.
    pub fn uri(&self) -> &Uri {
        &self.head().uri
    }

    /// The path as it was sent.
    pub fn path(&self) -> &str {
        self.uri().path()
    }

    /// The query string, without `?`.
    pub fn query_string(&self) -> &str {
        self.uri().query().unwrap_or_default()
    }

    /// The address of the other end of the connection.
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        self.head().peer_addr
    }

    /// The value of a parameter in the path, without percent-encoding except of `%`, `/` and `+`. Empty if the path has none of this name.
    pub fn parameter(&self, name: &str) -> &str {
        let named = self.0.parameters.iter().find(|(known, _)| **known == *name);
        named.map_or("", |(_, value)| value)
    }

    /// The id of the request.
    pub fn id(&self) -> &RequestId {
        &self.0.id
    }

    /// What the node that the client reached passed on with the request. `None`: this is that node.
    pub(crate) fn first_node(&self) -> Option<FirstNode> {
        self.0.first_node
    }

    /// Data of the connection.
    pub fn conn_data<T: 'static>(&self) -> Option<&T> {
        self.0.connection.as_ref()?.get()
    }

    /// Data of the request.
    pub fn extensions(&self) -> Ref<'_, Extensions> {
        self.0.extensions.borrow()
    }

    /// Data of the request, to change.
    pub fn extensions_mut(&self) -> RefMut<'_, Extensions> {
        self.0.extensions.borrow_mut()
    }
}

/// The head of a request that no path was found for.
impl From<actix_http::Request> for HttpRequest {
    fn from(request: actix_http::Request) -> Self {
        Self::receive(request, PathParameters::new(), None).0
    }
}

/// Headers with a syntax of their own are parsed from it.
impl HttpMessage for HttpRequest {
    type Stream = ();

    fn headers(&self) -> &HeaderMap {
        Self::headers(self)
    }

    fn take_payload(&mut self) -> Payload<()> {
        Payload::None
    }

    fn extensions(&self) -> Ref<'_, Extensions> {
        Self::extensions(self)
    }

    fn extensions_mut(&self) -> RefMut<'_, Extensions> {
        Self::extensions_mut(self)
    }
}

/// Without headers and query string, which may have secrets.
impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({})", self.method(), self.path(), self.id().as_str())
    }
}

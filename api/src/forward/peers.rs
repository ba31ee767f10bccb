//! The connections of a worker to other nodes.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix_web::rt;
use actix_web::rt::net::TcpStream;
use headcount_actors::admission_gate::{Gate, Holder, Permit};
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use super::travel::Travel;
use super::upload::UploadBody;
use crate::node_tls::NodeTls;

/// The longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// How long an idle connection is used again. Nodes close idle connections after 75 s.
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);
/// The number of idle connections to a node that are kept.
const MAX_IDLE: usize = 32;
/// The number of requests of one kind to a node at once. A project, and an address, may have a
/// quarter of them.
const MAX_UNDER_WAY: usize = 1_024;
/// The number of bytes of a body that a connection buffers.
const BUFFER_BYTES: usize = 64 << 10;
/// The number of known nodes at which idle ones are forgotten.
const MANY_PEERS: usize = 64;

/// Sends requests on a connection.
type NodeSender = SendRequest<UploadBody>;

/// The other nodes that this worker has sent requests to.
pub struct Peers {
    by_address: RefCell<HashMap<Arc<str>, Rc<Peer>>>,
    connector: Option<TlsConnector>,
}

/// Another node.
struct Peer {
    /// Host and port.
    authority: Box<str>,
    /// For an `https` address: the connector, and the name in the node's certificate.
    tls: Option<(TlsConnector, ServerName<'static>)>,
    idle: RefCell<Vec<(NodeSender, Instant)>>,
    under_way: UnderWay,
}

/// The places for requests to a node. Each kind has its own, so that long requests take none from
/// short ones.
struct UnderWay {
    recording: Gate,
    reading: Gate,
    reading_for_long: Gate,
}

/// The holders whose places a request takes.
pub(super) struct Share {
    pub(super) holder: Holder,
    /// The client's address.
    pub(super) address: Option<IpAddr>,
    pub(super) travel: Travel,
}

/// The reason why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoAnswer {
    /// Not a byte was sent.
    NotSent,
    /// Not a byte was sent, because too many requests are under way.
    Busy,
    /// A part of the request was sent, or all of it.
    Lost,
}

/// A connection with a request under way. Dropping it closes the connection, unless the answer is
/// complete.
pub(super) struct InUse {
    sender: NodeSender,
    peer: Rc<Peer>,
    place: Permit,
}

impl Peers {
    /// Creates the connections of a worker: none yet.
    #[must_use]
    pub fn new(tls: Option<&NodeTls>) -> Self {
        Self { by_address: RefCell::default(), connector: tls.map(NodeTls::connector) }
    }

    /// Sends a request to the node at `address`, once. Returns the head of the answer, which must
    /// arrive within `patience`. Sets `is_sent` before the first byte is sent.
    pub(super) async fn send(
        &self,
        address: &Arc<str>,
        mut request: Request<UploadBody>,
        share: &Share,
        (patience, is_sent): (Duration, &Cell<bool>),
    ) -> Result<(Response<Incoming>, InUse), NoAnswer> {
        let peer = self.peer(address)?;
        let place = peer.under_way.place(share, CONNECT_TIMEOUT).await?;
        loop {
            let (mut sender, is_new) = match peer.take_idle() {
                Some(sender) => (sender, false),
                None => (peer.connect().await?, true),
            };
            is_sent.set(true);
            match timeout(patience, sender.try_send_request(request)).await {
                Ok(Ok(response)) => return Ok((response, InUse { sender, peer, place })),
                // The node closed the connection while it was idle. The request comes back only if
                // not a byte of it was sent.
                Ok(Err(mut error)) => match error.take_message() {
                    Some(unsent) if !is_new => {
                        is_sent.set(false);
                        request = unsent;
                    }
                    Some(_) => return Err(NoAnswer::NotSent),
                    None => return Err(NoAnswer::Lost),
                },
                Err(_) => return Err(NoAnswer::Lost),
            }
        }
    }

    fn peer(&self, address: &Arc<str>) -> Result<Rc<Peer>, NoAnswer> {
        let mut peers = self.by_address.borrow_mut();
        if let Some(peer) = peers.get(address) {
            return Ok(Rc::clone(peer));
        }
        let (authority, tls) = self.way_to(address).ok_or_else(|| {
            tracing::debug!(%address, "can't connect to another node: the address needs `--node-tls` here, or is wrong");
            NoAnswer::NotSent
        })?;
        if peers.len() >= MANY_PEERS {
            peers.retain(|_, peer| Rc::strong_count(peer) > 1);
        }
        let (idle, under_way) = (RefCell::default(), UnderWay::new(MAX_UNDER_WAY));
        let peer = Rc::new(Peer { authority: authority.into(), tls, idle, under_way });
        peers.insert(Arc::clone(address), Rc::clone(&peer));
        Ok(peer)
    }

    /// Returns the host and port of an address, and for `https` how to connect to them.
    fn way_to(&self, address: &str) -> Option<(String, Option<(TlsConnector, ServerName<'static>)>)> {
        let uri: Uri = address.parse().ok()?;
        let host = uri.host()?;
        let (port, tls) = match uri.scheme_str()? {
            "http" => (80, None),
            "https" => {
                let name = ServerName::try_from(host.trim_matches(['[', ']'])).ok()?;
                (443, Some((self.connector.clone()?, name.to_owned())))
            }
            _ => return None,
        };
        Some((format!("{host}:{}", uri.port_u16().unwrap_or(port)), tls))
    }
}

impl UnderWay {
    fn new(limit: usize) -> Self {
        Self { recording: Gate::new(limit), reading: Gate::new(limit), reading_for_long: Gate::new(limit) }
    }

    /// Waits for one of the places.
    async fn place(&self, share: &Share, within: Duration) -> Result<Permit, NoAnswer> {
        let gate = match share.travel {
            Travel::Records => &self.recording,
            Travel::Reads => &self.reading,
            Travel::ReadsForLong | Travel::Follows => &self.reading_for_long,
        };
        let holders = [Some(share.holder), share.address.map(Holder::of_address)];
        gate.take_within(holders, 1, within).await.map_err(|_| NoAnswer::Busy)
    }
}

impl Peer {
    fn take_idle(&self) -> Option<NodeSender> {
        let mut idle = self.idle.borrow_mut();
        while let Some((sender, since)) = idle.pop() {
            if since.elapsed() >= IDLE_TIMEOUT {
                // The connections below have been idle for longer.
                idle.clear();
            } else if sender.is_ready() {
                return Some(sender);
            }
        }
        None
    }

    async fn connect(&self) -> Result<NodeSender, NoAnswer> {
        let connected = timeout(CONNECT_TIMEOUT, TcpStream::connect(&*self.authority)).await;
        let failed = |error: &dyn std::fmt::Display| {
            tracing::debug!(node = &*self.authority, %error, "can't connect to another node");
            NoAnswer::NotSent
        };
        let socket = connected.map_err(|error| failed(&error))?.map_err(|error| failed(&error))?;
        socket.set_nodelay(true).map_err(|error| failed(&error))?;
        // Without this, a machine that is gone would not be noticed.
        let alive = TcpKeepalive::new().with_time(Duration::from_secs(10)).with_interval(Duration::from_secs(5));
        SockRef::from(&socket).set_tcp_keepalive(&alive).map_err(|error| failed(&error))?;
        let Some((connector, name)) = &self.tls else { return Self::speak(socket).await.map_err(|error| failed(&error)) };
        let secured = timeout(CONNECT_TIMEOUT, connector.connect(name.clone(), socket)).await;
        let secured = secured.map_err(|error| failed(&error))?.map_err(|error| failed(&error))?;
        Self::speak(secured).await.map_err(|error| failed(&error))
    }

    /// Begins to speak HTTP on a connection.
    async fn speak<S: AsyncRead + AsyncWrite + Unpin + 'static>(socket: S) -> Result<NodeSender, hyper::Error> {
        let (sender, connection) = Builder::new().max_buf_size(BUFFER_BYTES).handshake(TokioIo::new(socket)).await?;
        rt::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to another node ended");
            }
        });
        Ok(sender)
    }

    fn put_idle(&self, sender: NodeSender) {
        let mut idle = self.idle.borrow_mut();
        if idle.len() < MAX_IDLE {
            idle.push((sender, Instant::now()));
        }
    }
}

impl InUse {
    /// Keeps the connection for the next request: the answer is complete.
    pub(super) fn keep(self) {
        let Self { mut sender, peer, place } = self;
        drop(place);
        if sender.is_ready() {
            return peer.put_idle(sender);
        }
        rt::spawn(async move {
            // The connection must also have read the end of the answer.
            if sender.ready().await.is_ok() {
                peer.put_idle(sender);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use headcount_domain::ProjectId;

    use super::*;

    fn share(project: u64, address: u8, travel: Travel) -> Share {
        Share { holder: Holder::Project(ProjectId(project)), address: Some(IpAddr::from([192, 0, 2, address])), travel }
    }

    #[test]
    fn addresses_have_the_port_of_their_scheme() {
        let peers = Peers::new(None);
        let authority = |address: &str| peers.way_to(address).map(|(authority, _)| authority);
        for (address, expected) in [
            ("http://10.0.1.1:8080", Some("10.0.1.1:8080")),
            ("http://node-1", Some("node-1:80")),
            ("http://[::1]", Some("[::1]:80")),
            // Without certificates.
            ("https://node-1:8443", None),
            ("ftp://node-1", None),
            ("node-1:8080", None),
        ] {
            assert_eq!(authority(address).as_deref(), expected, "{address}");
        }
    }

    #[actix_web::test]
    async fn neither_a_project_nor_an_address_takes_the_places_of_others() {
        let places = UnderWay::new(MAX_UNDER_WAY);
        let take = async |project, address, travel| places.place(&share(project, address, travel), Duration::ZERO).await;
        let mut taken = Vec::new();
        while let Ok(place) = take(1, 1, Travel::Records).await {
            taken.push(place);
        }
        assert_eq!(taken.len(), MAX_UNDER_WAY / 4);
        assert!(take(1, 2, Travel::Records).await.is_err(), "the project has used up its share");
        assert!(take(2, 1, Travel::Records).await.is_err(), "so has the address");
        assert!(take(2, 2, Travel::Records).await.is_ok());
        for travel in [Travel::Reads, Travel::ReadsForLong] {
            assert!(take(1, 1, travel).await.is_ok(), "{travel:?} has places of its own");
        }
        drop(taken);
        assert!(take(1, 1, Travel::Records).await.is_ok());
    }
}

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
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use socket2::{SockRef, TcpKeepalive};
use tokio::time::timeout;

use super::travel::Travel;
use super::upload::UploadBody;

/// How long it may take to get a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// How long an idle connection is used again: nodes keep theirs for 75 s.
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);
/// How many idle connections to a node are kept.
const MAX_IDLE: usize = 32;
/// How many requests of one kind to a node may be under way. A project, or an address, may have a quarter of them.
const MAX_UNDER_WAY: usize = 1_024;
/// How many bytes of an answer's body, or of a request's, a connection buffers.
const BUFFER_BYTES: usize = 64 << 10;
/// From how many known nodes on those are forgotten that nothing is sent to.
const MANY_PEERS: usize = 64;
/// What an address begins with.
const SCHEME: &str = "http://";

/// What sends requests on a connection.
type NodeSender = SendRequest<UploadBody>;

/// The other nodes that this worker has sent requests to, by address.
#[derive(Default)]
pub struct Peers(RefCell<HashMap<Arc<str>, Rc<Peer>>>);

/// Another node.
struct Peer {
    /// Host and port.
    authority: Box<str>,
    idle: RefCell<Vec<(NodeSender, Instant)>>,
    under_way: UnderWay,
}

/// The places of the requests under way to a node: kinds that may take long take none of the others.
struct UnderWay {
    recording: Gate,
    reading: Gate,
    reading_for_long: Gate,
}

/// Whose places a request takes.
pub(super) struct Share {
    pub(super) holder: Holder,
    /// The client's address.
    pub(super) address: Option<IpAddr>,
    pub(super) travel: Travel,
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoAnswer {
    /// Not a byte was sent.
    NotSent,
    /// As the first: too many requests are under way.
    Busy,
    /// A part of the request was sent, or all of it.
    Lost,
}

/// A connection that a request is under way on. Dropping it closes the connection, unless the answer is complete.
pub(super) struct InUse {
    sender: NodeSender,
    peer: Rc<Peer>,
    place: Permit,
}

impl Peers {
    /// Sends a request to the node at `address`, once. Returns the head of the answer, which has to come within `patience`. `is_sent` becomes `true` before the first byte is sent.
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
        let mut peers = self.0.borrow_mut();
        if let Some(peer) = peers.get(address) {
            return Ok(Rc::clone(peer));
        }
        let authority = address.strip_prefix(SCHEME).ok_or(NoAnswer::NotSent)?;
        if peers.len() >= MANY_PEERS {
            peers.retain(|_, peer| Rc::strong_count(peer) > 1);
        }
        let peer =
            Rc::new(Peer { authority: authority.into(), idle: RefCell::default(), under_way: UnderWay::new(MAX_UNDER_WAY) });
        peers.insert(Arc::clone(address), Rc::clone(&peer));
        Ok(peer)
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
                // Those below have been idle for longer.
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
        // A machine that is gone says nothing.
        let alive = TcpKeepalive::new().with_time(Duration::from_secs(10)).with_interval(Duration::from_secs(5));
        SockRef::from(&socket).set_tcp_keepalive(&alive).map_err(|error| failed(&error))?;
        let handshake = Builder::new().max_buf_size(BUFFER_BYTES).handshake(TokioIo::new(socket)).await;
        let (sender, connection) = handshake.map_err(|error| failed(&error))?;
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
            // The connection has to see the end of the answer, too.
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

//! Looks names up, and hands on the addresses that are allowed.

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};

use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

use crate::allow_list::AllowList;
use crate::error::OutboundError;

/// How many look-ups may be under way. The system's own can't be stopped: one that is given up goes on in its thread.
const MAX_LOOKUPS: usize = 32;

/// Returns the addresses of a host, with the port.
pub(crate) type Lookup = Arc<dyn Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync>;

/// The system's look-up.
pub(crate) fn system() -> Lookup {
    Arc::new(|host, port| Ok((host, port).to_socket_addrs()?.collect()))
}

pub(crate) struct GuardedResolver {
    allowed: Arc<AllowList>,
    lookup: Lookup,
    under_way: Arc<AtomicUsize>,
}

impl fmt::Debug for GuardedResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardedResolver").field("allowed", &self.allowed).finish_non_exhaustive()
    }
}

/// Counts a look-up for as long as it lives.
struct UnderWay(Arc<AtomicUsize>);

impl UnderWay {
    fn begin(count: &Arc<AtomicUsize>) -> Option<Self> {
        let begun = Self(Arc::clone(count));
        (count.fetch_add(1, Ordering::Relaxed) < MAX_LOOKUPS).then_some(begun)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl GuardedResolver {
    pub(crate) fn new(allowed: Arc<AllowList>, lookup: Lookup) -> Self {
        Self { allowed, lookup, under_way: Arc::default() }
    }

    /// Looks a host up, for as long as `timeout` allows.
    fn addresses(&self, host: &str, port: u16, timeout: NextTimeout) -> Result<Vec<SocketAddr>, OutboundError> {
        let failed = |reason: String| OutboundError::Dns { host: host.to_owned(), reason };
        let under_way = UnderWay::begin(&self.under_way).ok_or_else(|| failed("too many look-ups are under way".into()))?;
        let (done, wait) = sync_channel(1);
        let (lookup, name) = (Arc::clone(&self.lookup), host.to_owned());
        let look_up = move || {
            let addresses = lookup(&name, port);
            drop(under_way);
            let _ = done.send(addresses);
        };
        std::thread::Builder::new().name("look-up".into()).spawn(look_up).map_err(|error| failed(error.to_string()))?;
        match wait.recv_timeout(*timeout.after) {
            Ok(addresses) => addresses.map_err(|error| failed(error.to_string())),
            Err(RecvTimeoutError::Timeout) => Err(OutboundError::Timeout),
            Err(RecvTimeoutError::Disconnected) => Err(failed("the look-up failed".into())),
        }
    }

    fn allowed_addresses(&self, uri: &Uri, timeout: NextTimeout) -> Result<Vec<SocketAddr>, OutboundError> {
        let host = uri.host().unwrap_or_default();
        let port = uri.port_u16().unwrap_or(if uri.scheme_str() == Some("https") { 443 } else { 80 });
        // A literal IPv6 address is in brackets.
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let found = self.addresses(bare, port, timeout)?;
        if found.is_empty() {
            return Err(OutboundError::Dns { host: host.to_owned(), reason: "it has no address".into() });
        }
        let allowed: Vec<SocketAddr> = found.into_iter().filter(|address| self.allowed.permits(host, *address)).collect();
        if allowed.is_empty() { Err(OutboundError::Blocked { host: host.to_owned() }) } else { Ok(allowed) }
    }
}

impl Resolver for GuardedResolver {
    fn resolve(&self, uri: &Uri, _: &Config, timeout: NextTimeout) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let allowed = self.allowed_addresses(uri, timeout).map_err(|error| ureq::Error::Other(Box::new(error)))?;
        let mut addresses = self.empty();
        // The array is short; the first few addresses are enough.
        let _ = allowed.into_iter().try_for_each(|address| addresses.try_push(address));
        Ok(addresses)
    }
}

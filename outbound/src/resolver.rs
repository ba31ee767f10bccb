//! Looks up names, and returns the allowed addresses.

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

use crate::allow_list::AllowList;
use crate::error::OutboundError;

/// The maximum number of running look-ups. A look-up of the system can't be stopped: after a
/// timeout it continues in its thread.
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
    lookups: Arc<Lookups>,
}

impl fmt::Debug for GuardedResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardedResolver").field("allowed", &self.allowed).finish_non_exhaustive()
    }
}

/// The running look-ups.
#[derive(Debug, Default)]
struct Lookups {
    count: Mutex<usize>,
    ended: Condvar,
}

/// A slot for a look-up. Dropping it frees the slot.
struct Place(Arc<Lookups>);

impl Place {
    /// Waits up to `timeout` for a slot. So slow names delay other look-ups, but don't fail them.
    fn take(lookups: &Arc<Lookups>, timeout: Duration) -> Option<Self> {
        let mut count = lookups.count.lock();
        let deadline = Instant::now().checked_add(timeout);
        while *count >= MAX_LOOKUPS {
            match deadline {
                Some(deadline) if lookups.ended.wait_until(&mut count, deadline).timed_out() => return None,
                Some(_) => {}
                None => lookups.ended.wait(&mut count),
            }
        }
        *count += 1;
        Some(Self(Arc::clone(lookups)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        *self.0.count.lock() -= 1;
        self.0.ended.notify_one();
    }
}

impl GuardedResolver {
    pub(crate) fn new(allowed: Arc<AllowList>, lookup: Lookup) -> Self {
        Self { allowed, lookup, lookups: Arc::default() }
    }

    /// Looks up a host, within `timeout`.
    fn addresses(&self, host: &str, port: u16, timeout: NextTimeout) -> Result<Vec<SocketAddr>, OutboundError> {
        let failed = |reason: String| OutboundError::Dns { host: host.to_owned(), reason };
        let began = Instant::now();
        let place = Place::take(&self.lookups, *timeout.after).ok_or(OutboundError::Timeout)?;
        let (done, wait) = sync_channel(1);
        let (lookup, name) = (Arc::clone(&self.lookup), host.to_owned());
        let look_up = move || {
            let addresses = lookup(&name, port);
            drop(place);
            let _ = done.send(addresses);
        };
        std::thread::Builder::new().name("look-up".into()).spawn(look_up).map_err(|error| failed(error.to_string()))?;
        match wait.recv_timeout(timeout.after.saturating_sub(began.elapsed())) {
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

//! The faults.

mod brokers;
mod limits;
mod nodes;
mod requests;

use std::fmt;
use std::time::Duration;

use clap::ValueEnum;

use super::campaign::Campaign;
use super::figures::Measure;
use super::load::Load;
use super::network::Direction;
use crate::error::Result;

const MINUTE: Duration = Duration::from_secs(60);

/// A fault, or what is to hold under load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Fault {
    /// Kill the node that owns most, and start it again once others serve
    Owner,
    /// Kill the node that owns most, and start it again at once
    Restart,
    /// Kill the broker that leads a stream
    Leader,
    /// Kill a broker that follows
    Follower,
    /// Freeze the broker that leads a stream for 2 s (SIGSTOP)
    Freeze,
    /// Kill all brokers, and start them again
    Brokers,
    /// Stop the owner for 25 s (SIGSTOP), and let it go on under load
    Pause,
    /// Stop each node in turn (SIGTERM), and start it again
    Rolling,
    /// Revoke tokens, and show them to every node
    Revoke,
    /// Send the same external ids to all nodes at once
    ExternalIds,
    /// Ask one node with the entity tag of another
    Etag,
    /// Let a stream get full, and raise its limit
    Full,
    /// Slow the disk of one broker down (strace)
    SlowDisk,
    /// Take the place of files away for a minute
    Bucket,
    /// Take the place of files away for ten minutes
    LongBucket,
    /// Cut the owner off for 30 s (network namespaces)
    Cut,
    /// Lose what the owner sends for 30 s
    CutOut,
    /// Lose what is sent to the owner for 30 s
    CutIn,
}

impl Fault {
    /// Whether nodes have to be in network namespaces for it.
    #[must_use]
    pub fn needs_network(self) -> bool {
        matches!(self, Fault::Cut | Fault::CutOut | Fault::CutIn)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default().as_str())
    }
}

/// Injects a fault into a cluster under load, and waits until everything is served again.
///
/// # Errors
/// A violation.
pub async fn inject(campaign: &mut Campaign, load: &Load, fault: Fault, cycle: usize) -> Result<Vec<Measure>> {
    match fault {
        Fault::Owner => nodes::owner(campaign, load).await,
        Fault::Restart => nodes::restart(campaign, load).await,
        Fault::Leader => brokers::one(campaign, load, true).await,
        Fault::Follower => brokers::one(campaign, load, false).await,
        Fault::Freeze => brokers::freeze(campaign, load).await,
        Fault::Brokers => brokers::all(campaign, load).await,
        Fault::Pause => nodes::pause(campaign, load).await,
        Fault::Rolling => nodes::rolling(campaign, load).await,
        Fault::Revoke => requests::revoke(campaign, cycle).await,
        Fault::ExternalIds => requests::external_ids(campaign).await,
        Fault::Etag => requests::etag(campaign).await,
        Fault::Full => limits::full(campaign, load).await,
        Fault::SlowDisk => limits::slow_disk(campaign, load, cycle).await,
        Fault::Bucket => limits::bucket(campaign, load, MINUTE).await,
        Fault::LongBucket => limits::bucket(campaign, load, 10 * MINUTE).await,
        Fault::Cut => limits::cut(campaign, load, Direction::Both).await,
        Fault::CutOut => limits::cut(campaign, load, Direction::Out).await,
        Fault::CutIn => limits::cut(campaign, load, Direction::In).await,
    }
}

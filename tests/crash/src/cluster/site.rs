//! Where brokers and nodes run, and how the harness reaches them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;

use headcount_histories::Rng;

use super::brokers::free_addresses;

/// Number of nodes.
pub const NODES: usize = 3;

/// Where everything runs.
#[derive(Debug, Clone)]
pub struct Site {
    /// The address of all brokers.
    pub brokers: IpAddr,
    /// What runs a broker.
    pub runner: Vec<String>,
    /// The nodes.
    pub nodes: Vec<NodePlace>,
}

/// Where a node runs.
#[derive(Debug, Clone)]
pub struct NodePlace {
    /// What runs it.
    pub runner: Vec<String>,
    /// Where it listens.
    pub listen: SocketAddr,
    /// Where the harness reaches it.
    pub address: SocketAddr,
    /// Where other nodes reach it.
    pub url: String,
}

impl Site {
    /// Everything on loopback.
    #[must_use]
    pub fn loopback(rng: &mut Rng) -> Self {
        let host = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let place = |address: SocketAddr| NodePlace {
            runner: ends_with_harness(),
            listen: address,
            address,
            url: format!("http://{address}"),
        };
        // Fixed ports: clients find a node again that was killed.
        let nodes = free_addresses(host, NODES, rng).into_iter().map(place).collect();
        Self { brokers: host, runner: ends_with_harness(), nodes }
    }
}

/// What ends a process with the harness, however that ends; nothing where there is no such program.
#[must_use]
pub fn ends_with_harness() -> Vec<String> {
    let program = ["/usr/bin/setpriv", "/bin/setpriv"].into_iter().find(|path| Path::new(path).exists());
    program.map(|program| [program, "--pdeathsig", "KILL", "--"].map(str::to_owned).to_vec()).unwrap_or_default()
}

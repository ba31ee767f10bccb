//! Nodes in network namespaces of their own, so that one can be cut off from brokers and other
//! nodes, but not from the harness.
//!
//! The harness and the brokers are in the hub. Each node has a link to a bridge there, over which
//! it reaches brokers and other nodes, and another link to the harness alone. A packet that is to
//! be lost is sent to a neighbor that does not exist, so that its sender notices nothing.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::{Command, ExitStatus, Stdio};

use super::site::{NODES, NodePlace, Site, ends_with_harness};
use crate::error::{CampaignError, Result, harness};

/// Names the namespaces, in the process that runs in the hub.
const VARIABLE: &str = "HEADCOUNT_CRASH_NETWORK";
/// The hardware address of no device.
const NOBODY: &str = "02:00:00:00:00:99";
/// Where every node listens.
const PORT: u16 = 8_080;
const BROKERS: Ipv4Addr = Ipv4Addr::new(10, 213, 0, 1);

/// Which packets of a node are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// All of them.
    Both,
    /// Those that it sends.
    Out,
    /// Those that are sent to it.
    In,
}

/// The namespaces of a campaign.
#[derive(Debug, Clone)]
pub struct Network {
    prefix: String,
}

/// Namespaces that are removed with the value.
#[derive(Debug)]
struct Made(Network);

impl Drop for Made {
    fn drop(&mut self) {
        for namespace in self.0.namespaces() {
            let _ = Command::new("ip").args(["netns", "del", &namespace]).stderr(Stdio::null()).status();
        }
    }
}

impl Network {
    /// Returns the network in whose hub this process runs.
    #[must_use]
    pub fn of_process() -> Option<Self> {
        std::env::var(VARIABLE).ok().map(|prefix| Self { prefix })
    }

    /// Makes a network, runs this program with the same arguments in its hub, and removes the
    /// network.
    ///
    /// # Errors
    /// The campaign is skipped where namespaces can't be made.
    pub async fn run_again() -> Result<ExitStatus> {
        let network = Self { prefix: format!("hc{}", std::process::id()) };
        let made = Made(network.clone());
        network.make().map_err(|error| CampaignError::Skipped(format!("no network namespaces here: {error}")))?;
        let mut command = tokio::process::Command::new("ip");
        command.args(["netns", "exec", &network.hub()]).args(ends_with_harness());
        command.arg(std::env::current_exe()?).args(std::env::args_os().skip(1)).env(VARIABLE, &network.prefix);
        let status = command.kill_on_drop(true).status().await?;
        drop(made);
        Ok(status)
    }

    fn hub(&self) -> String {
        format!("{}hub", self.prefix)
    }

    fn of_node(&self, node: usize) -> String {
        format!("{}n{node}", self.prefix)
    }

    fn namespaces(&self) -> Vec<String> {
        (0..NODES).map(|node| self.of_node(node)).chain([self.hub()]).collect()
    }

    fn make(&self) -> Result<()> {
        for namespace in self.namespaces() {
            ip(&format!("netns add {namespace}"))?;
            ip(&format!("-n {namespace} link set lo up"))?;
        }
        let hub = self.hub();
        ip(&format!("-n {hub} link add bridge type bridge"))?;
        ip(&format!("-n {hub} addr add {BROKERS}/24 dev bridge"))?;
        ip(&format!("-n {hub} link set bridge up"))?;
        for node in 0..NODES {
            let namespace = self.of_node(node);
            for (device, name) in [(format!("data{node}"), "data"), (format!("own{node}"), "own")] {
                ip(&format!("-n {hub} link add {device} type veth peer name {name} netns {namespace}"))?;
                ip(&format!("-n {hub} link set {device} up"))?;
            }
            ip(&format!("-n {hub} link set data{node} master bridge"))?;
            ip(&format!("-n {hub} addr add 10.214.{node}.1/30 dev own{node}"))?;
            ip(&format!("-n {namespace} addr add {}/24 dev data", data_address(node)))?;
            ip(&format!("-n {namespace} addr add {}/30 dev own", own_address(node)))?;
            ip(&format!("-n {namespace} link set data up"))?;
            ip(&format!("-n {namespace} link set own up"))?;
        }
        Ok(())
    }

    /// Returns where brokers and nodes run.
    #[must_use]
    pub fn site(&self) -> Site {
        let place = |node: usize| {
            let runner = ["ip", "netns", "exec", &self.of_node(node)].map(str::to_owned).into_iter().chain(ends_with_harness());
            NodePlace {
                runner: runner.collect(),
                listen: SocketAddr::from(([0, 0, 0, 0], PORT)),
                address: SocketAddr::from((own_address(node), PORT)),
                url: format!("http://{}:{PORT}", data_address(node)),
            }
        };
        Site { brokers: IpAddr::V4(BROKERS), runner: ends_with_harness(), nodes: (0..NODES).map(place).collect() }
    }

    /// Cuts a node off.
    ///
    /// # Errors
    /// A command fails.
    pub fn cut(&self, node: usize, direction: Direction) -> Result<()> {
        self.each_way(node, direction, |to| format!("neigh replace {to} lladdr {NOBODY} nud permanent dev"))
    }

    /// Ends a cut.
    ///
    /// # Errors
    /// A command fails.
    pub fn mend(&self, node: usize, direction: Direction) -> Result<()> {
        self.each_way(node, direction, |to| format!("neigh del {to} dev"))
    }

    fn each_way(&self, node: usize, direction: Direction, change: impl Fn(Ipv4Addr) -> String) -> Result<()> {
        let own = self.of_node(node);
        let others = (0..NODES).filter(|other| *other != node);
        if direction != Direction::In {
            for to in others.clone().map(data_address).chain([BROKERS]) {
                ip(&format!("-n {own} {} data", change(to)))?;
            }
        }
        if direction != Direction::Out {
            let to = data_address(node);
            for other in others {
                ip(&format!("-n {} {} data", self.of_node(other), change(to)))?;
            }
            ip(&format!("-n {} {} bridge", self.hub(), change(to)))?;
        }
        Ok(())
    }
}

fn data_address(node: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 213, 0, 11 + u8::try_from(node).unwrap_or(0))
}

fn own_address(node: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 214, u8::try_from(node).unwrap_or(0), 2)
}

/// Runs `ip` with these words.
fn ip(words: &str) -> Result<()> {
    let output = Command::new("ip").args(words.split(' ')).stdin(Stdio::null()).output()?;
    match output.status.success() {
        true => Ok(()),
        false => Err(harness(format!("ip {words}: {}", String::from_utf8_lossy(&output.stderr).trim()))),
    }
}

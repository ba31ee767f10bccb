//! Brokers and nodes that form a cluster.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

use headcount_histories::Rng;
use headcount_model::Json;

use super::brokers::{Brokers, StreamState};
use super::site::{NODES, NodePlace, Site};
use crate::arguments::Common;
use crate::error::{Result, harness, violation};
use crate::events::Plan;
use crate::http::{Connection, Credential, Request};
use crate::load::Shared;
use crate::server::{Launch, Log, Server};
use crate::tenant::Tenant;

/// How often brokers, and the making of a cluster, are tried: brokers that start together do not
/// always find each other.
const ATTEMPTS: usize = 3;
/// How long nodes may take until all of them answer everything, when nothing is broken any more.
const READY: Duration = Duration::from_secs(60);
/// From when on partitions that have not moved stay where they are: nodes move them after a minute
/// without nodes that come or go.
const UNMOVED: Duration = Duration::from_secs(70);
const UNMOVED_WITHIN: Duration = Duration::from_secs(600);
const TICK: Duration = Duration::from_millis(50);
/// Size of a partition's stream. Brokers reserve it for all of them.
const STREAM_BYTES: &str = "128MiB";

/// A cluster.
#[derive(Debug)]
pub struct Cluster {
    /// The brokers.
    pub brokers: Brokers,
    nodes: Vec<Node>,
    /// The partition of each project.
    pub partitions: Vec<u16>,
    /// The directory with the files of all nodes.
    pub bucket: PathBuf,
}

#[derive(Debug)]
struct Node {
    launch: Launch,
    place: NodePlace,
    /// The name under which it holds leases.
    id: String,
    server: Option<Server>,
    /// What each of its servers said.
    logs: Vec<Log>,
}

impl Cluster {
    /// Starts brokers, makes a cluster of them, and starts its nodes.
    ///
    /// # Errors
    /// Something does not start.
    pub async fn start(common: &Common, nats: &Path, dir: &Path, site: &Site, rng: &mut Rng) -> Result<(Self, Tenant)> {
        let mut attempt = 1;
        let brokers = loop {
            let folder = dir.join(format!("brokers{attempt}"));
            let mut brokers = Brokers::start(nats, folder, site.brokers, &site.runner, rng)?;
            match brokers.wait_until_ready().await {
                Ok(_) => break brokers,
                Err(error) if attempt == ATTEMPTS => return Err(harness(error.to_string())),
                Err(_) => attempt += 1,
            }
        };
        let bucket = dir.join("bucket");
        std::fs::create_dir(&bucket)?;
        let node = |node| Node::new(common, &brokers, (dir, &bucket), node, &site.nodes[node]);
        let nodes: Result<Vec<Node>> = (0..NODES).map(node).collect();
        let mut cluster = Self { brokers, nodes: nodes?, partitions: Vec::new(), bucket };
        let mut tenant = cluster.init().await?;
        for node in 0..NODES {
            cluster.spread_key(node)?;
            cluster.start_node(node).await?;
        }
        cluster.wait_until_ready().await?;
        tenant.add_projects(cluster.address(0)).await?;
        Ok((cluster, tenant))
    }

    /// Runs `cluster init`, again if brokers did not answer in time. Brokers that still know too
    /// few of each other are started again: on a busy machine, some that all started at once never
    /// got to know each other.
    async fn init(&mut self) -> Result<Tenant> {
        let mut printed = String::new();
        for _ in 0..ATTEMPTS {
            if printed.contains("too few brokers") {
                println!("  the brokers are started again: {}", printed.trim());
                self.brokers.start_again().await?;
            }
            let made = self.run(&["init", &self.brokers.addresses(), "--json", "--max-bytes", STREAM_BYTES]).await?;
            if made.status.success() {
                return Tenant::of_init(&made.stdout);
            }
            printed = String::from_utf8_lossy(&made.stderr).into_owned();
        }
        Err(violation(format!("the cluster can't be made: {printed}")))
    }

    /// Runs a command of `headcount cluster`, with the data directory of the first node.
    async fn run(&self, arguments: &[&str]) -> Result<Output> {
        let mut command = self.nodes[0].launch.command(&[&["cluster"], arguments].concat());
        let ran = tokio::task::spawn_blocking(move || command.output()).await;
        ran.map_err(|error| harness(error.to_string()))?.map_err(Into::into)
    }

    fn spread_key(&self, node: usize) -> Result<()> {
        let key = |node: &Node| node.launch.data_dir.join("keys/hash.key");
        if node > 0 {
            std::fs::create_dir_all(self.nodes[node].launch.data_dir.join("keys"))?;
            std::fs::copy(key(&self.nodes[0]), key(&self.nodes[node]))?;
        }
        Ok(())
    }

    /// Finds the partition of each project: the one whose stream grows with an event.
    ///
    /// # Errors
    /// A violation if none grows.
    pub async fn find_partitions(&mut self, shared: &Shared) -> Result<()> {
        for project in 0..shared.tenant.projects.len() {
            self.partitions.push(self.partition_of(shared, project).await?);
        }
        Ok(())
    }

    async fn partition_of(&self, shared: &Shared, project: usize) -> Result<u16> {
        let began = Instant::now();
        while began.elapsed() < READY {
            let before = self.brokers.streams().await?;
            let number = shared.ledger.borrow_mut().add(Plan::ordinary(project));
            let (ledger, all) = (&shared.ledger, [number]);
            crate::resend::send_again(self.address(0), &shared.tenant, ledger, &all).await?;
            crate::resend::mark_acknowledged(&mut ledger.borrow_mut(), &all);
            let after = self.brokers.streams().await?;
            let has_grown =
                |stream: &&StreamState| before.iter().any(|known| known.name == stream.name && known.last < stream.last);
            // Another one grows if a node takes it over meanwhile.
            if let [stream] = after.iter().filter(has_grown).collect::<Vec<_>>()[..] {
                return stream.name[3..].parse().map_err(|_| harness(format!("a stream is called {}", stream.name)));
            }
            tokio::time::sleep(TICK).await;
        }
        Err(violation("no stream takes the events of a project"))
    }

    /// Returns the name of the stream that has a project's events.
    #[must_use]
    pub fn stream_of(&self, project: usize) -> String {
        format!("EV_{:03}", self.partitions[project])
    }

    /// Returns where the harness reaches a node.
    #[must_use]
    pub fn address(&self, node: usize) -> SocketAddr {
        self.nodes[node].place.address
    }

    /// Returns where the harness reaches all nodes.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        (0..NODES).map(|node| self.address(node)).collect()
    }

    /// Returns the nodes that run.
    #[must_use]
    pub fn running(&self) -> Vec<usize> {
        (0..NODES).filter(|node| self.nodes[*node].server.is_some()).collect()
    }

    /// Returns the server of a node.
    ///
    /// # Errors
    /// It does not run.
    pub fn server(&mut self, node: usize) -> Result<&mut Server> {
        self.nodes[node].server.as_mut().ok_or_else(|| harness(format!("node {node} does not run")))
    }

    /// Starts a node, and waits until it listens.
    ///
    /// # Errors
    /// A violation if it does not start.
    pub async fn start_node(&mut self, node: usize) -> Result<Duration> {
        let server = self.nodes[node].launch.start().await?;
        let took = server.started_in;
        let node = &mut self.nodes[node];
        node.id = std::fs::read_to_string(node.launch.data_dir.join("node"))?.trim().to_owned();
        node.logs.push(server.log().clone());
        node.server = Some(server);
        Ok(took)
    }

    /// Takes the server of a node, to end it.
    ///
    /// # Errors
    /// It does not run.
    pub fn take_server(&mut self, node: usize) -> Result<Server> {
        self.nodes[node].server.take().ok_or_else(|| harness(format!("node {node} does not run")))
    }

    /// Returns the node that holds each project's partition; `None` if the brokers do not know one
    /// that is here.
    ///
    /// # Errors
    /// The brokers do not answer.
    pub async fn owners(&self) -> Result<Vec<Option<usize>>> {
        let holders = self.holders().await?;
        Ok(self.partitions.iter().map(|partition| holders.get(usize::from(*partition)).copied().flatten()).collect())
    }

    /// Returns the node that holds each partition; `None` if the brokers do not know one that is
    /// here.
    async fn holders(&self) -> Result<Vec<Option<usize>>> {
        let shown = self.run(&["status", &self.brokers.addresses(), "--json"]).await?;
        let text = String::from_utf8_lossy(&shown.stdout).into_owned();
        let shown = Json::parse(&text).map_err(|error| harness(format!("cluster status printed {text}: {error}")))?;
        let node = |holder: &str| self.nodes.iter().position(|node| node.id == holder);
        Ok(shown.field("partitions").items().iter().map(|partition| partition.field("node").text().and_then(node)).collect())
    }

    /// Waits until no partition has moved for longer than nodes wait before they move any.
    ///
    /// # Errors
    /// The brokers do not answer, or partitions go on moving.
    pub async fn wait_until_nothing_moves(&self) -> Result<()> {
        let (began, mut same_since, mut known) = (Instant::now(), Instant::now(), self.holders().await?);
        while same_since.elapsed() < UNMOVED {
            if began.elapsed() > UNMOVED_WITHIN {
                return Err(violation(format!("partitions go on moving after {UNMOVED_WITHIN:?}")));
            }
            tokio::time::sleep(Duration::from_secs(2)).await;
            let now = self.holders().await?;
            if now != known {
                (same_since, known) = (Instant::now(), now);
            }
        }
        Ok(())
    }

    /// Returns the node that owns most projects, and these projects.
    ///
    /// # Errors
    /// The brokers do not answer, or no node owns any.
    pub async fn main_owner(&self) -> Result<(usize, Vec<usize>)> {
        let owners = self.owners().await?;
        let of = |node: usize| -> Vec<usize> { (0..owners.len()).filter(|project| owners[*project] == Some(node)).collect() };
        let node = (0..NODES).max_by_key(|node| of(*node).len()).unwrap_or(0);
        match of(node) {
            projects if projects.is_empty() => Err(violation("no node owns any project")),
            projects => Ok((node, projects)),
        }
    }

    /// Waits until all nodes are ready.
    ///
    /// # Errors
    /// A violation if that takes too long, or one has exited.
    pub async fn wait_until_ready(&mut self) -> Result<()> {
        let began = Instant::now();
        for node in self.running() {
            while !is_ready(self.address(node)).await {
                self.server(node)?.check_alive()?;
                if began.elapsed() > READY {
                    let log = self.server(node)?.log().tail();
                    return Err(violation(format!("node {node} is not ready within {READY:?}; its log:\n    {log}")));
                }
                tokio::time::sleep(TICK).await;
            }
        }
        Ok(())
    }

    /// Writes what the nodes said beside their data directories.
    ///
    /// # Errors
    /// A file can't be written.
    pub fn save_logs(&self) -> Result<()> {
        for node in &self.nodes {
            let texts: Vec<String> = node.logs.iter().map(Log::text).collect();
            std::fs::write(node.launch.data_dir.with_extension("log"), texts.join("\n--- started again\n"))?;
        }
        Ok(())
    }

    /// Fails if a node that should run has exited.
    ///
    /// # Errors
    /// A violation.
    pub fn check_alive(&mut self) -> Result<()> {
        self.running().into_iter().try_for_each(|node| self.server(node)?.check_alive())
    }
}

async fn is_ready(address: SocketAddr) -> bool {
    let request = Request { method: "GET", path: "/readyz", credential: Credential::None, body: None };
    match Connection::open(address).await {
        Ok(mut connection) => connection.send(&request).await.is_ok_and(|response| response.status == 200),
        Err(_) => false,
    }
}

impl Node {
    fn new(common: &Common, brokers: &Brokers, (dir, bucket): (&Path, &Path), number: usize, place: &NodePlace) -> Result<Self> {
        let flags =
            ["--shards=1", "--workers=2", "--min-free-bytes=64MiB", "--checkpoint-interval=5s", "--seal-after=1m", "--log=info"];
        let mut flags: Vec<String> = flags.map(str::to_owned).to_vec();
        flags.extend([format!("--cluster={}", brokers.addresses()), format!("--node-url={}", place.url)]);
        flags.push(format!("--files=file://{}", bucket.display()));
        let launch = Launch {
            binary: common.binary()?,
            data_dir: dir.join(format!("node{number}")),
            runner: place.runner.clone(),
            listen: place.listen,
            flags,
            fault: common.fault.clone(),
            environment: Vec::new(),
        };
        Ok(Self { launch, place: place.clone(), id: String::new(), server: None, logs: Vec::new() })
    }
}

//! Three brokers that form a cluster, each a process with a directory of its own.

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use headcount_histories::Rng;
use headcount_model::Json;
use rustix::process::{Pid, Signal, kill_process};

use super::nats;
use crate::error::{Result, harness, violation};
use crate::server::command_of;

/// Number of brokers, on each of which every message is.
pub const COUNT: usize = 3;
/// How long brokers may take until all of them have everything.
const READY: Duration = Duration::from_secs(120);
/// How long one may stay behind until it is started again.
const BEHIND: Duration = Duration::from_secs(45);
const TICK: Duration = Duration::from_millis(50);

/// The brokers. They end with the value.
#[derive(Debug)]
pub struct Brokers {
    program: PathBuf,
    dir: PathBuf,
    runner: Vec<String>,
    brokers: Vec<Broker>,
}

#[derive(Debug)]
struct Broker {
    client: SocketAddr,
    monitor: SocketAddr,
    process: Option<Child>,
}

/// What a broker says of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamState {
    /// Its name.
    pub name: String,
    /// Which broker leads it.
    pub leader: Option<usize>,
    /// The sequence of its last message.
    pub last: u64,
    /// Its size.
    pub bytes: u64,
}

impl Brokers {
    /// Starts brokers at `host`, with their data in `dir`.
    ///
    /// # Errors
    /// A process can't be started.
    pub fn start(program: &Path, dir: PathBuf, host: IpAddr, runner: &[String], rng: &mut Rng) -> Result<Self> {
        std::fs::create_dir_all(&dir)?;
        let addresses = free_addresses(host, COUNT * 3, rng);
        let (clients, rest) = addresses.split_at(COUNT);
        let (monitors, routes) = rest.split_at(COUNT);
        let others: Vec<String> = routes.iter().map(|route| format!("nats://{route}")).collect();
        let mut brokers = Vec::new();
        for place in 0..COUNT {
            let config = format!(
                "server_name: b{place}\nlisten: \"{}\"\nhttp: \"{}\"\nmax_payload: 8MB\n\
                 jetstream {{ store_dir: \"{}\", max_file_store: 16GB, sync_interval: always }}\n\
                 cluster {{ name: crash, listen: \"{}\", routes: [{}] }}\n",
                clients[place],
                monitors[place],
                dir.join(format!("b{place}")).display(),
                routes[place],
                others.join(", "),
            );
            std::fs::write(dir.join(format!("b{place}.conf")), config)?;
            brokers.push(Broker { client: clients[place], monitor: monitors[place], process: None });
        }
        let mut started = Self { program: program.to_owned(), dir, runner: runner.to_vec(), brokers };
        (0..COUNT).try_for_each(|place| started.start_one(place))?;
        Ok(started)
    }

    /// Returns their addresses, as `headcount --cluster` takes them.
    #[must_use]
    pub fn addresses(&self) -> String {
        let all: Vec<String> = self.brokers.iter().map(|broker| broker.client.to_string()).collect();
        format!("nats://{}", all.join(","))
    }

    /// Starts a broker that does not run.
    ///
    /// # Errors
    /// The process can't be started.
    pub fn start_one(&mut self, place: usize) -> Result<()> {
        let file = |end: &str| self.dir.join(format!("b{place}.{end}"));
        let log = std::fs::File::options().create(true).append(true).open(file("log"))?;
        let mut command = command_of(&self.runner, &self.program);
        command.arg("-c").arg(file("conf")).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let child = command.spawn().map_err(|error| harness(format!("{}: {error}", self.program.display())))?;
        self.brokers[place].process = Some(child);
        Ok(())
    }

    /// Kills a broker.
    ///
    /// # Errors
    /// A system call fails.
    pub fn kill(&mut self, place: usize) -> Result<()> {
        if let Some(mut process) = self.brokers[place].process.take() {
            process.kill()?;
            process.wait()?;
        }
        Ok(())
    }

    /// Starts all brokers again, one after the other, and waits until they are ready.
    ///
    /// # Errors
    /// See [`Self::start_one`] and [`Self::wait_until_ready`].
    pub async fn start_again(&mut self) -> Result<()> {
        for place in 0..COUNT {
            self.kill(place)?;
            self.start_one(place)?;
            self.wait_until_ready().await?;
        }
        Ok(())
    }

    /// Returns the id of a broker's process.
    #[must_use]
    pub fn process_id(&self, place: usize) -> Option<u32> {
        self.brokers[place].process.as_ref().map(Child::id)
    }

    /// Stops the process of a broker (SIGSTOP), or lets it go on.
    ///
    /// # Errors
    /// It does not run, or the signal can't be sent.
    pub fn freeze(&self, place: usize, is_frozen: bool) -> Result<()> {
        let id = self.process_id(place).and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let id = id.ok_or_else(|| harness("a broker does not run"))?;
        let signal = if is_frozen { Signal::STOP } else { Signal::CONT };
        kill_process(id, signal).map_err(|error| harness(format!("can't send {signal:?} to a broker: {error}")))
    }

    /// Waits until every broker has all messages of every stream. Starts one again that stays
    /// behind, as the manual says: brokers sometimes do not catch up by themselves.
    ///
    /// # Errors
    /// A violation if that takes too long.
    pub async fn wait_until_ready(&mut self) -> Result<Duration> {
        let began = Instant::now();
        for place in 0..COUNT {
            let mut is_new = false;
            while nats::monitor(self.brokers[place].monitor, "/healthz").await.is_none() {
                if began.elapsed() > READY {
                    return Err(violation(format!("the brokers are not ready: {}", self.log_ends())));
                }
                if began.elapsed() > BEHIND && !is_new {
                    println!("  broker {place} is not ready after {BEHIND:?}, and is started again");
                    self.kill(place)?;
                    self.start_one(place)?;
                    is_new = true;
                }
                tokio::time::sleep(TICK).await;
            }
        }
        Ok(began.elapsed())
    }

    /// Returns what the brokers say of all streams of partitions. Their leaders know most.
    ///
    /// # Errors
    /// No broker answers.
    pub async fn streams(&self) -> Result<Vec<StreamState>> {
        let mut streams: Vec<StreamState> = Vec::new();
        for broker in &self.brokers {
            let Some(answer) = nats::monitor(broker.monitor, "/jsz?streams=true").await else { continue };
            let details =
                answer.field("account_details").items().iter().flat_map(|account| account.field("stream_detail").items());
            for state in details.filter_map(stream_state) {
                match streams.iter_mut().find(|known| known.name == state.name) {
                    Some(known) if known.last < state.last => *known = state,
                    Some(known) => known.leader = known.leader.or(state.leader),
                    None => streams.push(state),
                }
            }
        }
        if streams.is_empty() { Err(harness("no broker answers")) } else { Ok(streams) }
    }

    /// Returns what the brokers say of one stream.
    ///
    /// # Errors
    /// No broker knows it.
    pub async fn stream(&self, name: &str) -> Result<StreamState> {
        let streams = self.streams().await?;
        streams.into_iter().find(|stream| stream.name == name).ok_or_else(|| harness(format!("there is no stream {name}")))
    }

    /// Returns the broker that leads a stream, once there is one.
    ///
    /// # Errors
    /// There is none for too long.
    pub async fn leader(&self, name: &str) -> Result<usize> {
        let began = Instant::now();
        while began.elapsed() < READY {
            if let Some(leader) = self.stream(name).await?.leader {
                return Ok(leader);
            }
            tokio::time::sleep(TICK).await;
        }
        Err(violation(format!("{name} has no leader: {}", self.log_ends())))
    }

    /// Changes the maximum size of a stream. Returns what it was.
    ///
    /// # Errors
    /// The brokers refuse it.
    pub async fn limit(&self, stream: &str, max_bytes: i64) -> Result<i64> {
        let broker = self.brokers[0].client;
        let info = nats::request(broker, &format!("$JS.API.STREAM.INFO.{stream}"), "").await?;
        let Json::Object(mut config) = info.field("config").clone() else { return Err(harness(format!("{stream}: {info}"))) };
        let before = config.get("max_bytes").and_then(|bytes| bytes.to_string().parse().ok());
        config.insert("max_bytes".to_owned(), Json::parse(&max_bytes.to_string()).map_err(|error| harness(error.to_string()))?);
        nats::request(broker, &format!("$JS.API.STREAM.UPDATE.{stream}"), &Json::Object(config).to_string()).await?;
        before.ok_or_else(|| harness(format!("{stream} has no limit: {info}")))
    }

    fn log_ends(&self) -> String {
        let end = |place: usize| {
            let text = std::fs::read_to_string(self.dir.join(format!("b{place}.log"))).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            lines[lines.len().saturating_sub(6)..].join("\n    ")
        };
        (0..COUNT).map(end).collect::<Vec<_>>().join("\n    ")
    }
}

impl Drop for Brokers {
    fn drop(&mut self) {
        (0..COUNT).for_each(|place| drop(self.kill(place)));
    }
}

fn stream_state(detail: &Json) -> Option<StreamState> {
    let name = detail.field("name").text().filter(|name| name.starts_with("EV_"))?.to_owned();
    let number = |field: &str| detail.field("state").field(field).to_string().parse().unwrap_or(0);
    let leader = detail.field("cluster").field("leader").text().and_then(|leader| leader.strip_prefix('b')?.parse().ok());
    Some(StreamState { name, leader, last: number("last_seq"), bytes: number("bytes") })
}

/// Returns addresses whose ports are free now, below those that the kernel gives to connections.
pub fn free_addresses(host: IpAddr, count: usize, rng: &mut Rng) -> Vec<SocketAddr> {
    let mut listeners: Vec<TcpListener> = Vec::new();
    while listeners.len() < count {
        let port = u16::try_from(10_000 + rng.below(22_000)).unwrap_or(10_000);
        listeners.extend(TcpListener::bind((host, port)));
    }
    listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect()
}

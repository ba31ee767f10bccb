//! Three NATS brokers on this machine, for the demo of a cluster.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use headcount_api::command::{Failure, runtime};
use headcount_cluster::Credentials;
use headcount_cluster::check::{CheckOptions, check};

use super::child::{DemoChild, Launch};

/// How many brokers there are.
pub(super) const BROKERS: usize = 3;
/// How long brokers may take to find each other, and how often to try again with new ones:
/// sometimes they never do.
const READY_TIMEOUT: Duration = Duration::from_secs(40);
const ATTEMPTS: usize = 3;
const PAUSE: Duration = Duration::from_millis(500);

/// The brokers. Dropping the value ends them.
pub(super) struct DemoBrokers {
    children: Vec<DemoChild>,
    /// Their addresses.
    pub(super) addresses: Vec<String>,
    /// The addresses of their monitoring.
    pub(super) monitors: Vec<String>,
}

/// Finds `nats-server`.
pub(super) fn program(named: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(named) = named {
        let found = named.canonicalize().map_err(|error| Failure::new(format!("--nats-server {}", named.display()), error))?;
        return Ok(found);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join("nats-server")).find(|program| program.is_file());
    found.ok_or_else(|| {
        Failure(
            "no nats-server on the PATH: install it (Debian 13: `apt-get install nats-server`; others: \
             https://github.com/nats-io/nats-server/releases), or pass --nats-server PATH"
                .into(),
        )
    })
}

impl DemoBrokers {
    /// Starts brokers with their files in `dir`, and waits until they can carry a cluster.
    pub(super) fn start(program: &Path, dir: &Path) -> Result<Self, Failure> {
        let mut reasons = String::new();
        for attempt in 0..ATTEMPTS {
            let dir = dir.join(format!("brokers-{attempt}"));
            std::fs::create_dir(&dir)?;
            let mut started = Self::attempt(program, &dir)?;
            match started.ready() {
                Ok(()) => return Ok(started),
                Err(failure) => reasons = failure.0,
            }
            started.end();
            std::fs::remove_dir_all(&dir)?;
        }
        Err(Failure(format!("the brokers did not become ready: {reasons}")))
    }

    fn attempt(program: &Path, dir: &Path) -> Result<Self, Failure> {
        let ports = free_ports(BROKERS * 3)?;
        let routes: Vec<String> = ports[2 * BROKERS..].iter().map(|port| format!("\"nats://127.0.0.1:{port}\"")).collect();
        let (mut children, mut addresses, mut monitors) = (Vec::new(), Vec::new(), Vec::new());
        for place in 0..BROKERS {
            let (port, monitor, route) = (ports[place], ports[BROKERS + place], ports[2 * BROKERS + place]);
            let name = name(place);
            let config = format!(
                "server_name: {name}\nlisten: \"127.0.0.1:{port}\"\nhttp: \"127.0.0.1:{monitor}\"\nmax_payload: 8MB\n\
                 jetstream {{ store_dir: \"{}\", max_file_store: 4GB, sync_interval: always }}\n\
                 cluster {{ name: headcount, listen: \"127.0.0.1:{route}\", routes: [{}] }}\n",
                dir.join(&name).display(),
                routes.join(", "),
            );
            let file = dir.join(format!("{name}.conf"));
            std::fs::write(&file, config)?;
            let arguments = vec!["-c".into(), file.into_os_string()];
            let log = dir.join(format!("{name}.log"));
            children.push(DemoChild::start(Launch { program: program.to_owned(), arguments, log })?);
            addresses.push(format!("nats://127.0.0.1:{port}"));
            monitors.push(format!("http://127.0.0.1:{monitor}"));
        }
        Ok(Self { children, addresses, monitors })
    }

    /// Waits until the brokers have found each other.
    fn ready(&mut self) -> Result<(), Failure> {
        let (runtime, began) = (runtime()?, Instant::now());
        loop {
            let (brokers, monitors) = (self.addresses.clone(), self.monitors.clone());
            let (credentials, replicas, messages, files) = (Credentials::None, BROKERS, 5, None);
            let options = CheckOptions { brokers, monitors, credentials, replicas, messages, files };
            let problems = runtime.block_on(check(&options)).problems;
            if problems.is_empty() {
                return Ok(());
            }
            let has_ended = self.children.iter_mut().any(DemoChild::has_ended);
            if has_ended || began.elapsed() > READY_TIMEOUT {
                return Err(Failure(problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// The ids of their processes.
    pub(super) fn ids(&self) -> Vec<u32> {
        self.children.iter().map(DemoChild::id).collect()
    }

    /// The brokers with their names.
    pub(super) fn named(&mut self) -> impl Iterator<Item = (String, &mut DemoChild)> {
        self.children.iter_mut().enumerate().map(|(place, child)| (name(place), child))
    }

    /// Ends them.
    pub(super) fn end(mut self) {
        self.children.iter_mut().for_each(DemoChild::ask_to_end);
        self.children.into_iter().for_each(DemoChild::end);
    }
}

fn name(place: usize) -> String {
    format!("broker-{}", place + 1)
}

/// Free ports.
fn free_ports(count: usize) -> Result<Vec<u16>, Failure> {
    // The listeners stay open until all ports are known, so that no port comes twice.
    let held = (0..count).map(|_| TcpListener::bind("127.0.0.1:0")).collect::<Result<Vec<_>, _>>()?;
    Ok(held.iter().map(|socket| socket.local_addr().map(|address| address.port())).collect::<Result<_, _>>()?)
}

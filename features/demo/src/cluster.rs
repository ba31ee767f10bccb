//! `headcount demo --cluster`: three nodes over three brokers, all on this machine, with the sample
//! events.

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use headcount_actors::MovingSource;
use headcount_api::command::{CommandSettings, Failure, InitialCredentials, print_line, runtime, stop_signal, threaded_runtime};
use headcount_cluster::Credentials;
use headcount_cluster::init::{InitOptions, init_from};
use headcount_cluster::moving::MoveError;
use headcount_cluster::status::{Status, status};

use super::args::DemoArgs;
use super::brokers::{BROKERS, DemoBrokers, program};
use super::child::{DemoChild, Launch};
use super::filling::Sample;

/// The nodes, by the names of their directories.
const NODES: [&str; 3] = ["node-1", "node-2", "node-3"];
/// The size of a partition's stream: brokers reserve it 64 times, but take no space for it.
const MAX_BYTES: i64 = 32 << 20;
/// How long the nodes may take to divide the partitions among themselves.
const SERVED_TIMEOUT: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(500);

/// A node. Dropping the value ends it.
struct DemoNode {
    name: &'static str,
    child: DemoChild,
    url: String,
}

/// Runs the command.
pub(super) fn run(settings: &dyn CommandSettings, args: &DemoArgs) -> Result<ExitCode, Failure> {
    let program = program(args.nats_server.as_deref())?;
    let directory = tempfile::Builder::new().prefix("headcount-demo-").tempdir()?;
    let runtime = runtime()?;
    // Catch signals before anything starts, so that a signal during the start leaves nothing
    // behind.
    let stop = runtime.block_on(async { stop_signal() })?;
    let mut stop = std::pin::pin!(stop);
    print_line("starting three brokers")?;
    let mut brokers = DemoBrokers::start(&program, directory.path())?;
    let shown = show(settings, args, directory.path(), &mut brokers, &mut |pause| {
        runtime.block_on(async { tokio::time::timeout(pause, &mut stop).await.is_err() })
    });
    brokers.end();
    directory.close()?;
    shown.map(|()| ExitCode::SUCCESS)
}

/// Creates the cluster, runs its nodes, and ends them. `wait` waits, and returns `false` when the
/// demo should stop.
fn show(
    settings: &dyn CommandSettings,
    args: &DemoArgs,
    dir: &Path,
    brokers: &mut DemoBrokers,
    wait: &mut dyn FnMut(Duration) -> bool,
) -> Result<(), Failure> {
    print_line("recording the sample events, and moving them into a cluster")?;
    let (made, events) = make(settings, dir, brokers)?;
    print_line("starting three nodes")?;
    let mut nodes = NODES.iter().map(|name| DemoNode::start(dir, name, brokers)).collect::<Result<Vec<_>, _>>()?;
    for node in &mut nodes {
        node.wait_for_url(dir, brokers)?;
    }
    served(brokers)?;
    print_line(welcome(&nodes, brokers, &made, events, dir, args.restart_after))?;
    let began = Instant::now();
    loop {
        let left = args.lasting.map_or(POLL, |lasting| lasting.saturating_sub(began.elapsed()));
        if left.is_zero() || !wait(left.min(POLL)) {
            break;
        }
        restart(&mut nodes, brokers, args.restart_after)?;
    }
    nodes.iter_mut().for_each(|node| node.child.ask_to_end());
    nodes.into_iter().for_each(|node| node.child.end());
    Ok(())
}

/// Restarts each node and broker that ended long enough ago.
fn restart(nodes: &mut [DemoNode], brokers: &mut DemoBrokers, pause: Duration) -> Result<(), Failure> {
    let of_nodes = nodes.iter_mut().map(|node| (node.name.to_owned(), &mut node.child));
    for (name, child) in of_nodes.chain(brokers.named()) {
        match child.restart_after(pause) {
            Ok(false) => {}
            Ok(true) => print_line(format!("restarted {name}: process {}", child.id()))?,
            Err(failure) => print_line(format!("{name} could not be restarted: {failure}"))?,
        }
    }
    Ok(())
}

/// Records the sample events in a data directory, and creates a cluster from it and a directory for
/// each node.
fn make(settings: &dyn CommandSettings, dir: &Path, brokers: &DemoBrokers) -> Result<(InitialCredentials, usize), Failure> {
    let (origin, scratch) = (dir.join("origin"), dir.join("scratch"));
    let (made, events) = runtime()?.block_on(async {
        let Sample { engine, made, events, .. } = Sample::open(settings, &origin).await?;
        engine.close().await;
        Ok::<_, Failure>((made, events))
    })?;
    std::fs::create_dir(&scratch)?;
    std::fs::create_dir(files_of(dir))?;
    let source = MovingSource::open(&origin, &scratch, &[]).map_err(MoveError::from)?;
    let first = dir.join(NODES[0]);
    let options = InitOptions {
        brokers: brokers.addresses.clone(),
        credentials: Credentials::None,
        replicas: BROKERS,
        max_bytes: MAX_BYTES,
        data_dir: first.clone(),
        files: None,
    };
    let runtime = threaded_runtime()?;
    init_from(runtime.handle(), &options, &source, &mut |_, _| ControlFlow::Continue(()))?;
    drop(source);
    std::fs::remove_dir_all(&origin)?;
    std::fs::remove_dir_all(&scratch)?;
    for name in &NODES[1..] {
        let keys = dir.join(name).join("keys");
        std::fs::create_dir_all(&keys)?;
        std::fs::copy(first.join("keys/hash.key"), keys.join("hash.key"))?;
    }
    Ok((made, events))
}

impl DemoNode {
    fn start(dir: &Path, name: &'static str, brokers: &DemoBrokers) -> Result<Self, Failure> {
        let arguments = arguments(dir, name, brokers, "127.0.0.1:0");
        let child = DemoChild::start(Launch { program: std::env::current_exe()?, arguments, log: log_of(dir, name) })?;
        Ok(Self { name, child, url: String::new() })
    }

    /// Waits until the node listens. After a restart it listens at the same address.
    fn wait_for_url(&mut self, dir: &Path, brokers: &DemoBrokers) -> Result<(), Failure> {
        let began = Instant::now();
        loop {
            let log = std::fs::read_to_string(log_of(dir, self.name))?;
            if let Some(url) = log.lines().find_map(|line| line.strip_prefix("listening on ")) {
                let listen = url.strip_prefix("http://").unwrap_or(url);
                self.child.set_arguments(arguments(dir, self.name, brokers, listen));
                url.clone_into(&mut self.url);
                return Ok(());
            }
            if self.child.has_ended() || began.elapsed() > SERVED_TIMEOUT {
                return Err(Failure(format!(
                    "{} did not start: {}",
                    self.name,
                    log.lines().last().unwrap_or("it printed nothing")
                )));
            }
            std::thread::sleep(POLL);
        }
    }
}

/// The arguments of a node.
fn arguments(dir: &Path, name: &str, brokers: &DemoBrokers, listen: &str) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec!["serve".into(), "--data-dir".into(), dir.join(name).into_os_string()];
    let settings = [
        ["--listen", listen],
        ["--cluster", &brokers.addresses.join(",")],
        ["--files", &format!("file://{}", files_of(dir).display())],
        ["--shards", "1"],
        ["--workers", "1"],
        ["--log", "warn"],
    ];
    arguments.extend(settings.as_flattened().iter().map(OsString::from));
    arguments
}

/// The directory where the nodes keep sealed events.
fn files_of(dir: &Path) -> PathBuf {
    dir.join("files")
}

fn log_of(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!("{name}.log"))
}

/// Waits until every partition has a node.
fn served(brokers: &DemoBrokers) -> Result<(), Failure> {
    let (runtime, began) = (threaded_runtime()?, Instant::now());
    loop {
        let found = runtime.block_on(status(&brokers.addresses, &Credentials::None));
        let is_served = |found: &Status| found.partitions.iter().all(|one| one.node.is_some());
        if found.as_ref().is_ok_and(is_served) {
            return Ok(());
        }
        if began.elapsed() > SERVED_TIMEOUT {
            return Err(Failure(match found {
                Ok(_) => "some partitions still have no node".into(),
                Err(error) => error.to_string(),
            }));
        }
        std::thread::sleep(POLL);
    }
}

fn welcome(
    nodes: &[DemoNode],
    brokers: &DemoBrokers,
    made: &InitialCredentials,
    events: usize,
    dir: &Path,
    restart_after: Duration,
) -> String {
    let InitialCredentials { project_id, public_key, api_token, .. } = made;
    let token = format!("-H 'authorization: Bearer {api_token}'");
    let json = "-H 'content-type: application/json'";
    let question = format!("projects/{project_id}/analytics/count-unique-users-per-day {token} {json} -d '{{}}'");
    let mut lines: Vec<String> =
        nodes.iter().map(|node| format!("{}  {}  process {}", node.name, node.url, node.child.id())).collect();
    let of_brokers = brokers.addresses.iter().zip(brokers.ids()).enumerate();
    lines.extend(of_brokers.map(|(place, (address, id))| format!("broker-{}  {address}  process {id}", place + 1)));
    let (first, last) = (&nodes[0], &nodes[nodes.len() - 1]);
    let addresses = brokers.addresses.join(",");
    format!(
        "\n{processes}\n\
         \n\
         {events} sample events. Everything is in {dir}, and is deleted when the demo ends (control-C).\n\
         project       {project_id}\n\
         public key    {public_key}\n\
         API token     {api_token}\n\
         \n\
         # unique users, day by day, through any node\n\
         curl -X POST {first}/{question}\n\
         curl -X POST {last}/{question}\n\
         # record an event through one node; the next answer of any other one counts it\n\
         curl -X POST {last}/track -H 'x-service-pk: {public_key}' {json} -d '{{\"name\":\"signup\",\"user_id\":\"you\"}}'\n\
         # which node holds how many partitions\n\
         headcount cluster status {addresses}\n\
         # kill a node; after some 15 seconds the others serve its projects, and after {away} seconds it is restarted\n\
         kill -9 {killed}\n\
         # kill a broker; two of three are enough, and it is restarted, too\n\
         kill -9 {broker}\n\
         # an address that signs a browser in\n\
         headcount login --url {last} --token {api_token}\n",
        processes = lines.join("\n"),
        dir = dir.display(),
        away = restart_after.as_secs(),
        first = first.url,
        last = last.url,
        killed = first.child.id(),
        broker = brokers.ids().first().copied().unwrap_or_default(),
    )
}

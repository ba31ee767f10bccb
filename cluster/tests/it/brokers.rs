//! Brokers on loopback.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use headcount_cluster::{Connection, Credentials, StreamName};
use tempfile::TempDir;
use tokio::sync::{Semaphore, SemaphorePermit};

/// How long brokers may take to be ready, and how often new ones are started.
const READY: Duration = Duration::from_secs(30);
const ATTEMPTS: usize = 3;

/// The number of brokers that run at once: of one test with three, or of three tests with one each.
/// They wait for the disk, and elections take longer on a busy machine.
static TURNS: Semaphore = Semaphore::const_new(3);

/// Brokers that form a cluster, with their own directory. Dropping the value ends them.
pub(crate) struct Brokers {
    program: PathBuf,
    directory: TempDir,
    brokers: Vec<Broker>,
    _turns: SemaphorePermit<'static>,
}

struct Broker {
    port: u16,
    monitor: u16,
    process: Option<Child>,
}

/// Returns the broker's program. `None` skips the test.
pub(crate) fn program() -> Option<PathBuf> {
    let named = std::env::var_os("HEADCOUNT_NATS_SERVER").map(PathBuf::from);
    let found = named.or_else(|| {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).map(|folder| folder.join("nats-server")).find(|program| program.exists())
    });
    if found.is_none() {
        assert!(std::env::var_os("HEADCOUNT_REQUIRE_CLUSTER").is_none(), "no nats-server: set HEADCOUNT_NATS_SERVER");
        eprintln!("SKIPPED cluster: no nats-server");
    }
    found
}

impl Brokers {
    /// Starts `count` brokers, and waits until they have elected a leader. `None` skips the test.
    pub(crate) async fn start(count: usize) -> Option<Self> {
        Self::start_with(count, "max_payload: 8MB", "sync_interval: always").await
    }

    /// The same, with these lines in the configuration of each, and of its JetStream.
    pub(crate) async fn start_with(count: usize, settings: &str, jetstream: &str) -> Option<Self> {
        let program = program()?;
        let mut failures = Vec::new();
        while failures.len() < ATTEMPTS {
            let turns = TURNS.acquire_many(u32::try_from(count).unwrap()).await.unwrap();
            let started = Self::attempt(program.clone(), turns, (count, settings, jetstream));
            // Sometimes, brokers that start together do not find each other.
            match started.ready().await {
                Ok(()) => return Some(started),
                Err(failure) => failures.push(failure),
            }
        }
        panic!("the brokers are not ready: {failures:?}");
    }

    fn attempt(program: PathBuf, turns: SemaphorePermit<'static>, (count, settings, jetstream): (usize, &str, &str)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let ports = free_ports(count * 3);
        let routes: Vec<String> = ports[2 * count..].iter().map(|port| format!("nats://127.0.0.1:{port}")).collect();
        let mut brokers = Vec::new();
        for place in 0..count {
            let (port, monitor, route) = (ports[place], ports[count + place], ports[2 * count + place]);
            let folder = directory.path().join(format!("b{place}"));
            let cluster = format!("cluster {{ name: test, listen: \"127.0.0.1:{route}\", routes: [{}] }}", routes.join(", "));
            let config = format!(
                "server_name: b{place}\nlisten: \"127.0.0.1:{port}\"\nhttp: \"127.0.0.1:{monitor}\"\n{settings}\n\
                 jetstream {{ store_dir: \"{}\", max_file_store: 1GB, {jetstream} }}\n{}\n",
                folder.display(),
                if count > 1 { &cluster } else { "" },
            );
            std::fs::write(directory.path().join(format!("b{place}.conf")), config).unwrap();
            brokers.push(Broker { port, monitor, process: None });
        }
        let mut started = Self { program, directory, brokers, _turns: turns };
        (0..count).for_each(|place| started.restart(place));
        started
    }

    pub(crate) fn addresses(&self) -> Vec<String> {
        self.brokers.iter().map(|broker| format!("nats://127.0.0.1:{}", broker.port)).collect()
    }

    /// Whether the files of a broker contain this text.
    pub(crate) fn have_on_disk(&self, text: &str) -> bool {
        let mut folders = vec![self.directory.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
                if entry.file_type().unwrap().is_dir() {
                    folders.push(entry.path());
                } else if std::fs::read(entry.path())
                    .unwrap_or_default()
                    .windows(text.len())
                    .any(|bytes| bytes == text.as_bytes())
                {
                    return true;
                }
            }
        }
        false
    }

    pub(crate) fn monitors(&self) -> Vec<String> {
        self.brokers.iter().map(|broker| format!("http://127.0.0.1:{}", broker.monitor)).collect()
    }

    pub(crate) async fn connect(&self) -> Connection {
        Connection::open(&self.addresses(), &Credentials::None).await.unwrap()
    }

    /// Their version.
    pub(crate) async fn version(&self) -> String {
        async_nats::connect(self.addresses()).await.unwrap().server_info().version
    }

    /// Waits until one of them accepts connections.
    pub(crate) async fn wait_for_connection(&self) {
        let began = Instant::now();
        while Connection::open(&self.addresses(), &Credentials::None).await.is_err() {
            assert!(began.elapsed() < READY, "{}", self.logs());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// The directory of their data.
    pub(crate) fn dir(&self) -> &Path {
        self.directory.path()
    }

    /// Creates the stream of a log on all brokers.
    pub(crate) async fn create(&self, name: &str, max_bytes: i64) -> StreamName {
        let name = StreamName { stream: name.to_owned(), subject: name.to_lowercase() };
        name.create(&self.connect().await, self.brokers.len(), max_bytes).await.unwrap();
        name
    }

    /// Kills a broker.
    pub(crate) fn kill(&mut self, place: usize) {
        if let Some(mut process) = self.brokers[place].process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// Stops a broker, which informs the others.
    pub(crate) fn stop(&mut self, place: usize) {
        if let Some(mut process) = self.brokers[place].process.take() {
            assert!(Command::new("kill").arg(process.id().to_string()).status().unwrap().success());
            process.wait().unwrap();
        }
    }

    /// Starts a broker again.
    pub(crate) fn restart(&mut self, place: usize) {
        let file = |end: &str| self.directory.path().join(format!("b{place}.{end}"));
        let log = std::fs::File::options().create(true).append(true).open(file("log")).unwrap();
        let mut command = Command::new(&self.program);
        command.arg("-c").arg(file("conf")).stdout(Stdio::null()).stderr(log);
        self.brokers[place].process = Some(command.spawn().unwrap());
    }

    /// Copies the data of a stopped broker.
    pub(crate) fn copy(&self, place: usize) -> TempDir {
        let copy = tempfile::tempdir().unwrap();
        copy_dir(&self.streams_of(place), copy.path());
        copy
    }

    /// Restores the streams of a copy whose names begin with `prefix`. The broker must be stopped.
    pub(crate) fn put_back(&self, place: usize, copy: &TempDir, prefix: &str) {
        for entry in std::fs::read_dir(copy.path()).unwrap().map(Result::unwrap) {
            let name = entry.file_name();
            if name.to_string_lossy().starts_with(prefix) {
                let stream = self.streams_of(place).join(name);
                std::fs::remove_dir_all(&stream).unwrap();
                copy_dir(&entry.path(), &stream);
            }
        }
    }

    fn streams_of(&self, place: usize) -> PathBuf {
        self.directory.path().join(format!("b{place}/jetstream/$G/streams"))
    }

    /// Returns the broker that leads a stream.
    pub(crate) async fn leader_of(&self, stream: &str) -> usize {
        let context = async_nats::jetstream::new(async_nats::connect(self.addresses()).await.unwrap());
        let began = Instant::now();
        while began.elapsed() < READY {
            let leader = match context.get_stream(stream).await {
                Ok(stream) => stream.cached_info().cluster.as_ref().and_then(|cluster| cluster.leader.clone()),
                Err(_) => None,
            };
            if let Some(leader) = leader {
                return leader.trim_start_matches('b').parse().unwrap();
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("{stream} has no leader: {}", self.logs());
    }

    /// Waits until streams can be created. Otherwise returns the error, and the brokers' output.
    async fn ready(&self) -> Result<(), String> {
        let began = Instant::now();
        let name = StreamName { stream: "READY".to_owned(), subject: "ready".to_owned() };
        let mut last = None;
        while began.elapsed() < READY {
            if let Ok(connection) = Connection::open(&self.addresses(), &Credentials::None).await {
                match name.create(&connection, self.brokers.len(), -1).await {
                    Ok(()) => return name.delete(&connection).await.map_err(|error| error.to_string()),
                    Err(error) => last = Some(error),
                }
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Err(format!("{last:?}: {}", self.logs()))
    }

    fn logs(&self) -> String {
        let log = |place| std::fs::read_to_string(self.directory.path().join(format!("b{place}.log"))).unwrap_or_default();
        (0..self.brokers.len()).map(log).collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Brokers {
    fn drop(&mut self) {
        (0..self.brokers.len()).for_each(|place| self.kill(place));
    }
}

/// Returns ports that are free now, below those that the kernel gives to connections.
pub(crate) fn free_ports(count: usize) -> Vec<u16> {
    let mut listeners: Vec<TcpListener> = Vec::new();
    while listeners.len() < count {
        listeners.extend(TcpListener::bind(("127.0.0.1", fastrand::u16(10_000..32_000))));
    }
    listeners.iter().map(|listener| listener.local_addr().unwrap().port()).collect()
}

/// Returns a path that belongs to no broker.
pub(crate) fn no_file() -> &'static Path {
    Path::new("/nonexistent/credentials")
}

fn copy_dir(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        match entry.file_type().unwrap().is_dir() {
            true => copy_dir(&from, &to),
            false => assert!(std::fs::copy(from, to).is_ok()),
        }
    }
}

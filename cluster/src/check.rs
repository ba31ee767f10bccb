//! Whether brokers can carry a cluster.

use serde::{Serialize, Serializer};

pub use crate::broker::Broker;
use crate::broker::{LEAST_MAX_PAYLOAD, Storage, VersionError, without_credentials};
use crate::connection::{ConnectError, Connection, Credentials};
use crate::files::{Bucket, BucketError};
use crate::trial;
pub use crate::trial::{Trial, TrialError};

/// What to check.
#[derive(Debug, Clone)]
pub struct CheckOptions {
    /// The addresses of all brokers, such as `nats://10.0.0.1:4222`.
    pub brokers: Vec<String>,
    /// Their monitoring addresses, such as `http://10.0.0.1:8222`, in any order.
    pub monitors: Vec<String>,
    /// What they are shown.
    pub credentials: Credentials,
    /// On how many brokers a message has to be kept.
    pub replicas: usize,
    /// The number of messages to record in a trial.
    pub messages: u64,
    /// Where nodes are to keep files.
    pub files: Option<Bucket>,
}

/// What was found.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The brokers that answered.
    pub brokers: Vec<Broker>,
    /// What has to be changed.
    #[serde(serialize_with = "as_text")]
    pub problems: Vec<Problem>,
    /// What the trial measured; `None` if there are problems.
    pub trial: Option<Trial>,
    /// Where files can be kept; `None`: nothing was asked for, or there are problems.
    pub files: Option<String>,
}

/// Why brokers can't carry a cluster.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// A broker does not answer.
    #[error("{address} does not answer: {error}")]
    Unreachable {
        /// The address.
        address: String,
        /// Why.
        error: ConnectError,
    },
    /// A broker has a version that is not accepted.
    #[error("{broker}: {error}")]
    Version {
        /// The name of the broker.
        broker: String,
        /// Why not.
        error: VersionError,
    },
    /// A broker has no JetStream.
    #[error("{0} has no JetStream: set `jetstream {{ store_dir: …, sync_interval: always }}` in its configuration")]
    NoJetStream(String),
    /// A broker does not accept messages of the largest size.
    #[error("{broker} accepts messages of {bytes} bytes: set `max_payload: 8MB` in its configuration")]
    MaxPayload {
        /// The name of the broker.
        broker: String,
        /// What it accepts.
        bytes: usize,
    },
    /// A broker confirms messages that are not on its disk.
    #[error("{0} confirms messages before they are on its disk: set `sync_interval: always` in `jetstream` of its configuration")]
    NotSynced(String),
    /// It is not known whether a broker syncs.
    #[error("whether {0} syncs each message is not known: give its monitoring address (`http: …` in its configuration)")]
    SyncUnknown(String),
    /// A monitoring address does not answer.
    #[error("{address} does not answer: {error}")]
    Monitor {
        /// The address.
        address: String,
        /// Why.
        error: String,
    },
    /// Two addresses are of one broker.
    #[error("{first} and {second} are one broker")]
    Twice {
        /// An address.
        first: String,
        /// The other one.
        second: String,
    },
    /// There are too few brokers.
    #[error("{wanted} copies of a message need as many brokers, of which {found} answered")]
    TooFew {
        /// The number of brokers that answered.
        found: usize,
        /// The number of copies.
        wanted: usize,
    },
    /// The brokers are not one cluster.
    #[error("the brokers are not one cluster: {}", .0.join(", "))]
    Strangers(Vec<String>),
    /// Files can't be kept where they are to be.
    #[error("files can't be written to {place}, or read: {error}")]
    Files {
        /// The address of the place.
        place: String,
        /// Why.
        error: BucketError,
    },
    /// The trial failed.
    #[error("the trial failed: {0}")]
    Trial(#[from] TrialError),
}

/// Asks all brokers who they are and how they are configured, lets them record some messages, and writes, reads and deletes a file.
pub async fn check(options: &CheckOptions) -> Report {
    let (mut brokers, mut problems) = ask(&options.brokers, &options.credentials, options.replicas).await;
    ask_monitors(&options.monitors, &mut brokers, &mut problems).await;
    brokers.iter().for_each(|broker| check_storage(broker, &mut problems));
    let mut trial = None;
    if problems.is_empty() {
        match try_out(options).await {
            Ok(measured) => trial = Some(measured),
            Err(problem) => problems.push(problem),
        }
    }
    let files = match &options.files {
        Some(bucket) => match bucket.try_out().await {
            Ok(()) => Some(bucket.address().to_owned()),
            Err(error) => {
                problems.push(Problem::Files { place: bucket.address().to_owned(), error });
                None
            }
        },
        None => None,
    };
    Report { brokers, problems, trial, files }
}

/// Asks all brokers who they are. Returns those that answered, and what can be said against them without their monitoring addresses.
pub(crate) async fn ask(addresses: &[String], credentials: &Credentials, replicas: usize) -> (Vec<Broker>, Vec<Problem>) {
    let (mut brokers, mut problems) = (Vec::new(), Vec::new());
    for address in addresses {
        match Broker::ask(address, credentials).await {
            Ok(broker) => brokers.push(broker),
            Err(error) => problems.push(Problem::Unreachable { address: without_credentials(address), error }),
        }
    }
    brokers.iter().for_each(|broker| check_broker(broker, &mut problems));
    check_together(&brokers, replicas, &mut problems);
    (brokers, problems)
}

/// Asks all monitoring addresses, and notes what each broker says of its storage.
async fn ask_monitors(monitors: &[String], brokers: &mut [Broker], problems: &mut Vec<Problem>) {
    for address in monitors {
        let base = address.clone();
        let asked = tokio::task::spawn_blocking(move || Storage::ask(&base)).await;
        match asked.map_err(|error| error.to_string()).and_then(|asked| asked) {
            Ok(storage) => {
                let of = brokers.iter_mut().filter(|broker| broker.id == storage.server_id);
                of.for_each(|broker| broker.syncs_always = Some(storage.syncs_always()));
            }
            Err(error) => problems.push(Problem::Monitor { address: without_credentials(address), error }),
        }
    }
}

fn check_broker(broker: &Broker, problems: &mut Vec<Problem>) {
    let name = || broker.name.clone();
    if let Err(error) = broker.check_version() {
        problems.push(Problem::Version { broker: name(), error });
    }
    if broker.max_payload < LEAST_MAX_PAYLOAD {
        problems.push(Problem::MaxPayload { broker: name(), bytes: broker.max_payload });
    }
    if !broker.has_jetstream {
        problems.push(Problem::NoJetStream(name()));
    }
}

fn check_storage(broker: &Broker, problems: &mut Vec<Problem>) {
    let name = || broker.name.clone();
    match broker.syncs_always {
        _ if !broker.has_jetstream => {}
        Some(true) => {}
        Some(false) => problems.push(Problem::NotSynced(name())),
        None => problems.push(Problem::SyncUnknown(name())),
    }
}

/// Checks what only shows of all brokers together.
fn check_together(brokers: &[Broker], replicas: usize, problems: &mut Vec<Problem>) {
    let mut different = 0;
    for (place, broker) in brokers.iter().enumerate() {
        match brokers[..place].iter().find(|other| other.id == broker.id) {
            Some(first) => problems.push(Problem::Twice { first: first.address.clone(), second: broker.address.clone() }),
            None => different += 1,
        }
    }
    if different < replicas {
        problems.push(Problem::TooFew { found: different, wanted: replicas });
    }
    let mut clusters: Vec<String> =
        brokers.iter().map(|broker| broker.cluster.clone().unwrap_or_else(|| "none".to_owned())).collect();
    clusters.sort_unstable();
    clusters.dedup();
    let is_alone = brokers.iter().any(|broker| broker.cluster.is_none());
    if clusters.len() > 1 || (different > 1 && is_alone) {
        problems.push(Problem::Strangers(clusters));
    }
}

async fn try_out(options: &CheckOptions) -> Result<Trial, Problem> {
    let addresses = || options.brokers.iter().map(|address| without_credentials(address)).collect::<Vec<_>>().join(",");
    let unreachable = |error| Problem::Unreachable { address: addresses(), error };
    let connection = Connection::open(&options.brokers, &options.credentials).await.map_err(unreachable)?;
    Ok(trial::run(&connection, options.replicas, options.messages).await?)
}

fn as_text<S: Serializer>(problems: &[Problem], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(problems.iter().map(ToString::to_string))
}

//! Checks whether brokers can carry a cluster.

use serde::{Serialize, Serializer};

pub use crate::broker::Broker;
use crate::broker::{LEAST_MAX_PAYLOAD, Storage, VersionError, without_credentials};
use crate::connection::{ConnectError, Connection, Credentials};
use crate::files::{Bucket, BucketError};
use crate::trial;
pub use crate::trial::{Trial, TrialError};

/// The brokers and files to check.
#[derive(Debug, Clone)]
pub struct CheckOptions {
    /// The addresses of all brokers, such as `nats://10.0.0.1:4222`.
    pub brokers: Vec<String>,
    /// Their monitoring addresses, such as `http://10.0.0.1:8222`, in any order.
    pub monitors: Vec<String>,
    /// The credentials for the brokers.
    pub credentials: Credentials,
    /// The number of brokers that must keep each message.
    pub replicas: usize,
    /// The number of messages to record in a trial.
    pub messages: u64,
    /// The place where nodes are to keep files.
    pub files: Option<Bucket>,
}

/// The result of a check.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The brokers that answered.
    pub brokers: Vec<Broker>,
    /// The problems to solve.
    #[serde(serialize_with = "as_text")]
    pub problems: Vec<Problem>,
    /// The measurements of the trial; `None` if there are problems.
    pub trial: Option<Trial>,
    /// The place where files can be kept; `None` if none was given, or there are problems.
    pub files: Option<String>,
}

/// A reason why brokers can't carry a cluster.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// A broker does not answer.
    #[error("{address} does not answer: {error}")]
    Unreachable {
        /// The address.
        address: String,
        /// The error.
        error: ConnectError,
    },
    /// A broker has an unsupported version.
    #[error("{broker}: {error}")]
    Version {
        /// The name of the broker.
        broker: String,
        /// The error.
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
        /// The size of the largest message that it accepts.
        bytes: usize,
    },
    /// A broker confirms messages before they are on its disk.
    #[error("{0} confirms messages before they are on its disk: set `sync_interval: always` in `jetstream` of its configuration")]
    NotSynced(String),
    /// Whether a broker syncs its messages is unknown.
    #[error("whether {0} syncs each message is not known: give its monitoring address (`http: …` in its configuration)")]
    SyncUnknown(String),
    /// A monitoring address does not answer.
    #[error("{address} does not answer: {error}")]
    Monitor {
        /// The address.
        address: String,
        /// The error.
        error: String,
    },
    /// Two addresses belong to the same broker.
    #[error("{first} and {second} are one broker")]
    Twice {
        /// One address.
        first: String,
        /// The other address.
        second: String,
    },
    /// There are too few brokers.
    #[error("{wanted} copies of a message need as many brokers, of which {found} answered")]
    TooFew {
        /// The number of brokers that answered.
        found: usize,
        /// The number of copies of each message.
        wanted: usize,
    },
    /// The brokers belong to different clusters.
    #[error("the brokers are not one cluster: {}", .0.join(", "))]
    Strangers(Vec<String>),
    /// Files can't be kept at the given place.
    #[error("files can't be written to {place}, or read: {error}")]
    Files {
        /// The address of the place.
        place: String,
        /// The error.
        error: BucketError,
    },
    /// The trial failed.
    #[error("the trial failed: {0}")]
    Trial(#[from] TrialError),
}

/// Asks every broker for its description and configuration. If these are fine, records some
/// messages, and writes, reads and deletes a file.
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

/// Asks every broker for its description. Returns the brokers that answered, and the problems that
/// show without their monitoring addresses.
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

/// Asks every monitoring address, and records what each broker reports about its storage.
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

/// Checks the brokers as a group.
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

//! `headcount cluster init`: creates a cluster on NATS brokers.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use headcount_api::command::{CREDENTIALS_FILE, Failure, InitialCredentials, print};
use headcount_cluster::ClusterRecord;
use headcount_common::clock::{Clock, SystemClock};
use headcount_control::{Actor, ActorKind, Author, Registry};
use serde::Serialize;

use super::moving;
use crate::cli::init::{FirstArgs, describe};
use crate::cli::threads::threaded_runtime;
use crate::config::Settings;

#[derive(Debug, clap::Args)]
pub(super) struct ClusterInitArgs {
    /// Addresses of all brokers, such as nats://10.0.0.1:4222,10.0.0.2:4222,10.0.0.3:4222
    #[arg(value_name = "BROKERS", value_delimiter = ',', required = true)]
    brokers: Vec<String>,
    /// Number of brokers that keep each message
    #[arg(long, value_name = "NUMBER", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=5))]
    replicas: u8,
    /// Maximum size of the stream of each of the 64 partitions, at least 8MiB; brokers reserve it
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = stream_bytes)]
    max_bytes: i64,
    /// Backup of a single server (`headcount backup`), or the data directory of a stopped one. The
    /// cluster starts with its data
    #[arg(long, value_name = "DIR", conflicts_with_all = ["name", "timezone", "currency"])]
    from: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    first: FirstArgs,
}

/// Parses the size of a stream, such as `1GiB`. Every allowed size has room for the largest
/// message.
fn stream_bytes(text: &str) -> Result<i64, &'static str> {
    let bytes = crate::config::bytes(text).and_then(|bytes| i64::try_from(bytes).ok());
    bytes.filter(|bytes| *bytes >= 8 << 20).ok_or("must be a size of at least 8MiB, such as 1GiB or 1GB")
}

/// The new cluster.
#[derive(Serialize)]
struct Made {
    #[serde(flatten)]
    credentials: InitialCredentials,
    cluster: ClusterRecord,
}

/// Runs the command. After a failure, run it again with the same data directory.
pub(super) fn run(settings: &Settings, args: ClusterInitArgs) -> Result<ExitCode, Failure> {
    let dir = &settings.data_dir;
    let options = headcount_cluster::init::InitOptions {
        brokers: args.brokers,
        credentials: settings.broker_credentials(),
        replicas: args.replicas.into(),
        max_bytes: args.max_bytes,
        data_dir: dir.clone(),
        files: settings.files.clone(),
    };
    let runtime = threaded_runtime()?;
    if let Some(from) = &args.from {
        return moving::run(runtime.handle(), &options, from, args.json);
    }
    let create = |registry: &Registry| create_first(registry, &args.first, dir);
    let (cluster, credentials) = headcount_cluster::init::init(runtime.handle(), &options, create)?;
    let made = Made { credentials, cluster };
    print(args.json, &made, || text(&made, dir))?;
    Ok(ExitCode::SUCCESS)
}

/// Creates the first organization, unless an earlier attempt did. The keys are saved before the
/// organization is created.
fn create_first(registry: &Registry, args: &FirstArgs, dir: &Path) -> Result<InitialCredentials, Failure> {
    if registry.is_empty() {
        let author = Author { actor: Actor::of(ActorKind::Cli), ..SystemClock.now().into() };
        let save = |initial: &_| InitialCredentials::from(initial).save(dir);
        match registry.initialize_kept(args.organization(), author, save) {
            Ok(initial) => return Ok(InitialCredentials::from(&initial)),
            // Otherwise another attempt was faster.
            Err(failure) if registry.is_empty() => return Err(failure),
            Err(_) => {}
        }
    }
    let organizations = registry.organizations();
    let is_created = |saved: &InitialCredentials| organizations.iter().any(|it| it.id.to_string() == saved.organization_id);
    InitialCredentials::load(dir)?.filter(is_created).ok_or_else(|| {
        let file = dir.join(CREDENTIALS_FILE);
        Failure(format!(
            "the stream HC_CTL has an organization whose keys are not in {}: use the data directory of the earlier attempt, or, if that is lost, \
             delete the stream (`nats stream rm HC_CTL`)",
            file.display()
        ))
    })
}

fn text(Made { credentials, cluster }: &Made, dir: &Path) -> String {
    let ClusterRecord { incarnation, partitions, replicas, .. } = cluster;
    format!(
        "{}\n\
         cluster {incarnation}: {partitions} partitions, replicas: {replicas}\n\
         Copy {}/keys/hash.key into `keys` of the data directory of each other node.",
        describe(credentials, dir),
        dir.display()
    )
}

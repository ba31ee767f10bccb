//! Settings. Each comes from a flag, else from a `HEADCOUNT_*` variable, else from a TOML file,
//! else it has its default.
//!
//! Every value is text until it is resolved, so all four sources are parsed in one way, and every
//! error names its source.

mod keys;
mod mail;
#[cfg(test)]
mod tests;
mod value;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use actix_web::http::header::HeaderName;
use headcount_api::command::{ServerPlace, parse_duration as duration};
use headcount_api::node_client::NodeClient;
use headcount_api::node_tls::{NodeTls, NodeTlsError};
use ipnet::IpNet;
use serde::Serialize;

use headcount_actors::EngineConfig;
use headcount_actors::memory_budget::MIN_MEMORY_BYTES;
#[cfg(feature = "cluster")]
use headcount_cluster::{Credentials, files::Bucket};
use headcount_outbound::AllowList;
use headcount_pushed::MailSettings;
use headcount_storage::log::MAX_BLOCK_BYTES;

use crate::features;
use crate::server::{ExtraPaths, HttpConfig, NodeListener};
use crate::telemetry::{self, LogFormat};
pub use keys::Flags;
use keys::{KEYS, Key};
pub(crate) use value::bytes;
use value::{
    brokers, count, duration_from_1s, header, listen, log_format, networks, origins, path, public_url, size_from, size_or_auto,
};

/// The variable that names the TOML file.
pub const CONFIG_VARIABLE: &str = "HEADCOUNT_CONFIG";

/// The longest allowed timeout of a question.
const MAX_QUESTION_TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// The settings that a build without clusters refuses, and its error.
const OF_CLUSTERS: [&str; 4] = ["cluster", "files", "node_listen", "node_tls"];
const NEEDS_CLUSTER: &str = "needs a build with `--features cluster`";

/// Variables that are not settings.
const OTHER_VARIABLES: [&str; 3] = [CONFIG_VARIABLE, "HEADCOUNT_TOKEN", "HEADCOUNT_OPERATOR_TOKEN"];

/// Returns the unknown variables that begin with `HEADCOUNT_`.
pub fn unknown_variables(variables: impl Iterator<Item = String>) -> Vec<String> {
    let is_known = |name: &str| OTHER_VARIABLES.contains(&name) || KEYS.iter().any(|key| key.variable == name);
    let mut unknown: Vec<String> = variables.filter(|name| name.starts_with("HEADCOUNT_") && !is_known(name)).collect();
    unknown.sort();
    unknown
}

/// The source of a setting's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A flag of the command line.
    Flag(&'static str),
    /// An environment variable.
    Variable(&'static str),
    /// The TOML file.
    File(PathBuf),
    /// The default, because nothing sets it.
    Default,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) | Self::Variable(name) => f.write_str(name),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}

/// The reason why settings are invalid.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The TOML file can't be read.
    #[error("the configuration file {}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The TOML file has unknown keys.
    #[error("the configuration file {}: unknown {}: {}; known keys: {}", path.display(), plural(keys), keys.join(", "), known())]
    UnknownKeys {
        /// The file.
        path: PathBuf,
        /// The keys.
        keys: Vec<String>,
    },
    /// A value is not allowed.
    #[error("{key} (from {source_name}): {reason}")]
    Value {
        /// The setting.
        key: &'static str,
        /// Its source.
        source_name: String,
        /// The reason, and the allowed values.
        reason: String,
    },
}

fn plural(keys: &[String]) -> &'static str {
    if keys.len() == 1 { "key" } else { "keys" }
}

fn known() -> String {
    KEYS.map(|key| key.name).join(", ")
}

/// An effective setting.
#[derive(Debug, Clone)]
struct Entry {
    key: &'static Key,
    text: String,
    source: Source,
}

/// All effective settings. They contain no secrets.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The directory of all data.
    pub data_dir: PathBuf,
    /// Address and port.
    pub listen: String,
    /// The number of HTTP workers; `None`: derived from the cores.
    pub workers: Option<usize>,
    /// The number of shards; `None`: derived from the cores.
    pub shards: Option<usize>,
    /// The limit on bytes of events in flight.
    pub admission_bytes: Option<usize>,
    /// The memory budget.
    pub memory: usize,
    /// The minimum free disk space.
    pub min_free_bytes: u64,
    /// The trusted proxies.
    pub trusted_proxies: Vec<IpNet>,
    /// The database of countries.
    pub geo_db: Option<PathBuf>,
    /// The header in which trusted proxies report a visitor's country.
    pub geo_header: Option<HeaderName>,
    /// The origins whose pages may use the API.
    pub query_origins: Vec<String>,
    /// The server's URL for browsers and SDKs, without a trailing slash.
    pub public_url: Option<String>,
    /// Further names of `/hc.js` and `/i`.
    pub extra_paths: ExtraPaths,
    /// The private addresses that features may reach.
    pub outbound_allow: AllowList,
    /// The mail server.
    pub mail: Option<Arc<MailSettings>>,
    /// The timeout of a question that scans the events.
    pub question_timeout: Duration,
    /// The memory for kept answers; `None`: derived from the memory budget.
    pub view_memory: Option<usize>,
    /// The interval of checkpoints.
    pub checkpoint_interval: Duration,
    /// The age at which events are sealed.
    pub seal_after: Duration,
    /// The number of unsealed events at which they are sealed.
    pub seal_events: u64,
    /// The compression level of the archive.
    pub archive_level: i32,
    /// How long the files of exports are kept.
    pub export_retention: Duration,
    /// The brokers of its cluster; empty for a single server.
    pub cluster: Vec<String>,
    /// The credentials for the brokers.
    pub nats_creds: Option<PathBuf>,
    /// The URL at which other nodes reach the server, without a trailing slash.
    pub node_url: Option<String>,
    /// The address for other nodes, and the directory of the certificates.
    pub node_listen: Option<(String, PathBuf)>,
    /// The place where the nodes of the cluster keep files.
    #[cfg(feature = "cluster")]
    pub files: Option<Bucket>,
    /// The number of bytes of these files that a node keeps on its own disk.
    pub files_cache: u64,
    /// How long the brokers keep sealed events.
    pub log_kept: Duration,
    /// The filter of log lines.
    pub log: String,
    /// The format of log lines.
    pub log_format: LogFormat,
    entries: Vec<Entry>,
    warnings: Vec<String>,
}

/// One line of `headcount config`.
#[derive(Debug, Serialize)]
pub struct InForce<'a> {
    /// The value, as it was written.
    pub value: &'a str,
    /// Its source.
    pub source: String,
}

impl Settings {
    /// Where the server on the data directory is.
    pub(crate) fn server_place(&self) -> ServerPlace<'_> {
        ServerPlace { data_dir: &self.data_dir, listen: &self.listen }
    }

    /// Resolves every setting. `variable` reads the environment.
    ///
    /// # Errors
    /// See [`ConfigError`].
    pub fn resolve(flags: &Flags, variable: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let path = flags.config.clone().or_else(|| variable(CONFIG_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from));
        let file = path.as_deref().map(read_file).transpose()?.unwrap_or_default();
        let entry = |key: &'static Key| {
            if let Some(text) = flags.get(key.name) {
                return Entry { key, text: text.to_owned(), source: Source::Flag(key.flag) };
            }
            if let Some(text) = variable(key.variable) {
                return Entry { key, text, source: Source::Variable(key.variable) };
            }
            match (file.get(key.name), &path) {
                (Some(text), Some(path)) => Entry { key, text: text.clone(), source: Source::File(path.clone()) },
                _ => Entry { key, text: key.default.to_owned(), source: Source::Default },
            }
        };
        let mut settings = Self::parse(KEYS.iter().map(entry).collect())?;
        settings.raise_min_free_bytes();
        Ok(settings)
    }

    /// Raises a limit below the size of the largest append. A smaller limit would not prevent a
    /// full disk.
    fn raise_min_free_bytes(&mut self) {
        let least = MAX_BLOCK_BYTES;
        if (1..least).contains(&self.min_free_bytes) {
            let given = self.min_free_bytes;
            let message = format!(
                "min_free_bytes: {given} is less than the largest append to the log, so {least} are kept free instead (0 disables the limit)"
            );
            self.warnings.push(message);
            self.min_free_bytes = least;
        }
    }

    /// Returns warnings about probable mistakes.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    fn parse(entries: Vec<Entry>) -> Result<Self, ConfigError> {
        let read = Reader { entries: &entries };
        if !cfg!(feature = "cluster") {
            read.no_cluster()?;
        }
        Ok(Self {
            data_dir: read.value("data_dir", |text| (!text.is_empty()).then(|| text.into()).ok_or("must be a path"))?,
            listen: read.value("listen", |text| listen(text).ok_or("must be ADDRESS:PORT, such as 127.0.0.1:8080"))?,
            workers: read.value("workers", |text| count(text, 1024).ok_or("must be a number from 1 to 1024, or auto"))?,
            shards: read.value("shards", |text| count(text, 64).ok_or("must be a number from 1 to 64, or auto"))?,
            memory: read.value("memory", |text| {
                size_from(text, MIN_MEMORY_BYTES).ok_or("must be a size of at least 64MiB, such as 1GiB or 1GB")
            })?,
            admission_bytes: read.value("admission_bytes", |text| {
                size_or_auto(text, 8 << 20).ok_or("must be auto or a size of at least 8MiB, such as 64MiB")
            })?,
            min_free_bytes: read.value("min_free_bytes", |text| {
                bytes(text).ok_or("must be a size, such as 256MiB or 256MB, or 0 for no limit")
            })?,
            trusted_proxies: read.value("trusted_proxies", |text| {
                networks(text).ok_or("must be addresses or networks separated by commas, such as 10.0.0.0/8")
            })?,
            geo_db: read.file("geo_db")?,
            geo_header: read
                .value("geo_header", |text| header(text).ok_or("must be the name of a header, such as CF-IPCountry"))?,
            outbound_allow: read.value("outbound_allow", str::parse)?,
            mail: read.mail()?,
            query_origins: read.value("query_origins", |text| {
                origins(text).ok_or("must be origins separated by commas, such as https://dashboard.example")
            })?,
            public_url: read.value("public_url", |text| public_url(text).ok_or("must be like https://stats.example"))?,
            extra_paths: read.extra_paths()?,
            question_timeout: read.value("question_timeout", |text| {
                duration(text)
                    .filter(|it| (Duration::from_secs(1)..=MAX_QUESTION_TIMEOUT).contains(it))
                    .ok_or("must be a duration from 1s to 1h, such as 60s")
            })?,
            view_memory: read
                .value("view_memory", |text| size_or_auto(text, 0).ok_or("must be auto, 0 or a size, such as 64MiB"))?,
            checkpoint_interval: read.at_least_1s("checkpoint_interval", "60s or 5m")?,
            seal_after: read.at_least_1s("seal_after", "24h or 10m")?,
            seal_events: read.value("seal_events", |text| {
                text.parse().ok().filter(|events| *events > 0).ok_or("must be a number of at least 1, such as 262144")
            })?,
            archive_level: read.value("archive_level", |text| {
                text.parse().ok().filter(|level| (1..=22).contains(level)).ok_or("must be a number from 1 to 22")
            })?,
            export_retention: read.at_least_1s("export_retention", "7d or 12h")?,
            cluster: read.value("cluster", |text| {
                brokers(text).ok_or("must be addresses separated by commas, such as nats://10.0.0.1:4222")
            })?,
            nats_creds: read.file("nats_creds")?,
            node_url: read.value("node_url", |text| public_url(text).ok_or("must be like http://10.0.1.1:8080"))?,
            node_listen: read.node_listen()?,
            #[cfg(feature = "cluster")]
            files: read.value("files", |text| match text {
                "" => Ok(None),
                text => Bucket::open(text).map(Some).map_err(|error| error.to_string()),
            })?,
            files_cache: read.value("files_cache", |text| bytes(text).ok_or("must be a size, such as 10GiB"))?,
            log_kept: read.at_least_1s("log_kept", "6h or 30m")?,
            log: read.value("log", |text| telemetry::filter(text).map(|_| text.to_owned()).map_err(|error| error.to_string()))?,
            log_format: read.value("log_format", |text| log_format(text).ok_or("must be text or json"))?,
            entries,
            warnings: Vec::new(),
        })
    }

    /// Returns the effective values and their sources, by name.
    pub fn in_force(&self) -> Vec<(&'static str, InForce<'_>)> {
        let line = |entry| {
            let Entry { key, text, source }: &Entry = entry;
            (key.name, InForce { value: text, source: source.to_string() })
        };
        self.entries.iter().map(line).collect()
    }

    /// Returns whether a setting has its default.
    pub fn is_default(&self, name: &str) -> bool {
        self.entries.iter().any(|entry| entry.key.name == name && entry.source == Source::Default)
    }

    /// The configuration of a server's engine. Unlike the engine of a command, its
    /// features work by themselves, and it can ask other nodes.
    #[must_use]
    pub fn serving_engine(&self, tls: Option<&NodeTls>) -> EngineConfig {
        let mut config = self.engine();
        config.features = features::install((&self.outbound_allow, &self.mail, &self.public_url), self.export_retention, true);
        config.ask_node = Some(Arc::new(NodeClient::new(tls)));
        config
    }

    /// The configuration of a command's engine.
    pub fn engine(&self) -> EngineConfig {
        let mut config = EngineConfig::new(&self.data_dir);
        config.shards = self.shards.unwrap_or(config.shards);
        config.memory_bytes = self.memory;
        config.admission_bytes = self.admission_bytes;
        config.min_free_bytes = self.min_free_bytes;
        config.geo_db.clone_from(&self.geo_db);
        config.question_timeout = self.question_timeout;
        config.view_bytes = self.view_memory;
        config.checkpoints.interval = self.checkpoint_interval;
        config.archive.seal_after = self.seal_after;
        config.archive.seal_events = self.seal_events;
        config.archive.level = self.archive_level;
        config.archive.cache_bytes = self.files_cache;
        config.features = features::install((&self.outbound_allow, &self.mail, &self.public_url), self.export_retention, false);
        config
    }

    /// The credentials for the brokers.
    #[cfg(feature = "cluster")]
    pub fn broker_credentials(&self) -> Credentials {
        self.nats_creds.clone().map_or(Credentials::None, Credentials::File)
    }

    /// Reads the certificates of the address for other nodes, if there is one.
    ///
    /// # Errors
    /// See [`NodeTlsError`].
    pub fn nodes(&self) -> Result<Option<NodeListener>, NodeTlsError> {
        let read = |(listen, dir): &(String, PathBuf)| Ok(NodeListener { listen: listen.clone(), tls: NodeTls::read(dir)? });
        self.node_listen.as_ref().map(read).transpose()
    }

    /// The configuration of the HTTP server.
    pub fn http(&self) -> HttpConfig {
        HttpConfig {
            listen: self.listen.clone(),
            workers: self.workers.unwrap_or_else(HttpConfig::default_workers),
            trusted_proxies: self.trusted_proxies.clone(),
            geo_header: self.geo_header.clone(),
            query_origins: self.query_origins.clone(),
            public_url: self.public_url.clone(),
            extra_paths: self.extra_paths.clone(),
            nodes: None,
        }
    }
}

struct Reader<'a> {
    entries: &'a [Entry],
}

impl Reader<'_> {
    /// Refuses the settings of a cluster.
    fn no_cluster(&self) -> Result<(), ConfigError> {
        let refuse = |text: &str| if text.is_empty() { Ok(()) } else { Err(NEEDS_CLUSTER) };
        OF_CLUSTERS.iter().try_for_each(|name| self.value(name, refuse))
    }

    fn extra_paths(&self) -> Result<ExtraPaths, ConfigError> {
        let named = |name| self.value(name, |text| path(text).ok_or("must be a path, such as /app.js"));
        Ok(ExtraPaths { script: named("script_path")?, collect: named("collect_path")? })
    }

    /// Returns the address for other nodes and the directory of the certificates; both or none.
    fn node_listen(&self) -> Result<Option<(String, PathBuf)>, ConfigError> {
        let dir = self.file("node_tls")?;
        self.value("node_listen", |text| match (text, dir) {
            ("", None) => Ok(None),
            ("", Some(_)) => Err("must be ADDRESS:PORT, such as 10.0.1.1:8443, since node_tls is set"),
            (_, None) => Err("needs node_tls, the directory of the certificates"),
            (text, Some(dir)) => {
                listen(text).map(|listen| Some((listen, dir))).ok_or("must be ADDRESS:PORT, such as 10.0.1.1:8443")
            }
        })
    }

    /// Returns a duration of at least a second.
    fn at_least_1s(&self, name: &'static str, examples: &str) -> Result<Duration, ConfigError> {
        let reason = || format!("must be a duration of at least 1s, such as {examples}");
        self.value(name, |text| duration_from_1s(text).ok_or_else(reason))
    }

    /// Returns the path of a file; `None` if there is none.
    fn file(&self, name: &'static str) -> Result<Option<PathBuf>, ConfigError> {
        self.value(name, |text| Ok::<_, &str>(Some(text).filter(|text| !text.is_empty()).map(PathBuf::from)))
    }

    fn value<T, E: ToString>(&self, name: &'static str, parse: impl FnOnce(&str) -> Result<T, E>) -> Result<T, ConfigError> {
        let text = self.entry(name).map_or("", |entry| entry.text.trim());
        parse(text).map_err(|reason| self.refused(name, &format!("{}, not {text:?}", reason.to_string())))
    }

    fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key.name == name)
    }

    fn refused(&self, name: &'static str, reason: &str) -> ConfigError {
        let source_name = self.entry(name).map(|entry| entry.source.to_string()).unwrap_or_default();
        ConfigError::Value { key: name, source_name, reason: reason.to_owned() }
    }
}

/// Reads a TOML file into text by key.
fn read_file(path: &Path) -> Result<BTreeMap<String, String>, ConfigError> {
    let failed = |reason: String| ConfigError::File { path: path.to_owned(), reason };
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| failed(one_line(&error.to_string())))?;
    let unknown: Vec<String> = table.keys().filter(|name| KEYS.iter().all(|key| key.name != *name)).cloned().collect();
    if !unknown.is_empty() {
        return Err(ConfigError::UnknownKeys { path: path.to_owned(), keys: unknown });
    }
    let value = |(name, value): (String, toml::Value)| match plain(&value) {
        Some(text) => Ok((name, text)),
        None => Err(failed(format!("{name} must be a string, a number or a list of strings"))),
    };
    table.into_iter().map(value).collect()
}

fn one_line(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join(" ")
}

fn plain(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Array(items) => {
            let items: Option<Vec<&str>> = items.iter().map(toml::Value::as_str).collect();
            items.map(|items| items.join(","))
        }
        _ => None,
    }
}

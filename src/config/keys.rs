//! The names of the settings, and their flags.

use std::fmt;
use std::path::PathBuf;

/// A setting's names.
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) flag: &'static str,
    pub(super) variable: &'static str,
    pub(super) default: &'static str,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

macro_rules! keys {
    ($($name:ident $value:literal $flag:literal $variable:literal $default:literal $help:literal;)*) => {
        pub(super) const KEYS: [Key; [$($flag),*].len()] =
            [$(Key { name: stringify!($name), flag: $flag, variable: $variable, default: $default }),*];

        /// The settings as flags; each is text until [`Settings::resolve`].
        #[derive(Debug, Clone, Default, clap::Args)]
        pub struct Flags {
            /// TOML file with settings [env: HEADCOUNT_CONFIG]
            #[arg(long, value_name = "FILE", global = true)]
            pub config: Option<PathBuf>,
            $(
                #[doc = $help]
                #[arg(
                    long,
                    value_name = $value,
                    global = true,
                    help_heading = "Settings",
                    help = help($help, $variable, $default)
                )]
                pub $name: Option<String>,
            )*
        }

        impl Flags {
            pub(super) fn get(&self, name: &str) -> Option<&str> {
                match name {
                    $(stringify!($name) => self.$name.as_deref(),)*
                    _ => None,
                }
            }
        }
    };
}

fn help(text: &str, variable: &str, default: &str) -> String {
    let default = if default.is_empty() { "none" } else { default };
    format!("{text} [env: {variable}] [default: {default}]")
}

keys! {
    data_dir "DIR" "--data-dir" "HEADCOUNT_DATA_DIR" "./headcount-data" "Directory of all data";
    listen "ADDRESS:PORT" "--listen" "HEADCOUNT_LISTEN" "127.0.0.1:8080" "Address to listen on; port 0 picks a free port";
    workers "N" "--workers" "HEADCOUNT_WORKERS" "auto" "Number of HTTP workers, or auto for half the cores";
    shards "N" "--shards" "HEADCOUNT_SHARDS" "auto" "Number of shards of the engine, up to 64, or auto for one per core";
    memory "SIZE" "--memory" "HEADCOUNT_MEMORY" "1GiB" "Memory budget; data beyond it is read from disk on demand";
    admission_bytes "SIZE" "--admission-bytes" "HEADCOUNT_ADMISSION_BYTES" "auto" "Limit on the bytes of events in flight, or auto for a sixteenth of the memory";
    min_free_bytes "SIZE" "--min-free-bytes" "HEADCOUNT_MIN_FREE_BYTES" "256MiB" "Refuse events while less disk space is free; at least 64MiB, or 0 for no limit";
    trusted_proxies "NETWORKS" "--trusted-proxies" "HEADCOUNT_TRUSTED_PROXIES" "" "Proxies whose X-Forwarded-For and Forwarded are trusted, as a comma-separated list of networks";
    geo_db "FILE" "--geo-db" "HEADCOUNT_GEO_DB" "" "MMDB file that maps addresses to countries (GeoLite2, GeoIP2, DB-IP)";
    geo_header "HEADER" "--geo-header" "HEADCOUNT_GEO_HEADER" "" "Header with the visitor's country that trusted proxies set, such as CF-IPCountry";
    outbound_allow "HOSTS" "--outbound-allow" "HEADCOUNT_OUTBOUND_ALLOW" "" "Private hosts, addresses and networks that webhooks and builds of company profiles may reach, as a comma-separated list";
    smtp_url "URL" "--smtp-url" "HEADCOUNT_SMTP_URL" "" "Mail server for e-mail, such as smtps://USER@smtp.example, or smtp://USER@smtp.example for STARTTLS; by default no e-mail is sent";
    smtp_password_file "FILE" "--smtp-password-file" "HEADCOUNT_SMTP_PASSWORD_FILE" "" "File with the password for the mail server";
    smtp_ca "FILE" "--smtp-ca" "HEADCOUNT_SMTP_CA" "" "PEM file of a certificate authority that the mail server's certificate may be from, besides the public ones";
    mail_from "ADDRESS" "--mail-from" "HEADCOUNT_MAIL_FROM" "" "Sender of e-mail, such as Figures <figures@stats.example>";
    query_origins "ORIGINS" "--query-origins" "HEADCOUNT_QUERY_ORIGINS" "" "Web origins whose pages may use the API with a token, as a comma-separated list";
    public_url "URL" "--public-url" "HEADCOUNT_PUBLIC_URL" "" "Address of the server for browsers and SDKs, such as https://stats.example; by default the host of each request";
    script_path "PATH" "--script-path" "HEADCOUNT_SCRIPT_PATH" "" "Another path of the tracker /hc.js, such as /app.js";
    collect_path "PATH" "--collect-path" "HEADCOUNT_COLLECT_PATH" "" "Another path of /i, such as /app";
    question_timeout "DURATION" "--question-timeout" "HEADCOUNT_QUESTION_TIMEOUT" "60s" "Timeout of questions that scan the events";
    view_memory "SIZE" "--view-memory" "HEADCOUNT_VIEW_MEMORY" "auto" "Memory for kept answers of aggregates and filtered counts, 0 to keep none, or auto for a sixteenth of the memory";
    checkpoint_interval "DURATION" "--checkpoint-interval" "HEADCOUNT_CHECKPOINT_INTERVAL" "60s" "Interval between checkpoints; a start replays the events after the last one";
    seal_after "DURATION" "--seal-after" "HEADCOUNT_SEAL_AFTER" "24h" "Age at which events move from the log to the archive";
    seal_events "N" "--seal-events" "HEADCOUNT_SEAL_EVENTS" "262144" "Number of events at which the log moves to the archive, once checkpoints contain them";
    archive_level "N" "--archive-level" "HEADCOUNT_ARCHIVE_LEVEL" "3" "Compression level of archive files, from 1 to 22";
    export_retention "DURATION" "--export-retention" "HEADCOUNT_EXPORT_RETENTION" "7d" "How long the file of a privacy export can be downloaded";
    cluster "BROKERS" "--cluster" "HEADCOUNT_CLUSTER" "" "NATS brokers of the server's cluster, as a comma-separated list, such as nats://10.0.0.1:4222; by default the server runs alone";
    nats_creds "FILE" "--nats-creds" "HEADCOUNT_NATS_CREDS" "" "File of credentials for the brokers, as `nsc` writes it";
    node_url "URL" "--node-url" "HEADCOUNT_NODE_URL" "" "Address at which the other nodes of the cluster reach this one, such as http://10.0.1.1:8080; by default that of --node-listen or --listen";
    node_tls "DIR" "--node-tls" "HEADCOUNT_NODE_TLS" "" "Directory with tls.crt, tls.key and ca.crt: the nodes of the cluster connect to each other by TLS, at --node-listen";
    node_listen "ADDRESS:PORT" "--node-listen" "HEADCOUNT_NODE_LISTEN" "" "Address to listen on for other nodes, by TLS with the files in --node-tls";
    files "PLACE" "--files" "HEADCOUNT_FILES" "" "Where the nodes of the cluster keep sealed events: s3://BUCKET/PREFIX, or file:///DIRECTORY on a shared disk; by default events stay on the brokers";
    files_cache "SIZE" "--files-cache" "HEADCOUNT_FILES_CACHE" "10GiB" "Size of the cache of sealed events on a node's own disk; other events are read from --files";
    log_kept "DURATION" "--log-kept" "HEADCOUNT_LOG_KEPT" "6h" "How long the brokers keep sealed events";
    log "FILTER" "--log" "HEADCOUNT_LOG" "info,actix_server=warn,actix_http=off,async_nats=warn" "Log level, or directives such as info,headcount_storage=debug";
    log_format "FORMAT" "--log-format" "HEADCOUNT_LOG_FORMAT" "text" "Log format: text or json";
}

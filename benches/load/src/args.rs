//! The command line flags.

use std::path::PathBuf;
use std::time::Duration;

use super::failure::Failure;
use super::mix::{Mix, RequestKind};
use super::ramp::{RateRange, rate};

/// The batch size if `--mix` has batches and `--batch` is not given.
const BATCH_OF_MIX: u32 = 100;
/// The maximum number of projects.
const MAX_PROJECTS: u64 = 1_000_000;

const ABOUT_RAMP: &str = "\
The ramp: each step sends at its rate for --duration after --warm-up, without waiting for answers. A step is sustained if at least
95 % of its rate succeeds, at most one request in 1,000 fails, and its p99 is at most --max-p99. A step that is not
sustained is repeated once; if it fails again, the ramp ends. The knee is the highest sustained rate.

With --rate and --ramp, latency is measured from the time at which a request was due; otherwise from the time at which it was sent.

Exit code: 1 if the server's counts differ from its acknowledgements (with --token), if it went away, answered no request as expected, or
sustained no step; otherwise 0.

Examples:
  headcount-load --key pk_…
  headcount-load --key pk_… --token sk_… --mix single=70,batch=5,poll=20,profile=5 --rate 5000 --html report.html
  headcount-load --key pk_… --token sk_… --ramp 5000..50000 --steps 10
  headcount-load --compare before.json after.json";

/// Generate load on a headcount server, and measure its throughput and latency
#[derive(Debug, Clone, clap::Parser)]
#[command(version, after_help = ABOUT_RAMP)]
pub(crate) struct LoadArgs {
    /// URL of the server; with --raw, the full URL to post to
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080")]
    pub(crate) url: String,
    /// Public key of the project that receives the events
    #[arg(long, value_name = "KEY", required_unless_present_any = ["raw", "compare", "projects", "projects_file"])]
    pub(crate) key: Option<String>,
    /// Requests per second, sent without waiting for responses [default: each connection waits for
    /// its response]
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub(crate) rate: Option<f64>,
    /// Number of connections
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) connections: u32,
    /// Duration of the measurement; with --ramp, of each step
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub(crate) duration: Duration,
    /// Duration of the warm-up before the measurement
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration)]
    pub(crate) warm_up: Duration,
    /// Events per request, sent to /i/batch; 0 sends single events to /i [default: 0; with --mix:
    /// 100]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=5_000))]
    batch: Option<u32>,
    /// Shares of single events, batches, questions of a dashboard (with ETags) and profiles of
    /// known users, such as single=70,batch=5,poll=20,profile=5
    #[arg(long, value_name = "SHARES", conflicts_with = "raw", value_parser = Mix::parse)]
    mix: Option<Mix>,
    /// Percentage of events that are sent twice with the same external_id
    #[arg(long, value_name = "PERCENT", default_value_t = 0, conflicts_with = "raw", value_parser = clap::value_parser!(u32).range(0..=50))]
    pub(crate) duplicates: u32,
    /// Number of distinct users
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub(crate) users: u64,
    /// Number of sending threads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) threads: u32,
    /// Expected status of events
    #[arg(long, value_name = "STATUS", default_value_t = 202)]
    pub(crate) expect: u16,
    /// API token, for questions and to verify the server's counts at the end. Nothing else may use
    /// the projects meanwhile
    #[arg(long, value_name = "TOKEN", env = "HEADCOUNT_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,
    /// Project of the key; needed if the token can't list projects
    #[arg(long, value_name = "PROJECT", requires = "token", value_parser = project_id)]
    pub(crate) project: Option<String>,
    #[command(flatten)]
    pub(crate) spread: SpreadFlags,
    #[command(flatten)]
    pub(crate) ramp: RampFlags,
    #[command(flatten)]
    pub(crate) crowd: CrowdFlags,
    #[command(flatten)]
    pub(crate) raw: RawFlags,
    #[command(flatten)]
    pub(crate) output: OutputFlags,
}

/// The flags that spread events over projects.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Projects")]
pub(crate) struct SpreadFlags {
    /// Create this many projects first, and spread the events over them. More than 1,000 need
    /// --root-token
    #[arg(long, value_name = "N", conflicts_with_all = ["raw", "key"], value_parser = clap::value_parser!(u64).range(1..=MAX_PROJECTS))]
    pub(crate) projects: Option<u64>,
    /// File of projects, as JSON lines with keys and tokens. --projects writes it if it doesn't
    /// exist
    #[arg(long, value_name = "FILE", conflicts_with_all = ["raw", "key"])]
    pub(crate) projects_file: Option<PathBuf>,
    /// Root token (rk_…), to create organizations with 1,000 projects each
    #[arg(long, value_name = "TOKEN", requires = "projects")]
    pub(crate) root_token: Option<String>,
    /// Percentage of events for the first project; the other projects share the rest evenly
    /// [default: an even share]
    #[arg(long, value_name = "PERCENT", default_value_t = 0, hide_default_value = true, value_parser = clap::value_parser!(u32).range(0..=100))]
    pub(crate) hot: u32,
}

/// The flags of a ramp.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Ramp")]
pub(crate) struct RampFlags {
    /// Raise the rate in steps until the server can't sustain it, and print the knee
    #[arg(long, value_name = "FROM..TO", conflicts_with_all = ["rate", "raw"])]
    pub(crate) ramp: Option<RateRange>,
    /// Number of steps
    #[arg(long, value_name = "N", default_value_t = 10, requires = "ramp", value_parser = clap::value_parser!(u32).range(2..=100))]
    pub(crate) steps: u32,
    /// Maximum p99 of a sustained step [default: ten times the p99 of the first step, at least
    /// 20ms]
    #[arg(long, value_name = "DURATION", requires = "ramp", value_parser = duration)]
    pub(crate) max_p99: Option<Duration>,
}

/// The flags of the background load.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Background load")]
pub(crate) struct CrowdFlags {
    /// Number of idle connections, which send a request every 20 s
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, conflicts_with_all = ["raw", "ramp"], value_parser = clap::value_parser!(u32).range(0..=20_000))]
    pub(crate) idle: u32,
    /// Number of readers of live streams; a project allows 256
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, conflicts_with_all = ["raw", "ramp"], value_parser = clap::value_parser!(u32).range(0..=20_000))]
    pub(crate) streams: u32,
    /// Number of dashboards. Each asks all of its questions every second (with ETags)
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, conflicts_with_all = ["raw", "ramp"], value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub(crate) dashboards: u32,
    /// Process id of the server on this machine, to report its processor time and memory
    #[arg(long, value_name = "PID")]
    pub(crate) pid: Option<u32>,
}

/// The flags for other servers.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Other servers")]
pub(crate) struct RawFlags {
    /// Post to exactly this URL, to compare with other servers
    #[arg(long)]
    pub(crate) raw: bool,
    /// File with the request body for --raw [default: an event]
    #[arg(long, value_name = "FILE", requires = "raw")]
    pub(crate) body: Option<PathBuf>,
}

/// The flags of the results.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Results")]
pub(crate) struct OutputFlags {
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the results as one HTML page with curves of latency and throughput
    #[arg(long, value_name = "FILE", conflicts_with = "compare")]
    pub(crate) html: Option<PathBuf>,
    /// Print a line on standard error each second [default: only on a terminal]
    #[arg(long)]
    pub(crate) progress: bool,
    /// Send nothing, and compare the --json output of two runs
    #[arg(long, value_names = ["A.json", "B.json"], num_args = 2, conflicts_with_all = ["key", "ramp", "raw"])]
    pub(crate) compare: Option<Vec<PathBuf>>,
}

impl LoadArgs {
    /// The shares of the kinds of requests.
    pub(crate) fn mix(&self) -> Mix {
        match (&self.mix, self.raw.raw, self.batch.unwrap_or(0)) {
            (Some(mix), ..) => mix.clone(),
            (None, true, _) => Mix::only(RequestKind::Raw),
            (None, false, 0) => Mix::only(RequestKind::Single),
            (None, false, _) => Mix::only(RequestKind::Batch),
        }
    }

    /// The number of events of a batch.
    pub(crate) fn batch(&self) -> u32 {
        self.batch.unwrap_or(BATCH_OF_MIX)
    }

    /// Checks combinations of flags.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let mix = self.mix();
        let refused = |what: &str| Err(Failure(what.into()));
        if mix.has(RequestKind::Batch) && self.batch() == 0 {
            return refused("--batch must be at least 1 if --mix has batches");
        }
        if mix.has(RequestKind::Profile) && !mix.has(RequestKind::Single) && !mix.has(RequestKind::Batch) {
            return refused("--mix: profiles need users, so add a share of single or batch");
        }
        let asks = mix.has(RequestKind::Poll) || mix.has(RequestKind::Profile) || self.crowd.streams + self.crowd.dashboards > 0;
        let has_tokens = self.token.is_some() || self.spread.projects_file.is_some() || self.spread.root_token.is_some();
        if asks && !has_tokens {
            return refused("questions, profiles, dashboards and streams need --token");
        }
        if self.spread.projects.is_some() && !has_tokens {
            return refused("--projects needs --token or --root-token to create projects");
        }
        if self.duration.is_zero() {
            return refused("--duration must be longer than 0s");
        }
        Ok(())
    }
}

/// Checks the id of a project before it becomes part of paths.
pub(crate) fn project_id(text: &str) -> Result<String, &'static str> {
    let is_id = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_alphanumeric());
    text.strip_prefix("prj_").filter(|digits| is_id(digits)).map(|_| text.to_owned()).ok_or("must be the id of a project")
}

/// Parses a duration: `60` (seconds), `500ms`, `60s`, `5m`, `1h`, `7d`.
fn duration(text: &str) -> Result<Duration, &'static str> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit = match unit.trim() {
        "ms" => Some(1),
        "" | "s" => Some(1_000),
        "m" | "min" => Some(60_000),
        "h" => Some(3_600_000),
        "d" => Some(86_400_000),
        _ => None,
    };
    let ms = number.parse().ok().zip(unit).and_then(|(number, unit): (u64, u64)| number.checked_mul(unit));
    ms.map(Duration::from_millis).ok_or("must be a duration, such as 10s or 5m")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_flags_fit_together() {
        LoadArgs::command().debug_assert();
    }

    #[test]
    fn durations_have_units_and_ids_no_spaces() {
        for (text, ms) in [("60", 60_000), ("500ms", 500), ("3 s", 3_000), ("5m", 300_000), ("2h", 7_200_000), ("1d", 86_400_000)]
        {
            assert_eq!(duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "s", "-1s", "1w", "18446744073709551615s"] {
            assert!(duration(text).is_err(), "{text}");
        }
        assert_eq!(project_id("prj_92RppexRAre").as_deref(), Ok("prj_92RppexRAre"));
        for text in ["", "prj_", "org_1", "prj_1 2", "prj_1/../x", "prj_\r\n"] {
            assert!(project_id(text).is_err(), "{text:?}");
        }
    }
}

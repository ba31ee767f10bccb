//! Logs: structured, lower case, to standard error. What is printed to standard output is the program's answer.

use std::io::IsTerminal;
use std::panic::PanicHookInfo;
use std::str::FromStr;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use crate::config::LogFormat;

/// What is wrong with a filter of logs.
#[derive(Debug, thiserror::Error)]
#[error("must be a level (off, error, warn, info, debug, trace) or directives such as \"info,headcount_storage=debug\"")]
pub struct BadFilter;

/// Checks what `log` is set to.
///
/// # Errors
/// It is no filter.
pub fn filter(directives: &str) -> Result<EnvFilter, BadFilter> {
    // A word without a level would be taken for the name of a part of the program, and switch everything else off.
    let is_clear = |part: &str| part.contains(['=', '[']) || LevelFilter::from_str(part).is_ok();
    if !directives.split(',').map(str::trim).filter(|part| !part.is_empty()).all(is_clear) {
        return Err(BadFilter);
    }
    EnvFilter::try_new(directives).map_err(|_| BadFilter)
}

/// Starts logging, once in the life of the process; later calls change nothing.
///
/// # Errors
/// `directives` are no filter.
pub fn init(directives: &str, format: LogFormat) -> Result<(), BadFilter> {
    let filter = filter(directives)?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let started = match format {
        LogFormat::Text => builder.with_ansi(std::io::stderr().is_terminal()).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    if started.is_ok() {
        std::panic::set_hook(Box::new(log_panic));
    }
    Ok(())
}

/// A panic is caught where it happens; here it becomes a log line. What it says may hold an event's data, so only its place
/// is logged.
fn log_panic(info: &PanicHookInfo<'_>) {
    let location = info.location().map(ToString::to_string).unwrap_or_default();
    let thread = std::thread::current().name().unwrap_or("unnamed").to_owned();
    tracing::error!(location, thread, "panicked");
}

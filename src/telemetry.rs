//! Logging to standard error. Standard output is reserved for the output of commands.

use std::io::IsTerminal;
use std::panic::PanicHookInfo;
use std::str::FromStr;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Text lines.
    Text,
    /// One JSON object a line.
    Json,
}

/// The error for an invalid log filter.
#[derive(Debug, thiserror::Error)]
#[error("must be a level (off, error, warn, info, debug, trace) or directives such as \"info,headcount_storage=debug\"")]
pub struct BadFilter;

/// Parses the setting `log`.
///
/// # Errors
/// The text is not a filter.
pub fn filter(directives: &str) -> Result<EnvFilter, BadFilter> {
    // `EnvFilter` would treat a misspelled level as a target, and disable all other logging.
    let is_clear = |part: &str| part.contains(['=', '[']) || LevelFilter::from_str(part).is_ok();
    if !directives.split(',').map(str::trim).filter(|part| !part.is_empty()).all(is_clear) {
        return Err(BadFilter);
    }
    EnvFilter::try_new(directives).map_err(|_| BadFilter)
}

/// Starts logging. Only the first call in a process has an effect.
///
/// # Errors
/// `directives` is not a filter.
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

/// Logs the location of a panic, without its message, which may contain data of an event.
fn log_panic(info: &PanicHookInfo<'_>) {
    let location = info.location().map(ToString::to_string).unwrap_or_default();
    let thread = std::thread::current().name().unwrap_or("unnamed").to_owned();
    tracing::error!(location, thread, "panicked");
}

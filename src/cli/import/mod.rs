//! `headcount import`: the events of a file, or the requests of a web server's access log.
//!
//! Exactly once, whatever happens in between: see [`journal`].

mod combined;
mod embedded;
mod events;
mod journal;
mod lines;
mod pipeline;
mod remote;
mod report;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use headcount_actors::Engine;
use headcount_domain::ids::ProjectId;
use headcount_domain::policy::BotPolicy;
use headcount_storage::lock::{DirLock, LockError};
use xxhash_rust::xxh3::xxh3_128;

pub(crate) use journal::settle;

use super::client::{Client, ServerFlags, pick};
use super::serve::stop_signal;
use super::{Failure, print_json, runtime};
use crate::config::Settings;
use events::{Format, Reading, Tags};
use journal::{Journal, Resume};
use lines::{Blocks, Place, ReadBytes};
use report::{Report, Summary};

/// The flags of `import`.
#[derive(Debug, Clone, clap::Args)]
pub struct ImportArgs {
    /// The file; `-` is standard input. What is gzip is decompressed
    file: PathBuf,
    /// The project: its id, or its name if that is unique [default: the only one]
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,
    /// What the lines are
    #[arg(long, value_enum, default_value = "ndjson")]
    format: Format,
    /// Access logs: the site's host name, which makes the paths whole URLs
    #[arg(long, value_name = "HOST")]
    hostname: Option<String>,
    /// Access logs: every request, not only answered pages
    #[arg(long)]
    all: bool,
    /// What becomes of crawlers in this import [default: what the project's policy says]
    #[arg(long, value_enum, value_name = "POLICY")]
    bots: Option<Bots>,
    /// Begin at the first line, also if an earlier run imported this file
    #[arg(long)]
    again: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerFlags,
}

/// What becomes of crawlers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Bots {
    /// They are left out
    Drop,
    /// They are recorded, with the device `bot`
    Record,
}

/// Runs the command.
///
/// # Errors
/// The file or the data directory can't be used, the server refuses, or it was stopped.
pub fn run(settings: &Settings, args: &ImportArgs) -> Result<ExitCode, Failure> {
    let summary = runtime()?.block_on(import(settings, args, stop_signal))?;
    if args.json {
        print_json(&summary)?;
    } else {
        println!("{}", summary.describe());
    }
    Ok(if summary.finished { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn import<S: Future<Output = ()>>(
    settings: &Settings,
    args: &ImportArgs,
    stop: impl FnOnce() -> Result<S, Failure>,
) -> Result<Summary, Failure> {
    if args.server.url.is_some() || is_held(&settings.data_dir)? {
        through_server(settings, args, stop()?).await
    } else {
        into_directory(settings, args, stop()?).await
    }
}

/// Whether another process, a server, holds the data directory.
fn is_held(data_dir: &Path) -> Result<bool, Failure> {
    if !data_dir.join("FORMAT").exists() {
        let message = "is no data directory: `headcount init` or `headcount serve` makes one";
        return Err(Failure(format!("{} {message}", data_dir.display())));
    }
    match DirLock::acquire(data_dir) {
        Ok(_) => Ok(false),
        Err(LockError::InUse { .. }) => Ok(true),
        Err(error) => Err(Failure(error.to_string())),
    }
}

async fn into_directory(settings: &Settings, args: &ImportArgs, stop: impl Future<Output = ()>) -> Result<Summary, Failure> {
    crate::open_files::raise()?;
    let engine = Engine::open(settings.engine())?;
    let summary = into_engine(&engine, args, stop).await;
    engine.close().await;
    summary
}

async fn into_engine(engine: &Engine, args: &ImportArgs, stop: impl Future<Output = ()>) -> Result<Summary, Failure> {
    let registry = engine.registry();
    let organizations = registry.organizations();
    let projects = organizations.iter().filter_map(|organization| registry.projects(organization.id).ok()).flatten();
    let project = pick(args.project.as_deref(), projects.map(|project| (project.id, project.name.clone())))?;
    // Other imports that were cut short: once this one records, the log no longer tells how far they came.
    settle(engine);
    let mut journal = args.journal(Some(engine.data_dir()), project)?;
    let resume = args.resume(journal.as_mut(), Some(engine.vitals().log_position))?;
    if resume.finished {
        return Ok(args.nothing_left());
    }
    let keyed = registry.policy(project).ok_or_else(|| Failure("the project is gone".into()))?;
    let mut policy = registry.pin_calendar(&keyed)?.policy.clone();
    policy.bots = match args.bots {
        Some(Bots::Drop) => BotPolicy::Drop,
        Some(Bots::Record) => BotPolicy::Record,
        None => policy.bots,
    };
    let until = resume.sent_until;
    let tags = journal.as_ref().filter(|_| until > resume.from.offset).map(|it| Tags { prefix: it.prefix().to_owned(), until });
    let read_bytes = ReadBytes::default();
    let blocks = args.blocks(resume.from, &read_bytes)?;
    let mut report = args.report(resume.from, read_bytes);
    let finished =
        embedded::run(engine, Arc::new(policy), (blocks, args.reading(tags)), journal.as_mut(), &mut report, stop).await;
    conclude(finished, journal.as_mut(), report)
}

async fn through_server(settings: &Settings, args: &ImportArgs, stop: impl Future<Output = ()>) -> Result<Summary, Failure> {
    if args.bots.is_some() {
        let message = "--bots needs the data directory for itself: stop the server, or set the project's policy `bots`";
        return Err(Failure(message.into()));
    }
    let client = Client::new(&args.server, settings)?;
    let project = client.project(args.project.as_deref())?;
    let data_dir = args.server.url.is_none().then_some(settings.data_dir.as_path());
    let mut journal = args.journal(data_dir, project)?;
    let resume = args.resume(journal.as_mut(), None)?;
    if resume.finished {
        return Ok(args.nothing_left());
    }
    let prefix = match &journal {
        Some(journal) => journal.prefix().to_owned(),
        None => format!("import:{}", args.key(project)?.unwrap_or_else(stdin_key)),
    };
    let read_bytes = ReadBytes::default();
    let blocks = args.blocks(resume.from, &read_bytes)?;
    let mut report = args.report(resume.from, read_bytes);
    let reading = args.reading(Some(Tags { prefix, until: u64::MAX }));
    tracing::info!(url = client.url(), "importing through the server");
    let finished = remote::run(&client, project, (blocks, reading), journal.as_mut(), &mut report, stop).await;
    conclude(finished, journal.as_mut(), report)
}

fn conclude(finished: Result<bool, Failure>, journal: Option<&mut Journal>, mut report: Report) -> Result<Summary, Failure> {
    let finished = match finished {
        Ok(finished) => finished,
        Err(Failure(message)) => {
            let summary = report.end();
            let done = summary.recorded;
            return Err(Failure(format!(
                "{message} ({done} events were recorded; the same command goes on where this one stopped)"
            )));
        }
    };
    report.summary.finished = finished;
    if let Some(journal) = journal.filter(|_| finished) {
        journal.finish().map_err(|error| Failure(error.to_string()))?;
    }
    Ok(report.end())
}

/// Two pipes are never the same.
fn stdin_key() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    format!("{since:x}")
}

impl ImportArgs {
    fn is_stdin(&self) -> bool {
        self.file == Path::new("-")
    }

    /// Names this import: the project, the file as it is now, and how it is read.
    fn key(&self, project: ProjectId) -> Result<Option<String>, Failure> {
        if self.is_stdin() {
            return Ok(None);
        }
        let failed = |error| Failure::new(&self.file.display().to_string(), error);
        let path = self.file.canonicalize().map_err(failed)?;
        let metadata = path.metadata().map_err(failed)?;
        if metadata.is_dir() {
            return Err(Failure(format!("{} is a directory", self.file.display())));
        }
        let changed = metadata.modified().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
        let how = (self.format, &self.hostname, self.all, self.bots);
        let name = format!("{project}\n{}\n{}\n{changed:?}\n{how:?}", path.display(), metadata.len());
        Ok(Some(format!("{:032x}", xxh3_128(name.as_bytes()))))
    }

    /// What can be read only once, or lies beside no data directory, has none.
    fn journal(&self, data_dir: Option<&Path>, project: ProjectId) -> Result<Option<Journal>, Failure> {
        let (Some(data_dir), Some(key)) = (data_dir, self.key(project)?) else { return Ok(None) };
        let journal = Journal::open(data_dir, &key, &self.file, self.again);
        journal.map(Some).map_err(|error| self.unusable(&error))
    }

    fn resume(&self, journal: Option<&mut Journal>, log_position: Option<u64>) -> Result<Resume, Failure> {
        match journal {
            Some(journal) => journal.resume(log_position).map_err(|error| self.unusable(&error)),
            None => Ok(Resume { from: Place::START, sent_until: 0, finished: false }),
        }
    }

    fn unusable(&self, error: &journal::JournalError) -> Failure {
        Failure(format!("{error}; --again begins at the first line"))
    }

    fn nothing_left(&self) -> Summary {
        eprintln!("{} was imported already; --again imports it once more", self.file.display());
        Summary { finished: true, ..Summary::default() }
    }

    fn blocks(&self, from: Place, read_bytes: &ReadBytes) -> Result<Blocks, Failure> {
        Blocks::open(&self.file, from, read_bytes).map_err(|error| Failure::new(&self.file.display().to_string(), error))
    }

    fn report(&self, from: Place, read_bytes: ReadBytes) -> Report {
        let total = if self.is_stdin() { None } else { self.file.metadata().ok().map(|metadata| metadata.len()) };
        let mut report = Report::new(total, read_bytes);
        report.summary.resumed_at_line = (from != Place::START).then_some(from.lines + 1);
        report
    }

    fn reading(&self, tags: Option<Tags>) -> Reading {
        Reading { format: self.format, hostname: self.hostname.clone(), all: self.all, tags }
    }
}

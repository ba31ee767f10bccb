//! `headcount import`: imports events from a file, or requests from the access log of a web server.
//!
//! Records every line exactly once, even if the import is interrupted (see `journal`), and resumes a file that has grown (see
//! `subject`).

mod combined;
mod embedded;
mod events;
mod journal;
mod lines;
mod pipeline;
mod remote;
mod report;
mod subject;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use headcount_actors::{Engine, EngineConfig};
use headcount_domain::ids::ProjectId;
use headcount_domain::intake::policy::BotPolicy;
use headcount_domain::quota::Quotas;
use headcount_storage::lock::{DirLock, LockError};

pub(crate) use journal::settle;

use super::client::{Client, ServerFlags, pick};
use super::failure::Failure;
use super::output::print;
use super::runtime::{runtime, since_epoch, stop_signal};
use crate::config::Settings;
use events::{Format, Reading, Tags};
use journal::{Journal, Resume};
use lines::{Opening, Place};
use report::{Reporter, Summary};
use subject::Subject;

/// The flags of `import`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ImportArgs {
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
    /// Wait for more lines at the end, also of the next file of this name, until a signal comes
    #[arg(long)]
    follow: bool,
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
pub(crate) fn run(settings: &Settings, args: &ImportArgs) -> Result<ExitCode, Failure> {
    let summary = runtime()?.block_on(import(settings, args, stop_signal))?;
    print(args.json, &summary, || summary.describe())?;
    Ok(if summary.finished && !summary.is_all_refused() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
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
    // Who has the data directory may fill it. And a batch that was announced to the journal is recorded as a whole.
    let config = EngineConfig { quotas: Quotas::UNLIMITED, ..settings.engine() };
    let engine = Engine::open(config)?;
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
    let keyed = registry.policy(project).ok_or_else(|| Failure("the project is gone".into()))?;
    let mut policy = registry.pin_calendar(&keyed)?.policy.clone();
    policy.bots = match args.bots {
        Some(Bots::Drop) => BotPolicy::Drop,
        Some(Bots::Record) => BotPolicy::Record,
        None => policy.bots,
    };
    let policy = Arc::new(policy);
    let (mut report, mut stop, mut again) = (args.report(), std::pin::pin!(stop), args.again);
    let finished = loop {
        let log_position = engine.vitals().log_position;
        let source = args.source(Some(engine.data_dir()), project, Some(log_position), again);
        let ResumePoint { from, sent_until, mut journal } = source?;
        let tags = journal.as_ref().filter(|_| sent_until > from.offset);
        let tags = tags.map(|it| Tags { prefix: it.prefix().to_owned(), until: sent_until });
        let input = (args.opening(from, &mut report), args.reading(tags));
        let ended = embedded::run(engine, Arc::clone(&policy), input, journal.as_mut(), &mut report, stop.as_mut()).await;
        match args.file_ended(ended, journal.as_mut()) {
            Next::File => again = false,
            Next::End(finished) => break finished,
        }
    };
    conclude(finished, report)
}

async fn through_server(settings: &Settings, args: &ImportArgs, stop: impl Future<Output = ()>) -> Result<Summary, Failure> {
    if args.bots.is_some() {
        let message = "--bots needs the data directory for itself: stop the server, or set the project's policy `bots`";
        return Err(Failure(message.into()));
    }
    let client = Client::new(&args.server, settings)?;
    let project = client.project(args.project.as_deref())?;
    let data_dir = args.server.url.is_none().then_some(settings.data_dir.as_path());
    tracing::info!(url = client.url(), "importing through the server");
    let (mut report, mut stop, mut again) = (args.report(), std::pin::pin!(stop), args.again);
    let finished = loop {
        let ResumePoint { from, mut journal, .. } = args.source(data_dir, project, None, again)?;
        let prefix = match &journal {
            Some(journal) => journal.prefix().to_owned(),
            None => args.prefix(project)?,
        };
        let input = (args.opening(from, &mut report), args.reading(Some(Tags { prefix, until: u64::MAX })));
        let ended = remote::run(&client, project, input, journal.as_mut(), &mut report, stop.as_mut()).await;
        match args.file_ended(ended, journal.as_mut()) {
            Next::File => again = false,
            Next::End(finished) => break finished,
        }
    };
    conclude(finished, report)
}

/// Where an import goes on.
struct ResumePoint {
    from: Place,
    /// Events before this offset may have been sent to a server already.
    sent_until: u64,
    journal: Option<Journal>,
}

/// What follows a file.
enum Next {
    /// The next of its name.
    File,
    /// Nothing. Whether the import is finished, or why it failed.
    End(Result<bool, Failure>),
}

fn conclude(finished: Result<bool, Failure>, mut report: Reporter) -> Result<Summary, Failure> {
    let is_stream = report.summary.is_stream;
    match finished {
        Ok(finished) => {
            report.summary.finished = finished;
            Ok(report.end())
        }
        Err(Failure(message)) => {
            let done = report.end().recorded;
            let hint = if is_stream { "" } else { "; the same command goes on where this one stopped" };
            Err(Failure(format!("{message} ({done} events were recorded{hint})")))
        }
    }
}

impl ImportArgs {
    /// What can be read only once.
    fn is_stream(&self) -> bool {
        self.file == Path::new("-") || self.file.metadata().is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
    }

    /// The file as it is now. `None`: it can be read only once.
    fn subject(&self, project: ProjectId) -> Result<Option<Subject>, Failure> {
        if self.is_stream() {
            return Ok(None);
        }
        if self.file.is_dir() {
            return Err(Failure(format!("{} is a directory", self.file.display())));
        }
        let how = format!("{project} {:?} {:?} {} {:?}", self.format, self.hostname, self.all, self.bots);
        Subject::of(&self.file, how).map(Some).map_err(|error| self.unreadable(&error))
    }

    /// What the `external_id`s of an import without a journal begin with.
    fn prefix(&self, project: ProjectId) -> Result<String, Failure> {
        let name = match self.subject(project)?.filter(|_| !self.again) {
            Some(subject) => subject.name().map_err(|error| self.unreadable(&error))?,
            // Two pipes are never the same input.
            None => format!("{:x}", since_epoch().as_nanos()),
        };
        Ok(format!("import:{name}"))
    }

    /// Where to go on. What can be read only once, or lies beside no data directory, has no journal. `log_position`: the log's
    /// last, if nobody else records events. `again`: from the first line, whatever there was before.
    fn source(
        &self,
        data_dir: Option<&Path>,
        project: ProjectId,
        log_position: Option<u64>,
        again: bool,
    ) -> Result<ResumePoint, Failure> {
        let start = ResumePoint { from: Place::START, sent_until: 0, journal: None };
        let (Some(data_dir), Some(subject)) = (data_dir, self.subject(project)?) else { return Ok(start) };
        if again {
            Journal::forget(data_dir, &subject).map_err(|error| self.unusable(&error))?;
        } else if let Some(mut journal) = Journal::find(data_dir, &subject).map_err(|error| self.unusable(&error))? {
            let Resume { from, sent_until, .. } = journal.resume(log_position).map_err(|error| self.unusable(&error))?;
            if subject.reaches(from).map_err(|error| self.unreadable(&error))? {
                return Ok(ResumePoint { from, sent_until, journal: Some(journal) });
            }
            tracing::warn!(file = %self.file.display(), "the file was written anew since it was imported: it begins at its first line");
        }
        if let Some(former) = Journal::left_behind(data_dir, &subject).filter(|_| !again) {
            tracing::warn!(
                former = %former.display(),
                "another file had this name, and has lines that were not imported: the same command with its new name reads them"
            );
        }
        let journal = Journal::create(data_dir, &subject).map_err(|error| self.unusable(&error))?;
        Ok(ResumePoint { journal: Some(journal), ..start })
    }

    /// What follows, once all that was begun of a file is done or has failed.
    fn file_ended(&self, ended: Result<bool, Failure>, journal: Option<&mut Journal>) -> Next {
        let is_end = match ended {
            Ok(is_end) => is_end,
            Err(failure) => return Next::End(Err(failure)),
        };
        // A file that is followed is never known to be unfinished.
        if let Some(Err(error)) = journal.map(|journal| journal.finish(is_end || self.follow)) {
            return Next::End(Err(self.unusable(&error)));
        }
        if is_end && self.follow && !self.is_stream() {
            tracing::info!(file = %self.file.display(), "another file has this name now: going on with it");
            return Next::File;
        }
        Next::End(Ok(is_end || self.follow))
    }

    fn unreadable(&self, error: &std::io::Error) -> Failure {
        Failure::new(self.file.display(), error)
    }

    fn unusable(&self, error: &journal::JournalError) -> Failure {
        Failure(format!("{error}; --again begins at the first line"))
    }

    fn opening(&self, from: Place, report: &mut Reporter) -> Opening {
        if from != Place::START && report.summary.lines == 0 {
            report.summary.resumed_at_line = Some(from.lines + 1);
        }
        let (file, follow, is_whole) = (self.file.clone(), self.follow, self.format.is_whole());
        Opening { file, from, follow, is_whole, progress: report.begin_file() }
    }

    fn report(&self) -> Reporter {
        let is_endless = self.is_stream() || self.follow;
        let total = if is_endless { None } else { self.file.metadata().ok().map(|metadata| metadata.len()) };
        Reporter::new(total, self.is_stream())
    }

    fn reading(&self, tags: Option<Tags>) -> Reading {
        Reading { format: self.format, hostname: self.hostname.clone(), all: self.all, tags }
    }
}

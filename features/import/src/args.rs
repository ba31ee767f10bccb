//! The flags of `import`, and the properties of the file that follow from them.

use std::path::{Path, PathBuf};

use headcount_api::command::{Failure, ServerFlags, since_epoch};
use headcount_domain::ProjectId;
use headcount_domain::intake::policy::BotPolicy;

use super::events::{Format, Reading, Tags};
use super::journal::Journal;
use super::lines::{Opening, Place};
use super::report::Reporter;
use super::source_file::SourceFile;
use super::tables::Tables;

/// The flags of `import`.
#[derive(Debug, Clone, clap::Args)]
pub struct ImportArgs {
    /// File to import, plain, gzip or zstd; `-` is standard input
    file: PathBuf,
    /// Project, by id or unique name [default: the only one]
    #[arg(long, value_name = "PROJECT")]
    pub(super) project: Option<String>,
    /// Format of the lines
    #[arg(long, value_enum, default_value = "ndjson")]
    format: Format,
    /// Host name of the site. Completes paths in access logs and other products' exports to URLs
    #[arg(long, value_name = "HOST")]
    hostname: Option<String>,
    /// Import every request of an access log, not only successful page views
    #[arg(long)]
    all: bool,
    /// What to do with events of crawlers [default: the project's policy]
    #[arg(long, value_enum, value_name = "POLICY")]
    pub(super) bots: Option<Bots>,
    /// Begin at the first line, even if an earlier run imported this file. Its events then count as
    /// duplicates
    #[arg(long)]
    pub(super) again: bool,
    /// Import rows of an export as new events, and ignore the decisions that were recorded with
    /// them
    #[arg(long)]
    pub(super) as_new: bool,
    /// File for refused lines, as lines of JSON: `{"line","code","message"}`. A run that continues
    /// an earlier one appends to it
    #[arg(long, value_name = "FILE")]
    refused: Option<PathBuf>,
    /// Wait for more lines until a signal stops the import. Follows the file across log rotation
    #[arg(long)]
    pub(super) follow: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) server: ServerFlags,
}

/// The policy for events of crawlers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Bots {
    /// Drop their events
    Drop,
    /// Record their events with the device `bot`
    Record,
}

impl From<Bots> for BotPolicy {
    fn from(bots: Bots) -> Self {
        match bots {
            Bots::Drop => Self::Drop,
            Bots::Record => Self::Record,
        }
    }
}

impl ImportArgs {
    /// Returns whether the input can be read only once.
    fn is_stream(&self) -> bool {
        self.file == Path::new("-") || self.file.metadata().is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
    }

    /// Identifies the file as it is now. Returns `None` for a stream.
    pub(super) fn source_file(&self, project: ProjectId) -> Result<Option<SourceFile>, Failure> {
        if self.is_stream() {
            return Ok(None);
        }
        if self.file.is_dir() {
            return Err(Failure(format!("{} is a directory", self.file.display())));
        }
        let how = format!(
            "{project} {:?} {:?} {} {:?}{}",
            self.format,
            self.hostname,
            self.all,
            self.bots,
            if self.as_new { " new" } else { "" }
        );
        SourceFile::of(&self.file, how, self.format.tables()).map(Some).map_err(|error| self.unreadable(&error))
    }

    /// The prefix of the `external_id`s that an import without a journal assigns.
    fn prefix(&self, project: ProjectId) -> Result<String, Failure> {
        let name = match self.source_file(project)? {
            Some(file) => file.name().map_err(|error| self.unreadable(&error))?,
            // Each stream is a new input.
            None => format!("{:x}", since_epoch().as_nanos()),
        };
        Ok(format!("import:{name}"))
    }

    /// Finds the place to continue; with `again`, the first line. A stream, or an import without a
    /// data directory, has no journal.
    pub(super) fn resume(
        &self,
        data_dir: Option<&Path>,
        project: ProjectId,
        again: bool,
    ) -> Result<(Place, Option<Journal>), Failure> {
        let (Some(data_dir), Some(file)) = (data_dir, self.source_file(project)?) else { return Ok((Place::START, None)) };
        if let Some(journal) = Journal::find(data_dir, &file)? {
            let done = journal.progress()?;
            // Places in other products' tables are not places in the file. A continued import skips
            // the imported rows.
            let is_foreign = matches!(self.format.tables(), Tables::Foreign(_));
            if is_foreign || file.has_boundary(done).map_err(|error| self.unreadable(&error))? {
                return Ok((if again { Place::START } else { done }, Some(journal)));
            }
            let file = self.file.display();
            tracing::warn!(%file, "the file was rewritten after its import: importing from its first line");
        }
        if let Some(former) = Journal::left_behind(data_dir, &file) {
            tracing::warn!(
                former = %former.display(),
                "a renamed file that had this name has lines that were not imported: repeat the command with its new name"
            );
        }
        Ok((Place::START, Some(Journal::create(data_dir, &file)?)))
    }

    /// Closes the journal of a file. Returns whether the import is finished, or `None` if it
    /// continues with the next file of the same name.
    pub(super) fn file_ended(&self, is_end: bool, journal: Option<&mut Journal>) -> Result<Option<bool>, Failure> {
        // A followed file has no end, so a signal leaves nothing unfinished.
        let finished = is_end || self.follow;
        if let Some(journal) = journal {
            journal.finish(finished)?;
        }
        if is_end && self.follow && !self.is_stream() {
            tracing::info!(file = %self.file.display(), "the file was replaced: following the new one");
            return Ok(None);
        }
        Ok(Some(finished))
    }

    fn unreadable(&self, error: &std::io::Error) -> Failure {
        Failure::new(self.file.display(), error)
    }

    /// How to open the file. `reporter` gets the place where reading begins.
    pub(super) fn opening(&self, from: Place, reporter: &mut Reporter) -> Opening {
        let (file, follow, is_whole) = (self.file.clone(), self.follow, self.format.is_whole());
        let tables = self.format.tables();
        Opening { file, from, follow, is_whole, tables, progress: reporter.begin_file(from) }
    }

    /// Creates the reporter of an import with these flags.
    pub(super) fn reporter(&self) -> Result<Reporter, Failure> {
        let same = |refused: &PathBuf| {
            refused.canonicalize().is_ok_and(|refused| self.file.canonicalize().is_ok_and(|file| file == refused))
        };
        if self.refused.as_ref().is_some_and(same) {
            return Err(Failure("--refused must not be the imported file".into()));
        }
        if self.as_new && self.format != Format::Ndjson {
            return Err(Failure("--as-new works only with files that `export` wrote".into()));
        }
        let is_endless = self.is_stream() || self.follow;
        let total = if is_endless { None } else { self.file.metadata().ok().map(|metadata| metadata.len()) };
        Ok(Reporter::new(total, self.is_stream(), self.refused.clone()))
    }

    /// How lines after a place become events. With `to_server`, other clients record events at the
    /// same time.
    pub(super) fn reading(
        &self,
        project: ProjectId,
        (from, journal): (Place, Option<&Journal>),
        to_server: bool,
    ) -> Result<Reading, Failure> {
        // A server recognizes a repeated event only by its `external_id`.
        let until = if to_server { u64::MAX } else { journal.map_or(0, Journal::sent_until) };
        let prefix = (until > from.offset).then(|| match journal {
            Some(journal) => Ok(journal.prefix.to_owned()),
            None => self.prefix(project),
        });
        let tags = prefix.transpose()?.map(|prefix| Tags { prefix, until });
        let seen = journal.map(Journal::seen).filter(|seen| seen.reaches_beyond(from.offset)).cloned().unwrap_or_default();
        Ok(Reading { format: self.format, hostname: self.hostname.clone(), all: self.all, seen, tags })
    }
}

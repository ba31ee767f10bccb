//! The report of an import: its progress, the refused lines, and a summary at the end.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use headcount_api::command::Failure;
use headcount_api::event_answer::BatchAnswer;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::events::{Events, RefusedLine};
use super::lines::Place;
use super::progress::Progress;

/// The maximum number of refused lines, and of lines with future times, that are listed one by one.
const MAX_LISTED_LINES: usize = 20;

/// The summary of an import, as `--json` prints it.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Summary {
    /// Whether the input is a stream, which no later run can continue.
    #[serde(skip)]
    is_stream: bool,
    /// Lines that this run read.
    pub(crate) lines: u64,
    /// Events that were recorded.
    pub(crate) recorded: u64,
    /// Events that were recorded before: their `external_id` is known, or an earlier run read their
    /// lines.
    pub(crate) duplicates: u64,
    /// Events that the project's policy dropped.
    pub(crate) dropped: u64,
    /// Requests of an access log that are not successful page views, and records of other products
    /// that are not events.
    pub(crate) skipped: u64,
    /// Events whose time was too far in the future. They were recorded with the time of the import.
    pub(crate) clamped: u64,
    /// The first lines with such events.
    pub(crate) clamped_lines: Vec<u64>,
    /// Lines that are not valid events.
    pub(crate) refused: u64,
    /// Refused lines by error code.
    pub(crate) refused_by_code: BTreeMap<String, u64>,
    /// The first refused lines.
    pub(crate) refused_lines: Vec<RefusedLine>,
    /// The line at which this run began, if an earlier run imported the lines before.
    pub(crate) resumed_at_line: Option<u64>,
    /// The number of the last line, if it was incomplete and is left for the next run.
    pub(crate) unfinished_line: Option<u64>,
    /// Whether the end of the file was reached, or a followed file was stopped by a signal.
    pub(crate) finished: bool,
    /// The duration in seconds.
    pub(crate) seconds: f64,
    /// Events recorded per second.
    pub(crate) events_per_second: u64,
}

/// Counts lines and events, and shows the progress.
pub(crate) struct Reporter {
    summary: Summary,
    began: Instant,
    bar: ProgressBar,
    progress: Arc<Progress>,
    refusals: Refusals,
}

impl Reporter {
    /// Creates a reporter. `total_bytes` is the size of the file, if known.
    pub(crate) fn new(total_bytes: Option<u64>, is_stream: bool, refused: Option<PathBuf>) -> Self {
        // The bar is hidden if standard error is not a terminal.
        let bar = total_bytes.map_or_else(ProgressBar::no_length, ProgressBar::new);
        let template = match total_bytes {
            Some(_) => "{bar:32} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} {msg} {eta}",
            None => "{binary_bytes} {binary_bytes_per_sec} {msg}",
        };
        bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
        let summary = Summary { is_stream, ..Summary::default() };
        Self { summary, began: Instant::now(), bar, progress: Arc::default(), refusals: Refusals::new(refused) }
    }

    /// Begins a file at `from`. Returns the progress that its reader updates.
    pub(crate) fn begin_file(&mut self, from: Place) -> Arc<Progress> {
        self.refusals.begin(from != Place::START);
        if from != Place::START && self.summary.lines == 0 {
            self.summary.resumed_at_line = Some(from.lines + 1);
        }
        self.progress = Arc::default();
        Arc::clone(&self.progress)
    }

    /// Counts the lines of a block.
    pub(crate) fn lines_read(&mut self, events: &Events) {
        self.summary.skipped += events.skipped;
        self.summary.duplicates += events.seen;
        self.summary.lines += count(events.spans.len() + events.refused.len()) + events.skipped + events.seen;
        self.refuse(events.refused.iter().cloned());
    }

    /// Counts the results of the events at `spans`.
    pub(crate) fn recorded(&mut self, answer: BatchAnswer, spans: &[(Range<usize>, u64)]) {
        self.summary.recorded += count(answer.recorded);
        self.summary.duplicates += count(answer.duplicates);
        self.summary.dropped += count(answer.dropped);
        let line = |index: usize| spans.get(index).map_or(0, |(_, line)| *line);
        self.summary.clamped += count(answer.clamped.len());
        let room = MAX_LISTED_LINES.saturating_sub(self.summary.clamped_lines.len());
        self.summary.clamped_lines.extend(answer.clamped.into_iter().take(room).map(line));
        self.refuse(answer.errors.into_iter().map(|error| RefusedLine {
            line: line(error.index),
            code: error.code,
            message: error.message,
        }));
    }

    fn refuse(&mut self, lines: impl Iterator<Item = RefusedLine>) {
        for refused in lines {
            self.summary.refused += 1;
            self.refusals.add(&refused);
            *self.summary.refused_by_code.entry(refused.code.to_string()).or_default() += 1;
            if self.summary.refused_lines.len() < MAX_LISTED_LINES {
                let RefusedLine { line, code, message } = &refused;
                self.bar.suspend(|| eprintln!("line {line}: {message} [{code}]"));
                self.summary.refused_lines.push(refused);
            }
        }
    }

    /// Updates the progress bar and the file of refused lines.
    ///
    /// # Errors
    /// The file can't be written.
    pub(crate) fn show(&mut self) -> Result<(), Failure> {
        self.refusals.flush()?;
        self.bar.set_position(self.progress.read_bytes.load(Ordering::Relaxed));
        self.bar.set_message(format!("{} events", self.summary.recorded));
        Ok(())
    }

    /// Ends the import. `finished` is false if it was stopped.
    pub(crate) fn end(mut self, finished: Result<bool, Failure>) -> Result<Summary, Failure> {
        self.bar.finish_and_clear();
        self.summary.finished = finished.map_err(|Failure(message)| {
            let hint = if self.summary.is_stream { "" } else { "; repeat the command to continue" };
            Failure(format!("{message} ({} events were recorded{hint})", self.summary.recorded))
        })?;
        let unfinished = self.progress.unfinished_line.load(Ordering::Relaxed);
        self.summary.unfinished_line = (unfinished > 0).then_some(unfinished);
        let took = self.began.elapsed().max(Duration::from_millis(1));
        self.summary.seconds = (took.as_secs_f64() * 1_000.0).round() / 1_000.0;
        let per_second = u128::from(self.summary.recorded) * 1_000 / took.as_millis().max(1);
        self.summary.events_per_second = u64::try_from(per_second).unwrap_or(u64::MAX);
        Ok(self.summary)
    }
}

fn count(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

impl Summary {
    /// Returns whether lines were refused and no line was ever recorded.
    pub(crate) fn none_recorded(&self) -> bool {
        self.refused > 0 && self.recorded + self.duplicates == 0
    }

    /// Returns whether lines were refused, and no line was recorded, dropped or skipped.
    pub(crate) fn has_only_refusals(&self) -> bool {
        self.none_recorded() && self.dropped + self.skipped == 0
    }

    /// Formats the summary as text.
    pub(crate) fn describe(&self) -> String {
        let mut text = String::new();
        if let Some(line) = self.resumed_at_line.filter(|_| self.lines == 0 && self.finished) {
            let done = line - 1;
            text.push_str(&format!("no new lines after line {done}; --again begins at the first line\n"));
        } else if let Some(line) = self.resumed_at_line {
            text.push_str(&format!("resumed at line {line}\n"));
        }
        text.push_str(&format!("{} lines in {:.1} s: {} recorded", self.lines, self.seconds, self.recorded));
        for (count, what) in [
            (self.duplicates, "duplicates"),
            (self.dropped, "dropped by the project's policy"),
            (self.skipped, "skipped (not successful page views)"),
            (self.refused, "refused"),
        ] {
            if count > 0 {
                text.push_str(&format!(", {count} {what}"));
            }
        }
        text.push_str(&format!(" ({} events/s)", self.events_per_second));
        for (code, count) in &self.refused_by_code {
            text.push_str(&format!("\n  refused: {count} {code}"));
        }
        if self.clamped > 0 {
            let (clamped, lines) = (self.clamped, self.clamped_lines.iter().map(u64::to_string).collect::<Vec<_>>().join(", "));
            let more = if clamped > count(self.clamped_lines.len()) { ", …" } else { "" };
            text.push_str(&format!(
                "\n  recorded with the time of the import, because their time is in the future: {clamped} (lines {lines}{more})"
            ));
        }
        if let Some(line) = self.unfinished_line {
            text.push_str(&format!("\nline {line} is incomplete: repeat the command when it is complete"));
        }
        if !self.finished {
            text.push_str("\nnot finished");
            text.push_str(if self.is_stream { "" } else { ": repeat the command to continue" });
        }
        text
    }
}

/// The file of refused lines. Without a path, it writes nothing.
pub(crate) struct Refusals {
    path: Option<PathBuf>,
    file: Option<BufWriter<File>>,
    /// The first write error.
    failed: Option<io::Error>,
}

impl Refusals {
    pub(crate) fn new(path: Option<PathBuf>) -> Self {
        Self { path, file: None, failed: None }
    }

    /// Creates the file at the first call, or opens it if the import `continues` an earlier one.
    pub(crate) fn begin(&mut self, continues: bool) {
        let Some(path) = self.path.as_ref().filter(|_| self.file.is_none()) else { return };
        let mut options = OpenOptions::new();
        let opened = options.create(true).write(true).append(continues).truncate(!continues).open(path);
        match opened {
            Ok(file) => self.file = Some(BufWriter::new(file)),
            Err(error) => self.failed = Some(error),
        }
    }

    /// Adds a line.
    pub(crate) fn add(&mut self, refused: &RefusedLine) {
        let Some(file) = &mut self.file else { return };
        let written = serde_json::to_writer(&mut *file, refused).map_err(io::Error::from).and_then(|()| file.write_all(b"\n"));
        if let Err(error) = written {
            self.failed.get_or_insert(error);
        }
    }

    /// Writes the added lines.
    ///
    /// # Errors
    /// This or an earlier write failed.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        let flushed = self.file.as_mut().map_or(Ok(()), Write::flush);
        let failed = self.failed.take().map_or(flushed, Err);
        failed.map_err(|error| {
            let path = self.path.as_deref().unwrap_or(Path::new(""));
            Failure::new(format!("the refused lines can't be written to {}", path.display()), error)
        })
    }
}

//! `headcount export`: the recorded events of a project, in a file or on standard output.

use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use headcount_actors::{Engine, ExportSink};
use headcount_archive::error::ArchiveError;
use headcount_archive::export::{ExportFormat, RowEncoder};
use headcount_archive::row::{Currencies, Row};
use headcount_domain::intake::event::{Event, Position};
use headcount_domain::time::Window;
use headcount_storage::files;

use super::client::{Client, ServerFlags, is_held, pick};
use super::failure::Failure;
use super::runtime::{runtime, stop_signal};
use crate::config::Settings;
use crate::http::resources::raw_events::parameters::predicate;

/// The size from which on encoded rows are written.
const PART_BYTES: usize = 256 << 10;

/// The flags of `export`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ExportArgs {
    /// Project, by id or unique name [default: the only one]
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,
    /// Format of the events: ndjson, csv or parquet
    #[arg(long, default_value = "ndjson", value_parser = |text: &str| text.parse::<ExportFormat>())]
    format: ExportFormat,
    /// First day, as YYYY-MM-DD or an RFC 3339 instant [default: all days, if there is no --end-date]
    #[arg(long, value_name = "DAY")]
    start_date: Option<String>,
    /// Last day
    #[arg(long, value_name = "DAY")]
    end_date: Option<String>,
    /// Only events of this name
    #[arg(long, value_name = "NAME")]
    event_name: Option<String>,
    /// Only events for which these hold: a JSON list, as in the API
    #[arg(long, value_name = "JSON")]
    filters: Option<String>,
    /// File to write; it appears when it is complete [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    server: ServerFlags,
}

/// Runs the command.
pub(crate) fn run(settings: &Settings, args: &ExportArgs) -> Result<ExitCode, Failure> {
    let mut output = Output::create(args.output.as_deref())?;
    let written = if args.server.url.is_some() || is_held(&settings.data_dir)? {
        through_server(settings, args, &mut output)
    } else {
        output = from_directory(settings, args, output)?;
        Ok(())
    };
    written.and_then(|()| output.finish())?;
    Ok(ExitCode::SUCCESS)
}

/// The output: a temporary file that is renamed at the end, or standard output.
struct Output {
    writer: Box<dyn Write + Send>,
    renamed: Option<Renamed>,
}

/// A file that has another name until it is complete.
struct Renamed {
    file: File,
    tmp: PathBuf,
    path: PathBuf,
    is_complete: bool,
}

impl Drop for Renamed {
    fn drop(&mut self) {
        if !self.is_complete {
            // Best effort: the command has failed.
            let _ = files::remove_file(&self.tmp);
        }
    }
}

impl Output {
    fn create(path: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = path.filter(|path| *path != Path::new("-")) else {
            return Ok(Self { writer: Box::new(io::stdout()), renamed: None });
        };
        let named = path.file_name().ok_or_else(|| Failure(format!("{} is not the name of a file", path.display())))?;
        let mut name = named.to_os_string();
        name.push(format!(".{}.tmp", std::process::id()));
        let tmp = path.with_file_name(name);
        let file = File::create_new(&tmp).map_err(|error| Failure::new(tmp.display(), error))?;
        let renamed = Renamed { file: file.try_clone()?, tmp, path: path.to_owned(), is_complete: false };
        Ok(Self { writer: Box::new(file), renamed: Some(renamed) })
    }

    fn finish(mut self) -> Result<(), Failure> {
        self.writer.flush()?;
        if let Some(renamed) = &mut self.renamed {
            let failed = |error: io::Error| Failure::new(renamed.path.display(), error);
            renamed.file.sync_all().map_err(failed)?;
            files::rename(&renamed.tmp, &renamed.path).map_err(failed)?;
            renamed.is_complete = true;
        }
        Ok(())
    }
}

fn through_server(settings: &Settings, args: &ExportArgs, output: &mut Output) -> Result<(), Failure> {
    let client = Client::new(&args.server, settings)?;
    let project = client.project(args.project.as_deref())?;
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("format", &args.format.to_string());
    let parameters = [
        ("start_date", &args.start_date),
        ("end_date", &args.end_date),
        ("event_name", &args.event_name),
        ("filters", &args.filters),
    ];
    query.extend_pairs(parameters.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?))));
    let mut body = client.download(&format!("/projects/{project}/export?{}", query.finish()))?;
    let mut buffer = vec![0; PART_BYTES];
    loop {
        match body.read(&mut buffer).map_err(|error| Failure::new("the export broke off", error))? {
            0 => return Ok(()),
            read => output.writer.write_all(buffer.get(..read).unwrap_or_default())?,
        }
    }
}

fn from_directory(settings: &Settings, args: &ExportArgs, output: Output) -> Result<Output, Failure> {
    crate::open_files::raise()?;
    runtime()?.block_on(async {
        let stop = stop_signal()?;
        let engine = Engine::open(settings.engine())?;
        let exported = tokio::select! {
            exported = from_engine(&engine, args, output) => exported,
            () = stop => Err(Failure("stopped".into())),
        };
        engine.close().await;
        exported
    })
}

async fn from_engine(engine: &Engine, args: &ExportArgs, output: Output) -> Result<Output, Failure> {
    let registry = engine.registry();
    let organizations = registry.organizations();
    let projects = organizations.iter().filter_map(|organization| registry.projects(organization.id).ok()).flatten();
    let project = pick(args.project.as_deref(), projects.map(|project| (project.id, project.name.clone())))?;
    let keyed = registry.policy(project).ok_or_else(|| Failure("the project is gone".into()))?;
    let policy = &keyed.policy;
    let predicate = predicate(args.event_name.as_deref(), args.filters.as_deref());
    let predicate = predicate.map_err(|error| Failure(error.message().to_owned()))?;
    let window = match (args.start_date.as_deref(), args.end_date.as_deref()) {
        (None, None) => None,
        (start, end) => Some(Window::resolve(start, end, policy.timezone, engine.clock().now())?),
    };
    let currencies = Currencies { project: policy.currency, organization: policy.organization_currency };
    let writer = RowWriter { encoder: RowEncoder::new(args.format, project), currencies, output, failure: None };
    let RowWriter { encoder, mut output, failure, .. } = engine.export_events(project, window, predicate, writer).await?;
    match failure {
        Some(failure) => Err(failure),
        None => {
            output.writer.write_all(&encoder.finish()?)?;
            Ok(output)
        }
    }
}

/// Encodes rows, and writes them.
struct RowWriter {
    encoder: RowEncoder,
    currencies: Currencies,
    output: Output,
    failure: Option<Failure>,
}

impl RowWriter {
    fn write(&mut self, position: Position, event: Event) -> Result<(), Failure> {
        let encoded: Result<(), ArchiveError> = self.encoder.push(&Row::new(position, event, self.currencies));
        encoded?;
        match self.encoder.take(PART_BYTES) {
            Some(bytes) => Ok(self.output.writer.write_all(&bytes)?),
            None => Ok(()),
        }
    }
}

impl ExportSink for RowWriter {
    fn take(&mut self, position: Position, event: Box<Event>) -> ControlFlow<()> {
        match self.write(position, *event) {
            Ok(()) => ControlFlow::Continue(()),
            Err(failure) => {
                self.failure = Some(failure);
                ControlFlow::Break(())
            }
        }
    }
}

//! `headcount export`: the recorded events of a project, in a file or on standard output.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;

use headcount_actors::{Engine, ExportSink};
use headcount_api::command::{Client, CommandSettings, Failure, SavedOutput, ServerFlags, is_held, pick, runtime, stop_signal};
use headcount_archive::export::{ExportFormat, RowEncoder};
use headcount_archive::{ArchiveError, Currencies, Row};
use headcount_domain::{Event, Position, Window};

use crate::raw_events::parameters::predicate;

/// The size of encoded rows at which they are written.
const PART_BYTES: usize = 256 << 10;

/// The flags of `export`.
#[derive(Debug, Clone, clap::Args)]
pub struct ExportArgs {
    /// Project, by id or unique name [default: the only one]
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,
    /// Format of the events: ndjson, csv or parquet
    #[arg(long, default_value = "ndjson", value_parser = |text: &str| text.parse::<ExportFormat>())]
    format: ExportFormat,
    /// First day, as YYYY-MM-DD or an RFC 3339 instant [default: all days, without --end-date]
    #[arg(long, value_name = "DAY")]
    start_date: Option<String>,
    /// Last day
    #[arg(long, value_name = "DAY")]
    end_date: Option<String>,
    /// Only events of this name
    #[arg(long, value_name = "NAME")]
    event_name: Option<String>,
    /// Only events that match these filters: a JSON list, as in the API
    #[arg(long, value_name = "JSON")]
    filters: Option<String>,
    /// File to write; it appears when it is complete [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    server: ServerFlags,
}

/// Runs the command.
pub fn run(settings: &dyn CommandSettings, args: &ExportArgs) -> Result<ExitCode, Failure> {
    let mut output = SavedOutput::create(args.output.as_deref())?;
    let written = if args.server.url.is_some() || is_held(settings.data_dir())? {
        through_server(settings, args, &mut output)
    } else {
        output = from_directory(settings, args, output)?;
        Ok(())
    };
    written.and_then(|()| output.finish())?;
    Ok(ExitCode::SUCCESS)
}

fn through_server(settings: &dyn CommandSettings, args: &ExportArgs, output: &mut SavedOutput) -> Result<(), Failure> {
    let client = Client::new(&args.server, &settings.server_place())?;
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
    output.fill(&mut body, "the export was cut off")
}

fn from_directory(settings: &dyn CommandSettings, args: &ExportArgs, output: SavedOutput) -> Result<SavedOutput, Failure> {
    runtime()?.block_on(async {
        let stop = stop_signal()?;
        let engine = settings.open_engine()?;
        let exported = tokio::select! {
            exported = from_engine(&engine, args, output) => exported,
            () = stop => Err(Failure("stopped".into())),
        };
        engine.close().await;
        exported
    })
}

async fn from_engine(engine: &Engine, args: &ExportArgs, output: SavedOutput) -> Result<SavedOutput, Failure> {
    let registry = engine.registry();
    let organizations = registry.organizations();
    let projects = organizations.iter().filter_map(|organization| registry.projects(organization.id).ok()).flatten();
    let project = pick(args.project.as_deref(), projects.map(|project| (project.id, project.name.clone())))?;
    let keyed = registry.policy(project).ok_or_else(|| Failure("the project no longer exists".into()))?;
    let policy = &keyed.policy;
    let predicate = predicate(args.event_name.as_deref(), args.filters.as_deref());
    let predicate = predicate.map_err(|error| Failure(error.message().to_owned()))?;
    let window = match (args.start_date.as_deref(), args.end_date.as_deref()) {
        (None, None) => None,
        (start, end) => Some(Window::resolve(start, end, policy.timezone, engine.clock().now())?),
    };
    let currencies = Currencies { project: policy.currency, organization: policy.organization_currency };
    let writer = RowWriter { encoder: RowEncoder::new(args.format, project), currencies, output, failure: None };
    let RowWriter { encoder, mut output, failure, .. } = engine.scans.export_events(project, window, predicate, writer).await?;
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
    output: SavedOutput,
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

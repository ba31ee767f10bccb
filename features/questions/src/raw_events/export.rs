//! `GET /projects/{project_id}/export`

use std::io;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::task::{Context, Poll};

use actix_web::body::{BodySize, MessageBody};
use actix_web::http::header::{self, HeaderValue};
use actix_web::web::Bytes;
use headcount_actors::{AskError, ExportSink};
use headcount_api::client_end::while_client_waits;
use headcount_api::endpoint::*;
use headcount_archive::export::{ExportFormat, RowEncoder};
use headcount_archive::{Currencies, Row};
use headcount_domain::{Depends, Event, Position};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::parameters::{Conditions, SentDates};

/// The size from which on encoded rows are passed on.
const PART_BYTES: usize = 64 << 10;
/// How many parts wait for a client. The export waits, too, when there are so many.
const PARTS_AHEAD: usize = 4;

query_parameters! {
    /// The events that are exported.
    pub(crate) struct ExportParameters {
        /// Default: all days, if `end_date` isn't given either.
        dates: SentDates,
        conditions: Conditions,
        /// NDJSON has no nulls, and `"_v":1` in each line. CSV has a header, `_v`, an empty field for null and `""` for empty text; where a text, or what follows a
        /// `;`, tab or line break in it, would begin a formula in a spreadsheet, an apostrophe stands before it. Parquet has the column types of the archive.
        format: Choice<ExportFormat>,
    }
}

/// The recorded events of a project, lowest position first: those recorded before the request.
///
/// The answer is streamed. One that fails on its way ends without the last chunk, so that clients see that it is incomplete.
#[utoipa::path(
    get, path = "/projects/{project_id}/export", tag = "data", operation_id = "export_events",
    params(ProjectPath, ExportParameters),
    responses(
        (
            status = 200, description = "The events.",
            content(
                (String = "application/x-ndjson", example = "{\"_v\":1,\"position\":7,\"timestamp\":\"2026-11-02T10:05:00.000Z\",\"name\":\"order\"}\n"),
                (String = "text/csv"),
                (String = "application/vnd.apache.parquet"),
            )
        ),
        NotModified, UnavailableErrors,
    ),
    security(("api_token" = []), ("session" = []))
)]
pub(crate) async fn export(ApiCall { state, request, .. }: ApiCall, caller: ProjectCaller) -> Result<HttpResponse> {
    let question = ProjectQuestion::<ExportParameters>::read(&state, &request, caller)?;
    let ExportParameters { dates, conditions, format: Choice(format) } = &question.parameters;
    let window = match (&dates.start, &dates.end) {
        (None, None) => None,
        (start, end) => Some(question.event_window(start.as_deref(), end.as_deref()).await?),
    };
    let tag =
        match question.not_modified(&window.map_or(Depends::Everything, |window| conditions.predicate.depends(window))).await? {
            Ok(not_modified) => return Ok(not_modified),
            Err(tag) => tag,
        };
    let policy = &question.subject.config.policy;
    let (project, predicate) = (question.subject.project, conditions.predicate.clone());
    let (sender, mut parts) = channel(PARTS_AHEAD);
    let currencies = Currencies { project: policy.currency, organization: policy.organization_currency };
    let writer = PartWriter { encoder: RowEncoder::new(*format, project), currencies, parts: sender.clone(), has_failed: false };
    let engine = state.engine.clone();
    actix_web::rt::spawn(async move {
        // Dropped with the receiver: a client that is gone ends the export.
        let exported = tokio::select! {
            exported = engine.scans.export_events(project, window, predicate, writer) => exported,
            () = sender.closed() => return,
        };
        for part in end(exported) {
            if sender.send(part).await.is_err() {
                return;
            }
        }
    });
    let first = async { Ok::<_, ApiError>(parts.recv().await) };
    let first = match while_client_waits(&request, first).await? {
        Some(Part::Failed(error)) => return Err(error.into()),
        None => return Err(ApiError::internal()),
        first => first,
    };
    Ok(HttpResponse::Ok()
        .insert_header((header::ETAG, tag.value()))
        .insert_header((header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache")))
        .insert_header((header::CONTENT_DISPOSITION, format!("attachment; filename=\"events.{format}\"")))
        .content_type(format.media_type())
        .body(ExportBody { first, parts, is_over: false }))
}

/// A part of an answer.
enum Part {
    Bytes(Bytes),
    /// The export is complete.
    End,
    Failed(AskError),
}

/// Encodes rows, and passes them on in parts.
struct PartWriter {
    encoder: RowEncoder,
    currencies: Currencies,
    parts: Sender<Part>,
    has_failed: bool,
}

impl ExportSink for PartWriter {
    fn take(&mut self, position: Position, event: Box<Event>) -> ControlFlow<()> {
        if let Err(error) = self.encoder.push(&Row::new(position, *event, self.currencies)) {
            tracing::error!(%error, "an event can't be exported");
            self.has_failed = true;
            return ControlFlow::Break(());
        }
        match self.encoder.take(PART_BYTES).map(|bytes| self.parts.blocking_send(Part::Bytes(bytes.into()))) {
            Some(Err(_)) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// Returns the last parts.
fn end(exported: Result<PartWriter, AskError>) -> Vec<Part> {
    let writer = match exported {
        Ok(writer) if writer.has_failed => return vec![Part::Failed(AskError::NoAnswer)],
        Ok(writer) => writer,
        Err(error) => return vec![Part::Failed(error)],
    };
    match writer.encoder.finish() {
        Ok(bytes) => vec![Part::Bytes(bytes.into()), Part::End],
        Err(error) => {
            tracing::error!(%error, "an export can't be ended");
            vec![Part::Failed(AskError::NoAnswer)]
        }
    }
}

/// The body of an export.
struct ExportBody {
    first: Option<Part>,
    parts: Receiver<Part>,
    is_over: bool,
}

impl MessageBody for ExportBody {
    type Error = io::Error;

    fn size(&self) -> BodySize {
        BodySize::Stream
    }

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, io::Error>>> {
        let this = self.get_mut();
        loop {
            if this.is_over {
                return Poll::Ready(None);
            }
            let part = match this.first.take() {
                Some(first) => Some(first),
                None => std::task::ready!(this.parts.poll_recv(cx)),
            };
            match part {
                // An empty chunk would end the answer.
                Some(Part::Bytes(bytes)) if bytes.is_empty() => {}
                Some(Part::Bytes(bytes)) => return Poll::Ready(Some(Ok(bytes))),
                Some(Part::End) => this.is_over = true,
                Some(Part::Failed(_)) | None => {
                    this.is_over = true;
                    return Poll::Ready(Some(Err(io::Error::other("the export failed on its way"))));
                }
            }
        }
    }
}

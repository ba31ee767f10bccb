//! `GET /projects/{project_id}/live`

use std::cell::RefCell;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::rc::Rc;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use actix_web::body::BodyStream;
use actix_web::http::{Method, header};
use actix_web::web::Bytes;
use headcount_actors::{Engine, LiveEnd, LiveFigures, LiveFrame, LiveMinute, LiveNotification, LiveState, LiveWatch};
use headcount_api::endpoint::*;
use headcount_api::extract::auth::Credential;
use headcount_domain::{Currency, ProjectId};
use tokio::sync::watch;
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Type};

use crate::share_streams::{ShareStream, ShareStreams};

/// How often it is checked that the server goes on and that the token has not expired. A change of the token is seen at once.
const CHECK_EVERY: Duration = Duration::from_millis(250);
/// After how much silence a comment shows that the stream is alive.
const PING_AFTER: Duration = Duration::from_secs(15);

/// The figures of a frame; in a delta, those that changed.
#[derive(Serialize)]
struct FrameShape {
    at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    today: Option<TodayShape>,
    #[serde(skip_serializing_if = "Option::is_none")]
    online: Option<OnlineShape>,
    #[serde(skip_serializing_if = "Option::is_none")]
    minutes: Option<Vec<MinuteShape>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    currency: Option<String>,
}

#[derive(PartialEq, Serialize)]
struct TodayShape {
    events: u64,
    unique_users: u64,
    sessions: u64,
    pageviews: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    revenue: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    orders: Option<i64>,
}

#[derive(Serialize)]
struct OnlineShape {
    users_5m: u64,
}

#[derive(Serialize)]
struct MinuteShape {
    minute: Timestamp,
    events: u64,
    users: u64,
}

#[derive(Serialize)]
struct NotificationShape<'n> {
    event_id: &'n str,
    name: &'n str,
    message: Option<&'n str>,
    channel: Option<&'n str>,
    at: Timestamp,
    position: u64,
}

impl TodayShape {
    /// Money is for those who may read it elsewhere.
    fn new(figures: &LiveFigures, money: Option<Currency>) -> Self {
        let LiveFigures { events, unique_users, sessions, pageviews, revenue, orders, .. } = *figures;
        let revenue = money.map(|_| Decimal(revenue));
        Self { events, unique_users, sessions, pageviews, revenue, orders: money.map(|_| orders) }
    }
}

impl From<&LiveMinute> for MinuteShape {
    fn from(LiveMinute { minute, events, users }: &LiveMinute) -> Self {
        Self { minute: (*minute).into(), events: *events, users: *users }
    }
}

impl<'n> From<&'n LiveNotification> for NotificationShape<'n> {
    fn from(notification: &'n LiveNotification) -> Self {
        Self {
            event_id: &notification.event_id,
            name: &notification.name,
            message: notification.message.as_deref(),
            channel: notification.channel.as_deref(),
            at: notification.at.into(),
            position: notification.position,
        }
    }
}

/// An event of the stream, as a reader of server-sent events has it: for the document.
pub(crate) struct LiveEventShape;

own_schema!(LiveEventShape, {
    let text = |description: &str| ObjectBuilder::new().schema_type(Type::String).description(Some(description));
    let event = ObjectBuilder::new()
        .property("id", text("The id to come again with, as `Last-Event-ID`; `bye` has none."))
        .property("event", text("`snapshot`, `delta`, `notification` or `bye`."))
        .property("data", text("JSON."))
        .required("event")
        .required("data");
    event.additional_properties(Some(AdditionalProperties::FreeForm(false))).into()
});

/// What happens now: a stream of server-sent events, for as long as the client reads.
///
/// `snapshot` has the figures of the current day and of the last 30 minutes, by the time of events. `delta` follows within 250 ms of a recorded event: what
/// changed, with absolute values, so that a lost one does no harm. `notification` is an event with `notify`. `bye` says why the stream ends:
/// `drain`, `deleted`, `unauthorized`. A comment every 15 seconds shows that it is alive. Who reconnects with `Last-Event-ID` gets the notifications
/// that were missed, of the last 100 in the last 30 minutes, and a `delta` of everything. Without it, on a new day, and after an erasure, figures come as a `snapshot`. A slow reader misses
/// deltas, and never waits for old ones.
#[utoipa::path(
    get, path = "/projects/{project_id}/live", tag = "analytics", operation_id = "live",
    params(
        ProjectPath,
        ("last-event-id" = Option<String>, Header, description = "The id of the last event that was read."),
    ),
    responses(
        (status = 200, description = "The stream.", body = LiveEventShape, content_type = "text/event-stream"),
        UnavailableErrors,
    ),
)]
pub(crate) async fn live(ApiCall { state, request, .. }: ApiCall, asker: Asker) -> Result<HttpResponse> {
    NoParameters::check(&request)?;
    let caller = asker.asks(&NoParameters)?;
    let mut response = HttpResponse::Ok();
    response.content_type("text/event-stream");
    response.insert_header((header::CACHE_CONTROL, "no-store")).insert_header(("x-accel-buffering", "no"));
    if request.method() == Method::HEAD {
        return Ok(response.finish());
    }
    let overloaded = |why: &str| Err(ApiError::overloaded(why));
    if state.engine.admission.is_draining() {
        return overloaded("the server is shutting down");
    }
    let share_streams = state.of::<ShareStreams>()?;
    let place = caller.caller.share.as_ref().map(|_| share_streams.begin(caller.project));
    let Some(watch) = state.engine.watch(caller.project).filter(|_| !matches!(place, Some(None))) else {
        return overloaded("too many streams of this project are open");
    };
    let allowed = state.engine.registry().changes();
    let has_money = caller.check_money().is_ok();
    let resume = request.headers().get("last-event-id").and_then(|id| EventId::parse(id.to_str().ok()?));
    let stream = LiveStream {
        engine: state.engine.clone(),
        project: caller.project,
        credential: Credential::of(&state, &request)?,
        has_notifications: caller.caller.share.is_none(),
        _place: place.flatten(),
        money: has_money.then_some(caller.config.policy.currency),
        allowed,
        watch,
        resume,
        sent: None,
        last_write: Instant::now(),
        phase: StreamPhase::First,
    };
    let next = |mut stream: LiveStream| async move { Some((Ok::<_, Infallible>(stream.next().await?), stream)) };
    let frames = futures_util::stream::unfold(stream, next);
    Ok(response.force_close().body(BodyStream::new(Box::pin(frames))))
}

/// The id of an event of a stream.
#[derive(Clone, Copy)]
struct EventId {
    incarnation: u128,
    erasures: u64,
    position: u64,
}

impl EventId {
    fn parse(text: &str) -> Option<Self> {
        let (incarnation, rest) = text.split_once('-')?;
        let (erasures, position) = rest.split_once('-')?;
        let incarnation = u128::from_str_radix(incarnation, 16).ok()?;
        Some(Self { incarnation, erasures: erasures.parse().ok()?, position: position.parse().ok()? })
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{}-{}", self.incarnation, self.erasures, self.position)
    }
}

enum StreamPhase {
    /// Nothing was sent.
    First,
    Running,
    Over,
}

/// One stream. It has no frames of its own: whenever the client has read, the latest one is compared with what was sent.
struct LiveStream {
    engine: Engine,
    project: ProjectId,
    credential: Credential,
    /// Not for readers of a share: the messages may name people.
    has_notifications: bool,
    /// The place of a reader of a share.
    _place: Option<ShareStream>,
    money: Option<Currency>,
    /// Sees each change of what callers are allowed.
    allowed: watch::Receiver<()>,
    watch: LiveWatch,
    resume: Option<EventId>,
    sent: Option<Arc<LiveFrame>>,
    last_write: Instant,
    phase: StreamPhase,
}

impl LiveStream {
    /// Waits for what is to be sent next. `None`: the stream is over.
    async fn next(&mut self) -> Option<Bytes> {
        match self.phase {
            StreamPhase::Over => return None,
            StreamPhase::First => {
                self.phase = StreamPhase::Running;
                return Some(Bytes::from_static(b"retry: 2000\n\n"));
            }
            StreamPhase::Running => {}
        }
        loop {
            if let Some(reason) = self.refused() {
                return Some(self.bye(reason));
            }
            match self.watch.latest() {
                LiveState::Ended(LiveEnd::Deleted) => return Some(self.bye("deleted")),
                LiveState::Ended(LiveEnd::Stopped) => return Some(self.bye("drain")),
                LiveState::Frame(frame) => {
                    if let Some(bytes) = self.news(&frame) {
                        self.last_write = Instant::now();
                        return Some(bytes);
                    }
                }
                LiveState::Starting => {}
            }
            if self.last_write.elapsed() >= PING_AFTER {
                self.last_write = Instant::now();
                return Some(Bytes::from_static(b": ping\n\n"));
            }
            tokio::select! {
                state = self.watch.changed() => {
                    if state.is_none() && !matches!(self.watch.latest(), LiveState::Ended(_)) {
                        // The publisher failed. The client comes again.
                        return None;
                    }
                }
                // The registry outlives the engine.
                _changed = self.allowed.changed() => {}
                () = tokio::time::sleep(CHECK_EVERY) => {}
            }
        }
    }

    /// Why the caller may not read any more, if so.
    fn refused(&mut self) -> Option<&'static str> {
        // Without a sign of life, nobody waits for this node before a token counts as revoked.
        if self.engine.admission.is_draining() || !self.engine.owners().is_live() {
            return Some("drain");
        }
        let registry = self.engine.registry();
        let Some(config) = registry.policy(self.project) else { return Some("deleted") };
        let money = self.money.map(|_| config.policy.currency);
        if money != self.money {
            // Before the first event, it may change. The next frame is a snapshot.
            (self.money, self.sent) = (money, None);
        }
        let now = self.engine.clock().now();
        let may_read = auth::may_go_on(registry, &self.credential, self.project, self.money.is_some(), now);
        (!may_read).then_some("unauthorized")
    }

    fn bye(&mut self, reason: &str) -> Bytes {
        self.phase = StreamPhase::Over;
        format!("event: bye\ndata: {{\"reason\":\"{reason}\"}}\n\n").into()
    }

    /// What of a frame was not sent.
    fn news(&mut self, frame: &Arc<LiveFrame>) -> Option<Bytes> {
        if self.sent.as_ref().is_some_and(|sent| Arc::ptr_eq(sent, frame)) {
            return None;
        }
        let mut text = String::new();
        let resumed = self.resume.take().filter(|id| id.incarnation == frame.incarnation);
        let seen = self.sent.as_ref().map(|sent| sent.position).or(resumed.map(|id| id.position));
        let is_news = |position| self.has_notifications && seen.is_some_and(|seen| position > seen);
        for notification in frame.notifications.iter().filter(|one| is_news(one.position)) {
            push(&mut text, frame, notification.position, "notification", &NotificationShape::from(&**notification));
        }
        let former = self.sent.as_ref().filter(|sent| (sent.erasures, sent.figures.day) == (frame.erasures, frame.figures.day));
        let is_resumed = self.sent.is_none() && resumed.is_some_and(|id| id.erasures == frame.erasures);
        let is_delta = former.is_some() || is_resumed;
        let figures = || {
            let shape = self.shape(frame, former);
            let has_news = shape.today.is_some() || shape.online.is_some() || shape.minutes.is_some();
            let mut text = String::new();
            push(&mut text, frame, frame.position, if is_delta { "delta" } else { "snapshot" }, &shape);
            has_news.then_some(text)
        };
        if let Some(figures) = FiguresText::new(frame, former, is_delta, self.money).text(figures) {
            text.push_str(&figures);
        }
        self.sent = Some(Arc::clone(frame));
        (!text.is_empty()).then(|| text.into())
    }

    /// The figures of a frame that differ from those of a former one.
    fn shape(&self, frame: &LiveFrame, former: Option<&Arc<LiveFrame>>) -> FrameShape {
        let (figures, former) = (&frame.figures, former.map(|former| &former.figures));
        let today = TodayShape::new(figures, self.money);
        let same_today = former.is_some_and(|former| TodayShape::new(former, self.money) == today);
        let same_online = former.is_some_and(|former| former.users_5m == figures.users_5m);
        let same_minutes = former.is_some_and(|former| former.minutes == figures.minutes);
        FrameShape {
            at: frame.at.into(),
            today: (!same_today).then_some(today),
            online: (!same_online).then_some(OnlineShape { users_5m: figures.users_5m }),
            minutes: (!same_minutes).then(|| figures.minutes.iter().map(MinuteShape::from).collect()),
            currency: self.money.filter(|_| former.is_none()).map(|currency| currency.to_string()),
        }
    }
}

fn push(text: &mut String, frame: &LiveFrame, position: u64, event: &str, data: &impl Serialize) {
    let Ok(data) = serde_json::to_string(data) else { return };
    // JSON has no line breaks.
    let id = EventId { incarnation: frame.incarnation, erasures: frame.erasures, position };
    text.push_str(&format!("id: {id}\nevent: {event}\ndata: {data}\n\n"));
}

/// How many texts are kept: streams of one project send the same within milliseconds.
const MAX_TEXTS: usize = 16;

thread_local! {
    static TEXTS: RefCell<VecDeque<(FiguresText, Option<Rc<str>>)>> = const { RefCell::new(VecDeque::new()) };
}

/// What a text is about. Its frames are those of these addresses, which are not used again while this is kept.
pub(super) struct FiguresText {
    frame: Weak<LiveFrame>,
    /// The frame that the client has.
    former: Option<Weak<LiveFrame>>,
    is_delta: bool,
    money: Option<Currency>,
}

impl FiguresText {
    pub(super) fn new(frame: &Arc<LiveFrame>, former: Option<&Arc<LiveFrame>>, is_delta: bool, money: Option<Currency>) -> Self {
        Self { frame: Arc::downgrade(frame), former: former.map(Arc::downgrade), is_delta, money }
    }

    fn is(&self, other: &Self) -> bool {
        let same_former = match (&self.former, &other.former) {
            (Some(one), Some(other)) => one.ptr_eq(other),
            (one, other) => one.is_none() && other.is_none(),
        };
        same_former && self.frame.ptr_eq(&other.frame) && (self.is_delta, self.money) == (other.is_delta, other.money)
    }

    /// Returns the text, made by `make` if it is not kept. `None`: there is nothing to send.
    pub(super) fn text(self, make: impl FnOnce() -> Option<String>) -> Option<Rc<str>> {
        TEXTS.with_borrow_mut(|texts| {
            if let Some((_, text)) = texts.iter().find(|(of, _)| of.is(&self)) {
                return text.clone();
            }
            let text: Option<Rc<str>> = make().map(Rc::from);
            texts.truncate(MAX_TEXTS - 1);
            texts.push_front((self, text.clone()));
            text
        })
    }
}

//! The frame of every question: the check of the caller, the parameters, the days, and the
//! conditional answer.

use std::convert::identity;
use std::sync::Arc;

use crate::request::HttpRequest;
use actix_web::HttpResponse;
use actix_web::dev::Payload;
use actix_web::web::Bytes;
use headcount_actors::{AskError, OrganizationProjects};
use headcount_control::{Definition, Organization};
use headcount_domain::queries::Query;
use headcount_domain::{Currency, Depends, Timezone, Window};
use serde::Serialize;

use crate::app::AppState;
use crate::client_end::while_client_waits;
use crate::extract::auth::{Asker, Caller, ProjectCaller};
use crate::extract::body::EVENT_LIMIT_BYTES;
use crate::extract::json::{self, JsonBody};
use crate::extract::query::{Calendar, QueryParameters};
use crate::extract::share_rules::SharedQuestion;
use crate::respond::answer::Completed;
use crate::respond::code::ErrorCode;
use crate::respond::error::{ApiError, Result};
use crate::respond::etag::{self, DataVersion, EntityTag};
use crate::respond::kept::{self, KeepableQuestion};

/// A question about a project.
pub type ProjectQuestion<'r, Q> = Question<'r, ProjectCaller, Q>;

/// A question about an organization, over all its projects.
pub type OrganizationQuestion<'r, Q> = Question<'r, Arc<Organization>, Q>;

/// A question about the subject `S`, from a caller who is allowed to ask it.
#[derive(Debug)]
pub struct Question<'r, S, Q> {
    pub(crate) state: &'r AppState,
    request: &'r HttpRequest,
    /// The body, then the definitions that it names.
    pub body: Bytes,
    /// The definitions that it depends on.
    pub definitions: Vec<Arc<Definition>>,
    /// The calendar that it is asked by.
    pub calendar: Calendar,
    /// The project or organization.
    pub subject: S,
    /// The parameters.
    pub parameters: Q,
}

/// A project or an organization.
#[expect(async_fn_in_trait, reason = "questions stay on the thread of their worker")]
pub trait QuestionSubject {
    /// The timezone of its days.
    fn timezone(&self) -> Timezone;
    /// The currency of its figures.
    fn currency(&self) -> Currency;
    /// Its id, as a number.
    fn id(&self) -> u64;
    /// Returns the incarnation of the data, and the version of what an answer depends on.
    async fn version(&self, state: &AppState, depends: &Depends) -> Result<(u128, u128), AskError>;
}

impl QuestionSubject for ProjectCaller {
    fn timezone(&self) -> Timezone {
        self.config.policy.timezone
    }

    fn currency(&self) -> Currency {
        self.config.policy.currency
    }

    fn id(&self) -> u64 {
        self.project.0
    }

    async fn version(&self, state: &AppState, depends: &Depends) -> Result<(u128, u128), AskError> {
        let (incarnation, version) = state.engine.version(self.project, depends).await?;
        Ok((incarnation, version.into()))
    }
}

impl QuestionSubject for Arc<Organization> {
    fn timezone(&self) -> Timezone {
        self.timezone
    }

    fn currency(&self) -> Currency {
        self.currency
    }

    fn id(&self) -> u64 {
        self.id.0
    }

    /// Answers about an organization have figures of all time, so any event can change them.
    async fn version(&self, state: &AppState, _: &Depends) -> Result<(u128, u128), AskError> {
        Ok((0, state.engine.organization_version(self.id).await?))
    }
}

/// Who asks a question about a project.
pub trait AsksProject<Q> {
    /// The timezone of the project's days.
    fn timezone(&self) -> Timezone;
    /// Returns the caller, who may ask this question.
    fn asks(self, question: &Q) -> Result<ProjectCaller>;
}

impl<Q> AsksProject<Q> for ProjectCaller {
    fn timezone(&self) -> Timezone {
        self.config.policy.timezone
    }

    fn asks(self, _: &Q) -> Result<ProjectCaller> {
        Ok(self)
    }
}

impl<Q: SharedQuestion> AsksProject<Q> for Asker {
    fn timezone(&self) -> Timezone {
        self.timezone()
    }

    fn asks(self, question: &Q) -> Result<ProjectCaller> {
        self.asks(question)
    }
}

impl<'r, Q: QueryParameters> ProjectQuestion<'r, Q> {
    /// Reads a question about the project in the path.
    pub fn read(state: &'r AppState, request: &'r HttpRequest, asker: impl AsksProject<Q>) -> Result<Self> {
        let calendar = Calendar::new(state, asker.timezone());
        let parameters = Q::read(request, &calendar)?;
        let subject = asker.asks(&parameters)?;
        Ok(Self { state, request, body: Bytes::new(), definitions: Vec::new(), calendar, subject, parameters })
    }
}

impl<Q> ProjectQuestion<'_, Q> {
    /// Answers with what the project says to `query`, or with 304 if the client has the answer.
    pub async fn reply_to<P: Query + Sync, A: Serialize>(
        &self,
        query: P,
        shape: impl FnOnce(P::Partial) -> A,
    ) -> Result<HttpResponse> {
        self.reply_kept(query.depends(), self.state.engine.ask(self.subject.project, query), shape).await
    }
}

impl<Q> ProjectQuestion<'_, Q> {
    /// Returns the window between two dates for an answer that reads events: none are kept below the project's floor, to which a default start
    /// moves up.
    pub async fn event_window(&self, start: Option<&str>, end: Option<&str>) -> Result<Window> {
        let window = self.window(start, end)?;
        let floor = self.state.engine.floor(self.subject.project).await?;
        Ok(window.above(floor, start.is_some())?)
    }

    /// Answers from the events between two dates. If the floor passes a default start meanwhile, the start moves up, and `answer` is asked again.
    pub async fn in_event_window(
        &self,
        (start, end): (Option<&str>, Option<&str>),
        answer: impl AsyncFn(Window) -> Result<HttpResponse>,
    ) -> Result<HttpResponse> {
        let window = self.event_window(start, end).await?;
        let answered = answer(window).await;
        let is_passed = |error: &ApiError| start.is_none() && error.code() == ErrorCode::BeforeRetention;
        if !answered.as_ref().is_err_and(is_passed) {
            return answered;
        }
        let moved = self.event_window(start, end).await?;
        if moved == window { answered } else { answer(moved).await }
    }

    /// Returns a window whose start was chosen, for an answer that reads events.
    pub async fn chosen_window(&self, window: Window) -> Result<Window> {
        let floor = self.state.engine.floor(self.subject.project).await?;
        Ok(window.above(floor, true)?)
    }
}

impl<'r, B: JsonBody> ProjectQuestion<'r, B> {
    /// Reads a question about the project in the path, whose parameters are in the body.
    pub async fn read_body(
        state: &'r AppState,
        request: &'r HttpRequest,
        payload: Payload,
        asker: impl AsksProject<B>,
    ) -> Result<Self> {
        let body = json::read_bytes(state, request, payload, EVENT_LIMIT_BYTES).await?;
        let parameters = B::from_json(&body)?;
        let calendar = Calendar::new(state, asker.timezone());
        let subject = asker.asks(&parameters)?;
        Ok(Self { state, request, body, definitions: Vec::new(), calendar, subject, parameters })
    }
}

impl<'r, Q: QueryParameters> OrganizationQuestion<'r, Q> {
    /// Reads a question about the caller's organization.
    pub fn read(state: &'r AppState, request: &'r HttpRequest, caller: &Caller) -> Result<Self> {
        let subject = state.engine.registry().organization(caller.organization())?;
        let calendar = Calendar::new(state, subject.timezone());
        let parameters = Q::read(request, &calendar)?;
        Ok(Self { state, request, body: Bytes::new(), definitions: Vec::new(), calendar, subject, parameters })
    }

    /// Answers about `window`, with the day from which on the answer is complete, or with 304 if the client has the answer.
    pub async fn reply_completed<T, A: Serialize>(
        &self,
        window: Window,
        answer: impl Future<Output = Result<T, AskError>>,
        shape: impl FnOnce(T) -> A,
    ) -> Result<HttpResponse> {
        let completed = async { self.complete(window, shape(answer.await?)).await };
        self.reply_kept(Depends::Everything, completed, identity).await
    }

    /// Answers about a thing as [`Question::reply_completed`] does, or with 404 if it does not exist.
    pub async fn reply_completed_if_found<T, A: Serialize>(
        &self,
        thing: &'static str,
        window: Window,
        answer: impl Future<Output = Result<Option<T>, AskError>>,
        shape: impl FnOnce(T) -> A,
    ) -> Result<HttpResponse> {
        let completed = async {
            match answer.await? {
                Some(answer) => self.complete(window, shape(answer)).await.map(Some),
                None => Ok(None),
            }
        };
        self.reply_if_found(thing, completed, identity).await
    }

    async fn complete<A>(&self, window: Window, answer: A) -> Result<Completed<A>, AskError> {
        let complete_from = self.state.engine.complete_from(self.subject.id, window).await?;
        Ok(Completed { answer, complete_from: complete_from.map(|day| day.to_string()) })
    }

    /// Returns the organization's projects, which a query is scattered to.
    pub fn projects(&self) -> OrganizationProjects<'r> {
        self.state.engine.organization(self.subject.id)
    }
}

impl<S: QuestionSubject, Q> Question<'_, S, Q> {
    /// Returns the window between two dates, each of which has a default.
    pub fn window(&self, start: Option<&str>, end: Option<&str>) -> Result<Window> {
        self.calendar.window(start, end)
    }

    /// Answers with 304 if the client has the answer. Only otherwise is `answer` awaited.
    pub async fn reply<T, A: Serialize>(
        &self,
        depends: Depends,
        answer: impl Future<Output = Result<T, AskError>>,
        shape: impl FnOnce(T) -> A,
    ) -> Result<HttpResponse> {
        match self.not_modified(&depends).await? {
            Ok(not_modified) => Ok(not_modified),
            Err(tag) => tag.json(&shape(while_client_waits(self.request, answer).await?)),
        }
    }

    /// [`Question::reply`] for figures, whose answers are kept.
    pub(crate) async fn reply_kept<T, A: Serialize>(
        &self,
        depends: Depends,
        answer: impl Future<Output = Result<T, AskError>>,
        shape: impl FnOnce(T) -> A,
    ) -> Result<HttpResponse> {
        match self.not_modified(&depends).await? {
            Ok(not_modified) => Ok(not_modified),
            Err(tag) => self.kept(&tag, async { Ok(shape(answer.await?)) }).await,
        }
    }

    /// Returns 200 with the answer that is kept under a tag, or else with `answer`, which is kept from then on.
    async fn kept<A: Serialize>(&self, tag: &EntityTag, answer: impl Future<Output = Result<A>>) -> Result<HttpResponse> {
        let answer = while_client_waits(self.request, answer);
        if !kept::may_be_kept(self.request) {
            return tag.json(&answer.await?);
        }
        let question = KeepableQuestion::new(tag, self.subject.id(), self.request, &self.body);
        if let Some(answer) = self.state.kept.get(&question) {
            return Ok(tag.written(answer));
        }
        let written = etag::to_json(&answer.await?)?;
        self.state.kept.keep(question, &written);
        Ok(tag.written(written))
    }

    /// Answers about a thing, or with 404 if it does not exist. `If-None-Match: *` needs the answer: it matches only what exists.
    pub(crate) async fn reply_if_found<T, A: Serialize>(
        &self,
        thing: &'static str,
        answer: impl Future<Output = Result<Option<T>, AskError>>,
        shape: impl FnOnce(T) -> A,
    ) -> Result<HttpResponse> {
        let tag = self.tag(&Depends::Everything).await?;
        if let Some(not_modified) = tag.not_modified(self.request) {
            return Ok(not_modified);
        }
        let found = async { Ok(shape(answer.await?.ok_or_else(|| ApiError::not_found(thing))?)) };
        let found = self.kept(&tag, found).await?;
        Ok(tag.not_modified_if_any(self.request).unwrap_or(found))
    }

    /// Returns 304 if the client has the answer, else the tag of the answer.
    pub async fn not_modified(&self, depends: &Depends) -> Result<Result<HttpResponse, EntityTag>> {
        let tag = self.tag(depends).await?;
        Ok(tag.not_modified(self.request).or_else(|| tag.not_modified_if_any(self.request)).ok_or(tag))
    }

    async fn tag(&self, depends: &Depends) -> Result<EntityTag> {
        let subject = &self.subject;
        let (incarnation, version) = subject.version(self.state, depends).await?;
        let (timezone, currency) = (subject.timezone(), subject.currency());
        let (today, variant) = (self.calendar.today(), self.calendar.variant());
        let data = DataVersion { incarnation, version, id: subject.id(), timezone, currency, today, variant };
        Ok(EntityTag::of_answer(&data, self.request, &self.body))
    }
}

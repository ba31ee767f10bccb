//! Tracking: from a request body to a receipt.

use std::net::IpAddr;
use std::sync::Arc;

use headcount_archive::export::parse_row;
use headcount_control::ProjectConfig;
use headcount_domain::agent::Agent;
use headcount_domain::intake::admission::{Client, DropReason, Sender, Verdict, admit, needs_salt};
use headcount_domain::intake::client_address::ClientAddress;
use headcount_domain::intake::country::Country;
use headcount_domain::intake::imported::ImportedVisitor;
use headcount_domain::intake::json_fields::readable;
use headcount_domain::intake::pinned::admit_pinned;
use headcount_domain::intake::policy::Policy;
use headcount_domain::intake::submission::{Invalid, Submission};
use headcount_domain::text::cut_bytes;
use headcount_domain::{Event, ProjectId};

use super::known_agents::with_agent;
use super::receipt::BatchPlace;
use super::{BatchReceipt, Ingest, Origin, Prepared, QuotaExceeded, Receipt, Refusal, TrackError, Tracker};
use crate::admission_gate::Permit;
use crate::event_codec::Events;
use crate::intake_counts::DropCounts;

/// A longer user agent is cut off here. The longest honest ones have some 400 bytes.
const MAX_AGENT_BYTES: usize = 512;

/// The events of a batch to record, with their indexes in the batch.
#[derive(Default)]
pub(super) struct KeptEvents {
    pub(super) events: Events,
    pub(super) places: Vec<BatchPlace>,
}

/// The maximum size of an event that is not a row of an export. A row has more fields.
const MAX_EVENT_BYTES: usize = 64 << 10;

impl Ingest {
    /// Returns the country of an address; `None` if it is unknown, or there is no database
    /// ([`EngineConfig::geo_db`](crate::EngineConfig::geo_db)).
    #[must_use]
    pub fn country_of(&self, address: IpAddr) -> Option<Country> {
        self.geo.as_ref()?.country(address)
    }

    /// Parses one event and applies the project's policy. Depends on nothing but its arguments, the
    /// clock and today's salt.
    ///
    /// # Errors
    /// The event is invalid, or today's salt could not be made durable.
    pub fn prepare(&self, policy: &Policy, body: &[u8], origin: &Origin<'_>) -> Result<Prepared, Refusal> {
        Submission::read(body, |submission| self.prepare_submission(policy, submission, origin))?
    }

    /// Like [`Ingest::prepare`], for a parsed event.
    pub(crate) fn prepare_submission(
        &self,
        policy: &Policy,
        submission: &Submission<'_>,
        origin: &Origin<'_>,
    ) -> Result<Prepared, Refusal> {
        self.prepare_visit(policy, submission, origin, &ImportedVisitor::default())
    }

    /// Like [`Ingest::prepare_submission`]. The visitor's properties in an import take precedence
    /// over the request's.
    fn prepare_visit(
        &self,
        policy: &Policy,
        submission: &Submission<'_>,
        origin: &Origin<'_>,
        imported: &ImportedVisitor,
    ) -> Result<Prepared, Refusal> {
        let now = self.questions.clock().now();
        let salt = match self.questions.secrets().salt(policy.timezone.day_of(now)) {
            Ok(salt) => Some(salt),
            Err(error) if needs_salt(submission, policy) => {
                tracing::error!(%error, "no salt for today's visitors");
                return Err(TrackError::Unavailable("today's visitor salt is not there".into()).into());
            }
            // The event counts for no visitor.
            Err(_) => None,
        };
        let (user_agent, address, country) = match origin.sender {
            Sender::Public => (origin.user_agent, origin.address, origin.country),
            Sender::Server => {
                let (user_agent, address) = (submission.user_agent(), submission.ip().map(ClientAddress::parse));
                let country = origin.country.or_else(|| self.country_of(address?.ip()?));
                (user_agent.or(origin.user_agent), address.or(origin.address), country)
            }
        };
        let country = imported.country.or(country);
        let user_agent = user_agent.map(|user_agent| cut_bytes(user_agent, MAX_AGENT_BYTES));
        let admit_from = |agent: &Agent| {
            let client =
                Client { sender: origin.sender, address, user_agent, country, agent, gpc: origin.gpc, dnt: origin.dnt, salt };
            admit(submission, policy, &client, now)
        };
        let verdict = match &imported.agent {
            Some(agent) => admit_from(agent),
            None => with_agent(user_agent.unwrap_or_default(), &origin.hints, admit_from),
        };
        Ok(Prepared { verdict: verdict? })
    }

    /// Prepares an event for import. A row of an export keeps the decisions from when it was
    /// recorded, and no policy applies again. Any other event is an event from a server, and
    /// `_import` may have properties of its visitor.
    ///
    /// # Errors
    /// Returns the same errors as [`Ingest::prepare`], and if the row doesn't fit the project's
    /// timezone or currencies.
    pub fn prepare_import(&self, policy: &Policy, json: &[u8]) -> Result<Prepared, Refusal> {
        let Some(row) = parse_row(json, policy.project)? else {
            return match json.len() {
                0..=MAX_EVENT_BYTES => {
                    let (json, mut warnings) = (readable(json), Vec::new());
                    let visitor = ImportedVisitor::read(&json, &mut warnings);
                    let prepare = |submission: &Submission<'_>| self.prepare_visit(policy, submission, &Origin::SERVER, &visitor);
                    let mut prepared = Submission::read(json.as_bytes(), prepare)??;
                    prepared.warn(warnings);
                    Ok(prepared)
                }
                long => {
                    let message = format!("the event has {long} bytes; at most {MAX_EVENT_BYTES} are allowed");
                    Err(Refusal::Invalid(Invalid { code: "event_too_large", param: None, message }))
                }
            };
        };
        let currencies = row.currencies.map(|currencies| (currencies.project, currencies.organization));
        let event = admit_pinned(row.event, currencies, policy, self.questions.clock().now())?;
        Ok(Prepared { verdict: Verdict::Record { event: Box::new(event), clamped: false, warnings: Vec::new() } })
    }

    /// Records one prepared event.
    ///
    /// # Errors
    /// See [`TrackError`].
    pub async fn record(
        &self,
        tracker: &Tracker,
        project: ProjectId,
        prepared: Prepared,
        permit: Permit,
    ) -> Result<Receipt, TrackError> {
        let repairs = prepared.repairs();
        let receipt = self.record_one(tracker, prepared, permit).await?;
        self.count_receipt(project, &receipt, repairs);
        Ok(receipt)
    }

    async fn record_one(&self, tracker: &Tracker, prepared: Prepared, mut permit: Permit) -> Result<Receipt, TrackError> {
        permit.keep(self.questions.erasures.epoch());
        let (mut event, clamped) = match prepared.verdict {
            Verdict::Record { event, clamped, .. } => (event, clamped),
            Verdict::Dropped(reason) => return Ok(Receipt::dropped(reason)),
        };
        if self.is_suppressed(&mut event) {
            return Ok(Receipt::dropped(DropReason::OptedOut));
        }
        if self.is_below_floor(&event) {
            return Ok(Receipt::dropped(DropReason::Retention));
        }
        let (project, external_id) = (event.project, event.external_id.clone());
        self.admission.accepts(project).map_err(|why| TrackError::Unavailable(why.into()))?;
        let events = vec![event];
        if let Some((_, exceeded)) = self.over_quota(&events).await?.first() {
            return Err(TrackError::QuotaExceeded(*exceeded));
        }
        let notifies = has_notification(&events);
        let outcomes = tracker.record(events, permit).await?;
        if notifies {
            self.tell_of_notification(project);
        }
        let outcome = outcomes.first().ok_or(TrackError::OutcomeUnknown)?;
        Ok(Receipt::of(project, external_id.as_deref(), *outcome, clamped))
    }

    /// Records a batch of one project. Events that are invalid or exceed a quota are reported, and
    /// all others are recorded.
    ///
    /// # Errors
    /// See [`TrackError`].
    pub async fn record_batch(
        &self,
        tracker: &Tracker,
        project: ProjectId,
        prepared: impl IntoIterator<Item = Result<Prepared, Refusal>>,
        permit: Permit,
    ) -> Result<BatchReceipt, TrackError> {
        let mut drops = DropCounts::default();
        let receipt = self.record_all(tracker, prepared, permit, &mut drops).await?;
        self.count_batch(project, &receipt, &drops);
        Ok(receipt)
    }

    async fn record_all(
        &self,
        tracker: &Tracker,
        prepared: impl IntoIterator<Item = Result<Prepared, Refusal>>,
        mut permit: Permit,
        drops: &mut DropCounts,
    ) -> Result<BatchReceipt, TrackError> {
        permit.keep(self.questions.erasures.epoch());
        let (kept, mut receipt) = self.keep(prepared, drops)?;
        let Some(first) = kept.events.first() else { return Ok(receipt) };
        self.admission.accepts(first.project).map_err(|why| TrackError::Unavailable(why.into()))?;
        let KeptEvents { events, places } = self.within_quota(kept, &mut receipt).await?;
        if events.is_empty() {
            return Ok(receipt);
        }
        let notified = has_notification(&events).then(|| events.first().map(|event| event.project)).flatten();
        let outcomes = tracker.record(events, permit).await?;
        if let Some(project) = notified {
            self.tell_of_notification(project);
        }
        receipt.apply(outcomes, &places, drops);
        Ok(receipt)
    }

    /// Returns the events of a batch to record, and a receipt of the others.
    ///
    /// # Errors
    /// No event of the batch can be recorded.
    pub(super) fn keep(
        &self,
        prepared: impl IntoIterator<Item = Result<Prepared, Refusal>>,
        drops: &mut DropCounts,
    ) -> Result<(KeptEvents, BatchReceipt), TrackError> {
        let (mut kept, mut receipt) = (KeptEvents::default(), BatchReceipt::default());
        for (index, prepared) in prepared.into_iter().enumerate() {
            match prepared {
                Ok(Prepared { verdict: Verdict::Record { mut event, clamped, warnings } }) => {
                    receipt.warn(index, warnings, drops);
                    if self.is_suppressed(&mut event) {
                        receipt.drop_one(DropReason::OptedOut, drops);
                    } else if self.is_below_floor(&event) {
                        receipt.drop_one(DropReason::Retention, drops);
                    } else {
                        kept.events.push(event);
                        kept.places.push(BatchPlace { index, is_clamped: clamped });
                    }
                }
                Ok(Prepared { verdict: Verdict::Dropped(reason) }) => receipt.drop_one(reason, drops),
                Err(Refusal::Invalid(invalid)) => receipt.errors.push((index, invalid)),
                Err(Refusal::Track(error)) => return Err(error),
                Err(Refusal::UnknownProject) => return Err(TrackError::Unavailable("unknown project".into())),
            }
        }
        Ok((kept, receipt))
    }

    /// Whether the identity of an event was erased. If only its anonymous id was, removes that id.
    fn is_suppressed(&self, event: &mut Event) -> bool {
        let project = event.project;
        let organization = || self.questions.organization_of(project);
        self.questions.erasures.suppresses(organization, event)
    }

    /// Returns the events of a batch that exceed no quota. All others become errors of `receipt`.
    async fn within_quota(&self, kept: KeptEvents, receipt: &mut BatchReceipt) -> Result<KeptEvents, TrackError> {
        let refused = self.over_quota(&kept.events).await?;
        if refused.is_empty() {
            return Ok(kept);
        }
        let error = |(place, exceeded): &(usize, QuotaExceeded)| {
            let invalid = Invalid { code: QuotaExceeded::CODE, param: None, message: exceeded.to_string() };
            Some((kept.places.get(*place)?.index, invalid))
        };
        receipt.errors.extend(refused.iter().filter_map(error));
        receipt.errors.sort_by_key(|(place, _)| *place);
        let mut refused = refused.into_iter().map(|(place, _)| place).peekable();
        let all = kept.events.into_iter().zip(kept.places).enumerate();
        let (events, places) = all.filter(|(place, _)| refused.next_if_eq(place).is_none()).map(|(_, event)| event).unzip();
        Ok(KeptEvents { events, places })
    }

    /// Evaluates events with the project's policy. Before a project's first event is recorded, its
    /// calendar and currencies are pinned (durably), and the event is evaluated again with the
    /// pinned configuration.
    ///
    /// # Errors
    /// The pin could not be made durable.
    pub async fn with_pinned_config<T>(
        &self,
        project: Arc<ProjectConfig>,
        evaluate: impl Fn(&Policy) -> T,
        is_recorded: impl FnOnce(&T) -> bool,
    ) -> Result<T, TrackError> {
        let evaluated = evaluate(&project.policy);
        if project.is_calendar_pinned() || !is_recorded(&evaluated) {
            return Ok(evaluated);
        }
        let questions = Arc::clone(&self.questions);
        let pinned = tokio::task::spawn_blocking(move || questions.registry.pin_calendar(&project)).await;
        match pinned {
            Ok(Ok(project)) => Ok(evaluate(&project.policy)),
            Ok(Err(error)) => {
                tracing::error!(%error, "the calendar could not be fixed");
                Err(TrackError::Unavailable("the project's calendar could not be fixed".into()))
            }
            Err(_) => Err(TrackError::Unavailable("the server is shutting down".into())),
        }
    }
}

/// Whether an event asks for a notification.
pub(super) fn has_notification(events: &[Box<Event>]) -> bool {
    events.iter().any(|event| event.details.notify == Some(true))
}

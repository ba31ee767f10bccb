//! A history: an organization and a sequence of steps.

use crate::generate::{add_floors, add_hints, add_jumps, add_walks, generate};
use chrono::NaiveDate;
use chrono_tz::Tz;
use headcount_model::{Json, OrganizationSetup, Question, Rates};
use std::fmt;

/// A project of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// The name in questions and steps.
    pub name: String,
    /// The body of `POST /projects`: `{"name": …, "currency": …, …}`.
    pub body: Json,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Sends an event from a typical browser with a public key, or [as a
    /// server](crate::is_of_server).
    Track {
        /// The project's name.
        project: String,
        /// The JSON of the event, exactly as sent.
        body: String,
    },
    /// Sends several events at once.
    Batch {
        /// The project's name.
        project: String,
        /// The events.
        bodies: Vec<String>,
    },
    /// Replaces the table of rates.
    Rates(Rates),
    /// Changes settings of a project.
    Settings {
        /// The project's name.
        project: String,
        /// The body of `PATCH /projects/{id}`, with both lists of hosts that are no referrers.
        body: Json,
    },
    /// Restarts the subject.
    Restart,
    /// Raises the floor of a project.
    Floor {
        /// The project's name.
        project: String,
        /// The first day that is not frozen.
        day: NaiveDate,
    },
    /// Sets the subject's clock.
    Clock {
        /// How far it is ahead of the one that the history begins with, in milliseconds.
        ahead_ms: i64,
    },
    /// Asks a question.
    Ask(Question),
}

/// The history of one organization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    /// The seed that it was generated from.
    pub seed: u64,
    /// The organization's settings at the start.
    pub organization: OrganizationSetup,
    /// Its projects.
    pub projects: Vec<Project>,
    /// Whether some events happen at the time of receipt. Instants in answers are then not
    /// compared.
    pub live: bool,
    /// The days of its events.
    pub days: Vec<NaiveDate>,
    /// The steps, in order.
    pub steps: Vec<Step>,
}

/// The size of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// The maximum number of events.
    pub events: usize,
    /// The number of questions, in addition to those asked at the end of every history.
    pub questions: usize,
}

impl Default for Size {
    fn default() -> Size {
        Size { events: 80, questions: 24 }
    }
}

impl History {
    /// Generates the history of a seed as of `now_ms`; times relative to today lie in the year
    /// before it.
    #[must_use]
    pub fn from_seed(seed: u64, now_ms: i64, size: Size) -> History {
        generate(seed, now_ms, size)
    }

    /// Returns a copy in which the floors of some projects rise, several times.
    #[must_use]
    pub fn with_floors(&self) -> History {
        let mut history = self.clone();
        add_floors(&mut history);
        history
    }

    /// Returns a copy in which more events follow those of some people.
    #[must_use]
    pub fn with_walks(&self) -> History {
        let mut history = self.clone();
        add_walks(&mut history);
        history
    }

    /// Returns a copy in which some events come from other browsers, with client hints, and
    /// questions ask about them.
    #[must_use]
    pub fn with_hints(&self) -> History {
        let mut history = self.clone();
        add_hints(&mut history);
        history
    }

    /// Returns a copy in which the clock jumps, ahead and back, by hours, days and years. `now_ms`:
    /// when it begins.
    #[must_use]
    pub fn with_jumps(&self, now_ms: i64) -> History {
        let mut history = self.clone();
        add_jumps(&mut history, now_ms);
        history
    }

    /// Returns a copy in which every event has an external id, so that it can be sent again.
    #[must_use]
    pub fn with_external_ids(&self) -> History {
        let mut history = self.clone();
        let events = history.steps.iter_mut().flat_map(|step| match step {
            Step::Track { body, .. } => std::slice::from_mut(body),
            Step::Batch { bodies, .. } => bodies,
            _ => &mut [],
        });
        for (number, body) in events.enumerate() {
            *body = with_external_id(body, &format!("e-{number}"));
        }
        history
    }

    /// Returns the organization's timezone.
    #[must_use]
    pub fn timezone(&self) -> Tz {
        self.organization.timezone
    }

    /// Returns a copy with other steps.
    #[must_use]
    pub fn with_steps(&self, steps: Vec<Step>) -> History {
        History { steps, ..self.clone() }
    }
}

/// Returns the text of an event with an external id, if it has none that is filled.
fn with_external_id(body: &str, id: &str) -> String {
    if body.contains(r#""external_id": """#) {
        return body.replacen(r#""external_id": """#, &format!(r#""external_id": "{id}""#), 1);
    }
    let fields = body.strip_prefix('{').filter(|_| !body.contains("\"external_id\""));
    fields.map_or_else(|| body.to_owned(), |fields| format!(r#"{{"external_id": "{id}", {fields}"#))
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Track { project, body } => write!(f, "track {project} {body}"),
            Step::Batch { project, bodies } => {
                write!(f, "batch {project}")?;
                bodies.iter().try_for_each(|body| write!(f, "\n    {body}"))
            }
            Step::Rates(rates) => {
                f.write_str("rates")?;
                rates.iter().try_for_each(|(currency, rate)| write!(f, " {currency}={rate}"))
            }
            Step::Settings { project, body } => write!(f, "settings {project} {body}"),
            Step::Restart => f.write_str("restart"),
            Step::Floor { project, day } => write!(f, "floor {project} {day}"),
            Step::Clock { ahead_ms } => write!(f, "clock {ahead_ms}"),
            Step::Ask(question) => {
                write!(f, "ask {} {:?}", question.path, question.query)?;
                question.body.iter().try_for_each(|body| write!(f, " {body}"))
            }
        }
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OrganizationSetup { timezone, currency, fx_rates } = &self.organization;
        writeln!(f, "seed {}, {timezone}, {currency}", self.seed)?;
        writeln!(f, "  {}", Step::Rates(fx_rates.clone()))?;
        for project in &self.projects {
            writeln!(f, "  project {}", project.body)?;
        }
        self.steps.iter().enumerate().try_for_each(|(index, step)| writeln!(f, "  {index}: {step}"))
    }
}

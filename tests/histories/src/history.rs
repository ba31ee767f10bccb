//! A history: an organization, and what happens to it step by step.

use crate::generate::generate;
use chrono::NaiveDate;
use chrono_tz::Tz;
use headcount_model::{Json, OrganizationSetup, Question, Rates};
use std::fmt;

/// A project of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// Its name, by which questions and steps speak of it.
    pub name: String,
    /// What `POST /projects` gets: `{"name": …, "currency": …, …}`.
    pub body: Json,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// An event, sent from a usual browser with a public key.
    Track {
        /// The project's name.
        project: String,
        /// The event as JSON, exactly as it is to be sent.
        body: String,
    },
    /// Several events at once.
    Batch {
        /// The project's name.
        project: String,
        /// The events.
        bodies: Vec<String>,
    },
    /// Another table of rates, in place of the one before.
    Rates(Rates),
    /// A stop and a start.
    Restart,
    /// A question.
    Ask(Question),
}

/// What happens to one organization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    /// What made it.
    pub seed: u64,
    /// The organization's settings at the start.
    pub organization: OrganizationSetup,
    /// Its projects.
    pub projects: Vec<Project>,
    /// Whether some events happen at the time of receipt. Instants in answers are not to be compared then.
    pub live: bool,
    /// The days on which something happens.
    pub days: Vec<NaiveDate>,
    /// What happens, in order.
    pub steps: Vec<Step>,
}

/// How long a history is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// How many events, at most.
    pub events: usize,
    /// How many questions, beside some that are always asked at the end.
    pub questions: usize,
}

impl Default for Size {
    fn default() -> Size {
        Size { events: 80, questions: 24 }
    }
}

impl History {
    /// The history of a seed, as of `now_ms`: what is relative to today lies in the year before it.
    #[must_use]
    pub fn from_seed(seed: u64, now_ms: i64, size: Size) -> History {
        generate(seed, now_ms, size)
    }

    /// The organization's timezone.
    #[must_use]
    pub fn timezone(&self) -> Tz {
        self.organization.timezone
    }

    /// The same, with other steps.
    #[must_use]
    pub fn with_steps(&self, steps: Vec<Step>) -> History {
        History { steps, ..self.clone() }
    }
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
            Step::Restart => f.write_str("restart"),
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

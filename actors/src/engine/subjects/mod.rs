//! What is recorded of people, for features: through [`Subjects`], which holds the engine weakly.
//!
//! `ids` finds the ids of a person. It asks the owners of projects (`questions`), who read the
//! links between ids from their saved states (`links`).

mod ids;
mod links;
mod questions;

use std::sync::Weak;

use headcount_control::{Erasure, MadeFor};
use headcount_domain::RecordKey;
use headcount_domain::queries::{KnownIdentitiesQuery, KnownIdentity};

use super::handle::Engine;
use super::running::RunningEngine;
use crate::shard::AskError;
use crate::subject::{
    BegunErasure, ErasureError, IsOver, Place, SubjectEvents, SubjectEventsQuestion, SubjectIds, SubjectKeys, Subjects, Whom,
};
use questions::AboutSubject;
pub(super) use questions::ask_patiently;
#[cfg(feature = "cluster")]
pub(super) use questions::asked_patiently;

/// The engine, which it does not keep open.
#[derive(Debug)]
pub(super) struct WeakEngine(pub(super) Weak<RunningEngine>);

impl WeakEngine {
    fn engine(&self) -> Option<Engine> {
        self.0.upgrade().map(|inner| Engine { inner })
    }

    fn for_erasure(&self) -> Result<Engine, ErasureError> {
        self.engine().ok_or(ErasureError::Unavailable("the engine has stopped"))
    }

    fn ask<Q: AboutSubject>(&self, place: Place, question: &Q, is_over: IsOver<'_>) -> Result<Q::Answer, AskError> {
        let engine = self.engine().ok_or(AskError::NoAnswer)?;
        ask_patiently(is_over, || engine.ask_about_subject(place, question.clone()))
    }
}

impl Subjects for WeakEngine {
    fn erase(&self, whom: Whom<'_>, by: &MadeFor) -> Result<BegunErasure, ErasureError> {
        self.for_erasure()?.begin_erasure(whom.0, whom.1, Some(by))
    }

    fn opt_in(&self, whom: Whom<'_>, by: &MadeFor) -> Result<Vec<Erasure>, ErasureError> {
        self.for_erasure()?.opt_in_for(whom.0, whom.1, Some(by))
    }

    fn known(&self, whom: Whom<'_>) -> Result<SubjectKeys, ErasureError> {
        self.for_erasure()?.known_subject(whom.0, whom.1)
    }

    fn ids(&self, whom: Whom<'_>, is_over: IsOver<'_>) -> Result<SubjectIds, ErasureError> {
        self.for_erasure()?.subject_ids(whom.0, whom.1, is_over)
    }

    fn identities(
        &self,
        place: Place,
        keys: Vec<RecordKey>,
        is_over: IsOver<'_>,
    ) -> Result<Vec<Option<KnownIdentity>>, AskError> {
        self.ask(place, &KnownIdentitiesQuery { keys }, is_over)
    }

    fn events(&self, place: Place, question: &SubjectEventsQuestion, is_over: IsOver<'_>) -> Result<SubjectEvents, AskError> {
        self.ask(place, question, is_over)
    }

    fn has_space(&self) -> bool {
        self.0.upgrade().is_some_and(|inner| inner.admission.disk.has_spare(0))
    }
}

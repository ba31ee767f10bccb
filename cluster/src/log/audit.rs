//! The owner's audit of a partition: it checks that the brokers still have every message that they
//! confirmed.
//!
//! A deposed leader may answer as if it still led. So when a message seems lost, the audit looks
//! again, for longer than such a broker keeps answering, before the message counts as lost.

use std::time::Duration;

use super::message::{Claims, MessageError};
use super::reader::LogReader;
use super::{Link, LogEnd, LogError};

/// The times of audits.
#[derive(Debug, Clone, Copy)]
pub struct AuditTiming {
    /// The time between two audits while nothing seems lost.
    pub every: Duration,
    /// The number of looks for a message before it counts as lost.
    pub looks: u32,
    /// The pause between two of these looks. All pauses together are longer than the ten seconds
    /// for which a broker without a majority still believes that it leads.
    pub pause: Duration,
}

impl Default for AuditTiming {
    fn default() -> Self {
        Self { every: Duration::from_secs(60), looks: 6, pause: Duration::from_secs(4) }
    }
}

impl LogReader {
    /// Checks that the brokers have every message that they confirmed up to `end`, whose message is
    /// never purged. Returns an error if one is lost. `Ok` also means that the brokers don't
    /// answer.
    pub(super) async fn audit(&self, end: LogEnd, timing: AuditTiming) -> Result<(), LogError> {
        match self.look_often(timing, || self.look(end)).await {
            Err(LogError::Unavailable(reason)) => {
                tracing::debug!(stream = &self.name, reason, "the audit is put off");
                Ok(())
            }
            looked => looked,
        }
    }

    /// Like [`LogReader::confirm_link`], for a message that the brokers have confirmed or
    /// delivered: if they answer that they lack it, the answer may be out of date.
    pub(crate) async fn confirm_lost(&self, link: Link, timing: AuditTiming) -> Result<bool, LogError> {
        self.look_often(timing, || self.confirm_link(link)).await
    }

    /// Checks that the stream has or had a message with this sequence.
    pub(crate) async fn reaches(&self, sequence: u64, timing: AuditTiming) -> Result<bool, LogError> {
        let look = async || {
            let (_, last) = self.ask_bounds().await?;
            if last < sequence { Err(self.missing(last + 1)) } else { Ok(true) }
        };
        self.look_often(timing, look).await
    }

    /// Looks until nothing is missing, no broker answers, or a message was missing each time.
    async fn look_often<R, F: Future<Output = Result<R, LogError>>>(
        &self,
        timing: AuditTiming,
        look: impl Fn() -> F,
    ) -> Result<R, LogError> {
        let mut looks = 1;
        loop {
            match look().await {
                Err(error @ (LogError::Missing { .. } | LogError::Broken { .. })) if looks < timing.looks => {
                    tracing::warn!(stream = &self.name, %error, looks, "something is missing that the brokers had; looking again")
                }
                looked => return looked,
            }
            looks += 1;
            tokio::time::sleep(timing.pause).await;
        }
    }

    /// Looks once, for the last message and for gaps before it.
    async fn look(&self, end: LogEnd) -> Result<(), LogError> {
        let found = self.get(end.sequence).await?.ok_or_else(|| self.missing(end.sequence))?;
        let claims = Claims::of(&found).map_err(|reason| self.broken(end.sequence, reason))?;
        if claims.chain != end.chain {
            return Err(self.broken(end.sequence, MessageError::Unchained));
        }
        let state = self.stream.get_info().await.map_err(LogError::unavailable)?.state;
        if state.last_sequence < end.sequence {
            return Err(self.missing(state.last_sequence + 1));
        }
        match state.deleted_count {
            None | Some(0) => Ok(()),
            // No process may delete single messages, and brokers skip the messages that they lost.
            Some(_) => Err(self.missing(self.first_gap().await?.unwrap_or(state.first_sequence))),
        }
    }

    /// Returns the sequence of the first missing message between existing ones.
    async fn first_gap(&self) -> Result<Option<u64>, LogError> {
        let info = self.stream.info_builder().with_deleted(true).fetch().await.map_err(LogError::unavailable)?;
        Ok(info.info.state.deleted.and_then(|deleted| deleted.first().copied()))
    }
}

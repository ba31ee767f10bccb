//! Events between their parsing and their recording.

use headcount_domain::agent::Hints;
use headcount_domain::intake::admission::{Sender, Verdict};
use headcount_domain::intake::client_address::ClientAddress;
use headcount_domain::intake::country::Country;
use headcount_domain::intake::warning::Warning;

use crate::intake_counts::RepairCounts;

/// The request that brought an event.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// The kind of sender. For a server, agent and address are those of the event itself.
    pub sender: Sender,
    /// The visitor's address. Never stored.
    pub address: Option<ClientAddress<'a>>,
    /// The visitor's user agent. Never stored.
    pub user_agent: Option<&'a str>,
    /// The client hints that came with it. Never stored.
    pub hints: Hints<'a>,
    /// The visitor's country: as a proxy reports it, or that of the address ([`Engine::country_of`](crate::Engine::country_of)).
    pub country: Option<Country>,
    /// `Sec-GPC: 1` was sent.
    pub gpc: bool,
    /// `DNT: 1` was sent.
    pub dnt: bool,
}

impl Origin<'_> {
    /// A server, without a visitor's request.
    pub const SERVER: Origin<'static> = Origin {
        sender: Sender::Server,
        address: None,
        user_agent: None,
        hints: Hints::NONE,
        country: None,
        gpc: false,
        dnt: false,
    };
}

/// An event that was parsed and admitted or dropped by the project's policy.
#[derive(Debug)]
pub struct Prepared {
    pub(crate) verdict: Verdict,
}

impl Prepared {
    /// What was repaired, and what the sender probably did not intend. Nothing of an event that is dropped.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        match &self.verdict {
            Verdict::Record { warnings, .. } => warnings,
            Verdict::Dropped(_) => &[],
        }
    }

    pub(crate) fn warn(&mut self, more: Vec<Warning>) {
        if let Verdict::Record { warnings, .. } = &mut self.verdict {
            warnings.extend(more);
        }
    }

    /// Names the fields of warnings otherwise.
    pub(crate) fn rename_warnings(&mut self, rename: impl FnMut(Warning) -> Warning) {
        if let Verdict::Record { warnings, .. } = &mut self.verdict {
            *warnings = std::mem::take(warnings).into_iter().map(rename).collect();
        }
    }

    pub(crate) fn repairs(&self) -> RepairCounts {
        RepairCounts::of(self.warnings())
    }

    /// Whether it is to be recorded; otherwise it is dropped.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        matches!(self.verdict, Verdict::Record { .. })
    }
}

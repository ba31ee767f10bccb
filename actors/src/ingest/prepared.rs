//! Parsed events before their recording.

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
    /// The client hints of the request. Never stored.
    pub hints: Hints<'a>,
    /// The visitor's country: from a proxy, or from the address
    /// ([`Ingest::country_of`](super::Ingest::country_of)).
    pub country: Option<Country>,
    /// Whether the request has `Sec-GPC: 1`.
    pub gpc: bool,
    /// Whether the request has `DNT: 1`.
    pub dnt: bool,
}

impl Origin<'_> {
    /// The origin of a server, without a visitor's request.
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

/// A parsed event, which the project's policy admits or drops.
#[derive(Debug)]
pub struct Prepared {
    pub(crate) verdict: Verdict,
}

impl Prepared {
    /// The repairs of the event, and probable mistakes of the sender. Empty for a dropped event.
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

    /// Changes the names of fields in warnings.
    pub(crate) fn rename_warnings(&mut self, rename: impl FnMut(Warning) -> Warning) {
        if let Verdict::Record { warnings, .. } = &mut self.verdict {
            *warnings = std::mem::take(warnings).into_iter().map(rename).collect();
        }
    }

    pub(crate) fn repairs(&self) -> RepairCounts {
        RepairCounts::of(self.warnings())
    }

    /// Whether the event will be recorded; otherwise it is dropped.
    pub fn is_recorded(&self) -> bool {
        matches!(self.verdict, Verdict::Record { .. })
    }
}

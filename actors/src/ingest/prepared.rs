//! Events between their parsing and their recording.

use headcount_domain::agent::Hints;
use headcount_domain::intake::admission::{Sender, Verdict};
use headcount_domain::intake::client_address::ClientAddress;
use headcount_domain::intake::country::Country;

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
    /// Takes the warnings for the sender about what it probably did not intend.
    #[must_use]
    pub fn take_warnings(&mut self) -> Vec<String> {
        match &mut self.verdict {
            Verdict::Record { warnings, .. } => std::mem::take(warnings),
            Verdict::Dropped(_) => Vec::new(),
        }
    }

    /// Whether it is to be recorded; otherwise it is dropped.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        matches!(self.verdict, Verdict::Record { .. })
    }
}

//! Explains a figure: the events that contribute to it, and the events that are not counted.

use super::money::CountedMoney;
use crate::facts::Moment;
use crate::filter::Predicate;
use crate::identity::IdentityId;
use crate::intake::event::{Event, Position};
use crate::money::{Amount, Currency};
use crate::named_values;
use crate::queries::{Dimension, EntityLevel, TouchModel};
use crate::time::{Instant, Window};
use crate::versions::{Depends, FigureKind};

named_values! {
    /// A figure that can be explained.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum ExplainedFigure by as_str {
        /// The distinct identities of the chosen events.
        UniqueUsers = "unique_users",
        /// The sessions that began in the window and contain a chosen event.
        Sessions = "sessions",
        /// Orders less refunds.
        Revenue = "revenue",
        /// The number of orders.
        Orders = "orders",
        /// Revenue under one source, medium or campaign.
        Attribution = "attribution",
    }
}

named_values! {
    /// The reason why an event contributes to a figure, or is not counted.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Reason by as_str {
        /// It is the first chosen event of its identity.
        FirstOfUser = "first_of_user",
        /// It is the first chosen event of its session.
        FirstOfSession = "first_of_session",
        /// It is an order.
        Order = "order",
        /// It is a refund.
        Refund = "refund",
        /// Its money is counted under a touch.
        Touch = "touch",
        /// Its money is counted as direct: its entity has no touch.
        Direct = "direct",
        /// It was recorded without consent, so it has no user and no session.
        NoConsent = "no_consent",
        /// The event is not interactive, and not attached to a session.
        NoSession = "no_session",
        /// Its session began before the window.
        BeganBefore = "began_before",
        /// A public key sent its money to a project that accepts money from servers only.
        ServerOnly = "server_only",
        /// There was no rate for its currency.
        NoRate = "no_rate",
    }
}

/// The contribution of an event's money and its reason; or the reason why it is not counted.
pub type MoneyOutcome = Result<(Amount, Reason), Reason>;

impl ExplainedFigure {
    /// Whether the figure is money.
    pub const fn is_of_money(self) -> bool {
        matches!(self, Self::Revenue | Self::Orders | Self::Attribution)
    }

    /// Returns the dependencies of an explanation.
    pub const fn depends(self, window: Window) -> Depends {
        const ALL: &[FigureKind] = &[FigureKind::Events, FigureKind::Traffic, FigureKind::Attribution, FigureKind::Money];
        match self {
            // A touch of any day may be the first one of an order's entity.
            Self::Attribution => Depends::AllDays(ALL),
            _ => Depends::TwoWindows(&[FigureKind::Events, FigureKind::Traffic], window, None),
        }
    }

    /// Returns the contribution of a chosen event's money to revenue or orders. `Err` if it is not
    /// counted, `None` if it is irrelevant to the figure.
    pub fn of_money(self, money: Option<CountedMoney>, is_server_only: bool) -> Option<MoneyOutcome> {
        if is_server_only {
            return Some(Err(Reason::ServerOnly));
        }
        let CountedMoney { amount, is_order, unconverted } = money?;
        if unconverted.is_some() {
            return Some(Err(Reason::NoRate));
        }
        match (self, is_order) {
            (Self::Orders, true) => Some(Ok((Amount::from_micros(1_000_000), Reason::Order))),
            (Self::Orders, false) => Some(Err(Reason::Refund)),
            _ if amount.is_zero() => None,
            (_, true) => Some(Ok((amount, Reason::Order))),
            (_, false) => Some(Ok((amount, Reason::Refund))),
        }
    }
}

/// The orders under a touch, to explain their revenue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttributedTo {
    /// By first or last touch.
    pub model: TouchModel,
    /// By touches of accounts or of identities.
    pub level: EntityLevel,
    /// By source, medium or campaign.
    pub dimension: Dimension,
    /// The source, medium or campaign; `None` for all.
    pub value: Option<Box<str>>,
}

impl AttributedTo {
    /// Whether a source, medium or campaign is selected. `None` stands for direct.
    pub fn selects(&self, named: Option<&str>) -> bool {
        self.value.as_deref().is_none_or(|value| value == named.unwrap_or(self.dimension.of_direct()))
    }
}

/// Asks for the events that make up a figure, page by page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplainQuestion {
    /// The figure.
    pub figure: ExplainedFigure,
    /// The touches, if the figure is attribution.
    pub attributed: Option<AttributedTo>,
    /// The days.
    pub window: Window,
    /// The predicate of chosen events.
    pub predicate: Predicate,
    /// The maximum number of events of each list.
    pub limit: usize,
    /// The place where the page begins; `None` for the first page.
    pub place: Option<ExplainPlace>,
}

/// The place where a page of an explanation begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExplainPlace {
    /// The last position of the project at the time of the first page.
    pub until: Position,
    /// The time of the first page.
    pub began: Instant,
    /// A number that identifies the state of the first page.
    pub state: u64,
    /// The moment of the last event of each list so far: contributing events, and events that are
    /// not counted.
    pub last: [Option<Moment>; 2],
}

/// A page of the events behind a figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The figure: the sum of the contributions of all pages.
    pub result: Amount,
    /// Contributing events, the latest first.
    pub rows: Vec<ExplainedEvent>,
    /// Events that are not counted, the latest first.
    pub not_counted: Vec<ExplainedEvent>,
    /// The last position of the project at the time of the first page. No page has later events.
    pub until: Position,
    /// The place where the next page begins; `None` on the last page.
    pub next: Option<ExplainPlace>,
}

/// An event of an explanation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplainedEvent {
    /// Its time and position.
    pub at: Moment,
    /// Its name.
    pub name: String,
    /// Its external id.
    pub external_id: Option<String>,
    /// Its identity, after links.
    pub identity: Option<IdentityId>,
    /// Its value as sent, and its currency.
    pub money: Option<(Amount, Currency)>,
    /// Its contribution to the figure.
    pub contributes: Amount,
    /// The reason why it contributes, or is not counted.
    pub why: Reason,
}

impl ExplainedEvent {
    /// Creates the entry of an event in a list.
    pub fn new(event: &Event, at: Moment, identity: Option<IdentityId>, contributes: Amount, why: Reason) -> Self {
        Self {
            at,
            name: event.name.to_string(),
            external_id: event.external_id.as_deref().map(str::to_owned),
            identity,
            money: event.money.map(|money| (money.amount, money.currency)),
            contributes,
            why,
        }
    }
}

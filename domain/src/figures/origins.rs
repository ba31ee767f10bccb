//! Sessions by where they came from.

use super::Figures;

/// The sessions that began in a window, by channel, source, medium and campaign of their entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionOrigins {
    /// The figures of all sessions: only those of sessions are counted.
    pub totals: Figures,
    /// By channel. All lists are ordered by sessions, descending.
    pub by_channel: Vec<OriginRow>,
    /// By source.
    pub by_source: Vec<OriginRow>,
    /// By medium.
    pub by_medium: Vec<OriginRow>,
    /// By campaign.
    pub by_campaign: Vec<OriginRow>,
    /// Whether one of the lists was cut.
    pub truncated: bool,
}

/// The sessions of one channel, source, medium or campaign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginRow {
    /// The channel, source, medium or campaign.
    pub value: String,
    /// The figures of the sessions.
    pub figures: Figures,
}

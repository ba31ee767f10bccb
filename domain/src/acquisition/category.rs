//! Categories of sites.

/// What kind of site a source is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Category {
    Search,
    Social,
    Shopping,
    Video,
    AiAssistant,
}

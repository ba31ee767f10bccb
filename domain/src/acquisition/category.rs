//! Categories of sites.

/// The category of a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Category {
    Search,
    Social,
    Shopping,
    Video,
    AiAssistant,
}

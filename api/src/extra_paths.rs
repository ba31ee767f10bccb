//! Further names of `/hc.js` and `/i`, which an operator chooses: lists of blocked addresses know
//! the usual ones.

/// The paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExtraPaths {
    /// Another path of `/hc.js`.
    pub script: Option<String>,
    /// Another path of `/i`.
    pub collect: Option<String>,
}

impl ExtraPaths {
    /// Those that there are.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        [&self.script, &self.collect].into_iter().filter_map(Option::as_deref)
    }
}

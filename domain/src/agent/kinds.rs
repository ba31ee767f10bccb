//! The properties of a user agent.

use compact_str::CompactString;
use serde::{Deserialize, Serialize};

use crate::named_values;

named_values! {
    /// The kind of device that an event came from.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
    pub enum Device by name {
        /// A computer with a browser.
        Desktop = "desktop",
        /// A phone.
        Mobile = "mobile",
        /// A tablet: an iPad that identifies itself, or an Android browser without "Mobile" in its
        /// agent.
        Tablet = "tablet",
        /// A crawler, monitor or previewer.
        Bot = "bot",
        /// A television, a console, a program or an unknown device.
        #[default]
        Other = "other",
    }
}

/// The properties in a user agent. `None` stands for a missing one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Agent {
    /// The browser's usual name (`Chrome`, `Safari`, `Samsung Internet`), or the name of a
    /// well-known bot.
    pub browser: Option<CompactString>,
    /// The browser's full version, as sent: `124.0.2478.51`.
    pub browser_version: Option<CompactString>,
    /// The operating system, without its version: `Windows`, `macOS`, `iOS`, `Android`, `Linux`,
    /// `ChromeOS` …; `Windows 11` where a client hint says so, since user agents can't.
    pub os: Option<CompactString>,
    /// The kind of device.
    pub device: Device,
}

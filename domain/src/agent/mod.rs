//! What a user agent says of itself: browser, operating system, kind of device; and whether it is a bot.
//!
//! Browsers and systems are told by the data of `woothee`. Bots are told by a maintained list of their names
//! (`agent/data/`, made anew by `update.py` there) and by what they generally say; tablets are told here.

mod names;
mod words;

use std::fmt;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use serde::{Deserialize, Serialize};
use woothee::parser::{Parser, WootheeResult};

use crate::text;
use words::{BOT_WORDS, HTTP_PROGRAMS};

/// What follows is not looked at; the longest honest agents have some 400 bytes.
const MAX_AGENT_BYTES: usize = 1024;

/// The kind of device that an event came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub enum Device {
    /// A computer with a browser.
    Desktop,
    /// A phone.
    Mobile,
    /// A tablet: an iPad that says so, or an Android browser that doesn't say "Mobile".
    Tablet,
    /// A crawler, monitor or previewer, see [`is_bot`].
    Bot,
    /// A television, a console, a program, or something that does not tell.
    #[default]
    Other,
}

impl Device {
    /// Every kind.
    pub const ALL: &[Device] = &[Device::Desktop, Device::Mobile, Device::Tablet, Device::Bot, Device::Other];

    /// The name that answers show: `desktop`, `mobile`, `tablet`, `bot`, `other`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Device::Desktop => "desktop",
            Device::Mobile => "mobile",
            Device::Tablet => "tablet",
            Device::Bot => "bot",
            Device::Other => "other",
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a user agent says of itself. What it does not say is `None`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Agent {
    /// The browser by its usual name (`Chrome`, `Safari`, `Samsung Internet`); a well-known bot by its own.
    pub browser: Option<String>,
    /// The browser's version in full, as it is sent: `124.0.2478.51`.
    pub browser_version: Option<String>,
    /// The operating system without its version: `Windows`, `macOS`, `iOS`, `Android`, `Linux`, `ChromeOS` …
    pub os: Option<String>,
    /// The kind of device.
    pub device: Device,
}

/// Reads a user agent. A few microseconds; never fails.
#[must_use]
pub fn parse(user_agent: &str) -> Agent {
    let user_agent = text::cut_bytes(user_agent.trim(), MAX_AGENT_BYTES);
    let is_bot = reads_as_bot(user_agent);
    if !is_bot && is_http_program(user_agent) {
        return Agent::default();
    }
    // It calls programs browsers of the name "HTTP Library".
    let found = Parser::new().parse(user_agent).filter(|found| found.name != "HTTP Library");
    let found = found.unwrap_or_default();
    let device = if is_bot { Device::Bot } else { device_of(&found, user_agent) };
    Agent {
        browser: known(browser_name(&found)),
        browser_version: known(found.version),
        os: known(os_name(&found, user_agent)),
        device,
    }
}

/// Whether a user agent is that of a crawler, monitor or previewer; feed readers that fetch for many count as crawlers.
///
/// So does a browser that a program drives (`HeadlessChrome`, Playwright). A program that speaks HTTP (curl,
/// python-requests, an absent agent) is none, as servers send events that way.
#[must_use]
pub fn is_bot(user_agent: &str) -> bool {
    reads_as_bot(text::cut_bytes(user_agent.trim(), MAX_AGENT_BYTES))
}

/// Finds [`BOT_WORDS`] in any case. `None` can't be: the list is short.
static BOTS: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| AhoCorasick::builder().ascii_case_insensitive(true).build(BOT_WORDS).ok());

fn reads_as_bot(user_agent: &str) -> bool {
    has_bot_word(user_agent) || names::has_name(user_agent) || (names_a_page(user_agent) && !is_http_program(user_agent))
}

fn has_bot_word(user_agent: &str) -> bool {
    let Some(bots) = BOTS.as_ref() else {
        return false;
    };
    // Phones of the brand Cubot are no bots.
    let is_phone = |start: usize| {
        let before = start.checked_sub(2).and_then(|from| user_agent.as_bytes().get(from..start));
        before.is_some_and(|before| before.eq_ignore_ascii_case(b"cu"))
    };
    bots.find_iter(user_agent).any(|word| BOT_WORDS[word.pattern()] != "bot" || !is_phone(word.start()))
}

fn is_http_program(user_agent: &str) -> bool {
    let starts_with = |name: &str| {
        let start = user_agent.as_bytes().get(..name.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(name.as_bytes()))
    };
    // App Engine adds its name to the agent of whatever runs there.
    user_agent.eq_ignore_ascii_case("node")
        || HTTP_PROGRAMS.iter().any(|name| starts_with(name))
        || user_agent.contains("AppEngine-Google")
}

/// Bots say where to read about them: `+http://…`. Without the plus, old extensions of Internet Explorer do so too.
fn names_a_page(user_agent: &str) -> bool {
    let mut addresses = user_agent.match_indices("http").filter(|(at, _)| {
        let rest = &user_agent.as_bytes()[*at..];
        rest.starts_with(b"http://") || rest.starts_with(b"https://")
    });
    let is_explorer = user_agent.contains("MSIE");
    addresses.any(|(at, _)| !is_explorer || user_agent[..at].trim_end().ends_with('+'))
}

fn known(name: &str) -> Option<String> {
    let is_known = !name.is_empty() && name != "UNKNOWN" && name != "misc crawler";
    is_known.then(|| name.to_owned())
}

fn browser_name<'a>(found: &WootheeResult<'a>) -> &'a str {
    match (found.name, found.os) {
        ("SamsungBrowser", _) => "Samsung Internet",
        ("Safari", "Android") => "Android Browser",
        (name, _) => name,
    }
}

fn os_name<'a>(found: &WootheeResult<'a>, user_agent: &str) -> &'a str {
    match found.os {
        "iPhone" | "iPad" | "iPod" | "iOS" => "iOS",
        "Mac OSX" | "Mac OS Classic" => "macOS",
        "UNKNOWN" | "" => {
            let systems = ["Windows", "FreeBSD", "NetBSD", "OpenBSD", "SunOS", "Linux"];
            systems.into_iter().find(|system| user_agent.contains(system)).unwrap_or("")
        }
        os if os.starts_with("Windows Phone") => "Windows Phone",
        os if os.starts_with("Windows") => "Windows",
        os => os,
    }
}

fn device_of(found: &WootheeResult<'_>, user_agent: &str) -> Device {
    let says = |words: &[&str]| words.iter().any(|word| user_agent.contains(word));
    let is_screen = says(&["BRAVIA", "GoogleTV", "SmartTV", "SMART-TV", "CrKey", "; AFT", " TV ", "Android TV"]);
    let is_browser = user_agent.starts_with("Mozilla/") || user_agent.starts_with("Opera/");
    let is_tablet = match found.os {
        "iPad" => true,
        "Android" => is_browser && (says(&["Tablet"]) || !says(&["Mobile"])),
        _ => says(&["Kindle", "PlayBook", "Silk/"]),
    };
    match found.category {
        "appliance" => Device::Other,
        _ if is_screen => Device::Other,
        "pc" | "smartphone" | "mobilephone" if is_tablet => Device::Tablet,
        "pc" => Device::Desktop,
        "smartphone" | "mobilephone" => Device::Mobile,
        _ if says(&["MIDP", "Opera Mini", "WAP Browser"]) => Device::Mobile,
        _ if is_browser && says(&["Windows NT", "Macintosh", "X11"]) => Device::Desktop,
        _ => Device::Other,
    }
}

#[cfg(test)]
mod tests;

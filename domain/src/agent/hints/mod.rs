//! Client hints: the properties that Chromium browsers send beside their user agent. The user agent
//! of these browsers contains fewer and fewer details.
//!
//! <https://wicg.github.io/ua-client-hints/>. An unreadable hint is absent.

mod structured;

use super::devices;
use super::kinds::{Agent, Device};
pub use structured::MAX_BYTES as MAX_HINT_BYTES;
use structured::{Member, list, text};

/// The hints of a request, as sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hints<'a> {
    /// `Sec-CH-UA`: the brands of the browser, with their major versions.
    pub brands: Option<&'a str>,
    /// `Sec-CH-UA-Full-Version-List`: the brands, with their full versions.
    pub full_versions: Option<&'a str>,
    /// `Sec-CH-UA-Mobile`.
    pub mobile: Option<&'a str>,
    /// `Sec-CH-UA-Platform`.
    pub platform: Option<&'a str>,
    /// `Sec-CH-UA-Platform-Version`.
    pub platform_version: Option<&'a str>,
    /// `Sec-CH-UA-Model`.
    pub model: Option<&'a str>,
    /// `Sec-CH-UA-Form-Factors`.
    pub form_factors: Option<&'a str>,
}

/// Browsers by their brands. Values that an attacker adds are never used as names.
#[rustfmt::skip]
const BRANDS: &[(&str, &str)] = &[
    ("Google Chrome", "Chrome"), ("Chromium", "Chromium"), ("Android WebView", "Chrome WebView"), ("Microsoft Edge", "Edge"),
    ("Microsoft Edge WebView2", "Edge"), ("Opera", "Opera"), ("Opera GX", "Opera GX"), ("OperaMobile", "Opera"), ("Opera Mini", "Opera Mini"),
    ("OperaMini", "Opera Mini"), ("Brave", "Brave"), ("Brave Browser", "Brave"), ("Vivaldi", "Vivaldi"), ("Yandex", "Yandex Browser"), ("YaBrowser", "Yandex Browser"),
    ("Samsung Internet", "Samsung Internet"), ("DuckDuckGo", "DuckDuckGo"), ("Ecosia", "Ecosia"), ("Whale", "Whale"), ("Huawei Browser", "Huawei Browser"),
    ("HuaweiBrowser", "Huawei Browser"), ("MiuiBrowser", "MIUI Browser"), ("UCBrowser", "UC Browser"), ("QQBrowser", "QQ Browser"),
    ("Oculus Browser", "Oculus Browser"), ("Meta Quest Browser", "Oculus Browser"), ("Pico Browser", "Pico Browser"), ("Avast Secure Browser", "Avast Secure Browser"), ("AvastSecureBrowser", "Avast Secure Browser"),
    ("AVG Secure Browser", "AVG Secure Browser"), ("CCleaner Browser", "CCleaner Browser"), ("Norton Private Browser", "Norton Private Browser"),
    ("Norton Secure Browser", "Norton Private Browser"), ("Amazon Silk", "Amazon Silk"), ("Silk", "Amazon Silk"), ("CocCoc", "Coc Coc"), ("Coc Coc", "Coc Coc"),
    ("Aloha Browser", "Aloha"), ("Iron", "Iron"), ("Sogou", "Sogou Explorer"), ("Puffin", "Puffin"), ("Maxthon", "Maxthon"), ("Arc", "Arc"), ("Comet", "Comet"),
    ("ChatGPT Atlas", "ChatGPT Atlas"), ("Wavebox", "Wavebox"), ("Electron", "Electron"),
];

/// Browsers that other browsers also claim to be.
const COMMON: &[&str] = &["Chrome", "Chromium", "Chrome WebView"];

/// Windows 11 has `Windows 10` in its user agent, and a platform version of `13.0.0` or more.
const WINDOWS_11: u32 = 13;

impl Hints<'_> {
    /// No hints.
    pub const NONE: Hints<'static> = Hints {
        brands: None,
        full_versions: None,
        mobile: None,
        platform: None,
        platform_version: None,
        model: None,
        form_factors: None,
    };

    /// The present hints, in the order of their fields, with their numbers.
    pub fn each(&self) -> impl Iterator<Item = (u8, &str)> {
        let fields =
            [self.brands, self.full_versions, self.mobile, self.platform, self.platform_version, self.model, self.form_factors];
        (0..).zip(fields).filter_map(|(number, hint)| Some((number, hint?)))
    }

    /// Adds the hints to the properties of an agent, if both describe the same browser.
    pub(super) fn refine(&self, user_agent: &str, agent: &mut Agent) {
        let is_chromium = ["Chrome/", "Chromium/", "CriOS/"].into_iter().any(|name| user_agent.contains(name));
        if *self == Hints::NONE || agent.device == Device::Bot || !is_chromium {
            return;
        }
        self.refine_browser(agent);
        self.refine_system(agent);
        if !devices::is_screen(user_agent) {
            // A device with a model's name asked for the desktop page.
            let is_model = |model: &str| text(model).is_some_and(|model| !model.is_empty());
            let is_phone =
                agent.device == Device::Desktop && agent.os.as_deref() == Some("Android") && self.model.is_some_and(is_model);
            agent.device = self.device().unwrap_or(if is_phone { Device::Mobile } else { agent.device });
        }
    }

    fn refine_browser(&self, agent: &mut Agent) {
        let stated = agent.browser.as_deref().unwrap_or_default();
        let Some((brand, name)) = self.brand(stated) else { return };
        let full = self.full_versions.and_then(|versions| version_of(versions, brand));
        // The user agent has the major version, followed by zeros, or that of Chromium.
        let is_better = |version: &&str| stated != name || version.contains('.');
        let version = full.or_else(|| version_of(self.brands?, brand).filter(is_better));
        agent.browser = Some(name.into());
        agent.browser_version = version.map(Into::into).or(agent.browser_version.take());
    }

    /// The brand to use, and its browser: the brand of the user agent, else the least common brand.
    fn brand(&self, stated: &str) -> Option<(&str, &'static str)> {
        let brands = [self.full_versions, self.brands].into_iter().flatten().flat_map(list);
        let known: Vec<_> = brands.filter_map(|brand| BRANDS.iter().find(|(known, _)| *known == brand.text).copied()).collect();
        let is_common = |name: &str| COMMON.contains(&name);
        let same = known.iter().find(|(_, name)| *name == stated);
        let rare = known.iter().find(|(_, name)| !is_common(name)).filter(|_| stated.is_empty() || is_common(stated));
        rare.or(same).copied()
    }

    fn refine_system(&self, agent: &mut Agent) {
        let Some(platform) = self.platform.and_then(text) else { return };
        let stated = agent.os.as_deref().unwrap_or_default();
        let name = match platform {
            "Windows" if self.is_windows_11() => "Windows 11",
            "Chrome OS" | "ChromeOS" | "Chromium OS" => "ChromeOS",
            "Windows" | "macOS" | "Linux" | "Android" | "Fuchsia" => platform,
            _ => return,
        };
        if stated.is_empty() || (stated == "Linux" && name != "Linux") || (stated == "Windows" && name == "Windows 11") {
            agent.os = Some(name.into());
        }
    }

    fn is_windows_11(&self) -> bool {
        let version = self.platform_version.and_then(text);
        let major = version.and_then(|version| version.split('.').next()?.parse::<u32>().ok());
        major.is_some_and(|major| major >= WINDOWS_11)
    }

    /// The kind of device, if the form factors, the model or the mobile flag show it.
    fn device(&self) -> Option<Device> {
        let factors = self.form_factors.map(list).unwrap_or_default();
        let has = |names: &[&str]| factors.iter().any(|factor| names.contains(&factor.text));
        if has(&["Automotive", "XR", "Watch", "TV"]) {
            return Some(Device::Other);
        }
        if has(&["Tablet", "EInk"]) {
            return Some(Device::Tablet);
        }
        let by_model = self.model.and_then(text).filter(|model| !model.is_empty()).and_then(devices::of_model);
        let is_phone = || has(&["Mobile"]) || self.mobile.map(str::trim) == Some("?1");
        by_model.or_else(|| is_phone().then_some(Device::Mobile)).or_else(|| has(&["Desktop"]).then_some(Device::Desktop))
    }
}

/// The version of a brand, if the brand is listed.
fn version_of<'a>(brands: &'a str, brand: &str) -> Option<&'a str> {
    const MAX_BYTES: usize = 32;
    let Member { version, .. } = list(brands).into_iter().find(|member| member.text == brand)?;
    version.filter(|version| {
        (1..=MAX_BYTES).contains(&version.len()) && version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    })
}

#[cfg(test)]
mod tests;

//! Determines the kind of device from a user agent. Of an Android agent, the model says it: by
//! lists of models and by the naming schemes of makers.

use std::collections::HashMap;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use super::kinds::Device;
use super::lists::{MODEL_SERIES, MODELS, OLD_TABLETS, PHONES, SCREENS, TABLET_WORDS};
use super::patterns::Patterns;

/// Texts in agents of phones, tablets and their apps, in lower case.
#[rustfmt::skip]
const HANDHELD: &[&str] = &[
    "android", "iphone", "ipad", "ipod", "harmonyos", "openharmony", "windows phone", "kaios", "blackberry", "bb10", "tizen", "symbianos",
    "series60", "; wv)", "mobile safari", "web0s", " cfnetwork/", " adr ",
];

/// Words in agents of phones beside the name of the phone.
const PHONE_WORDS: &[&str] = &[
    "MIDP", "CLDC", "Profile/", "UP.", "WAP", "Wap", "Browser", "browser", "NetFront", "Obigo", "MAUI", "Teleca", "Opera",
    "Release/",
];

/// Texts that always mean a phone.
#[rustfmt::skip]
const PHONES_OF_THEIR_OWN: &[&str] = &[
    "iPhone", "iPod", "dv(iPh", "Windows Phone", "Windows Mobile", "IEMobile", "WPDesktop", "ZuneWP7", "Windows NT 10.0; ARM;",
    "BlackBerry", "BB10", "KAIOS", "KaiOS", "(webOS/", "(Mobile; ",
];
/// Texts that mean a tablet without Android.
#[rustfmt::skip]
const TABLETS_OF_THEIR_OWN: &[&str] = &[
    "Kindle", "PlayBook", "RIM Tablet", "Silk/", "hp-tablet", "TouchPad", "Tablet;", "PocketBook/", "Windows NT 6.2; ARM;",
    "Windows NT 6.3; ARM;",
];
#[rustfmt::skip]
const OTHER_PHONES: &[&str] = &[
    "Mobile Safari", "UCWEB", "MeeGo", "Maemo", "Series40", "Series30", "SonyEricsson", "PPC;", "Opera Mobi", "PalmSource", "PalmOS",
    "Palmscape", "Blazer/", "DoCoMo/",
];
const COMPUTERS: &[&str] = &["Windows", "Mac", "Linux", "BSD", "SunOS", "OS/2", "Win", "Amiga", "BeOS", "Haiku", "RISC OS"];
/// Texts in agents of programs on computers. Linux is not among them, since servers have it, too.
#[rustfmt::skip]
const COMPUTERS_OF_PROGRAMS: &[&str] = &[
    "Windows", "WinNT", "Win64", "Win32", "(win", "Edge Update/", "Desktop app", "Mac OS", "MacOS", "macOS", "OS X", "OSX/", "os=Mac",
    "apple-darwin", "MacBook", "iMac", "Macmini", "MacPro", "Macintosh", "(x86_64)", "(i386)", "X11;", "AmigaOS", "ELinks/", "Links (",
];

/// The first Android version whose tablets are recognized by the model; older tablets are in
/// `tablets.tsv`.
const NEW_ANDROID: u32 = 7;

static HANDHELDS: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| AhoCorasick::builder().ascii_case_insensitive(true).build(HANDHELD).ok());

/// Whether the agent is of a phone, a tablet or an app.
pub(super) fn is_handheld(agent: &str) -> bool {
    HANDHELDS.as_ref().is_some_and(|handhelds| handhelds.is_match(agent))
}

/// Whether the agent is of a television, a console, a watch, glasses or a car.
pub(super) fn is_screen(agent: &str) -> bool {
    is_any(&SCREENS, agent)
}

/// The kind of device, if the agent is not of a bot.
pub(super) fn of(agent: &str) -> Device {
    let says = |words: &[&str]| words.iter().any(|word| agent.contains(word));
    if let Some(kind) = model(agent).and_then(kind_of) {
        return kind;
    }
    if is_screen(agent) {
        return Device::Other;
    }
    if says(&["(PC; ", "(2in1;"]) {
        return Device::Desktop;
    }
    if says(&["iPad", "dv(iPd"]) {
        return Device::Tablet;
    }
    if says(PHONES_OF_THEIR_OWN) {
        return Device::Mobile;
    }
    if says(&["Android", "android", "ANDROID", "Andr0id", "HarmonyOS", "OpenHarmony", " Adr ", "FBAN/FB4A"]) {
        return of_android(agent);
    }
    if says(TABLETS_OF_THEIR_OWN) {
        return Device::Tablet;
    }
    of_other(agent)
}

/// The kind of a device that is neither a screen, nor from Apple, nor Android.
fn of_other(agent: &str) -> Device {
    let says = |words: &[&str]| words.iter().any(|word| agent.contains(word));
    if says(OTHER_PHONES) {
        return Device::Mobile;
    }
    let is_browser = is_browser(agent);
    // Computers with these processors have X11; receivers and players don't.
    if is_browser && says(&["Linux mips", "Linux armv", "Linux sh4", "QtEmbedded", "DirectFB"]) && !says(&["X11"]) {
        return Device::Other;
    }
    if is_browser && says(&["Windows NT", "Macintosh", "X11", "CrOS", "Win9", "Win64"]) {
        return Device::Desktop;
    }
    // Names of phones are short: programs begin so, too.
    let is_phone = || says(PHONE_WORDS) && is_any(&PHONES, agent);
    if is_phone() || says(&["SAMSUNG", "Nokia", "NOKIA", "LG-", "HTC", "SIE-", "MQQBrowser/Mini"]) {
        return Device::Mobile;
    }
    let is_desktop = if is_browser { says(COMPUTERS) } else { says(COMPUTERS_OF_PROGRAMS) };
    if is_desktop { Device::Desktop } else { Device::Other }
}

/// The kind of device of a model, if its name shows that it is not a phone. A phone in desktop mode
/// sends a desktop agent.
pub(super) fn of_model(model: &str) -> Option<Device> {
    kind_of(model).filter(|kind| *kind != Device::Mobile).or_else(|| {
        // As a user agent has it.
        let model = format!("(Linux; Android 10; {model})");
        let is_tablet = || is_any(&TABLET_WORDS, &model).then_some(Device::Tablet);
        if is_screen(&model) { Some(Device::Other) } else { is_tablet() }
    })
}

fn of_android(agent: &str) -> Device {
    let is_browser = is_browser(agent);
    let says = |words: &[&str]| words.iter().any(|word| agent.contains(word));
    let is_old = android_version(agent).is_some_and(|version| version < NEW_ANDROID);
    if is_any(&TABLET_WORDS, agent) || (is_old && is_any(&OLD_TABLETS, agent)) {
        return Device::Tablet;
    }
    // Browsers on tablets omit "Mobile". Other programs omit it, too, and so does an agent that is
    // truncated before "Safari", so these are no sign of a tablet.
    let is_large = is_browser && says(&["Safari", "safari/", "Gecko/"]) && !says(&["Mobi", "mobi", "Phone", "Mini"]);
    if is_large { Device::Tablet } else { Device::Mobile }
}

fn android_version(agent: &str) -> Option<u32> {
    let start = agent.find("Android ")? + "Android ".len();
    let digits = agent[start..].split(|character: char| !character.is_ascii_digit()).next()?;
    digits.parse().ok()
}

fn is_browser(agent: &str) -> bool {
    ["Mozilla/", "mozilla/", "Opera/"].into_iter().any(|start| agent.starts_with(start))
}

fn is_any(patterns: &LazyLock<Option<Patterns>>, agent: &str) -> bool {
    patterns.as_ref().is_some_and(|patterns| patterns.any(agent))
}

/// The maximum length of a model's name.
const MAX_BYTES: usize = 64;

/// The kinds of models that are not phones, by lower-case name.
static KINDS: LazyLock<HashMap<&'static str, Device>> = LazyLock::new(|| {
    let lines = MODELS.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once('\t')).filter_map(|(model, kind)| Some((model, kind.parse().ok()?))).collect()
});

/// The kind of a model, if a list or its name shows it.
pub(super) fn kind_of(model: &str) -> Option<Device> {
    if model.is_empty() || model.len() > MAX_BYTES {
        return None;
    }
    let known = || KINDS.get(model.to_lowercase().as_str()).copied();
    let series = || MODEL_SERIES.as_ref()?.first(model)?.name.parse().ok();
    series().or_else(known)
}

/// The model in an Android agent: the rest of the comment without versions, languages and builds.
pub(super) fn model(agent: &str) -> Option<&str> {
    let start = ["Android", "android", "HarmonyOS"].into_iter().find_map(|system| agent.find(system))?;
    let comment = &agent[start..];
    // Some leave the brackets out.
    let end =
        [")", " AppleWebKit/", " applewebkit/"].into_iter().filter_map(|mark| comment.find(mark)).min().unwrap_or(comment.len());
    let parts = comment[..end].split(';').skip(1).map(str::trim);
    let models =
        parts.map(|part| part.split_once("Build/").or_else(|| part.split_once("build/")).map_or(part, |(model, _)| model.trim()));
    models.into_iter().find(|part| !part.is_empty() && !is_other(part))
}

/// Whether a part of the comment is not a model: a language, a browser revision, or a mark of a
/// program.
fn is_other(part: &str) -> bool {
    let bytes = part.as_bytes();
    let is_language = || {
        let (first, rest) = bytes.split_at(bytes.len().min(2));
        first.iter().all(u8::is_ascii_lowercase) && (rest.is_empty() || (matches!(rest[0], b'-' | b'_') && rest.len() <= 5))
    };
    ["U", "K", "wv", "Mobile", "Tablet", "HarmonyOS"].contains(&part)
        || part.starts_with("rv:")
        || (bytes.len() <= 7 && is_language())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_name_models() {
        for (agent, expected) in [
            ("Mozilla/5.0 (Linux; Android 13; SM-X700) AppleWebKit/537.36", Some("SM-X700")),
            ("Mozilla/5.0 (Linux; U; Android 4.2.2; fa-ir; SM-T311 Build/JDQ39) AppleWebKit/534.30", Some("SM-T311")),
            ("Mozilla/5.0 (Linux; Android 9; HarmonyOS; JDN2-AL50HN; HMSCore 6.4.0.311) AppleWebKit/537.36", Some("JDN2-AL50HN")),
            ("Mozilla/5.0 Linux; Android 7.0; BQ-7084G Build/NRD90M; wv AppleWebKit/537.36", Some("BQ-7084G")),
            ("Dalvik/1.6.0 (Linux; U; Android 4.4.2; MITO T888 Build/KOT49H)", Some("MITO T888")),
            ("Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36", None),
            ("Mozilla/5.0 (Android; Tablet; rv:27.0) Gecko/27.0 Firefox/27.0", None),
            ("Mozilla/5.0 (Linux; Android 11) AppleWebKit/537.36", None),
            ("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36", None),
            ("Android", None),
        ] {
            assert_eq!(model(agent), expected, "{agent}");
        }
    }
}

//! Which kind of device an agent is of.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use regex::Regex;

use super::kinds::Device;
use super::lists::{PHONES, TABLETS};
use super::patterns::Patterns;

/// What agents of phones, tablets and their apps have, in lower case.
#[rustfmt::skip]
const HANDHELD: &[&str] = &[
    "android", "iphone", "ipad", "ipod", "harmonyos", "openharmony", "windows phone", "kaios", "blackberry", "bb10", "tizen", "symbianos",
    "series60", "; wv)", "mobile safari", "web0s", " cfnetwork/", " adr ",
];

/// What the agents of phones have beside their names.
const PHONE_WORDS: &[&str] = &[
    "MIDP", "CLDC", "Profile/", "UP.", "WAP", "Wap", "Browser", "browser", "NetFront", "Obigo", "MAUI", "Teleca", "Opera",
    "Release/",
];

/// The model names of Android tablets say what they are; old ones are listed in `tablets.tsv`.
const NEW_ANDROID: u32 = 7;

static HANDHELDS: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| AhoCorasick::builder().ascii_case_insensitive(true).build(HANDHELD).ok());

/// Televisions, consoles, watches, glasses, cars.
static SCREENS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)(?:[^d]|^)tv(?-u:\b)|tv ?box|dtv[);]|smart[-_ ]?tv|google ?tv|android ?tv|apple ?tv|tvos|hbbtv|ce-html|crkey|bravia|; aft|\
        web0s|webos\.tv|netcast|(?-u:\b)roku(?-u:\b)|playstation|\(ps[2-5]\)|xbox|nintendo|nettv|vidaa|mitv|mibox|(?-u:\b)omi/|netrange|\
        nexus player|large screen|inettvbrowser|(?-u:\b)viera|aquos|ouya|watch ?os|watch[0-9],|apple watch|(?-u:\b)watch(?-u:\b)|oculus|\
        quest [0-9]|pico [0-9]|glass [0-9]|qtcarbrowser|tesla/|shield android|espial|chromecast|sm-r[0-9]{3}|pov_tv|(?-u:\b)stb(?-u:\b)|maple[ _]20|sonos|\
        (?-u:\b)(?:set-top |smart |tv|media|android|stream\w* )?box(?-u:\b)| shell (?-u:\b)|iptv|ppr2\.180905|beelink|(?-u:\b)a95x|(?-u:\b)x96|\
        (?-u:\b)h96|(?-u:\b)tx[369](?-u:\b)|tanix|vontar|openbox|ugoos|zidoo|mecool|fire ?stick|(?-u:\b)stick(?-u:\b)|led-?[0-9]{2}|\
        ; aeo[a-z]{2}(?-u:\b)|familyhub|steamdeck|tivo-|(?-u:\b)vizio|netgem|dvb|kodi/|xbmc/|\
        [-_ ](?:24|28|32|39|4[0239]|5[058]|65|7[05]|8[56])[a-z]{1,4}[0-9]|build/(?:pt[to]|rt[tm]|qt[tgs]|stt|utt|ttt)[0-9][^ ]*(?-u:\b)",
    )
    .ok()
});

/// What Android tablets say.
static TABLET_WORDS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"Tablet|Android 3\.|(?-u:\b)Pad(?-u:\b)|PAD(?-u:\b)|[^l]pad[ _-]?[0-9]|[a-z]Pad(?-u:\b)|Galaxy Tab|T[Aa][Bb](?-u:\b)|[a-z]tab(?-u:\b)|Tab[A-Z0-9 _-]|TAB[0-9 _-]|\
        (?-u:\b)TB-?[X0-9]|SM-[TXP][0-9]{3}|YT[0-9]?-|PMT[0-9]|/apad|MediaPad|MatePad|iPlay|; [A-Z0-9]{3,4}-W[0-9]{2}(?-u:\b)|\
        PocketBook|; KF[A-Z]{2,5}(?: |\))",
    )
    .ok()
});

/// Whether the agent is of a phone, a tablet or an app.
pub(super) fn is_handheld(agent: &str) -> bool {
    HANDHELDS.as_ref().is_some_and(|handhelds| handhelds.is_match(agent))
}

/// Whether the agent is of a television, a console, a watch, glasses or a car.
pub(super) fn is_screen(agent: &str) -> bool {
    matches(&SCREENS, agent)
}

/// The kind of device, if the agent is not of a bot.
pub(super) fn of(agent: &str) -> Device {
    let says = |words: &[&str]| words.iter().any(|word| agent.contains(word));
    if is_screen(agent) {
        return Device::Other;
    }
    if says(&["iPad"]) {
        return Device::Tablet;
    }
    if says(&["iPhone", "iPod", "Windows Phone", "IEMobile", "BlackBerry", "BB10", "KAIOS", "KaiOS"]) {
        return Device::Mobile;
    }
    if says(&["Android", "android", "ANDROID", "Andr0id", "HarmonyOS", "OpenHarmony", " Adr "]) {
        return of_android(agent);
    }
    if says(&["Kindle", "PlayBook", "RIM Tablet", "Silk/", "hp-tablet", "TouchPad", "Tablet;"]) {
        return Device::Tablet;
    }
    let is_browser = is_browser(agent);
    let is_computer = || is_browser && says(&["Windows NT", "Macintosh", "X11", "CrOS", "Win9", "Win64"]);
    if says(&["Mobile Safari", "UCWEB", "MeeGo", "Maemo", "Series40", "Series30", "SonyEricsson", "PPC;", "Opera Mobi"]) {
        return Device::Mobile;
    }
    if is_computer() {
        return Device::Desktop;
    }
    // Names of phones are short: programs begin so, too.
    let is_phone = || says(PHONE_WORDS) && is_any(&PHONES, agent);
    if is_phone() || says(&["SAMSUNG", "Nokia", "NOKIA", "LG-", "HTC", "MQQBrowser/Mini"]) {
        return Device::Mobile;
    }
    let is_desktop =
        is_browser && says(&["Windows", "Mac", "Linux", "BSD", "SunOS", "OS/2", "Win", "Amiga", "BeOS", "Haiku", "RISC OS"]);
    if is_desktop { Device::Desktop } else { Device::Other }
}

/// The kind of device that a model is, if its name says so.
pub(super) fn of_model(model: &str) -> Option<Device> {
    // As a user agent has it.
    let model = format!("(Linux; Android 10; {model})");
    if is_screen(&model) {
        return Some(Device::Other);
    }
    matches(&TABLET_WORDS, &model).then_some(Device::Tablet)
}

fn of_android(agent: &str) -> Device {
    let is_browser = is_browser(agent);
    let says = |words: &[&str]| words.iter().any(|word| agent.contains(word));
    let is_old = android_version(agent).is_some_and(|version| version < NEW_ANDROID);
    if matches(&TABLET_WORDS, agent) || (is_old && is_any(&TABLETS, agent)) {
        return Device::Tablet;
    }
    // Browsers of tablets leave "Mobile" out; other programs never say it.
    let is_large = is_browser && says(&["AppleWebKit", "Gecko"]) && !says(&["Mobile", "Mobi", "Phone", "Mini"]);
    if is_large { Device::Tablet } else { Device::Mobile }
}

fn android_version(agent: &str) -> Option<u32> {
    let start = agent.find("Android ")? + "Android ".len();
    let digits = agent[start..].split(|character: char| !character.is_ascii_digit()).next()?;
    digits.parse().ok()
}

fn is_browser(agent: &str) -> bool {
    agent.starts_with("Mozilla/") || agent.starts_with("Opera/")
}

fn matches(regex: &LazyLock<Option<Regex>>, agent: &str) -> bool {
    regex.as_ref().is_some_and(|regex| regex.is_match(agent))
}

fn is_any(patterns: &LazyLock<Option<Patterns>>, agent: &str) -> bool {
    patterns.as_ref().is_some_and(|patterns| patterns.any(agent))
}

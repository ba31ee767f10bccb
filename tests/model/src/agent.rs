//! What an event was sent from: the browser, the system and the kind of device, by the user agent
//! and the client hints beside it. Of user agents the model knows those of histories and cases
//! only.

/// What an event was sent from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// The browser, and its version.
    pub browser: Option<(String, Option<String>)>,
    /// The system.
    pub os: Option<String>,
    /// The kind of device.
    pub device: &'static str,
}

/// Hints have at most as many bytes, and as many members.
const MOST_BYTES: usize = 512;
const MOST_MEMBERS: usize = 16;

/// The brands in hints, by what browsers are called.
const BRANDS: [(&str, &str); 9] = [
    ("Google Chrome", "Chrome"),
    ("Chromium", "Chromium"),
    ("Android WebView", "Chrome WebView"),
    ("Microsoft Edge", "Edge"),
    ("Opera", "Opera"),
    ("Brave", "Brave"),
    ("DuckDuckGo", "DuckDuckGo"),
    ("Vivaldi", "Vivaldi"),
    ("Samsung Internet", "Samsung Internet"),
];
/// What browsers of other names call themselves, too.
const CHROMES: [&str; 3] = ["Chrome", "Chromium", "Chrome WebView"];

/// What is known of a sender with this user agent, whose request has these headers beside it.
pub(crate) fn agent(text: &str, headers: &[(String, String)]) -> Agent {
    let mut known = stated(text);
    let hints = Hints(headers);
    let is_hinted = ["sec-ch-ua", "sec-ch-ua-platform"].iter().any(|name| hints.field(name).is_some());
    if !is_hinted || !text.contains("Chrome/") {
        return known;
    }
    hints.name_browser(&mut known);
    hints.name_system(&mut known);
    if !text.contains("BRAVIA") {
        known.device = hints.device(&known);
    }
    known
}

/// What the user agent says.
fn stated(text: &str) -> Agent {
    let version = |mark: &str| {
        let rest = text.split_once(mark)?.1;
        Some(rest.split(' ').next().unwrap_or_default().to_owned())
    };
    let names = [("Edg/", "Edge"), ("OPR/", "Opera"), ("SamsungBrowser/", "Samsung Internet"), ("Firefox/", "Firefox")];
    let chrome = if text.contains("; wv)") { "Chrome WebView" } else { "Chrome" };
    let mut names = names.into_iter().chain([("Chrome/", chrome), ("Version/", "Safari")]);
    let systems = [
        ("Windows NT", "Windows"),
        ("iPhone", "iOS"),
        ("Android", "Android"),
        ("Macintosh", "macOS"),
        ("CrOS", "ChromeOS"),
        ("Linux", "Linux"),
    ];
    let os = systems.into_iter().find(|(mark, _)| text.contains(mark)).map(|(_, name)| name);
    let device = match os {
        None => "other",
        _ if text.contains("BRAVIA") => "other",
        Some("iOS") => "mobile",
        Some("Android") if text.contains("Mobile") => "mobile",
        Some("Android") => "tablet",
        Some(_) => "desktop",
    };
    let browser = names.find_map(|(mark, name)| Some((name.to_owned(), Some(version(mark)?))));
    Agent { browser, os: os.map(str::to_owned), device }
}

struct Hints<'a>(&'a [(String, String)]);

impl<'a> Hints<'a> {
    /// The field of a hint, if it has no other characters than those of ASCII.
    fn field(&self, name: &str) -> Option<&'a str> {
        let (_, field) = self.0.iter().find(|(known, _)| known == name)?;
        field.chars().all(|letter| matches!(letter, ' '..='~' | '\t')).then(|| field.trim())
    }

    /// The members of a hint: texts with their versions. None if it can't be read.
    fn list(&self, name: &str) -> Vec<(String, Option<String>)> {
        let field = self.field(name).filter(|field| field.len() <= MOST_BYTES);
        field.and_then(members).filter(|members| members.len() <= MOST_MEMBERS).unwrap_or_default()
    }

    /// A hint that is one text.
    fn text(&self, name: &str) -> Option<String> {
        match &self.list(name)[..] {
            [(text, _)] => Some(text.clone()),
            _ => None,
        }
    }

    fn name_browser(&self, known: &mut Agent) {
        let (full, short) = (self.list("sec-ch-ua-full-version-list"), self.list("sec-ch-ua"));
        let called = |brand: &str| BRANDS.iter().find(|(name, _)| *name == brand).map(|(_, called)| *called);
        let stated = known.browser.as_ref().map_or("", |(name, _)| name).to_owned();
        let is_chrome = |name: &str| CHROMES.contains(&name);
        let all: Vec<(String, &str)> =
            full.iter().chain(&short).filter_map(|(brand, _)| Some((brand.clone(), called(brand)?))).collect();
        let rare = all.iter().find(|(_, name)| !is_chrome(name) && is_chrome(&stated));
        let Some((brand, name)) = rare.or_else(|| all.iter().find(|(_, name)| *name == stated)) else { return };
        let version = |list: &[(String, Option<String>)]| {
            list.iter().find(|(of, _)| of == brand)?.1.clone().filter(|text| is_version(text))
        };
        // What the user agent has is the version of Chrome, or as short.
        let major = version(&short).filter(|version| *name != stated || version.contains('.'));
        let before = known.browser.take().and_then(|(_, version)| version);
        known.browser = Some(((*name).to_owned(), version(&full).or(major).or(before)));
    }

    fn name_system(&self, known: &mut Agent) {
        let Some(platform) = self.text("sec-ch-ua-platform") else { return };
        let major = self.text("sec-ch-ua-platform-version").and_then(|version| version.split('.').next()?.parse::<u32>().ok());
        let name = match platform.as_str() {
            "Windows" if major >= Some(13) => "Windows 11",
            "Chrome OS" | "ChromeOS" | "Chromium OS" => "ChromeOS",
            "Windows" | "macOS" | "Linux" | "Android" | "Fuchsia" => &platform,
            _ => return,
        };
        // A hint is believed where the user agent is silent, or says less.
        let is_more = match known.os.as_deref() {
            None => true,
            Some("Linux") => name != "Linux",
            Some("Windows") => name == "Windows 11",
            Some(_) => false,
        };
        if is_more {
            known.os = Some(name.to_owned());
        }
    }

    fn device(&self, known: &Agent) -> &'static str {
        let factors = self.list("sec-ch-ua-form-factors");
        let has = |names: &[&str]| factors.iter().any(|(factor, _)| names.contains(&factor.as_str()));
        let model = self.text("sec-ch-ua-model").unwrap_or_default();
        if has(&["Automotive", "XR", "Watch", "TV"]) {
            "other"
        } else if has(&["Tablet", "EInk"]) {
            "tablet"
        } else if model.contains("BRAVIA") {
            "other"
        } else if model.starts_with("SM-X") || model.contains("Tablet") {
            "tablet"
        } else if has(&["Mobile"]) || self.field("sec-ch-ua-mobile") == Some("?1") {
            "mobile"
        } else if has(&["Desktop"]) {
            "desktop"
        } else if known.device == "desktop" && known.os.as_deref() == Some("Android") && !model.is_empty() {
            // A page for computers was asked for on a phone.
            "mobile"
        } else {
            known.device
        }
    }
}

fn is_version(text: &str) -> bool {
    (1..=32).contains(&text.len()) && text.chars().all(|letter| letter.is_ascii_digit() || letter == '.')
}

/// Reads a list of strings with parameters (RFC 9651), as far as histories send such: strings
/// without escapes, parameters that are strings, tokens or flags.
fn members(field: &str) -> Option<Vec<(String, Option<String>)>> {
    let mut found = Vec::new();
    let mut rest = field;
    loop {
        let (text, after) = rest.strip_prefix('"')?.split_once('"')?;
        let (mut version, mut after) = (None, after);
        while let Some(parameter) = after.strip_prefix(';') {
            let parameter = parameter.trim_start_matches(' ');
            let end = parameter.find([',', ';', '=', ' ', '"']).unwrap_or(parameter.len());
            let (name, value) = parameter.split_at(end);
            if !name.starts_with(|first: char| first.is_ascii_lowercase())
                || name.contains(|letter: char| letter.is_ascii_uppercase())
            {
                return None;
            }
            after = value;
            if let Some(value) = value.strip_prefix('=') {
                let (value, next) = match value.strip_prefix('"') {
                    Some(text) => text.split_once('"')?,
                    None => value.split_at(value.find([',', ';', ' ', '"']).unwrap_or(value.len())),
                };
                if value.is_empty() && !after.starts_with("=\"") {
                    return None;
                }
                after = next;
                version = if name == "v" { Some(value.to_owned()) } else { version };
            }
        }
        found.push((text.to_owned(), version));
        rest = match after.trim_start() {
            "" => return Some(found),
            more => more.strip_prefix(',')?.trim_start(),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOWS: &str =
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0.0.0 Safari/537.36";

    fn found(text: &str, headers: &[(&str, &str)]) -> String {
        let headers: Vec<_> = headers.iter().map(|(name, field)| ((*name).to_owned(), (*field).to_owned())).collect();
        let Agent { browser, os, device } = agent(text, &headers);
        let (name, version) = browser.unwrap_or_default();
        format!("{name} {} {} {device}", version.unwrap_or_default(), os.unwrap_or_default())
    }

    #[test]
    fn hints_say_what_user_agents_do_not() {
        assert_eq!(found(WINDOWS, &[]), "Chrome 124.0.0.0 Windows desktop");
        let brave = ("sec-ch-ua", r#""Brave";v="124", "Chromium";v="124", "Not-A.Brand";a=?1;v="99""#);
        assert_eq!(found(WINDOWS, &[brave]), "Brave 124 Windows desktop");
        let eleven = [("sec-ch-ua-platform", "\"Windows\""), ("sec-ch-ua-platform-version", "\"15.0.0\"")];
        assert_eq!(found(WINDOWS, &eleven), "Chrome 124.0.0.0 Windows 11 desktop");
        assert_eq!(
            found(WINDOWS, &[("sec-ch-ua-model", "\"SM-X710\"")]),
            "Chrome 124.0.0.0 Windows desktop",
            "neither brand nor platform"
        );
        for wrong in ["Brave 124", r#""Brave";v="124","#, r#""Brave"#, r#""Brave";V="1""#, r#""Brave";v="#, "\"Bráve\";v=\"1\""]
        {
            assert_eq!(found(WINDOWS, &[("sec-ch-ua", wrong)]), "Chrome 124.0.0.0 Windows desktop", "{wrong}");
        }
    }
}

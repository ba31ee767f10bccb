use super::super::parse_with;
use super::*;
use proptest::prelude::*;

const WINDOWS: &str =
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0.0.0 Safari/537.36";
const ANDROID: &str =
    "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0.0.0 Mobile Safari/537.36";
const LARGE: &str = "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0.0.0 Safari/537.36";
const DESKTOP_SITE: &str =
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0.0.0 Safari/537.36";
const CHROME: &str = r#""Chromium";v="124", "Google Chrome";v="124", "Not-A.Brand";v="99""#;

fn summary(user_agent: &str, hints: &Hints<'_>) -> String {
    let agent = parse_with(user_agent, hints);
    let text = |part: Option<compact_str::CompactString>| part.unwrap_or_else(|| "-".into());
    format!("{} {} {} {}", text(agent.browser), text(agent.browser_version), text(agent.os), agent.device)
}

#[test]
fn windows_11_is_what_its_version_says() {
    for (version, expected) in [
        (Some("\"13.0.0\""), "Windows 11"),
        (Some("\"15.0.0\""), "Windows 11"),
        (Some("\"19.0.0\""), "Windows 11"),
        (Some("\"10.0.0\""), "Windows"),
        (Some("\"0.3\""), "Windows"),
        (Some("\"\""), "Windows"),
        (Some("15.0.0"), "Windows"),
        (None, "Windows"),
    ] {
        let hints = Hints { platform: Some("\"Windows\""), platform_version: version, brands: Some(CHROME), ..Hints::default() };
        assert_eq!(summary(WINDOWS, &hints), format!("Chrome 124.0.0.0 {expected} desktop"), "{version:?}");
    }
    let macos = Hints { platform: Some("\"macOS\""), platform_version: Some("\"15.0.0\""), ..Hints::default() };
    assert_eq!(summary(WINDOWS, &macos), "Chrome 124.0.0.0 Windows desktop", "hints that contradict the agent are another's");
}

#[test]
#[rustfmt::skip]
fn brands_name_browsers_that_call_themselves_chrome() {
    let edge = format!("{WINDOWS} Edg/124.0.0.0");
    let opera = format!("{WINDOWS} OPR/110.0.0.0");
    let instagram = ANDROID.replace("K)", "K; wv)") + " Instagram 325.0.3.34.90 Android";
    for (user_agent, brands, full, expected) in [
        (WINDOWS, r#""Brave";v="124", "Chromium";v="124", "Not-A.Brand";v="99""#, None, "Brave 124 Windows desktop"),
        (WINDOWS, r#""Brave";v="124", "Chromium";v="124""#, Some(r#""Brave";v="124.1.65.114", "Chromium";v="124.0.6367.60""#), "Brave 124.1.65.114 Windows desktop"),
        (WINDOWS, CHROME, Some(r#""Chromium";v="124.0.6367.60", "Google Chrome";v="124.0.6367.61""#), "Chrome 124.0.6367.61 Windows desktop"),
        (WINDOWS, r#""Chromium";v="124", "DuckDuckGo";v="124""#, None, "DuckDuckGo 124 Windows desktop"),
        (&edge, r#""Chromium";v="124", "Microsoft Edge";v="124""#, Some(r#""Microsoft Edge";v="124.0.2478.51""#), "Edge 124.0.2478.51 Windows desktop"),
        (&opera, r#""Opera";v="110", "Chromium";v="124""#, Some(r#""Opera";v="110.0.5130.39""#), "Opera 110.0.5130.39 Windows desktop"),
        (&instagram, r#""Chromium";v="124", "Android WebView";v="124""#, None, "Instagram 325.0.3.34.90 Android mobile"),
        (ANDROID, r#""Samsung Internet";v="25.0", "Chromium";v="121""#, None, "Samsung Internet 25.0 Android mobile"),
        // No name is taken that an outsider made up, nor a version that is none.
        (WINDOWS, r#""My Browser";v="1", "Chromium";v="124""#, None, "Chrome 124.0.0.0 Windows desktop"),
        (WINDOWS, CHROME, Some(r#""Google Chrome";v="<script>""#), "Chrome 124.0.0.0 Windows desktop"),
        (WINDOWS, "Brave 124", None, "Chrome 124.0.0.0 Windows desktop"),
    ] {
        let hints = Hints { brands: Some(brands), full_versions: full, ..Hints::default() };
        assert_eq!(summary(user_agent, &hints), expected, "{brands}");
    }
}

#[test]
fn devices_are_what_form_factors_and_models_say() {
    let hints =
        |mobile, model, form_factors| Hints { mobile, model, form_factors, platform: Some("\"Android\""), ..Hints::default() };
    for (user_agent, hints, expected) in [
        (ANDROID, hints(Some("?1"), Some("\"SM-X710\""), None), Device::Tablet),
        (ANDROID, hints(Some("?1"), Some("\"SM-S921B\""), None), Device::Mobile),
        (ANDROID, hints(Some("?1"), None, Some("\"Tablet\"")), Device::Tablet),
        (LARGE, hints(Some("?0"), Some("\"Pixel Tablet\""), None), Device::Tablet),
        (LARGE, hints(Some("?0"), Some("\"BRAVIA 4K VH2\""), None), Device::Other),
        (LARGE, hints(Some("?1"), None, None), Device::Mobile),
        (LARGE, hints(Some("?0"), None, Some("\"XR\"")), Device::Other),
        (LARGE, hints(Some("?2"), Some("SM-X710"), Some("Desktop")), Device::Tablet),
        (DESKTOP_SITE, hints(Some("?0"), None, None), Device::Desktop),
        (DESKTOP_SITE, hints(Some("?0"), Some("\"RVL-AL09\""), None), Device::Mobile),
        (DESKTOP_SITE, hints(Some("?0"), Some("\"SM-X710\""), None), Device::Tablet),
        (DESKTOP_SITE, hints(Some("?0"), Some("\"SM-S921B\""), Some("\"Desktop\"")), Device::Desktop),
    ] {
        assert_eq!(parse_with(user_agent, &hints).device, expected, "{hints:?}");
    }
    assert_eq!(parse_with(DESKTOP_SITE, &hints(Some("?0"), None, None)).os.as_deref(), Some("Android"));
    let on_chromebook = Hints { platform: Some("\"Chrome OS\""), ..Hints::default() };
    assert_eq!(parse_with(DESKTOP_SITE, &on_chromebook).os.as_deref(), Some("ChromeOS"));
}

#[test]
fn bots_and_browsers_without_hints_are_what_their_agents_say() {
    let hints = Hints { brands: Some(CHROME), platform: Some("\"Windows\""), mobile: Some("?1"), ..Hints::default() };
    for user_agent in [
        "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
        "Mozilla/5.0 (X11; Ubuntu; Linux x86_64; rv:127.0) Gecko/20100101 Firefox/127.0",
        "curl/8.4.0",
        "",
    ] {
        assert_eq!(parse_with(user_agent, &hints), super::super::parse(user_agent), "{user_agent}");
    }
}

proptest! {
    #[test]
    fn no_hint_makes_an_agent_of_what_it_is_not(brands in "\\PC{0,40}", platform in "\\PC{0,20}", model in "\\PC{0,20}") {
        let quoted = [brands, platform, model].map(|text| format!("\"{text}\""));
        let hints = Hints { brands: Some(&quoted[0]), platform: Some(&quoted[1]), model: Some(&quoted[2]), ..Hints::default() };
        let (with, without) = (parse_with(WINDOWS, &hints), super::super::parse(WINDOWS));
        prop_assert_eq!((with.browser, with.os), (without.browser, without.os));
    }
}

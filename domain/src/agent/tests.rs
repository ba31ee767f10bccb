//! User agents as sent, most of them from the access log of a public web site (2014) and from
//! current browsers.

use compact_str::CompactString;

use super::*;
use proptest::prelude::*;

fn is_bot(user_agent: &str) -> bool {
    parse(user_agent).device == Device::Bot
}

fn summary(user_agent: &str) -> String {
    let agent = parse(user_agent);
    let text = |part: Option<CompactString>| part.unwrap_or_else(|| "-".into());
    format!("{} {} {} {}", text(agent.browser), text(agent.browser_version), text(agent.os), agent.device)
}

#[test]
#[rustfmt::skip]
fn browsers_tell_what_they_are() {
    let table = [
        ("Mozilla/5.0 (Windows NT 6.1; WOW64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/32.0.1700.107 Safari/537.36", "Chrome 32.0.1700.107 Windows desktop"),
        ("Mozilla/5.0 (Macintosh; Intel Mac OS X 10_9_1) AppleWebKit/537.73.11 (KHTML, like Gecko) Version/7.0.1 Safari/537.73.11", "Safari 7.0.1 macOS desktop"),
        ("Mozilla/5.0 (X11; Ubuntu; Linux x86_64; rv:27.0) Gecko/20100101 Firefox/27.0", "Firefox 27.0 Linux desktop"),
        ("Mozilla/5.0 (compatible; MSIE 9.0; Windows NT 6.1; WOW64; Trident/5.0)", "Internet Explorer 9.0 Windows desktop"),
        ("Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.2; SV1; .NET CLR 2.0.50727; InfoPath.1)", "Internet Explorer 6.0 Windows desktop"),
        ("Mozilla/5.0 (X11; NetBSD amd64; rv:24.0) Gecko/20131021 Firefox/24.0", "Firefox 24.0 NetBSD desktop"),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 7_0_4 like Mac OS X) AppleWebKit/537.51.1 (KHTML, like Gecko) Version/7.0 Mobile/11B554a Safari/9537.53", "Safari 7.0 iOS mobile"),
        ("Mozilla/5.0 (iPad; CPU OS 7_0_4 like Mac OS X) AppleWebKit/537.51.1 (KHTML, like Gecko) CriOS/32.0.1700.21 Mobile/11B554a Safari/9537.53", "Chrome 32.0.1700.21 iOS tablet"),
        ("Mozilla/5.0 (Linux; U; Android 4.1.2; en-us; GT-I8262 Build/JZO54K) AppleWebKit/534.30 (KHTML, like Gecko) Version/4.0 Mobile Safari/534.30", "Android Browser 4.0 Android mobile"),
        ("Mozilla/5.0 (Linux; U; Android 4.2.2; fa-ir; SM-T311 Build/JDQ39) AppleWebKit/534.30 (KHTML, like Gecko) Version/4.0 Safari/534.30", "Android Browser 4.0 Android tablet"),
        ("Mozilla/5.0 (Android; Tablet; rv:27.0) Gecko/27.0 Firefox/27.0", "Firefox 27.0 Android tablet"),
        ("Opera/9.80 (J2ME/MIDP; Opera Mini/7.1.32052/34.1244; U; en) Presto/2.8.119 Version/11.10", "Opera Mini 7.1.32052 Java ME mobile"),
        ("Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0.0.0 Safari/537.36 Edg/124.0.2478.51", "Edge 124.0.2478.51 Windows desktop"),
        ("Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0.0.0 Safari/537.36 OPR/110.0.0.0", "Opera 110.0.0.0 Windows desktop"),
        ("Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0.0.0 Safari/537.36", "Chrome 124.0.0.0 ChromeOS desktop"),
        ("Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0.0.0 Mobile Safari/537.36", "Chrome 124.0.0.0 Android mobile"),
        ("Mozilla/5.0 (Linux; Android 13; SM-X700) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/24.0 Chrome/117.0.0.0 Safari/537.36", "Samsung Internet 24.0 Android tablet"),
        ("Mozilla/5.0 (Linux; Android 9; BRAVIA 4K VH2) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/112.0.0.0 Safari/537.36", "Chrome 112.0.0.0 Android other"),
        ("Mozilla/5.0 (Linux; Android 11; CUBOT NOTE 20) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/99.0.4844.88 Mobile Safari/537.36", "Chrome 99.0.4844.88 Android mobile"),
        ("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/124.0.0.0 Safari/537.36", "HeadlessChrome 124.0.0.0 Linux bot"),
        ("curl/7.22.0 (i686-pc-linux-gnu) libcurl/7.22.0 OpenSSL/1.0.1 zlib/1.2.3.4 libidn/1.23 librtmp/2.3", "- - - other"),
        ("python-requests/1.2.0 CPython/2.7.4 Linux/3.8.0-33-generic", "- - - other"),
        ("Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", "Googlebot 2.1 - bot"),
        ("Mozilla/5.0", "- - - other"),
        ("-", "- - - other"),
        ("", "- - - other"),
    ];
    for (user_agent, expected) in table {
        assert_eq!(summary(user_agent), expected, "{user_agent}");
    }
}

#[test]
#[rustfmt::skip]
fn crawlers_monitors_and_previewers_are_bots() {
    for user_agent in [
        "Mozilla/5.0 (iPhone; CPU iPhone OS 6_0 like Mac OS X) AppleWebKit/536.26 (KHTML, like Gecko) Version/6.0 Mobile/10A5376e Safari/8536.25 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
        "Mozilla/5.0 (compatible; Yahoo! Slurp; http://help.yahoo.com/help/us/ysearch/slurp)",
        "Mozilla/5.0 (compatible; Baiduspider/2.0; +http://www.baidu.com/search/spider.html)",
        "Mozilla/5.0 (compatible; Ezooms/1.0; help@moz.com)",
        "Mozilla/5.0 (compatible; archive.org_bot +http://www.archive.org/details/archive.org_bot)",
        "Mozilla/5.0 (Windows NT 6.1; WOW64) AppleWebKit/534+ (KHTML, like Gecko) BingPreview/1.0b",
        "UniversalFeedParser/4.2-pre-314-svn +http://feedparser.org/",
        "Tiny Tiny RSS/1.11 (http://tt-rss.org/)",
        "Feedbin - 1 subscribers",
        "msnbot/2.0b (+http://search.msn.com/msnbot.htm)",
        "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)",
        "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)",
        "WhatsApp/2.23.20.0",
        "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)",
        "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; ChatGPT-User/1.0; +https://openai.com/bot",
        "Mozilla/5.0+(compatible; UptimeRobot/2.0; http://www.uptimerobot.com/)",
        "Pingdom.com_bot_version_1.4_(http://www.pingdom.com/)",
        "GoogleHC/1.0", "kube-probe/1.29", "ELB-HealthChecker/2.0",
        "python-requests/2.31.0 (acme-crawler)",
        "SomeFetcher/1.0 (https://fetcher.example/about)",
    ] {
        assert!(is_bot(user_agent), "{user_agent}");
        assert_eq!(parse(user_agent).device, Device::Bot, "{user_agent}");
    }
}

#[test]
#[rustfmt::skip]
fn programs_that_speak_http_are_no_bots() {
    for user_agent in [
        "", "-", "curl/8.4.0", "Wget/1.14 (linux-gnu)", "python-requests/2.31.0", "Python-urllib/2.7", "Go-http-client/2.0",
        "okhttp/4.12.0", "axios/1.6.7", "node-fetch/1.0 (+https://github.com/bitinn/node-fetch)", "undici", "node",
        "LWP::Simple/5.827 libwww-perl/5.833", "Ruby", "GuzzleHttp/7", "PostmanRuntime/7.37.0", "Java/17.0.2", "reqwest/0.12",
        "HTTP_Request2/2.1.1 (http://pear.php.net/package/http_request2) PHP/5.3.2-1ubuntu4.18",
        "Apache-HttpClient/4.5.13 (Java/17.0.2)", "Dalvik/1.6.0 (Linux; U; Android 4.1.2; GT-I8190 Build/JZO54K)",
        "Acme/3.1 CFNetwork/1494.0.7 Darwin/23.4.0", "analytics-node/6.0.0",
        "Mozilla/5.0 (Windows NT 6.2; WOW64; rv:30.0) Gecko/20100101 Firefox/30.0 AppEngine-Google; (+http://code.google.com/appengine; appid: s~copyliugoa)",
    ] {
        assert!(!is_bot(user_agent), "{user_agent}");
        assert_ne!(parse(user_agent).device, Device::Bot, "{user_agent}");
    }
}

/// The lines of a file of `data/`, without comments.
fn agents(list: &'static str) -> impl Iterator<Item = &'static str> {
    list.lines().filter(|line| !line.starts_with('#'))
}

#[test]
fn the_examples_of_the_list_of_crawlers_are_bots() {
    let examples: Vec<&str> = agents(include_str!("data/crawlers.txt")).collect();
    assert!(examples.len() > 2_000);
    let missed: Vec<&str> = examples.iter().copied().filter(|user_agent| !is_bot(user_agent)).collect();
    // App Engine marks every program that runs there, not only crawlers.
    let missed: Vec<&str> = missed.into_iter().filter(|user_agent| !user_agent.contains("AppEngine-Google")).collect();
    assert!(missed.len() <= 20, "{missed:#?}");
}

#[test]
fn no_browser_of_a_person_is_a_bot() {
    let browsers: Vec<&str> = agents(include_str!("data/browsers.txt")).collect();
    assert!(browsers.len() > 900);
    let taken: Vec<&str> = browsers.into_iter().filter(|user_agent| is_bot(user_agent)).collect();
    assert!(taken.is_empty(), "{taken:#?}");
}

/// The agents of `sample.tsv`, and what another program found in them: the kind of device, the
/// system, and the browser.
fn sample() -> impl Iterator<Item = ([&'static str; 3], &'static str)> {
    agents(include_str!("data/sample.tsv")).filter_map(|line| {
        let mut columns = line.split('\t');
        Some(([columns.next()?, columns.next()?, columns.next()?], columns.next()?))
    })
}

#[test]
fn people_of_a_sample_are_counted_and_bots_are_not() {
    let (bots, people): (Vec<_>, Vec<_>) = sample().partition(|(found, _)| found[0] == "bot");
    assert!(people.len() > 1_500 && bots.len() > 250, "{} {}", people.len(), bots.len());
    let dropped: Vec<&str> = people.iter().map(|(_, agent)| *agent).filter(|agent| is_bot(agent)).collect();
    assert!(dropped.len() <= 6, "{dropped:#?}");
    let kept: Vec<&str> = bots.iter().map(|(_, agent)| *agent).filter(|agent| !is_bot(agent)).collect();
    assert!(kept.len() * 1_342 <= 60 * bots.len(), "{kept:#?}");
}

#[test]
fn devices_systems_and_browsers_of_a_sample_are_right() {
    for (column, least_percent) in [(0, 98), (1, 99), (2, 90)] {
        let (mut right, mut wrong) = (0, Vec::new());
        for (expected, agent) in sample().filter(|(found, agent)| found[column] != "-" && found[0] != "bot" && !is_bot(agent)) {
            let agent = parse(agent);
            let found = [Some(agent.device.name()), agent.os.as_deref(), agent.browser.as_deref()][column];
            if found == Some(expected[column]) { right += 1 } else { wrong.push((expected[column], found.map(str::to_owned))) }
        }
        assert!(right * 100 >= least_percent * (right + wrong.len()), "{right} of {}: {wrong:#?}", right + wrong.len());
    }
}

#[test]
#[rustfmt::skip]
fn the_browsers_inside_of_programs_are_no_bots() {
    const PHONE: &str = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_4 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko)";
    for rest in [
        "Mobile/15E148 Instagram 325.0.3.34.90 (iPhone14,5; iOS 17_4; en_US; en; scale=3.00; 1170x2532; 582503256)",
        "Mobile/15E148 [FBAN/FBIOS;FBAV/455.0.0.40.109;FBBV/577098365;FBDV/iPhone14,5;FBMD/iPhone;FBSN/iOS;FBSV/17.4]",
        "Mobile/15E148 [Pinterest/iOS]", "Mobile/15E148 [LinkedInApp]/9.29.8962", "Mobile/15E148 Safari Line/14.2.1",
        "Version/17.4 Mobile/15E148 Snapchat/12.80.0.29 (like Safari/8617.2.4.10.8, panda)",
        "Version/17.4 Mobile/15E148 DuckDuckGo/7 Safari/605.1.15", "Mobile/15E148 Twitter for iPhone/10.33",
        "Version/17.0 Mobile/15E148 Safari/604.1 Viber/21.8.1", "GSA/307.0.612938137 Mobile/15E148 Safari/604.1",
        "Mobile/15E148 MicroMessenger/8.0.47(0x18002f2c) NetType/WIFI Language/zh_CN",
        "Slack/4.37.98 Chrome/122.0.6261.111 Electron/29.1.4 Safari/537.36 Sonic Slack_SSB/4.37.98",
    ] {
        assert!(!is_bot(&format!("{PHONE} {rest}")), "{rest}");
    }
}

#[test]
#[rustfmt::skip]
fn phones_and_apps_that_sound_like_bots_are_none() {
    let android = |model: &str, rest: &str| format!("Mozilla/5.0 (Linux; Android 15; {model}; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/142.0.7444.142 Mobile Safari/537.36{rest}");
    for user_agent in [
        // crawler-user-agents#466 and isbot#275.
        android("CPH2557 Build/AP3A.240617.008", " Instagram 406.0.0.58.159 Android (35/15; 480dpi; 1080x2400; OPPO; CPH2557; OP573DL1; mt6833; en_MY; 822918295; IABMV/1) NV/1"),
        android("SM-S921B Build/AP3A.240905.015.A2", " CamScanner/6.81.0"),
        android("Spider 8 Build/LRX21M", ""), android("CUBOT X30", ""), android("CUBOT_NOTE_S", " [FB_IAB/FB4A;FBAV/411.1.0.29.112;FBDV/CUBOT_NOTE_S;]"),
        android("Abbott Reader", " Abbott/2.1"), android("HTC Butterfly s", ""), android("moto g(50) Build/S1RSS32.38-20-9-8", ""),
        "Mozilla/5.0 (iPhone; CPU iPhone OS 17_4 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148 Blackboard/3.6.0".to_owned(),
    ] {
        assert!(!is_bot(&user_agent), "{user_agent}");
        assert_eq!(parse(&user_agent).device, Device::Mobile, "{user_agent}");
    }
    for rest in [" (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", " AcmeBot/1.0", " (compatible; acme-spider)", " Chrome-Lighthouse"] {
        assert!(is_bot(&android("Nexus 5X Build/MMB29P", rest)), "{rest}");
    }
}

#[test]
#[rustfmt::skip]
fn apps_and_systems_have_their_names() {
    const IPHONE: &str = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_4 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko)";
    const WEBVIEW: &str = "Mozilla/5.0 (Linux; Android 14; SM-S921B; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/124.0.6367.82 Mobile Safari/537.36";
    const PHONE: &str = "Mozilla/5.0 (Linux; Android 13; X) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/114.0.5735.196";
    let table = [
        (format!("{IPHONE} Mobile/15E148 Instagram 325.0.3.34.90 (iPhone14,5; iOS 17_4)"), "Instagram 325.0.3.34.90 iOS mobile"),
        (format!("{IPHONE} Mobile/15E148 [FBAN/FBIOS;FBAV/455.0.0.40.109;FBBV/577098365]"), "Facebook 455.0.0.40.109 iOS mobile"),
        (format!("{IPHONE} Mobile/15E148 MicroMessenger/8.0.47(0x18002f2c) NetType/WIFI"), "WeChat 8.0.47 iOS mobile"),
        (format!("{IPHONE} Mobile/15E148 [LinkedInApp]/9.29.8962"), "LinkedIn 9.29.8962 iOS mobile"),
        (format!("{IPHONE} Mobile/15E148 Safari Line/14.2.1"), "Line 14.2.1 iOS mobile"),
        (format!("{IPHONE} Mobile/15E148 [Pinterest/iOS]"), "Pinterest - iOS mobile"),
        (format!("{IPHONE} Version/17.4 Mobile/15E148 Snapchat/12.80.0.29 (like Safari/8617)"), "Snapchat 12.80.0.29 iOS mobile"),
        (format!("{IPHONE} GSA/307.0.612938137 Mobile/15E148 Safari/604.1"), "Google App 307.0.612938137 iOS mobile"),
        (format!("{IPHONE} Mobile/15E148"), "Safari WebView - iOS mobile"),
        (WEBVIEW.to_owned(), "Chrome WebView 124.0.6367.82 Android mobile"),
        (format!("{WEBVIEW} musical_ly_2023304040 BytedanceWebview/d8a21c6"), "TikTok 2023304040 Android mobile"),
        (format!("{PHONE} HuaweiBrowser/15.0.4.312 Mobile Safari/537.36"), "Huawei Browser 15.0.4.312 Android mobile"),
        (format!("{PHONE} Mobile Safari/537.36 XiaoMi/MiuiBrowser/14.4.0"), "MIUI Browser 14.4.0 Android mobile"),
        (format!("{PHONE} MQQBrowser/14.9 Mobile Safari/537.36"), "QQ Browser 14.9 Android mobile"),
        (format!("{PHONE} UCBrowser/13.4.0.1306 Mobile Safari/537.36"), "UC Browser 13.4.0.1306 Android mobile"),
        (format!("{PHONE} YaBrowser/24.4.3.87.00 SA/3 Mobile Safari/537.36"), "Yandex Browser 24.4.3.87.00 Android mobile"),
        ("Mozilla/5.0 (Phone; OpenHarmony 5.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/114.0.0.0 Safari/537.36 ArkWeb/4.1.6.1 Mobile".to_owned(), "ArkWeb 4.1.6.1 HarmonyOS mobile"),
        ("Mozilla/5.0 (Mobile; Nokia_8110_4G; rv:48.0) Gecko/48.0 Firefox/48.0 KAIOS/2.5.2".to_owned(), "Firefox 48.0 KaiOS mobile"),
        ("Mozilla/5.0 (iPad; CPU OS 16_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/16.5 Mobile/15E148 Safari/604.1".to_owned(), "Safari 16.5 iPadOS tablet"),
        ("Mozilla/5.0 (Web0S; Linux/SmartTV) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/94.0.4606.128 Safari/537.36 WebAppManager".to_owned(), "Chrome 94.0.4606.128 webOS other"),
        ("Mozilla/5.0 (SMART-TV; LINUX; Tizen 6.0) AppleWebKit/537.36 (KHTML, like Gecko) 76.0.3809.146/6.0 TV Safari/537.36".to_owned(), "Safari - Tizen other"),
        ("Mozilla/5.0 (PlayStation 4 11.00) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/15.4 Safari/605.1.15".to_owned(), "Safari 15.4 PlayStation other"),
        ("Mozilla/5.0 (Windows NT 10.0; Trident/7.0; rv:11.0) like Gecko".to_owned(), "Internet Explorer 11.0 Windows desktop"),
    ];
    for (user_agent, expected) in table {
        assert_eq!(summary(&user_agent), expected, "{user_agent}");
    }
}

#[test]
#[rustfmt::skip]
fn models_tell_what_devices_are() {
    let android = |model: &str, mobile: &str| format!("Mozilla/5.0 (Linux; Android 11; {model}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/114.0.0.0 {mobile}Safari/537.36");
    // Tablets that can call say "Mobile"; televisions do so in apps.
    for model in ["BQ-1085L", "TZ897", "AGS3K-L09", "TB-X606F", "24074RPD2C", "OPD2404", "CITI 1590 3G CS1204PG", "NB-105 3G", "RC0716A", "Alcatel Pad 7"] {
        assert_eq!(parse(&android(model, "Mobile ")).device, Device::Tablet, "{model}");
    }
    for model in ["H43F8000Q", "TD43UFGEV1", "32LEX-7289", "NEXON X10", "MyBox", "Raspberry Pi 4", "Moto 360", "hx322x_box", "KM8 Pro", "AS_4K_PRO", "TicWatch E3"] {
        for mobile in ["", "Mobile "] {
            assert_eq!(parse(&android(model, mobile)).device, Device::Other, "{model}");
        }
    }
    // Some browsers leave "Mobile" out on phones.
    for model in ["SM-S911B", "RMX3771", "CPH2581", "Coolpad CP12", "ASUS PadFone 2"] {
        assert_eq!(parse(&android(model, "")).device, Device::Mobile, "{model}");
    }
    for model in ["HP Chromebook 14", "Lenovo Chromebook Duet", "Latitude E7470"] {
        assert_eq!(parse(&android(model, "")).device, Device::Desktop, "{model}");
    }
    assert_eq!(summary(&android("HP Chromebook 14", "")), "Chrome 114.0.0.0 ChromeOS desktop");
    for (user_agent, expected) in [
        // What is cut off before "Safari" says nothing about "Mobile".
        ("Mozilla/5.0 (Linux; Android 11; X7 Build/RP1A; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/77.0.3865.120", Device::Mobile),
        ("Mozilla/5.0 (Windows NT 10.0; ARM; Lumia 950) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/51.0.2704.79 Safari/537.36 Edge/14.14393", Device::Mobile),
        ("ZDM/4.0; Windows Mobile 8.0", Device::Mobile),
        ("Microsoft Office Word/16.80 (Mac OS/14.2; Desktop; en-US; AppStore; Apple/MacBookPro17,1)", Device::Desktop),
        ("Acme/3.1 CFNetwork/1494.0.7 Darwin/23.4.0 (x86_64) (MacBookPro16%2C1)", Device::Desktop),
        ("Acme/3.1 (Linux x86_64)", Device::Other),
        ("Opera/9.80 (Linux mips; ) Presto/2.12.407 Version/12.51 MB97/0.0.39.10 (ACME, Mxl661L32, wireless)", Device::Other),
        ("Mozilla/5.0 (Web0S; U; en) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/94.0.4606.128 Safari/537.36", Device::Other),
    ] {
        assert_eq!(parse(user_agent).device, expected, "{user_agent}");
    }
}

#[test]
fn apps_for_reading_are_no_bots() {
    for user_agent in [
        "NetNewsWire (RSS Reader; https://netnewswire.com/)",
        "FeedDemon/4.5 (http://www.feeddemon.com/; Microsoft Windows)",
        "Mozilla/5.0 (Windows NT 6.1) AppleWebKit/602.1 (KHTML, like Gecko) QuiteRSS/0.19.4 Safari/602.1",
        "Podimo/2.1 build 7/iOS 17.1",
    ] {
        assert!(!is_bot(user_agent), "{user_agent}");
    }
    for user_agent in ["Podimo/1.0 (+https://podimo.com/)", "NewsBlur Feed Fetcher - 3 subscribers - http://www.newsblur.com/"] {
        assert!(is_bot(user_agent), "{user_agent}");
    }
}

proptest! {
    #[test]
    fn nothing_panics_and_bots_are_bots(user_agent in ".{0,80}", shaped in "(Mozilla/5.0 )?\\([ -~]{0,30}\\) [A-Za-z]{0,9}/[0-9.]{0,8}[a-zA-Zé ]{0,20}") {
        for user_agent in [user_agent, shaped] {
            prop_assert_eq!(parse(&user_agent).device == Device::Bot, is_bot(&user_agent));
        }
    }
}

#[test]
fn agents_that_say_little_are_no_bots() {
    for agent in [
        "Mozilla/5.0",
        "Mozilla",
        "Chrome",
        "Firefox",
        "Firefox/140.0",
        "Safari",
        "Opera/9.80",
        "test",
        "x",
        "my agent",
        "a usual browser",
    ] {
        assert_ne!(parse(agent).device, Device::Bot, "{agent}");
    }
}

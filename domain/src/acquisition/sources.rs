//! The tables of sites, and the lookup of a referrer or `utm_source` in them.
//!
//! Categories follow the list of sources that Google publishes with the GA4 default channel group
//! (Analytics Help, answer 9756891, "source categories"). Its webmail hosts are left out, since
//! they are not search engines. Missing networks and engines are added. The AI assistants are
//! compiled by hand from their referrers.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::LazyLock;

use compact_str::CompactString;

use super::brands::{BRANDS, Brand};
use super::category::Category;
use super::sites::{SEARCH, SHOPPING, SOCIAL, VIDEO};
use crate::text;

/// The data about a host's site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Site {
    /// The name under which the site is counted; `None` for its host.
    pub(super) brand: Option<&'static str>,
    pub(super) category: Option<Category>,
}

/// Second-level labels under which countries register domains: `google.co.uk`, `google.com.br`.
const SECOND_LEVELS: [&str; 6] = ["co", "com", "net", "org", "ne", "or"];

/// FNV-1a, which is fast for short keys. The tables are fixed, so the hash needs no protection from
/// hostile input.
pub(super) struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    }

    fn finish(&self) -> u64 {
        // The upper bits, by which tables tell entries apart, change little with the last letters.
        self.0 ^ self.0.rotate_left(32)
    }
}

type SiteTable<K, V> = HashMap<K, V, BuildHasherDefault<Fnv>>;

#[derive(Default)]
struct Index {
    /// Words that identify a site in a `utm_source`.
    words: SiteTable<&'static str, Site>,
    /// Hosts, `.host` for all subdomains of a host, and `name.` for a name under any country
    /// suffix.
    hosts: SiteTable<Cow<'static, str>, Site>,
}

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let mut index = Index::default();
    for (list, category) in
        [(SEARCH, Category::Search), (SOCIAL, Category::Social), (SHOPPING, Category::Shopping), (VIDEO, Category::Video)]
    {
        list.split_whitespace().for_each(|word| index.add_listed(word, category));
    }
    BRANDS.iter().for_each(|brand| index.add_brand(brand));
    index
});

impl Index {
    /// Adds a listed source. A word without a dot also means `word.com`; a word with a dot is a
    /// host.
    fn add_listed(&mut self, word: &'static str, category: Category) {
        let site = Site { brand: None, category: Some(category) };
        if word.contains('.') {
            self.hosts.insert(Cow::Borrowed(word), site);
        } else {
            self.words.insert(word, site);
            self.hosts.insert(Cow::Owned(format!("{word}.com")), site);
        }
    }

    fn add_brand(&mut self, brand: &'static Brand) {
        let site = Site { brand: Some(brand.name), category: brand.category };
        for word in [brand.name].iter().chain(brand.words) {
            self.words.insert(word, site);
        }
        for pattern in brand.hosts {
            // `name.*` is stored as `name.`; `.host` also stands for the host itself.
            self.hosts.insert(Cow::Borrowed(pattern.trim_end_matches('*')), site);
            if let Some(host) = pattern.strip_prefix('.') {
                self.hosts.insert(Cow::Borrowed(host), site);
            }
        }
    }
}

/// Looks up a lower-case host without `www.`.
pub(super) fn site_of(host: &str) -> Option<Site> {
    let hosts = &INDEX.hosts;
    let exact = || hosts.get(host).or_else(|| hosts.get(host.strip_prefix("m.")?));
    let parent = || host.bytes().enumerate().filter(|(_, byte)| *byte == b'.').find_map(|(dot, _)| hosts.get(&host[dot..]));
    let by_name = || hosts.get(name_under_country(host.strip_prefix("m.").unwrap_or(host))?);
    exact().or_else(parent).or_else(by_name).copied()
}

/// Returns the category of a lower-case source: a word such as `google`, or a host.
pub(super) fn category_of(source: &str) -> Option<Category> {
    if let Some(site) = INDEX.words.get(source) {
        return site.category;
    }
    let host = source.strip_prefix("www.").unwrap_or(source);
    site_of(host)?.category
}

/// Returns the name under which to count a source from a link: the brand of the site, if the source
/// is the short name or host of a known site.
pub(super) fn by_brand(source: CompactString) -> CompactString {
    if let Some(site) = INDEX.words.get(source.as_str()) {
        return site.brand.map_or(source, Into::into);
    }
    let host = Some(source.as_str()).filter(|source| source.contains('.')).and_then(text::referring_host);
    let named = host.and_then(|host| Some(site_of(&host)?.brand.map_or_else(|| host.as_ref().into(), Into::into)));
    named.unwrap_or(source)
}

/// Like `rsplit_once('.')`, whose search takes longer to start than most hosts are long.
fn split_last_label(host: &str) -> Option<(&str, &str)> {
    let dot = host.bytes().rposition(|byte| byte == b'.')?;
    Some((&host[..dot], &host[dot + 1..]))
}

/// Returns `google.` for `google.de`, `google.com` and `google.co.uk`; `None` if the host has no
/// such suffix.
pub(super) fn name_under_country(host: &str) -> Option<&str> {
    let (rest, last) = split_last_label(host)?;
    let is_country = last.len() == 2 && last.bytes().all(|byte| byte.is_ascii_lowercase());
    let name = match split_last_label(rest) {
        Some((name, second)) if is_country && SECOND_LEVELS.contains(&second) => name,
        _ if is_country || last == "com" => rest,
        _ => return None,
    };
    Some(&host[..=name.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_brands_and_categories() {
        use Category::{AiAssistant, Search, Shopping, Social, Video};
        let table = [
            // host, brand, category
            ("google.com", Some("google"), Some(Search)),
            ("google.co.uk", Some("google"), Some(Search)),
            ("google.com.br", Some("google"), Some(Search)),
            ("images.google.de", Some("google"), Some(Search)),
            ("encrypted.google.com", Some("google"), Some(Search)),
            ("bing.com", Some("bing"), Some(Search)),
            ("cn.bing.com", Some("bing"), Some(Search)),
            ("uk.search.yahoo.com", Some("yahoo"), Some(Search)),
            ("ya.ru", Some("yandex"), Some(Search)),
            ("yandex.com.tr", Some("yandex"), Some(Search)),
            ("images.yandex.ru", Some("yandex"), Some(Search)),
            ("m.baidu.com", Some("baidu"), Some(Search)),
            ("search.brave.com", Some("brave"), Some(Search)),
            ("news.google.com", None, Some(Search)),
            ("groups.google.com", None, Some(Social)),
            ("facebook.com", Some("facebook"), Some(Social)),
            ("lm.facebook.com", Some("facebook"), Some(Social)),
            ("l.instagram.com", Some("instagram"), Some(Social)),
            ("t.co", Some("twitter"), Some(Social)),
            ("x.com", Some("twitter"), Some(Social)),
            ("lnkd.in", Some("linkedin"), Some(Social)),
            ("com.linkedin.android", Some("linkedin"), Some(Social)),
            ("out.reddit.com", Some("reddit"), Some(Social)),
            ("pinterest.co.uk", Some("pinterest"), Some(Social)),
            ("news.ycombinator.com", None, Some(Social)),
            ("m.youtube.com", Some("youtube"), Some(Video)),
            ("youtu.be", Some("youtube"), Some(Video)),
            ("amazon.co.jp", Some("amazon"), Some(Shopping)),
            ("chatgpt.com", Some("chatgpt"), Some(AiAssistant)),
            ("chat.openai.com", Some("chatgpt"), Some(AiAssistant)),
            ("gemini.google.com", Some("gemini"), Some(AiAssistant)),
            ("gist.github.com", Some("github"), None),
            ("l.facebook.com", Some("facebook"), Some(Social)),
            ("com.facebook.orca", Some("messenger"), Some(Social)),
            ("google.cat", Some("google"), Some(Search)),
            ("search.app.goo.gl", Some("google"), Some(Search)),
            ("r.search.yahoo.com", Some("yahoo"), Some(Search)),
            ("search.yahoo.co.jp", Some("yahoo"), Some(Search)),
            ("html.duckduckgo.com", Some("duckduckgo"), Some(Search)),
            ("s1-eu4.startpage.com", Some("startpage"), Some(Search)),
            ("mojeek.com", Some("mojeek"), Some(Search)),
            ("kagi.com", Some("kagi"), Some(Search)),
            ("claude.ai", Some("claude"), Some(AiAssistant)),
            ("perplexity.ai", Some("perplexity"), Some(AiAssistant)),
            ("copilot.microsoft.com", Some("copilot"), Some(AiAssistant)),
        ];
        for (host, brand, category) in table {
            assert_eq!(site_of(host), Some(Site { brand, category }), "{host}");
        }
        for host in [
            "mail.google.com",
            "com.google.android.gm",
            "googleads.g.doubleclick.net",
            "docs.google.com",
            "mail.yahoo.com",
            "aws.amazon.com",
            "notfacebook.com",
            "google.example",
            "google.com.evil.example",
            "blog.example",
            "com",
            "",
        ] {
            assert_eq!(site_of(host), None, "{host}");
        }
    }

    #[test]
    fn sources_have_categories() {
        let table = [
            ("google", Some(Category::Search)),
            ("fb", Some(Category::Social)),
            ("ig", Some(Category::Social)),
            ("chatgpt.com", Some(Category::AiAssistant)),
            ("www.facebook.com", Some(Category::Social)),
            ("tripadvisor", Some(Category::Social)),
            ("tripadvisor.com", Some(Category::Social)),
            ("google shopping", Some(Category::Shopping)),
            ("yt", Some(Category::Video)),
            ("github", None),
            ("newsletter", None),
            ("hn", None),
            ("(direct)", None),
        ];
        for (source, category) in table {
            assert_eq!(category_of(source), category, "{source}");
        }
    }

    #[test]
    fn sources_are_named_by_their_brand() {
        for (source, name) in [
            ("chatgpt.com", "chatgpt"),
            ("www.google.com", "google"),
            ("google.co.uk", "google"),
            ("https://www.google.com/search", "google"),
            ("m.facebook.com", "facebook"),
            ("fb", "facebook"),
            ("ig", "instagram"),
            ("instagram.com", "instagram"),
            ("x", "twitter"),
            ("t.co", "twitter"),
            ("x.com", "twitter"),
            ("yt", "youtube"),
            ("youtu.be", "youtube"),
            ("ddg", "duckduckgo"),
            ("li", "linkedin"),
            ("perplexity.ai", "perplexity"),
            ("www.perplexity.ai", "perplexity"),
            ("copilot.microsoft.com", "copilot"),
            ("gemini.google.com", "gemini"),
            ("claude.ai", "claude"),
            ("com.google.android.googlequicksearchbox", "google"),
            ("www.tripadvisor.com", "tripadvisor.com"),
            ("news.ycombinator.com", "news.ycombinator.com"),
            ("tripadvisor", "tripadvisor"),
            ("google", "google"),
            ("hn", "hn"),
            ("www.partner.example", "www.partner.example"),
            ("google.example", "google.example"),
            ("v1.2 spring", "v1.2 spring"),
            ("(direct)", "(direct)"),
        ] {
            assert_eq!(by_brand(source.into()), name, "{source}");
        }
    }

    #[test]
    fn the_tables_are_lower_case_and_name_no_host_twice() {
        let brand_hosts = BRANDS.iter().flat_map(|brand| brand.hosts.iter().copied());
        let brand_words = BRANDS.iter().flat_map(|brand| brand.words.iter().copied().chain([brand.name]));
        let listed = [SEARCH, SOCIAL, SHOPPING, VIDEO].into_iter().flat_map(str::split_whitespace);
        let mut seen = std::collections::HashSet::new();
        let mut words = std::collections::HashSet::new();
        for entry in brand_hosts.chain(listed.clone()) {
            assert!(!entry.bytes().any(|byte| byte.is_ascii_uppercase()), "{entry}");
            assert!(seen.insert(entry), "{entry} is there twice");
        }
        for word in brand_words.chain(listed) {
            assert!(words.insert(word), "{word} is there twice");
        }
    }
}

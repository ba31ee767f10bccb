//! Company keys, derived from domains and e-mail addresses. Domains at which anyone can get an
//! address have none: free providers, access providers, throwaway addresses and relays.
//!
//! An event keeps the recorded company of its e-mail address, so a new list changes only later
//! events.

use std::fmt;
use std::sync::LazyLock;

use compact_str::CompactString;
use serde::{Deserialize, Serialize};

/// The maximum length of a DNS name, in characters (RFC 1035 §2.3.4).
const MAX_DOMAIN_LEN: usize = 253;
/// The maximum length of a DNS label.
const MAX_LABEL_LEN: usize = 63;

/// Normalizes a domain for comparison: lower case, without scheme, userinfo, `www.`, port, path,
/// query, fragment and trailing dot. Returns `None` if the rest is not a domain: it needs a dot,
/// only `[a-z0-9.-]`, labels of 1 to 63 characters, and at most 253 characters in total.
///
/// Userinfo is only removed after a scheme, so an e-mail address is not taken for a domain.
/// Idempotent.
pub fn normalise_domain(text: &str) -> Option<String> {
    // Nearly all ids of companies have none.
    memchr::memchr(b'.', text.as_bytes())?;
    let text = text.trim();
    let authority = match text.split_once("//") {
        Some((scheme, rest)) if scheme.is_empty() || scheme.ends_with(':') => {
            let authority = rest.split(['/', '?', '#', '\\']).next()?;
            authority.rsplit('@').next()?
        }
        _ => text.split(['/', '?', '#', '\\']).next()?,
    };
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let mut domain = host.as_str();
    while let Some(rest) = domain.strip_prefix("www.").filter(|rest| rest.contains('.')) {
        domain = rest;
    }
    reads_as_domain(domain).then(|| domain.to_owned())
}

/// Whether a normalized text is a domain.
fn reads_as_domain(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_label = |label: &str| !label.is_empty() && label.len() <= MAX_LABEL_LEN && label.bytes().all(is_allowed);
    text.len() <= MAX_DOMAIN_LEN && text.contains('.') && text.split('.').all(is_label)
}

/// The key of a company within an organization: its domain if it has one, else the id as sent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CompanyKey(CompactString);

impl CompanyKey {
    /// Returns the key of a `group_id`: the normalized domain if it is one, else the trimmed id.
    /// `None` if nothing remains.
    pub fn from_group_id(group_id: &str) -> Option<CompanyKey> {
        if let Some(domain) = normalise_domain(group_id) {
            return Some(CompanyKey(domain.into()));
        }
        let id = group_id.trim();
        (!id.is_empty()).then(|| CompanyKey(id.into()))
    }

    /// Returns the key of a domain in any spelling; `None` if it is not a domain.
    pub fn from_domain(domain: &str) -> Option<CompanyKey> {
        normalise_domain(domain).map(|domain| CompanyKey(domain.into()))
    }

    /// Returns the key of the company of an e-mail address; `None` for free mail and invalid
    /// addresses.
    pub fn from_email(email: &str) -> Option<CompanyKey> {
        domain_of_email(email).filter(|domain| !is_free_mail(domain)).map(|domain| CompanyKey(domain.into()))
    }

    /// Creates the key from a recorded one, without normalizing it again.
    pub fn from_recorded(key: &str) -> CompanyKey {
        CompanyKey(key.into())
    }

    /// Whether the key is a domain.
    pub fn is_domain(&self) -> bool {
        // Ids that are domains were normalized, so no other id is in normal form.
        normalise_domain(&self.0).is_some_and(|domain| domain == self.0)
    }

    /// Returns the domain, if the key is one.
    pub fn domain(&self) -> Option<&str> {
        self.is_domain().then_some(self.0.as_str())
    }

    /// Returns the key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Converts the key to text.
    pub fn into_string(self) -> String {
        self.0.into()
    }
}

impl AsRef<str> for CompanyKey {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CompanyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Normalizes an e-mail address for comparison: trimmed and lower-cased. Returns `None` if it is
/// not an address: it needs exactly one `@`, text before it, a domain with a dot and no empty label
/// after it, and no white space.
pub fn normalise_email(text: &str) -> Option<String> {
    // Nearly all ids of users have none.
    memchr::memchr(b'@', text.as_bytes())?;
    let email = text.trim().to_lowercase();
    let (local, domain) = email.split_once('@')?;
    let is_allowed = |letter: char| match letter {
        letter if letter.is_ascii() => letter.is_ascii_alphanumeric() || letter == '-',
        letter => !letter.is_whitespace() && !letter.is_control(),
    };
    let is_label = |label: &str| !label.is_empty() && label.chars().all(is_allowed);
    let is_address = !local.is_empty()
        && domain.contains('.')
        && domain.split('.').all(is_label)
        && !local.chars().any(|letter| letter.is_whitespace() || letter.is_control());
    is_address.then_some(email)
}

/// Returns the domain of a normalized e-mail address, including free mail; `None` if it is not an
/// address.
pub fn domain_of_email(email: &str) -> Option<String> {
    let email = normalise_email(email)?;
    let (_, domain) = email.split_once('@')?;
    normalise_domain(domain)
}

/// The domains, in byte order. Each file names its source.
static EXACT: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| sorted(&[include_str!("data/providers.txt"), include_str!("data/own.txt")]));
/// The domains that include all of their subdomains, in byte order.
static WITH_SUBDOMAINS: LazyLock<Vec<&'static str>> = LazyLock::new(|| sorted(&[include_str!("data/with_subdomains.txt")]));

/// Whether anyone can get an address at this normalized domain. Such a domain identifies no
/// company.
pub fn is_free_mail(domain: &str) -> bool {
    has(&EXACT, domain) || suffixes(domain).any(|suffix| has(&WITH_SUBDOMAINS, suffix))
}

fn has(sorted: &[&str], domain: &str) -> bool {
    sorted.binary_search(&domain).is_ok()
}

/// A domain, and all of its parent domains.
fn suffixes(domain: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(domain), |domain| domain.split_once('.').map(|(_, parent)| parent))
}

/// The lines of lists. Lines that start with `#` are comments.
fn sorted(lists: &[&'static str]) -> Vec<&'static str> {
    let mut domains = Vec::with_capacity(lists.iter().map(|list| list.lines().count()).sum());
    domains.extend(lists.iter().flat_map(|list| list.lines()).filter(|line| !line.starts_with('#')));
    domains.sort_unstable();
    domains
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::company::{CompanyKey, normalise_domain};
    use proptest::prelude::*;

    #[test]
    fn domains_compare_without_what_surrounds_them() {
        let table = [
            ("acme.com", "acme.com"),
            ("  ACME.com ", "acme.com"),
            ("www.acme.com", "acme.com"),
            ("WWW.Acme.COM.", "acme.com"),
            ("https://www.acme.com/about?x=1#top", "acme.com"),
            ("http://user:pass@acme.com:8443/", "acme.com"),
            ("//acme.com/x", "acme.com"),
            ("acme.com:443", "acme.com"),
            ("acme.com?x", "acme.com"),
            ("eu.acme.co.uk", "eu.acme.co.uk"),
            ("www.com", "www.com"),
            ("www.www.acme.com", "acme.com"),
            ("xn--mnchen-3ya.de", "xn--mnchen-3ya.de"),
        ];
        for (text, domain) in table {
            assert_eq!(normalise_domain(text).as_deref(), Some(domain), "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_domains() {
        let long_label = format!("{}.com", "a".repeat(64));
        let long = format!("{}com", "abcdefg.".repeat(32));
        let table = [
            "",
            ".",
            "www.",
            "acme",
            "acme..com",
            ".acme.com",
            "acme.com..",
            "acme com.x",
            "ac_me.com",
            "münchen.de",
            "bob@acme.com",
            "acme/x.y",
            "https://",
            "[::1]:80",
            "a:b.c",
            &long_label,
            &long,
        ];
        for text in table {
            assert_eq!(normalise_domain(text), None, "{text}");
        }
    }

    #[test]
    fn a_group_id_is_a_domain_if_it_reads_as_one() {
        let table = [
            // group_id, key, is a domain
            ("https://Acme.com/", "acme.com", true),
            (" ACME Corp ", "ACME Corp", false),
            ("cus_123", "cus_123", false),
            ("bob@acme.com", "bob@acme.com", false),
            ("Acme Inc.", "Acme Inc.", false),
        ];
        for (group_id, key, is_domain) in table {
            let found = CompanyKey::from_group_id(group_id).unwrap();
            assert_eq!((found.as_str(), found.is_domain()), (key, is_domain), "{group_id}");
        }
        assert_eq!(CompanyKey::from_group_id("  "), None);
        assert_eq!(CompanyKey::from_domain("acme"), None);
    }

    #[test]
    fn emails_compare_trimmed_and_lower_cased() {
        let table = [
            (" Ann@Acme.COM ", Some("ann@acme.com")),
            ("o'neil+tag@mail.acme.com", Some("o'neil+tag@mail.acme.com")),
            ("ÄRGER@münchen.de", Some("ärger@münchen.de")),
            ("ann", None),
            ("ann@acme", None),
            ("@acme.com", None),
            ("ann@", None),
            ("ann@acme.", None),
            ("ann@.com", None),
            ("a@b@c.com", None),
            ("ann lee@acme.com", None),
            ("git@github.com:org", None),
            ("@scope/package.name", None),
        ];
        for (text, email) in table {
            assert_eq!(normalise_email(text).as_deref(), email, "{text}");
        }
        assert_eq!(domain_of_email("Ann@WWW.acme.com").as_deref(), Some("acme.com"));
        assert_eq!(domain_of_email("ann@münchen.de"), None);
    }

    proptest! {
        #[test]
        fn normal_forms_are_stable(
            text in "\\PC{0,40}",
            email in "[a-zA-Z.İẞ+ ]{1,5}@[a-zA-Z.İ-]{0,8}",
            url in "([a-z]{0,5}:?//)?([a-z]{1,3}@)?(www\\.){0,2}[a-zA-Z0-9.-]{0,12}(:[0-9]{0,5})?[/?#\\\\]?[a-z.@:]{0,5}",
        ) {
            for text in [&text, &email, &url] {
                if let Some(domain) = normalise_domain(text) {
                    prop_assert_eq!(normalise_domain(&domain), Some(domain));
                }
                if let Some(email) = normalise_email(text) {
                    prop_assert_eq!(normalise_email(&email), Some(email));
                }
                if let Some(key) = CompanyKey::from_group_id(text) {
                    prop_assert_eq!(key.is_domain(), normalise_domain(text).is_some());
                    prop_assert_eq!(CompanyKey::from_group_id(key.as_str()), Some(key));
                }
            }
        }
    }

    #[test]
    fn each_list_is_sorted_and_of_normal_domains() {
        for (name, list) in [
            ("providers", include_str!("data/providers.txt")),
            ("own", include_str!("data/own.txt")),
            ("with_subdomains", include_str!("data/with_subdomains.txt")),
        ] {
            let domains: Vec<&str> = list.lines().filter(|line| !line.starts_with('#')).collect();
            assert!(domains.is_sorted_by(|a, b| a < b), "{name}.txt must be sorted, each line once");
            let other: Vec<_> = domains.iter().filter(|domain| normalise_domain(domain).as_deref() != Some(**domain)).collect();
            assert!(other.is_empty(), "{name}.txt: {other:?}");
        }
        assert!(EXACT.len() > 14_000, "{}", EXACT.len());
    }

    #[test]
    fn free_mail_names_no_company() {
        let domains = "gmail.com googlemail.com outlook.com hotmail.co.uk live.nl yahoo.com.br icloud.com icloud.com.cn \
            gmx.net web.de proton.me protonmail.com qq.com 163.com mail.ru yandex.ru aol.com vodafone.it libero.it orange.fr \
            t-online.de mailinator.com guerrillamail.com yopmail.com";
        for domain in domains.split_whitespace() {
            assert!(is_free_mail(domain), "{domain}");
        }
        for domain in ["acme.com", "google.com", "microsoft.com", "github.com", "vodafone.com", "gmail.com.acme.com", "com", ""] {
            assert!(!is_free_mail(domain), "{domain}");
        }
        assert_eq!(CompanyKey::from_email("ann@gmail.com"), None);
        assert_eq!(CompanyKey::from_email("Ann@Acme.com").map(CompanyKey::into_string).as_deref(), Some("acme.com"));
    }

    #[test]
    fn relays_name_no_company_with_all_names_below_them() {
        let domains = "users.noreply.github.com noreply.github.com users.noreply.gitlab.com privaterelay.appleid.com \
            passmail.com passmail.net simplelogin.fr simplelogin.com duck.com mozmail.com ann.mozmail.com relay.firefox.com \
            anonaddy.com ann.anonaddy.com ann.anonaddy.me addy.io ann.33mail.com shop.fastmail.com cfl.rr.com \
            guest.booking.com marketplace.amazon.de ab.so-net.ne.jp";
        for domain in domains.split_whitespace() {
            assert!(is_free_mail(domain), "{domain}");
        }
        for domain in ["appleid.com", "booking.com", "amazon.de", "notmozmail.com", "so-net.co.jp", "duck.com.acme.com"] {
            assert!(!is_free_mail(domain), "{domain}");
        }
        // A name below a mere provider may be a company's own.
        assert!(is_free_mail("free.fr") && !is_free_mail("acme.free.fr"));
    }
}

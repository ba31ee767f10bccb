//! Domains at which anyone can get an e-mail address: free providers, access providers, throwaway
//! addresses and relays.
//!
//! An event keeps the recorded company of its e-mail address, so a new list changes only later
//! events.

use std::sync::LazyLock;

/// The domains, in byte order. Each file names its source.
static EXACT: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| sorted(&[include_str!("data/providers.txt"), include_str!("data/own.txt")]));
/// The domains that include all of their subdomains, in byte order.
static WITH_SUBDOMAINS: LazyLock<Vec<&'static str>> = LazyLock::new(|| sorted(&[include_str!("data/with_subdomains.txt")]));

/// Whether anyone can get an address at this normalized domain. Such a domain identifies no
/// company.
#[must_use]
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

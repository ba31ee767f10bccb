//! What was found, and its bounds.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The maximum number of entries in each of `social`, `emails` and `technologies`.
pub(crate) const MAX_PROFILE_ENTRIES: usize = 50;
/// The maximum length of a label, a name, an industry, a technology, and the key of a social link,
/// in characters.
pub(crate) const MAX_SHORT: usize = 200;
/// The maximum length of a description, in characters.
pub(crate) const MAX_DESCRIPTION: usize = 5_000;
/// The maximum length of a URL, in bytes.
pub(crate) const MAX_URL_BYTES: usize = 2_048;
/// The maximum length of an e-mail address, in bytes.
pub(crate) const MAX_EMAIL_BYTES: usize = 254;

/// Social networks: the host, and the name under which a link to it is kept.
const NETWORKS: [(&str, &str); 10] = [
    ("linkedin.com", "linkedin"),
    ("twitter.com", "x"),
    ("x.com", "x"),
    ("facebook.com", "facebook"),
    ("instagram.com", "instagram"),
    ("youtube.com", "youtube"),
    ("github.com", "github"),
    ("tiktok.com", "tiktok"),
    ("crunchbase.com", "crunchbase"),
    ("xing.com", "xing"),
];

/// The facts about a company, as pages tell them and profiles have them. Those of pages are
/// bounded, whatever the pages hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileFields {
    /// The company's name.
    pub name: Option<String>,
    /// A description of the company.
    pub description: Option<String>,
    /// Its industry.
    pub industry: Option<String>,
    /// The URL of its logo.
    pub logo_url: Option<String>,
    /// Its pages on other sites, by the name of the site.
    pub social: BTreeMap<String, String>,
    /// Its e-mail addresses.
    pub emails: Vec<String>,
    /// The technologies of its website.
    pub technologies: Vec<String>,
}

/// Returns a text in one line, without what is no text, of at most `most` characters; `None` if
/// nothing is left.
pub(crate) fn text(raw: &str, most: usize) -> Option<String> {
    let words: Vec<&str> = raw.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()).collect();
    let text: String = words.join(" ").chars().take(most).collect();
    let text = text.trim_end();
    (!text.is_empty()).then(|| text.to_owned())
}

pub(crate) fn short(raw: &str) -> Option<String> {
    text(raw, MAX_SHORT)
}

pub(crate) fn description(raw: &str) -> Option<String> {
    text(raw, MAX_DESCRIPTION)
}

impl ProfileFields {
    /// Adds what another page tells, where nothing is known yet.
    pub(crate) fn fill(&mut self, other: Self) {
        let Self { name, description, industry, logo_url, social, emails, technologies } = other;
        self.name = self.name.take().or(name);
        self.description = self.description.take().or(description);
        self.industry = self.industry.take().or(industry);
        self.logo_url = self.logo_url.take().or(logo_url);
        for (network, link) in social {
            if self.social.len() < MAX_PROFILE_ENTRIES {
                self.social.entry(network).or_insert(link);
            }
        }
        emails.into_iter().for_each(|email| push(&mut self.emails, email));
        technologies.into_iter().for_each(|technology| push(&mut self.technologies, technology));
    }

    /// Adds the logo, if the URL is one of http.
    pub(crate) fn logo(&mut self, url: &headcount_outbound::url::Url) {
        let is_kept = matches!(url.scheme(), "http" | "https") && url.as_str().len() <= MAX_URL_BYTES;
        if is_kept && self.logo_url.is_none() {
            self.logo_url = Some(url.to_string());
        }
    }

    /// Adds a link, if it leads to a social network.
    pub(crate) fn link(&mut self, url: &headcount_outbound::url::Url) {
        let Some(host) = url.host_str() else { return };
        let is_of = |network: &str| host == network || host.strip_suffix(network).is_some_and(|rest| rest.ends_with('.'));
        let Some((_, name)) = NETWORKS.iter().find(|(network, _)| is_of(network)) else { return };
        // A button that shares the page is no page of the company.
        let path = url.path().trim_matches('/');
        let is_page =
            !path.is_empty() && !["share", "sharer", "intent", "sharing", "login"].iter().any(|other| path.starts_with(other));
        if is_page && url.as_str().len() <= MAX_URL_BYTES {
            self.social.entry((*name).to_owned()).or_insert_with(|| url.to_string());
        }
    }

    /// Adds an e-mail address, if the text is one.
    pub(crate) fn email(&mut self, raw: &str) {
        let email = raw.trim().to_ascii_lowercase();
        let is_part = |part: &str| {
            !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_graphic() && !b"@<>\"',;:()[]\\".contains(&byte))
        };
        let is_email =
            email.split_once('@').is_some_and(|(user, domain)| is_part(user) && is_part(domain) && domain.contains('.'));
        if is_email && email.len() <= MAX_EMAIL_BYTES {
            push(&mut self.emails, email);
        }
    }

    /// Adds a technology.
    pub(crate) fn technology(&mut self, name: &str) {
        if let Some(name) = short(name) {
            push(&mut self.technologies, name);
        }
    }
}

fn push(list: &mut Vec<String>, value: String) {
    if list.len() < MAX_PROFILE_ENTRIES && !list.contains(&value) {
        list.push(value);
    }
}

//! Parsing of URLs, domains and e-mail addresses.

/// The parts of a URL that answers contain. It may also be a bare path (`/pricing?ref=hn`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// The URL without query and fragment.
    pub page: String,
    /// The host, lower-cased, without port; `None` for a bare path.
    pub host: Option<String>,
    /// The path; `None` if there is none.
    pub path: Option<String>,
    /// The fields of the query in order, decoded.
    pub query: Vec<(String, String)>,
}

impl Url {
    /// Parses a URL.
    #[must_use]
    pub fn parse(text: &str) -> Url {
        let text = text.split('#').next().unwrap_or_default();
        let (page, query) = text.split_once('?').unwrap_or((text, ""));
        let (host, path) = match page.split_once("://") {
            None => (None, page),
            Some((_, rest)) => {
                let end = rest.find('/').unwrap_or(rest.len());
                let (authority, path) = rest.split_at(end);
                let host = authority.split(':').next().unwrap_or_default();
                (Some(host.to_lowercase()), path)
            }
        };
        let spelled = spelled(path);
        Url {
            page: format!("{}{spelled}", &page[..page.len() - path.len()]),
            host: host.filter(|host| !host.is_empty()),
            path: (!spelled.is_empty()).then_some(spelled),
            query: query.split('&').filter(|field| !field.is_empty()).map(query_field).collect(),
        }
    }

    /// Returns the first non-empty value of a field of the query, whose name may be in any case.
    #[must_use]
    pub fn query(&self, name: &str) -> Option<&str> {
        let named = self.query.iter().find(|(key, value)| key.eq_ignore_ascii_case(name) && !value.trim().is_empty());
        named.map(|(_, value)| value.as_str())
    }
}

/// Spells a path: what is escaped and needs it not is written out, and other escapes have capital
/// digits.
fn spelled(path: &str) -> String {
    let byte = |place: usize| u8::from_str_radix(path.get(place..place + 3)?.strip_prefix('%')?, 16).ok();
    let (mut spelled, mut place) = (String::new(), 0);
    while let Some(first) = path[place..].chars().next() {
        let Some(lead) = byte(place) else {
            spelled.push(first);
            place += first.len_utf8();
            continue;
        };
        let length = match lead {
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf7 => 4,
            _ => 1,
        };
        let bytes: Option<Vec<u8>> = (0..length).map(|number| byte(place + 3 * number)).collect();
        let letter = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        let needs_no_escape = |letter: &String| {
            letter.chars().all(|letter| match letter {
                '-' | '.' | '_' | '~' => true,
                letter if letter.is_ascii() => letter.is_ascii_alphanumeric(),
                letter => !letter.is_whitespace() && !letter.is_control(),
            })
        };
        match letter.filter(needs_no_escape) {
            Some(letter) => {
                spelled.push_str(&letter);
                place += 3 * length;
            }
            None => {
                spelled.push_str(&format!("%{lead:02X}"));
                place += 3;
            }
        }
    }
    spelled
}

fn query_field(field: &str) -> (String, String) {
    let (name, value) = field.split_once('=').unwrap_or((field, ""));
    (decoded(name), decoded(value))
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let digits: String = rest.by_ref().take(2).map(char::from).collect();
                bytes.push(u8::from_str_radix(&digits, 16).unwrap_or(b'?'));
            }
            other => bytes.push(other),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Removes a leading `www.` from a host.
#[must_use]
pub fn without_www(host: &str) -> &str {
    host.strip_prefix("www.").unwrap_or(host)
}

/// Normalizes a domain for comparison: lower-cased, without scheme, `www.`, path, port and trailing
/// dot.
#[must_use]
pub fn domain(text: &str) -> String {
    let text = text.trim().to_lowercase();
    let text = text.split_once("://").map_or(text.as_str(), |(_, rest)| rest);
    let text = text.split(['/', '?', '#']).next().unwrap_or_default();
    let text = text.split(':').next().unwrap_or_default();
    without_www(text.trim_end_matches('.')).to_owned()
}

/// Normalizes `text` if it is a domain: it then has a dot, and only `[a-z0-9.-]`.
#[must_use]
pub fn reads_as_domain(text: &str) -> Option<String> {
    let domain = domain(text);
    let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || ".-".contains(letter);
    (domain.contains('.') && domain.chars().all(plain)).then_some(domain)
}

/// Normalizes an e-mail address, trimmed and lower-cased; `None` if `text` is not one.
#[must_use]
pub fn email(text: &str) -> Option<String> {
    let text = text.trim().to_lowercase();
    let (name, host) = text.split_once('@')?;
    let spaced = text.contains(char::is_whitespace);
    (!name.is_empty() && host.contains('.') && !host.contains('@') && !spaced).then_some(text)
}

/// Domains that don't identify an employer: the well-known ones that the tests use.
const FREE_MAIL: [&str; 6] = ["gmail.com", "outlook.com", "hotmail.com", "yahoo.com", "icloud.com", "gmx.de"];

/// Returns the company domain of an e-mail address; `None` for free mail.
#[must_use]
pub fn company_of_email(email: &str) -> Option<String> {
    let domain = domain(email.split_once('@')?.1);
    (!FREE_MAIL.contains(&domain.as_str())).then_some(domain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let url = Url::parse("https://Shop.example:8443/a/b?utm_source=News%20Letter&x=1+2#top");
        assert_eq!(url.page, "https://Shop.example:8443/a/b");
        assert_eq!(url.host.as_deref(), Some("shop.example"));
        assert_eq!(url.path.as_deref(), Some("/a/b"));
        assert_eq!(url.query("utm_source"), Some("News Letter"));
        assert_eq!(url.query("x"), Some("1 2"));
        let bare = Url::parse("/pricing?ref=hn");
        assert_eq!((bare.host.as_deref(), bare.path.as_deref()), (None, Some("/pricing")));
    }

    #[test]
    fn domains_and_addresses() {
        assert_eq!(domain("https://www.Globex.io:443/about"), "globex.io");
        assert_eq!(reads_as_domain("Acme.com."), Some("acme.com".to_owned()));
        assert_eq!(reads_as_domain("acct_42"), None);
        assert_eq!(reads_as_domain("acct_4.2"), None);
        assert_eq!(email(" Ivy@Acme.com "), Some("ivy@acme.com".to_owned()));
        assert_eq!(email("ivy"), None);
        assert_eq!(company_of_email("ivy@acme.com"), Some("acme.com".to_owned()));
        assert_eq!(company_of_email("ivy@gmail.com"), None);
    }
}

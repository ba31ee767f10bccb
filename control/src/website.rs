//! The website of a company profile.

use std::fmt;

use serde::{Deserialize, Serialize};
use url::{Host, Url};

/// The maximum length of the text of a website in bytes.
const MAX_WEBSITE_BYTES: usize = 2_048;

/// The origin of a website: `https://acme.com`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Website(Url);

impl Website {
    /// Parses a website from a URL or a host. The scheme defaults to `https`. Only the origin of a
    /// URL is kept.
    ///
    /// # Errors
    /// The rule that the text breaks.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let text = text.trim();
        if text.len() > MAX_WEBSITE_BYTES {
            return Err("must have at most 2048 bytes");
        }
        let with_scheme =
            if text.contains("://") { text.to_owned() } else { format!("https://{}", text.trim_start_matches("//")) };
        let mut url = Url::parse(&with_scheme).map_err(|_| "must be a URL, or a host such as acme.com")?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err("must have the scheme http or https");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("must have no user and no password");
        }
        let domain = url.domain().map(|domain| domain.trim_end_matches('.').to_owned());
        if domain.as_ref().is_some_and(|domain| domain.is_empty() || domain.len() > 253) {
            return Err("must have a host of 1 to 253 bytes");
        }
        if let Some(domain) = domain
            && url.set_host(Some(&domain)).is_err()
        {
            return Err("must have a host");
        }
        url.set_path("/");
        url.set_query(None);
        url.set_fragment(None);
        Ok(Self(url))
    }

    /// The host: a name, or an address as it stands in a URL.
    pub fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }

    /// The name of the host without `www.`; `None` for an address.
    pub fn domain(&self) -> Option<&str> {
        match self.0.host() {
            Some(Host::Domain(domain)) => Some(without_www(domain)),
            _ => None,
        }
    }

    /// The key that two profiles of an organization must not share: the host without `www.`, and
    /// the port.
    pub fn place(&self) -> String {
        format!("{}:{}", self.label(), self.0.port_or_known_default().unwrap_or_default())
    }

    /// The host as a label: without `www.`.
    pub fn label(&self) -> &str {
        without_www(self.host())
    }
}

fn without_www(host: &str) -> &str {
    host.strip_prefix("www.").filter(|rest| rest.contains('.')).unwrap_or(host)
}

impl fmt::Display for Website {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

impl From<Website> for String {
    fn from(website: Website) -> Self {
        website.to_string()
    }
}

impl TryFrom<String> for Website {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_website_is_kept_as_its_origin() {
        let cases = [
            ("acme.com", "https://acme.com", "acme.com:443"),
            (" HTTP://WWW.Acme.com/about?x#y ", "http://www.acme.com", "acme.com:80"),
            ("acme.com.", "https://acme.com", "acme.com:443"),
            ("//acme.com:8443/", "https://acme.com:8443", "acme.com:8443"),
            ("https://acme.com:443", "https://acme.com", "acme.com:443"),
            ("http://acme.com:443", "http://acme.com:443", "acme.com:443"),
            ("localhost:8080", "https://localhost:8080", "localhost:8080"),
            ("www.com", "https://www.com", "www.com:443"),
            ("http://127.0.0.1:81/x", "http://127.0.0.1:81", "127.0.0.1:81"),
            ("http://[::1]:81", "http://[::1]:81", "[::1]:81"),
            ("bücher.example", "https://xn--bcher-kva.example", "xn--bcher-kva.example:443"),
        ];
        for (text, origin, place) in cases {
            let website = Website::parse(text).unwrap();
            assert_eq!((website.to_string().as_str(), website.place().as_str()), (origin, place), "{text}");
            assert_eq!(Website::parse(origin).unwrap(), website, "{text}");
        }
        assert_eq!(Website::parse("http://127.0.0.1").unwrap().domain(), None);
        assert_eq!(Website::parse("www.acme.com").unwrap().domain(), Some("acme.com"));
    }

    #[test]
    fn what_is_no_website_is_refused() {
        let long = "a".repeat(3_000);
        for text in [
            "",
            " ",
            "ftp://acme.com",
            "javascript://x",
            "https://",
            "a b.com",
            "https://ada:pw@acme.com",
            "ada@acme.com",
            &long,
            ".",
        ] {
            assert!(Website::parse(text).is_err(), "{text}: {:?}", Website::parse(text));
        }
    }
}

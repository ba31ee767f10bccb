//! Fetches the pages of a site.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use headcount_control::BuildError;
use headcount_domain::Instant as Moment;
use headcount_outbound::url::{Origin, Url};
use headcount_outbound::{Method, Outbound, OutboundError, OutboundRequest, OutboundResponse, UrlError};
use serde::{Deserialize, Serialize};

use super::facts::{MAX_URL_BYTES, ProfileFields};
use super::page::{self, PageFacts};
use super::robots::{self, Rules};

/// How many pages are fetched, the home page included.
const MAX_PAGES: usize = 5;
/// The most bytes of a page, decoded.
const MAX_PAGE_BYTES: usize = 2 << 20;
/// How many redirects a page may take, and how many a `robots.txt` may.
const MAX_REDIRECTS: usize = 3;
const MAX_ROBOTS_REDIRECTS: usize = 5;
/// How long a request may take, and all of them. What was read by then counts.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
const TOTAL_TIMEOUT: Duration = Duration::from_secs(50);
/// Held while a page is decoded and read, which takes several times its bytes. It takes
/// milliseconds, whereas pages take seconds to arrive.
static ONE_PAGE: Mutex<()> = Mutex::new(());
/// Words in links to pages that tell of a company.
const WORDS: [&str; 10] =
    ["about", "contact", "company", "imprint", "impressum", "kontakt", "ueber-uns", "über uns", "a-propos", "mentions-legales"];

/// Why a page was not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ResearchError {
    /// There was no answer.
    #[error(transparent)]
    Outbound(#[from] OutboundError),
    /// It redirects too often.
    #[error("more than {MAX_REDIRECTS} redirects")]
    TooManyRedirects,
    /// `robots.txt` forbids it, or could not be read.
    #[error("robots.txt does not allow it")]
    RobotsDisallowed,
    /// The answer has another status than 200.
    #[error("the status is {0}")]
    HttpStatus(u16),
    /// The answer is not HTML.
    #[error("it is not HTML")]
    NotHtml,
}

impl ResearchError {
    /// Returns the stable code of the error.
    fn code(&self) -> &'static str {
        match self {
            Self::Outbound(error) => error.code(),
            Self::TooManyRedirects => "too_many_redirects",
            Self::RobotsDisallowed => "robots_disallowed",
            Self::HttpStatus(_) => "http_status",
            Self::NotHtml => "not_html",
        }
    }
}

/// A page that was fetched for a profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileSource {
    /// Its URL, after redirects.
    pub url: String,
    /// The time of the fetch.
    pub fetched_at: Moment,
    /// The status of the answer, if there was one.
    pub status: Option<u16>,
    /// The code of the error, if there was one.
    pub error: Option<String>,
}

/// The facts that a website gives about its company.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SiteFindings {
    /// The facts.
    pub fields: ProfileFields,
    /// The fetched pages, the home page first.
    pub sources: Vec<ProfileSource>,
    /// The reason why the home page could not be read. There are no facts then.
    pub failure: Option<BuildError>,
}

/// Reads the home page of a website, and up to four pages that it links to and that tell of the
/// company. Takes a minute at most. Blocks.
pub struct Research {
    outbound: Outbound,
    /// The rules of the origin that was asked last. A site may lead to one origin after another, so
    /// that no others are kept.
    rules: Option<(String, Rules)>,
    deadline: Instant,
}

impl Research {
    /// Begins.
    pub fn new(outbound: Outbound) -> Self {
        Self { outbound, rules: None, deadline: Instant::now() + TOTAL_TIMEOUT }
    }

    /// Reads a site.
    pub fn read(mut self, home: &Url) -> SiteFindings {
        let (page, found) = self.page(home);
        let mut findings = SiteFindings { sources: vec![page], ..SiteFindings::default() };
        let (fields, links) = match found {
            Ok(PageFacts { facts, links }) => (facts, links),
            Err(error) => {
                let (code, message) = (error.code().to_owned(), short(&error.to_string()));
                let failure = BuildError { code, message, url: Some(findings.sources[0].url.clone()) };
                return SiteFindings { failure: Some(failure), ..findings };
            }
        };
        findings.fields = fields;
        for url in chosen(home, &findings.sources[0].url, links) {
            let (page, found) = self.page(&url);
            if let Ok(found) = found {
                findings.fields.fill(found.facts);
            }
            findings.sources.push(page);
        }
        findings
    }

    fn page(&mut self, url: &Url) -> (ProfileSource, Result<PageFacts, ResearchError>) {
        let (mut url, mut status, fetched_at) = (url.clone(), None, SystemTime::now());
        let read = self.fetch(&mut url, &mut status);
        let error = read.as_ref().err().map(|error| error.code().to_owned());
        (ProfileSource { url: short(url.as_str()), fetched_at: moment(fetched_at), status, error }, read)
    }

    /// Fetches a page. `url` is where it was found.
    fn fetch(&mut self, url: &mut Url, status: &mut Option<u16>) -> Result<PageFacts, ResearchError> {
        for _ in 0..=MAX_REDIRECTS {
            if !self.allows(url)? {
                return Err(ResearchError::RobotsDisallowed);
            }
            let response = self.get(url, MAX_PAGE_BYTES)?;
            *status = Some(response.status);
            if let Some(target) = response.redirect() {
                *url = target.map_err(OutboundError::from)?;
                continue;
            }
            return match response.status {
                200 => read(response, self.deadline),
                other => Err(ResearchError::HttpStatus(other)),
            };
        }
        Err(ResearchError::TooManyRedirects)
    }

    /// Whether the rules of its origin allow a URL.
    fn allows(&mut self, url: &Url) -> Result<bool, OutboundError> {
        let origin = url.origin().ascii_serialization();
        let (_, rules) = match self.rules.take().filter(|(of, _)| *of == origin) {
            Some(same) => self.rules.insert(same),
            None => self.rules.insert((origin, self.read_rules(url)?)),
        };
        Ok(rules.allow(url))
    }

    /// Reads the rules of an origin. Where there is no answer, its pages have none either: the
    /// error says why.
    fn read_rules(&self, url: &Url) -> Result<Rules, OutboundError> {
        let Ok(mut url) = url.join("/robots.txt") else { return Ok(Rules::Unknown) };
        for _ in 0..=MAX_ROBOTS_REDIRECTS {
            let response = match self.get(&url, robots::MAX_BYTES) {
                Ok(response) => response,
                Err(OutboundError::TooLarge { .. }) => return Ok(Rules::Unknown),
                Err(error) => return Err(error),
            };
            match response.redirect() {
                Some(target) => url = target?,
                None => return Ok(Rules::of(response.status, response.body)),
            }
        }
        // More redirects than a reader has to follow count as no file.
        Ok(Rules::None)
    }

    fn get(&self, url: &Url, most: usize) -> Result<OutboundResponse, OutboundError> {
        if url.as_str().len() > MAX_URL_BYTES {
            return Err(UrlError::Malformed(format!("it has more than {MAX_URL_BYTES} bytes")).into());
        }
        let timeout = self.deadline.saturating_duration_since(Instant::now()).min(REQUEST_TIMEOUT);
        if timeout.is_zero() {
            return Err(OutboundError::Timeout);
        }
        self.outbound.send(&OutboundRequest {
            method: Method::Get,
            url: url.clone(),
            headers: vec![("accept", "text/html,application/xhtml+xml;q=0.9".to_owned())],
            body: None,
            timeout,
            most_body_bytes: Some(most),
        })
    }
}

fn read(response: OutboundResponse, deadline: Instant) -> Result<PageFacts, ResearchError> {
    let content_type = response.header("content-type");
    let kind = content_type.unwrap_or("text/html").split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if !matches!(&*kind, "text/html" | "application/xhtml+xml") {
        return Err(ResearchError::NotHtml);
    }
    let _one = ONE_PAGE.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(page::read(&page::decode(content_type, &response.body), &response.url, deadline))
}

/// The pages to fetch besides the home page: of the same site, and about the company.
fn chosen(home: &Url, found_at: &str, links: Vec<(Url, String)>) -> Vec<Url> {
    let found_at = Url::parse(found_at).unwrap_or_else(|_| home.clone());
    let of_site = |url: &Url| [home, &found_at].iter().any(|other| site(url) == site(other));
    let mut chosen: Vec<Url> = Vec::new();
    for (mut url, text) in links {
        url.set_fragment(None);
        let path = url.path().to_lowercase();
        let tells = WORDS.iter().any(|word| path.contains(word) || text.contains(word));
        let is_new = url.path() != "/" && url != found_at && !chosen.contains(&url);
        if tells && is_new && of_site(&url) && chosen.len() + 1 < MAX_PAGES {
            chosen.push(url);
        }
    }
    chosen
}

/// What two URLs of one site have in common: the host without `www.`, and the port.
fn site(url: &Url) -> Option<(String, Option<u16>)> {
    match url.origin() {
        Origin::Tuple(..) => {
            let host = url.host_str()?;
            Some((
                host.strip_prefix("www.").unwrap_or(host).to_owned(),
                url.port_or_known_default().filter(|port| *port != 80 && *port != 443),
            ))
        }
        Origin::Opaque(_) => None,
    }
}

fn moment(time: SystemTime) -> Moment {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    Moment(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// A text of bounded length: a stored URL, or a message.
pub(crate) fn short(text: &str) -> String {
    let end = (0..=text.len().min(MAX_URL_BYTES)).rev().find(|end| text.is_char_boundary(*end));
    text[..end.unwrap_or_default()].to_owned()
}

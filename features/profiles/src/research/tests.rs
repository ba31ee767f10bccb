//! Saved pages, and sites on this machine.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use headcount_outbound::Outbound;
use headcount_outbound::url::Url;

use super::page::{self, PageFacts, decode};
use super::{ProfileFields, Research, SiteFindings};

fn strings<const N: usize>(list: [&str; N]) -> Vec<String> {
    list.map(str::to_owned).to_vec()
}

fn links<const N: usize>(list: [(&str, &str); N]) -> BTreeMap<String, String> {
    list.map(|(network, link)| (network.to_owned(), link.to_owned())).into()
}

fn read(html: &str, url: &Url) -> PageFacts {
    page::read(html, url, Instant::now() + Duration::from_secs(60))
}

#[test]
fn a_page_with_an_organization_in_json_ld() {
    let url = Url::parse("https://ledgerline.example/home").unwrap();
    let found = read(include_str!("pages/saas.html"), &url);
    let expected = ProfileFields {
        name: Some("Ledgerline, Inc.".into()),
        description: Some("Books for small teams.".into()),
        industry: Some("Accounting software".into()),
        logo_url: Some("https://ledgerline.example/img/logo.svg".into()),
        social: links([
            ("linkedin", "https://www.linkedin.com/company/ledgerline"),
            ("x", "https://x.com/ledgerline"),
            ("github", "https://github.com/ledgerline"),
        ]),
        emails: strings(["hello@ledgerline.example", "sales@ledgerline.example"]),
        technologies: strings(["Google Fonts", "Google Tag Manager", "Stripe", "Next.js"]),
    };
    assert_eq!(found.facts, expected);
    let texts: Vec<_> = found.links.iter().map(|(url, text)| (url.path(), &**text)).collect();
    assert!(texts.contains(&("/about-us", "about")) && texts.contains(&("/company/contact", "talk to us")), "{texts:?}");
}

#[test]
fn a_page_in_another_encoding_without_json_ld() {
    let html = decode(Some("text/html"), include_bytes!("pages/mittelstand.html"));
    let found = read(&html, &Url::parse("http://www.mueller-soehne.example/de/").unwrap());
    let expected = ProfileFields {
        name: Some("Müller & Söhne Getriebebau GmbH".into()),
        description: Some("Zahnräder und Getriebe seit 1922 – aus Göppingen.".into()),
        logo_url: Some("http://www.mueller-soehne.example/de/favicon.ico".into()),
        emails: strings(["info@mueller-soehne.example"]),
        technologies: strings(["TYPO3 CMS"]),
        ..ProfileFields::default()
    };
    assert_eq!(found.facts, expected);
    let texts: Vec<_> = found.links.iter().map(|(url, text)| (url.path(), &**text)).collect();
    assert_eq!(texts, [("/de/unternehmen.html", "über uns"), ("/impressum", "impressum"), ("/de/kontakt.php", "kontakt")]);
    assert_eq!(decode(Some("text/html; charset=\"UTF-8\""), "é".as_bytes()), "é");
    assert_eq!(decode(Some("text/html; charset=nonsense"), b"<meta charset=windows-1252>\x80"), "<meta charset=windows-1252>€");
}

#[test]
fn a_malformed_page_tells_what_it_can() {
    let url = Url::parse("https://acme.example/").unwrap();
    let found = read(include_str!("pages/malformed.html"), &url).facts;
    assert_eq!((found.name, found.industry, found.logo_url), (Some("Half a ti<b>tle".into()), None, None));
    assert!(read("", &url).facts == ProfileFields::default() && read("<a href=\"", &url).facts == ProfileFields::default());
}

#[test]
fn what_a_page_can_fill_is_bounded() {
    let url = Url::parse("https://acme.example/").unwrap();
    let long = "x".repeat(100_000);
    let mailto: String = (0..5_000).map(|number| format!("<a href='mailto:a{number}@b.example'>m</a>")).collect();
    let html = format!(
        "<title>{long}</title><meta name=description content='{long}'><meta property=og:image content='/{long}'>{mailto}\
         <script src='https://plausible.io/{long}'></script>{}",
        "<a href=/x>".repeat(5_000)
    );
    let found = read(&html, &url);
    let ProfileFields { name, description, logo_url, emails, technologies, .. } = found.facts;
    assert_eq!((name.unwrap().len(), description.unwrap().len(), logo_url, emails.len()), (200, 5_000, None, 50));
    assert!(technologies == ["Plausible"] && found.links.len() <= 2_000);
}

#[test]
fn attributes_are_those_of_their_tag_and_the_first_of_a_name_counts() {
    let url = Url::parse("https://acme.example/").unwrap();
    let html = "<META name='og:site_name' name=x content=Acme content=Other><meta content='no name'><meta name=description>\
                </title href=/about><a>none</a><a href>empty</a><a title=x href='/about'>We</a><a href='/cut";
    let found = read(html, &url);
    assert_eq!((found.facts.name.as_deref(), found.facts.description), (Some("Acme"), None));
    let links: Vec<_> = found.links.iter().map(|(url, text)| (url.path(), &**text)).collect();
    assert_eq!(links, [("/", "empty"), ("/about", "we")]);
}

#[test]
fn long_links_lead_nowhere() {
    let url = Url::parse("https://acme.example/").unwrap();
    let (fits, long) = ("x".repeat(2_048 - url.as_str().len()), "x".repeat(2_048));
    let found = read(&format!("<base href='/{long}/'><a href='/{fits}'>a</a><a href='/{fits}x'>b</a><a href=about>c</a>"), &url);
    let links: Vec<_> = found.links.iter().map(|(url, _)| url.as_str().len()).collect();
    assert_eq!(links, [2_048, "https://acme.example/about".len()]);
}

#[test]
fn a_page_is_read_until_the_deadline() {
    let url = Url::parse("https://acme.example/").unwrap();
    let found = page::read("<a href=/about>We</a><meta name=description content='Anvils.'>", &url, Instant::now());
    assert_eq!(found.facts, ProfileFields::default());
}

#[test]
fn a_document_with_too_many_values_tells_nothing() {
    let url = Url::parse("https://acme.example/").unwrap();
    let of = |values: usize| {
        let more = "0,".repeat(values);
        let document = format!("{{\"@type\":\"Organization\",\"name\":\"Acme\",\"numbers\":[{more}0]}}");
        read(&format!("<script type='application/ld+json'>{document}</script>"), &url).facts.name
    };
    assert_eq!((of(4_900).as_deref(), of(5_000)), (Some("Acme"), None));
}

/// A site: the answers by path, each a status, headers and a body. Remembers what was asked for.
struct Site {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Site {
    fn start(answers: &[(&str, u16, &str, &str)]) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let site = Self { port: listener.local_addr().unwrap().port(), asked: Arc::default() };
        let owned = |(path, status, headers, body): &(&str, u16, &str, &str)| {
            ((*path).to_owned(), (*status, (*headers).replace("{port}", &site.port.to_string()), (*body).to_owned()))
        };
        let answers: BTreeMap<String, (u16, String, String)> = answers.iter().map(owned).collect();
        let asked = Arc::clone(&site.asked);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let (mut head, mut byte) = (Vec::new(), [0]);
                while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
                    head.push(byte[0]);
                }
                let path = String::from_utf8_lossy(&head).split(' ').nth(1).unwrap_or_default().to_owned();
                let none = (404, String::new(), String::new());
                let (status, headers, body) = answers.get(&path).unwrap_or(&none);
                asked.lock().unwrap().push(path);
                let body = if body == "10 MiB" { "x".repeat(10 << 20) } else { body.clone() };
                let _ = write!(
                    stream,
                    "HTTP/1.1 {status} X\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}",
                    body.len()
                );
            }
        });
        site
    }

    fn research(&self) -> SiteFindings {
        let outbound = Outbound::new("headcount/test", format!("127.0.0.1:{}", self.port).parse().unwrap());
        Research::new(outbound).read(&Url::parse(&format!("http://127.0.0.1:{}/", self.port)).unwrap())
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn codes(found: &SiteFindings) -> Vec<(Option<u16>, Option<&'static str>)> {
    found.sources.iter().map(|page| (page.status, page.error.clone().map(|code| &*code.leak()))).collect()
}

const HTML: &str = "content-type: text/html; charset=utf-8\r\n";

#[test]
fn the_home_page_and_those_about_the_company_are_read() {
    let home = "<title>Acme</title><a href=/about>We</a><a href=/contact?x=1#top>c</a><a href=/contact?x=1>c</a><a href=/jobs>Our company</a>\
                <a href=/private/imprint>i</a><a href=/about/2>2</a><a href=http://other.example/about>o</a>";
    let site = Site::start(&[
        (
            "/robots.txt",
            200,
            "content-type: text/plain\r\n",
            "User-agent: *\nDisallow: /\n\nUser-agent: headcount\nDisallow: /private\n",
        ),
        ("/", 200, HTML, home),
        ("/about", 301, "location: /about/\r\n", ""),
        ("/about/", 200, HTML, "<meta property=og:description content='Anvils.'><title>About</title>"),
        ("/contact?x=1", 200, HTML, "<a href='mailto:hi@acme.example'>"),
        ("/jobs", 500, HTML, ""),
    ]);
    let outcome = site.research();
    assert!(outcome.failure.is_none());
    let ProfileFields { name, description, emails, .. } = outcome.fields.clone();
    assert_eq!((name.as_deref(), description.as_deref(), emails), (Some("Acme"), Some("Anvils."), strings(["hi@acme.example"])));
    let ok = (Some(200), None);
    assert_eq!(codes(&outcome), [ok, ok, ok, (Some(500), Some("http_status")), (None, Some("robots_disallowed"))]);
    assert!(outcome.sources[1].url.ends_with("/about/"));
    assert_eq!(site.asked(), ["/robots.txt", "/", "/about", "/about/", "/contact?x=1", "/jobs"]);
}

#[test]
fn what_is_wrong_with_the_home_page_is_the_reason() {
    let alone = |answers: &[(&str, u16, &str, &str)]| codes(&Site::start(answers).research());
    let to = |target: &'static str| vec![("/", 302, target, "")];
    assert_eq!(alone(&[("/", 200, "content-type: application/pdf\r\n", "%PDF")]), [(Some(200), Some("not_html"))]);
    assert_eq!(alone(&[("/", 200, HTML, "10 MiB")]), [(None, Some("too_large"))]);
    assert_eq!(alone(&[]), [(Some(404), Some("http_status"))]);
    assert_eq!(alone(&to("location: /\r\n")), [(Some(302), Some("too_many_redirects"))]);
    assert_eq!(alone(&to("location: http://169.254.169.254/latest/meta-data\r\n")), [(Some(302), Some("blocked_address"))]);
    assert_eq!(alone(&to("location: ftp://a.example/\r\n")), [(Some(302), Some("invalid_url"))]);
    // A name whose address is not global.
    assert_eq!(alone(&to("location: http://localhost:1/\r\n")), [(Some(302), Some("blocked_address"))]);
    assert_eq!(alone(&[("/robots.txt", 503, "", ""), ("/", 200, HTML, "")]), [(None, Some("robots_disallowed"))]);
    assert_eq!(
        alone(&[("/robots.txt", 200, "", "User-agent: *\nDisallow: /"), ("/", 200, HTML, "")]),
        [(None, Some("robots_disallowed"))]
    );
    assert_eq!(
        alone(&[
            ("/robots.txt", 302, "location: /rules\r\n", ""),
            ("/rules", 200, "", "User-agent: *\nAllow: /"),
            ("/", 200, HTML, "")
        ]),
        [(Some(200), None)]
    );
}

//! Reads one page.

use std::collections::BTreeMap;

use encoding_rs::{Encoding, UTF_8};
use headcount_outbound::url::Url;
use html5gum::Tokenizer;
use html5gum::emitters::default::{DefaultEmitter, StartTag, Token};

use crate::facts::{Facts, description, short};
use crate::json_ld;

/// How many links of a page are looked at.
const MAX_LINKS: usize = 2_000;
/// The most bytes of a title or of a document in JSON-LD.
const MAX_TEXT_BYTES: usize = 256 << 10;
/// Where a declaration of the encoding may be.
const ENCODING_PREFIX: usize = 1_024;

/// Hosts of scripts and styles, and what they tell of a website.
const MARKERS: [(&str, &str); 14] = [
    ("googletagmanager.com", "Google Tag Manager"),
    ("google-analytics.com", "Google Analytics"),
    ("plausible.io", "Plausible"),
    ("js.stripe.com", "Stripe"),
    ("cdn.shopify.com", "Shopify"),
    ("js.hs-scripts.com", "HubSpot"),
    ("widget.intercom.io", "Intercom"),
    ("cdn.segment.com", "Segment"),
    ("static.hotjar.com", "Hotjar"),
    ("js.hubspot.com", "HubSpot"),
    ("assets.squarespace.com", "Squarespace"),
    ("static.wixstatic.com", "Wix"),
    ("assets.website-files.com", "Webflow"),
    ("fonts.googleapis.com", "Google Fonts"),
];

/// What a page tells, and where it leads.
#[derive(Debug, Default)]
pub(crate) struct PageFacts {
    pub(crate) facts: Facts,
    /// The links of the page that may lead to pages about the company, with their texts in lower case.
    pub(crate) links: Vec<(Url, String)>,
}

/// Decodes a page: by the encoding that its header names, else by its own declaration, else as UTF-8.
pub(crate) fn decode(content_type: Option<&str>, body: &[u8]) -> String {
    let head = String::from_utf8_lossy(&body[..body.len().min(ENCODING_PREFIX)]).to_ascii_lowercase();
    let declared = |text: &str| {
        let (_, rest) = text.split_once("charset=")?;
        let label = rest.trim_start_matches(['"', '\'']).split(['"', '\'', ';', '>', ' ', '/']).next()?;
        Encoding::for_label(label.trim().as_bytes())
    };
    let encoding = content_type.and_then(|header| declared(&header.to_ascii_lowercase())).or_else(|| declared(&head));
    encoding.unwrap_or(UTF_8).decode(body).0.into_owned()
}

/// What text is being collected.
enum Collecting {
    Nothing,
    Title,
    JsonLd,
    /// Of a link.
    Link(Url),
}

/// Reads a page at `url`.
pub(crate) fn read(html: &str, url: &Url) -> PageFacts {
    let mut reader = Reader { base: url.clone(), ..Reader::new(url) };
    let mut emitter = DefaultEmitter::default();
    emitter.naively_switch_states(true);
    for Ok(token) in Tokenizer::new_with_emitter(html, emitter) {
        match token {
            Token::StartTag(tag) => reader.start(&tag),
            Token::String(text) => reader.text(&String::from_utf8_lossy(&text)),
            Token::EndTag(tag) => reader.end(&tag.name),
            _ => {}
        }
    }
    reader.finish()
}

struct Reader {
    base: Url,
    /// What organizations in JSON-LD tell, and what the page does.
    stated: Facts,
    page: Facts,
    /// The values of `meta` by name or property, the first of each.
    meta: BTreeMap<String, String>,
    title: String,
    /// Links to icons, the best first.
    icons: [Option<Url>; 2],
    links: Vec<(Url, String)>,
    seen_links: usize,
    collecting: Collecting,
    collected: String,
}

impl Reader {
    fn new(url: &Url) -> Self {
        Self {
            base: url.clone(),
            stated: Facts::default(),
            page: Facts::default(),
            meta: BTreeMap::new(),
            title: String::new(),
            icons: [None, None],
            links: Vec::new(),
            seen_links: 0,
            collecting: Collecting::Nothing,
            collected: String::new(),
        }
    }

    fn start(&mut self, tag: &StartTag<()>) {
        let attribute = |name: &str| {
            let value = tag.attributes.iter().find(|(key, _)| key.as_slice() == name.as_bytes()).map(|(_, value)| value);
            value.map(|value| String::from_utf8_lossy(value).into_owned())
        };
        match tag.name.as_slice() {
            b"title" if self.title.is_empty() => self.collect(Collecting::Title),
            b"script" if attribute("type").is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/ld+json")) => {
                self.collect(Collecting::JsonLd);
            }
            b"script" => self.loaded(attribute("src")),
            b"meta" => {
                let name = attribute("property").or_else(|| attribute("name"));
                if let (Some(name), Some(content)) = (name, attribute("content")) {
                    self.meta.entry(name.trim().to_ascii_lowercase()).or_insert(content);
                }
            }
            b"link" => self.linked(&attribute("rel").unwrap_or_default().to_ascii_lowercase(), attribute("href")),
            b"base" => {
                if let Some(base) = attribute("href").and_then(|href| self.base.join(&href).ok()) {
                    self.base = base;
                }
            }
            b"a" => {
                if let Some(href) = attribute("href") {
                    self.anchor(&href);
                }
            }
            _ => {}
        }
    }

    fn collect(&mut self, what: Collecting) {
        self.collected.clear();
        self.collecting = what;
    }

    fn text(&mut self, text: &str) {
        if !matches!(self.collecting, Collecting::Nothing) && self.collected.len() + text.len() <= MAX_TEXT_BYTES {
            self.collected.push_str(text);
        }
    }

    fn end(&mut self, name: &[u8]) {
        let expected: &[u8] = match self.collecting {
            Collecting::Nothing => return,
            Collecting::Title => b"title",
            Collecting::JsonLd => b"script",
            Collecting::Link(_) => b"a",
        };
        if name != expected {
            return;
        }
        let text = std::mem::take(&mut self.collected);
        match std::mem::replace(&mut self.collecting, Collecting::Nothing) {
            Collecting::Nothing => {}
            Collecting::Title => self.title = text,
            Collecting::JsonLd => {
                if let Some(facts) = json_ld::organization(&text, &self.base) {
                    self.stated.fill(facts);
                }
            }
            Collecting::Link(url) => self.links.push((url, text.trim().to_lowercase())),
        }
    }

    /// A script or a style of another host.
    fn loaded(&mut self, url: Option<String>) {
        let Some(url) = url.and_then(|url| self.base.join(&url).ok()) else { return };
        let Some(host) = url.host_str() else { return };
        let marker = MARKERS.iter().find(|(of, _)| host == *of || host.strip_suffix(of).is_some_and(|rest| rest.ends_with('.')));
        if let Some((_, name)) = marker {
            self.page.technology(name);
        }
    }

    fn linked(&mut self, rel: &str, href: Option<String>) {
        let mut rels = rel.split_ascii_whitespace();
        if rels.clone().any(|rel| rel == "stylesheet" || rel == "preconnect") {
            return self.loaded(href);
        }
        let Some(place) = rels.find_map(|rel| match rel {
            "apple-touch-icon" | "apple-touch-icon-precomposed" => Some(0),
            "icon" => Some(1),
            _ => None,
        }) else {
            return;
        };
        if let Some(url) = href.and_then(|href| self.base.join(&href).ok()) {
            self.icons[place].get_or_insert(url);
        }
    }

    fn anchor(&mut self, href: &str) {
        self.seen_links += 1;
        if self.seen_links > MAX_LINKS {
            return;
        }
        if let Some(address) = href.trim().strip_prefix("mailto:") {
            return self.page.email(address.split('?').next().unwrap_or(address));
        }
        let Ok(url) = self.base.join(href) else { return };
        self.page.link(&url);
        if matches!(url.scheme(), "http" | "https") {
            self.collect(Collecting::Link(url));
        }
    }

    fn finish(self) -> PageFacts {
        let Self { base, stated, page, meta, title, icons, links, .. } = self;
        let (mut facts, mut described) = (stated, page);
        let of = |name: &str| meta.get(name).map(String::as_str);
        described.name = of("og:site_name").or_else(|| of("application-name")).and_then(short).or_else(|| short(&title));
        described.description = of("og:description").or_else(|| of("description")).and_then(description);
        if let Some(generator) = of("generator") {
            described.technology(generator);
        }
        let image = of("og:image").and_then(|image| base.join(image).ok());
        let [touch, icon] = icons;
        for logo in [touch, image, icon].into_iter().flatten() {
            described.logo(&logo);
        }
        facts.fill(described);
        PageFacts { facts, links }
    }
}

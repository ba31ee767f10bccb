//! Reads one page.

use std::time::Instant;

use encoding_rs::{Encoding, UTF_8};
use headcount_outbound::url::Url;
use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};

use super::facts::{MAX_URL_BYTES, ProfileFields, description, short};
use super::json_ld;

/// How many links of a page are looked at.
const MAX_LINKS: usize = 2_000;
/// The most bytes of a title or of a document in JSON-LD.
const MAX_TEXT_BYTES: usize = 256 << 10;
/// The most bytes of an attribute that are looked at.
const MAX_ATTRIBUTE_BYTES: usize = 32 << 10;
/// The attributes that are looked at.
const ATTRIBUTES: [&str; 7] = ["content", "href", "name", "property", "rel", "src", "type"];
/// The values of `meta` that are kept.
const META: [&str; 6] = ["og:site_name", "application-name", "og:description", "description", "generator", "og:image"];
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
    pub(crate) facts: ProfileFields,
    /// The links of the page that may lead to pages about the company, with their texts in lower
    /// case.
    pub(crate) links: Vec<(Url, String)>,
}

/// Decodes a page: by the encoding that its header names, else by its own declaration, else as
/// UTF-8.
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

/// Reads a page at `url`, until `deadline` is over. What was read by then counts.
///
/// Tags are read attribute by attribute, and none is kept: a page may consist of a single tag with
/// a million of them.
pub(crate) fn read(html: &str, url: &Url, deadline: Instant) -> PageFacts {
    let mut reader = Reader::new(url);
    let mut emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, _: Span<()>| reader.event(event));
    emitter.naively_switch_states(true);
    let mut tags = Tokenizer::new_with_emitter(html, emitter);
    while tags.next().is_some() && Instant::now() < deadline {}
    drop(tags);
    reader.finish()
}

/// A tag that has begun, with the values of its [`ATTRIBUTES`].
#[derive(Default)]
struct Tag {
    name: Vec<u8>,
    values: [Option<String>; ATTRIBUTES.len()],
    /// The attribute of which the value comes next.
    place: Option<usize>,
}

impl Tag {
    fn attribute(&mut self, name: &[u8]) {
        let place = ATTRIBUTES.iter().position(|known| known.as_bytes() == name);
        // Of two of one name, the first counts.
        self.place = place.filter(|place| self.values[*place].is_none());
        if let Some(place) = self.place {
            self.values[place] = Some(String::new());
        }
    }

    fn value(&mut self, value: &[u8]) {
        if let Some(place) = self.place.take() {
            let value = &value[..value.len().min(MAX_ATTRIBUTE_BYTES)];
            self.values[place] = Some(String::from_utf8_lossy(value).into_owned());
        }
    }

    fn get(&self, name: &str) -> Option<&str> {
        let place = ATTRIBUTES.iter().position(|known| *known == name)?;
        self.values[place].as_deref()
    }
}

struct Reader {
    base: Url,
    /// What organizations in JSON-LD tell, and what the page does.
    stated: ProfileFields,
    page: ProfileFields,
    /// The values of [`META`], the first of each.
    meta: [Option<String>; META.len()],
    title: String,
    /// Links to icons, the best first.
    icons: [Option<Url>; 2],
    links: Vec<(Url, String)>,
    seen_links: usize,
    /// The start tag that is being read.
    tag: Option<Tag>,
    collecting: Collecting,
    collected: String,
}

impl Reader {
    fn new(url: &Url) -> Self {
        Self {
            base: url.clone(),
            stated: ProfileFields::default(),
            page: ProfileFields::default(),
            meta: Default::default(),
            title: String::new(),
            icons: [None, None],
            links: Vec::new(),
            seen_links: 0,
            tag: None,
            collecting: Collecting::Nothing,
            collected: String::new(),
        }
    }

    /// Takes what comes next. Returns something at each end of a tag, so that its reader can look
    /// at the time.
    fn event(&mut self, event: CallbackEvent<'_>) -> Option<()> {
        match event {
            CallbackEvent::OpenStartTag { name } => self.tag = Some(Tag { name: name.to_owned(), ..Tag::default() }),
            // End tags may have attributes, too. They are of no tag here.
            CallbackEvent::AttributeName { name } => self.tag.as_mut()?.attribute(name),
            CallbackEvent::AttributeValue { value } => self.tag.as_mut()?.value(value),
            CallbackEvent::CloseStartTag { .. } => {
                let tag = self.tag.take()?;
                self.start(&tag);
                return Some(());
            }
            CallbackEvent::String { value } => self.text(&String::from_utf8_lossy(value)),
            CallbackEvent::EndTag { name } => {
                self.end(name);
                return Some(());
            }
            _ => {}
        }
        None
    }

    fn start(&mut self, tag: &Tag) {
        match tag.name.as_slice() {
            b"title" if self.title.is_empty() => self.collect(Collecting::Title),
            b"script" if tag.get("type").is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/ld+json")) => {
                self.collect(Collecting::JsonLd);
            }
            b"script" => self.loaded(tag.get("src")),
            b"meta" => {
                let name = tag.get("property").or_else(|| tag.get("name")).unwrap_or_default().trim();
                let place = META.iter().position(|known| known.eq_ignore_ascii_case(name));
                if let (Some(place), Some(content)) = (place, tag.get("content")) {
                    self.meta[place].get_or_insert_with(|| content.to_owned());
                }
            }
            b"link" => self.linked(&tag.get("rel").unwrap_or_default().to_ascii_lowercase(), tag.get("href")),
            b"base" => {
                if let Some(base) = tag.get("href").and_then(|href| self.join(href)) {
                    self.base = base;
                }
            }
            b"a" => {
                if let Some(href) = tag.get("href") {
                    self.anchor(href);
                }
            }
            _ => {}
        }
    }

    /// The URL that a link leads to, unless it is longer than any that is looked at.
    fn join(&self, href: &str) -> Option<Url> {
        self.base.join(href).ok().filter(|url| url.as_str().len() <= MAX_URL_BYTES)
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
            Collecting::Link(url) => self.links.push((url, short(&text).unwrap_or_default().to_lowercase())),
        }
    }

    /// A script or a style of another host.
    fn loaded(&mut self, url: Option<&str>) {
        let Some(url) = url.and_then(|url| self.base.join(url).ok()) else { return };
        let Some(host) = url.host_str() else { return };
        let marker = MARKERS.iter().find(|(of, _)| host == *of || host.strip_suffix(of).is_some_and(|rest| rest.ends_with('.')));
        if let Some((_, name)) = marker {
            self.page.technology(name);
        }
    }

    fn linked(&mut self, rel: &str, href: Option<&str>) {
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
        if let Some(url) = href.and_then(|href| self.join(href)) {
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
        let Some(url) = self.join(href) else { return };
        self.page.link(&url);
        if matches!(url.scheme(), "http" | "https") {
            self.collect(Collecting::Link(url));
        }
    }

    fn finish(self) -> PageFacts {
        let Self { base, stated, page, meta, title, icons, links, .. } = self;
        let (mut facts, mut described) = (stated, page);
        let [site_name, application_name, og_description, plain_description, generator, image] = &meta;
        described.name = site_name.as_ref().or(application_name.as_ref()).and_then(|name| short(name)).or_else(|| short(&title));
        described.description = og_description.as_ref().or(plain_description.as_ref()).and_then(|text| description(text));
        if let Some(generator) = generator {
            described.technology(generator);
        }
        let image = image.as_ref().and_then(|image| base.join(image).ok());
        let [touch, icon] = icons;
        for logo in [touch, image, icon].into_iter().flatten() {
            described.logo(&logo);
        }
        facts.fill(described);
        PageFacts { facts, links }
    }
}

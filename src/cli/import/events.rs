//! From lines to events in the shape of `POST /track`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::combined;
use super::lines::{Block, MAX_LINE_BYTES, Place};

/// What the lines of a file are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Events in the shape of `POST /track`, one JSON object a line
    Ndjson,
    /// A web server's access log, in the common or combined format
    Combined,
}

impl Format {
    /// Whether a last line without an end is whole: an event is if it is JSON. Of a request nobody can tell, and web servers
    /// end their lines.
    pub(crate) fn is_whole(self) -> fn(&[u8]) -> bool {
        match self {
            Format::Ndjson => |line| serde_json::from_slice::<&RawValue>(line).is_ok(),
            Format::Combined => |_| false,
        }
    }
}

/// How lines are read.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    /// What they are.
    pub(crate) format: Format,
    /// Of an access log: the host that its paths belong to.
    pub(crate) hostname: Option<String>,
    /// Of an access log: every request, not only answered pages.
    pub(crate) all: bool,
    /// Gives events without an `external_id` one of their file and line, so that they can be sent twice.
    pub(crate) tags: Option<Tags>,
}

/// Which events get an `external_id`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tags {
    /// Names the import.
    pub(crate) prefix: String,
    /// Up to which offset of the file.
    pub(crate) until: u64,
}

/// A line that is no event.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(crate) struct RefusedLine {
    /// Its number, from 1.
    pub(crate) line: u64,
    /// Why, for programs.
    pub(crate) code: Cow<'static, str>,
    /// Why, for people.
    pub(crate) message: String,
}

/// The events of a block.
#[derive(Debug)]
pub(crate) struct Events {
    /// The block's number.
    pub(crate) number: u64,
    /// Where it ends.
    pub(crate) end: Place,
    /// Holds the events' JSON.
    pub(crate) json: Vec<u8>,
    /// Where each event lies in it, and its line.
    pub(crate) spans: Vec<(Range<usize>, u64)>,
    /// Lines that are no events.
    pub(crate) refused: Vec<RefusedLine>,
    /// Requests that were left out: assets, errors.
    pub(crate) skipped: u64,
}

impl Events {
    /// Each event's JSON.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.spans.iter().map(|(span, _)| &self.json[span.clone()])
    }
}

impl Reading {
    /// Reads a block's lines.
    pub(crate) fn read(&self, block: Block) -> Events {
        let Block { number, bytes, start, end, is_too_long } = block;
        let mut events = Events { number, end, json: Vec::new(), spans: Vec::new(), refused: Vec::new(), skipped: 0 };
        if is_too_long {
            let message = format!("the line has more than {MAX_LINE_BYTES} bytes");
            let refused = RefusedLine { line: start.lines + 1, code: Cow::Borrowed("line_too_long"), message };
            events.refused.push(refused);
            return events;
        }
        let tags = self.tags.as_ref().filter(|tags| start.offset < tags.until);
        let lines = lines(&bytes).zip(start.lines + 1..).map(|(span, line)| (self.trimmed(&bytes, span, line), line));
        let lines = lines.filter(|(span, _)| !span.is_empty());
        match (self.format, tags) {
            (Format::Ndjson, None) => {
                events.spans = lines.collect();
                events.json = bytes;
            }
            (Format::Ndjson, Some(tags)) => {
                for (span, line) in lines {
                    events.push(line, |json| write_tagged(&bytes[span], &format!("{}:{line}", tags.prefix), json));
                }
            }
            (Format::Combined, tags) => {
                for (span, line) in lines {
                    self.read_request(&bytes[span], line, tags, &mut events);
                }
            }
        }
        events
    }

    /// A line without the white space around it, and without the mark that some programs begin a text file with.
    fn trimmed(&self, bytes: &[u8], span: Range<usize>, line: u64) -> Range<usize> {
        let mut text = &bytes[span.clone()];
        if line == 1 {
            text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        }
        let skipped = text.len() - text.trim_ascii_start().len() + (span.len() - text.len());
        let start = span.start + skipped;
        start..start + text.trim_ascii().len()
    }

    fn read_request(&self, line: &[u8], number: u64, tags: Option<&Tags>, events: &mut Events) {
        let text = String::from_utf8_lossy(line);
        let entry = match combined::parse(&text) {
            Ok(entry) => entry,
            Err(error) => {
                let refused = RefusedLine { line: number, code: Cow::Borrowed("unparsable_line"), message: error.to_string() };
                return events.refused.push(refused);
            }
        };
        if !self.all && !entry.is_answered_page() {
            events.skipped += 1;
            return;
        }
        events.push(number, |json| {
            let start = json.len();
            // Writing plain fields into memory does not fail; were it to, the half object would be refused as an event.
            let _ = entry.write_event(self.hostname.as_deref(), json);
            if let Some(tags) = tags {
                let event = json.split_off(start);
                write_tagged(&event, &format!("{}:{number}", tags.prefix), json);
            }
        });
    }
}

impl Events {
    fn push(&mut self, line: u64, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.json.len();
        write(&mut self.json);
        self.spans.push((start..self.json.len(), line));
    }
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    let ends = memchr::memchr_iter(b'\n', bytes).chain((!bytes.ends_with(b"\n") && !bytes.is_empty()).then_some(bytes.len()));
    ends.map(move |end| std::mem::replace(&mut start, end + 1)..end)
}

/// Writes the event with this `external_id` if it has none. What is no JSON object is left as it is: it is refused later.
fn write_tagged(event: &[u8], external_id: &str, json: &mut Vec<u8>) {
    #[derive(Deserialize)]
    struct Probe<'a> {
        #[serde(borrow)]
        external_id: Option<&'a RawValue>,
    }
    let Some(fields) = event.strip_prefix(b"{") else { return json.extend_from_slice(event) };
    match serde_json::from_slice::<Probe<'_>>(event) {
        Ok(Probe { external_id: None }) if !mentions_null_id(event) => {
            json.extend_from_slice(b"{\"external_id\":\"");
            json.extend_from_slice(external_id.as_bytes());
            json.extend_from_slice(if fields.trim_ascii_start().starts_with(b"}") { b"\"" } else { b"\"," });
            json.extend_from_slice(fields);
        }
        Ok(Probe { external_id: Some(id) }) if id.get() != "\"\"" => json.extend_from_slice(event),
        Ok(_) => write_replaced(event, external_id, json),
        Err(_) => json.extend_from_slice(event),
    }
}

/// Whether the key may be there with the value null, which reads like its absence.
fn mentions_null_id(event: &[u8]) -> bool {
    memchr::memmem::find(event, b"external_id").is_some() || event.contains(&b'\\')
}

fn write_replaced(event: &[u8], external_id: &str, json: &mut Vec<u8>) {
    let fields = serde_json::from_slice::<BTreeMap<String, &RawValue>>(event);
    let own = serde_json::value::to_raw_value(external_id);
    let written = match (fields, &own) {
        (Ok(mut fields), Ok(own)) => {
            fields.insert("external_id".to_owned(), own);
            serde_json::to_writer(&mut *json, &fields).is_ok()
        }
        _ => false,
    };
    if !written {
        json.extend_from_slice(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(text: &str) -> Block {
        let end = Place { offset: text.len() as u64, lines: text.lines().count() as u64 };
        Block { number: 0, bytes: text.as_bytes().to_vec(), start: Place::START, end, is_too_long: false }
    }

    fn ndjson(tags: Option<Tags>) -> Reading {
        Reading { format: Format::Ndjson, hostname: None, all: false, tags }
    }

    #[test]
    fn lines_are_numbered_as_in_an_editor() {
        let events = ndjson(None).read(block("\u{feff}{\"a\":1}\r\n\n  {\"b\":2}  \n\t\n{\"c\":3}"));
        let read: Vec<(String, u64)> = events
            .iter()
            .zip(&events.spans)
            .map(|(json, (_, line))| (String::from_utf8_lossy(json).into_owned(), *line))
            .collect();
        assert_eq!(read, [("{\"a\":1}".into(), 1), ("{\"b\":2}".into(), 3), ("{\"c\":3}".into(), 5)]);
    }

    #[test]
    fn what_has_no_external_id_gets_one() {
        let table = [
            (r#"{"name":"a"}"#, r#"{"external_id":"i:1","name":"a"}"#),
            (r#"{ }"#, r#"{"external_id":"i:1" }"#),
            (r#"{"name":"a","external_id":"x"}"#, r#"{"name":"a","external_id":"x"}"#),
            (r#"{"name":"a","external_id":null}"#, r#"{"external_id":"i:1","name":"a"}"#),
            (r#"{"external_id":"","name":"a"}"#, r#"{"external_id":"i:1","name":"a"}"#),
            (r#"{"external\u005fid":null,"name":"a"}"#, r#"{"external_id":"i:1","name":"a"}"#),
            (r#"{"metadata":{"external_id":1}}"#, r#"{"external_id":"i:1","metadata":{"external_id":1}}"#),
            (r#"{"external_id":5}"#, r#"{"external_id":5}"#),
            ("[1]", "[1]"),
            ("{oops", "{oops"),
        ];
        for (line, expected) in table {
            let tags = Tags { prefix: "i".into(), until: 1 };
            let events = ndjson(Some(tags)).read(block(line));
            assert_eq!(String::from_utf8_lossy(events.iter().next().unwrap()), expected, "{line}");
        }
    }

    #[test]
    fn only_up_to_where_events_may_have_been_sent_already() {
        let tags = Tags { prefix: "i".into(), until: 5 };
        let mut later = block(r#"{"name":"a"}"#);
        later.start.offset = 5;
        let events = ndjson(Some(tags)).read(later);
        assert_eq!(events.iter().next().unwrap(), br#"{"name":"a"}"#);
    }
}

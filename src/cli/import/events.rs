//! Lines as events in the format of `POST /track`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use headcount_domain::intake::submission::Invalid;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::foreign::{ForeignEvent, Record};
use super::lines::{Block, Place};
use super::tables::{MAX_LINE_BYTES, REFUSED, Tables};
use super::{combined, goatcounter, umami};
use crate::http::resources::events::ingest::IMPORT_LIMIT_BYTES;

/// The format of a file's lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Events as for `POST /track`, one JSON object per line; or what `export` writes as NDJSON, CSV or Parquet, which is recognized by its content
    Ndjson,
    /// Access log of a web server, in the common or combined format
    Combined,
    /// `website_event.csv` of Umami: the export of Umami Cloud, or the table of your own database
    Umami,
    /// Version 2 of GoatCounter's CSV export
    Goatcounter,
}

impl Format {
    /// Returns the test whether a last line without an end is complete. An event is if it is JSON; a line of an access log
    /// never is, since web servers end their lines.
    pub(crate) fn is_whole(self) -> fn(&[u8]) -> bool {
        match self {
            Format::Ndjson => |line| serde_json::from_slice::<&RawValue>(line).is_ok(),
            Format::Combined | Format::Umami | Format::Goatcounter => |_| false,
        }
    }

    /// Which tables a file of this format may be.
    pub(crate) fn tables(self) -> Tables {
        match self {
            Format::Ndjson => Tables::Exports,
            Format::Combined => Tables::Never,
            Format::Umami => Tables::Foreign(umami::TABLE),
            Format::Goatcounter => Tables::Foreign(goatcounter::TABLE),
        }
    }
}

/// How lines become events.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    /// The format.
    pub(crate) format: Format,
    /// The host that paths belong to.
    pub(crate) hostname: Option<String>,
    /// Whether all requests of an access log are read, not only successful page views.
    pub(crate) all: bool,
    /// Assigns an `external_id` of file and line to events without one, so that they can be sent twice.
    pub(crate) tags: Option<Tags>,
}

/// The `external_id`s that an import assigns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tags {
    /// Their prefix, which names the import.
    pub(crate) prefix: String,
    /// The offset of the file up to which events get one.
    pub(crate) until: u64,
}

/// A line that is not a valid event.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(crate) struct RefusedLine {
    /// The line number, from 1.
    pub(crate) line: u64,
    /// The error code.
    pub(crate) code: Cow<'static, str>,
    /// The reason, for people.
    pub(crate) message: String,
}

/// The events of a block.
#[derive(Debug)]
pub(crate) struct Events {
    /// The number of the block.
    pub(crate) number: u64,
    /// Where the block ends.
    pub(crate) end: Place,
    /// A buffer with the JSON of the events.
    pub(crate) json: Vec<u8>,
    /// The range in `json` and the line number of each event.
    pub(crate) spans: Vec<(Range<usize>, u64)>,
    /// Lines that are not events.
    pub(crate) refused: Vec<RefusedLine>,
    /// The number of lines that were skipped: requests for assets, errors, measurements.
    pub(crate) skipped: u64,
}

impl Events {
    /// Iterates over the JSON of each event.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.spans.iter().map(|(span, _)| &self.json[span.clone()])
    }
}

impl Reading {
    /// Reads the lines of a block.
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
            (Format::Ndjson, tags) if memchr::memchr(REFUSED, &bytes).is_some() => {
                // Rare: a CSV record that can't be converted.
                for (span, line) in lines {
                    Self::read_line(&bytes[span], line, tags, &mut events);
                }
            }
            (Format::Ndjson, None) => {
                events.spans = lines.collect();
                events.json = bytes;
            }
            (Format::Ndjson, Some(tags)) => {
                for (span, line) in lines {
                    Self::read_line(&bytes[span], line, Some(tags), &mut events);
                }
            }
            (Format::Combined, tags) => {
                for (span, line) in lines {
                    self.read_request(&bytes[span], line, tags, &mut events);
                }
            }
            (Format::Umami | Format::Goatcounter, tags) => {
                for (span, line) in lines {
                    self.read_record(&bytes[span], line, tags, &mut events);
                }
            }
        }
        events
    }

    /// Trims white space, and the byte order mark of a file's first line.
    fn trimmed(&self, bytes: &[u8], span: Range<usize>, line: u64) -> Range<usize> {
        let mut text = &bytes[span.clone()];
        if line == 1 {
            text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        }
        let skipped = text.len() - text.trim_ascii_start().len() + (span.len() - text.len());
        let start = span.start + skipped;
        start..start + text.trim_ascii().len()
    }

    /// Reads a line of JSON, or one that says why a record could not be converted to JSON.
    fn read_line(line: &[u8], number: u64, tags: Option<&Tags>, events: &mut Events) {
        if let Some(why) = line.strip_prefix(&[REFUSED]) {
            let message = String::from_utf8_lossy(why).into_owned();
            return events.refused.push(RefusedLine { line: number, code: Cow::Borrowed("invalid_record"), message });
        }
        events.push(number, |json| match tags {
            Some(tags) => write_tagged(line, &format!("{}:{number}", tags.prefix), json),
            None => json.extend_from_slice(line),
        });
    }

    /// Reads a record of another product's table, as a line of JSON.
    fn read_record(&self, line: &[u8], number: u64, tags: Option<&Tags>, events: &mut Events) {
        let refuse = |message: String| RefusedLine { line: number, code: Cow::Borrowed("invalid_record"), message };
        if let Some(why) = line.strip_prefix(&[REFUSED]) {
            return events.refused.push(refuse(String::from_utf8_lossy(why).into_owned()));
        }
        let record = match serde_json::from_slice::<Record>(line) {
            Ok(record) => record,
            Err(error) => return events.refused.push(refuse(error.to_string())),
        };
        match self.convert(&record) {
            Ok(Some(event)) => events.push(number, |json| write_event(&event, number, tags, json)),
            Ok(None) => events.skipped += 1,
            Err(why) => events.refused.push(refuse(why)),
        }
    }

    fn convert<'r>(&'r self, record: &'r Record) -> Result<Option<ForeignEvent<'r>>, String> {
        let hostname = self.hostname.as_deref();
        match self.format {
            Format::Goatcounter => goatcounter::event(record, hostname),
            _ => umami::event(record, hostname),
        }
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
        if !self.all && !entry.is_successful_page_view() {
            events.skipped += 1;
            return;
        }
        let event = entry.event(self.hostname.as_deref());
        events.push(number, |json| write_event(&event, number, tags, json));
    }
}

/// Writes the event of a line, with an `external_id` if it has none and gets one.
fn write_event(event: &impl Serialize, number: u64, tags: Option<&Tags>, json: &mut Vec<u8>) {
    let start = json.len();
    // Writing plain fields into memory can't fail; a truncated object would be refused as an event.
    let _ = serde_json::to_writer(&mut *json, event);
    if let Some(tags) = tags {
        let event = json.split_off(start);
        write_tagged(&event, &format!("{}:{number}", tags.prefix), json);
    }
}

/// Returns the error for an event that is larger than the API allows.
pub(crate) fn too_large(json: &[u8]) -> Option<Invalid> {
    let message = || format!("the event has {} bytes; at most {IMPORT_LIMIT_BYTES} are allowed", json.len());
    (json.len() > IMPORT_LIMIT_BYTES).then(|| Invalid { code: "event_too_large", param: None, message: message() })
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

/// Writes the event, with this `external_id` if it has none. Anything but a JSON object is unchanged, and refused later.
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

/// Returns whether the event may have the key with the value null, which deserializes like a missing key.
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

//! Converts lines to events in the format of `POST /track`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use headcount_api::extract::body::IMPORT_LIMIT_BYTES;
use headcount_domain::intake::submission::Invalid;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::foreign::{ForeignEvent, Record};
use super::lines::{Block, Place};
use super::read_lines::ReadLines;
use super::tables::{MAX_LINE_BYTES, REFUSED, Tables};
use super::{combined, goatcounter, umami};

/// The maximum size of an id, in bytes.
const MAX_ID_BYTES: usize = 4 << 10;

/// The format of a file's lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Events as for `POST /track`, one JSON object per line; or a file of `export` as NDJSON, CSV
    /// or Parquet, recognized by its content
    Ndjson,
    /// Access log of a web server, in the common or combined format
    Combined,
    /// `website_event.csv` of Umami: the export of Umami Cloud, or the table of your own database
    Umami,
    /// Version 2 of GoatCounter's CSV export
    Goatcounter,
}

impl Format {
    /// Returns the test whether a last line without a line end is complete. An event is complete if
    /// it is JSON. A line of an access log is never complete without one, since web servers end
    /// their lines.
    pub(crate) fn is_whole(self) -> fn(&[u8]) -> bool {
        match self {
            Format::Ndjson => |line| serde_json::from_slice::<&RawValue>(line).is_ok(),
            Format::Combined | Format::Umami | Format::Goatcounter => |_| false,
        }
    }

    /// The kinds of tables that a file of this format may have.
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
    /// Whether to read all requests of an access log, not only successful page views.
    pub(crate) all: bool,
    /// Lines that were read before. They are skipped, unless their events have an `external_id`.
    pub(crate) seen: ReadLines,
    /// Assigns an `external_id` made of file and line to events without one, so that a batch can be
    /// sent twice.
    pub(crate) tags: Option<Tags>,
}

/// The `external_id`s that an import assigns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tags {
    /// Their prefix, which names the import.
    pub(crate) prefix: String,
    /// Events before this offset of the file get an id.
    pub(crate) until: u64,
}

/// A line that is not a valid event.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(crate) struct RefusedLine {
    /// The line number, from 1.
    pub(crate) line: u64,
    /// The error code.
    pub(crate) code: Cow<'static, str>,
    /// The reason, as text.
    pub(crate) message: String,
}

/// The events of a block.
#[derive(Debug)]
pub(crate) struct Events {
    /// The number of the block.
    pub(crate) number: u64,
    /// Where the block begins.
    pub(crate) start: Place,
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
    /// The number of events that an earlier run read.
    pub(crate) seen: u64,
}

/// How to treat the event of a line.
#[derive(Clone, Copy)]
struct LineOptions<'t> {
    /// The number of the line.
    line: u64,
    /// Whether an earlier run read it.
    is_seen: bool,
    tags: Option<&'t Tags>,
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
        let (json, spans, refused) = (Vec::new(), Vec::new(), Vec::new());
        let mut events = Events { number, start, end, json, spans, refused, skipped: 0, seen: 0 };
        if is_too_long {
            let message = format!("the line has more than {MAX_LINE_BYTES} bytes");
            let refused = RefusedLine { line: start.lines + 1, code: Cow::Borrowed("line_too_long"), message };
            events.refused.push(refused);
            return events;
        }
        let tags = self.tags.as_ref().filter(|tags| start.offset < tags.until);
        let may_be_seen = self.seen.reaches_beyond(start.offset);
        let lines = lines(&bytes).zip(start.lines + 1..).map(|(span, line)| (self.trimmed(&bytes, span, line), line));
        let lines = lines.filter(|(span, _)| !span.is_empty());
        let is_plain = tags.is_none() && !may_be_seen && memchr::memchr(REFUSED, &bytes).is_none();
        if self.format == Format::Ndjson && is_plain {
            events.spans = lines.collect();
            events.json = bytes;
            return events;
        }
        for (span, line) in lines {
            let offset = start.offset + u64::try_from(span.start).unwrap_or(0);
            let options = LineOptions { line, is_seen: may_be_seen && self.seen.has(offset, line), tags };
            let text = &bytes[span];
            match self.format {
                Format::Ndjson => Self::read_line(text, options, &mut events),
                Format::Combined => self.read_request(text, options, &mut events),
                Format::Umami | Format::Goatcounter => self.read_record(text, options, &mut events),
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

    /// Reads a line of JSON, or a line with the reason why a record could not be converted to JSON.
    fn read_line(line: &[u8], options: LineOptions<'_>, events: &mut Events) {
        if let Some(why) = line.strip_prefix(&[REFUSED]) {
            let message = String::from_utf8_lossy(why).into_owned();
            return events.refused.push(RefusedLine { line: options.line, code: Cow::Borrowed("invalid_record"), message });
        }
        events.push(line, options);
    }

    /// Reads a record of another product's table, as a line of JSON.
    fn read_record(&self, line: &[u8], options: LineOptions<'_>, events: &mut Events) {
        let refuse = |message: String| RefusedLine { line: options.line, code: Cow::Borrowed("invalid_record"), message };
        if let Some(why) = line.strip_prefix(&[REFUSED]) {
            return events.refused.push(refuse(String::from_utf8_lossy(why).into_owned()));
        }
        let record = match serde_json::from_slice::<Record>(line) {
            Ok(record) => record,
            Err(error) => return events.refused.push(refuse(error.to_string())),
        };
        match self.convert(&record) {
            Ok(Some(event)) => events.push(&json_of(&event), options),
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

    fn read_request(&self, line: &[u8], options: LineOptions<'_>, events: &mut Events) {
        let text = String::from_utf8_lossy(line);
        let entry = match combined::parse(&text) {
            Ok(entry) => entry,
            Err(error) => {
                let (line, code) = (options.line, Cow::Borrowed("unparsable_line"));
                return events.refused.push(RefusedLine { line, code, message: error.to_string() });
            }
        };
        if !self.all && !entry.is_successful_page_view() {
            events.skipped += 1;
            return;
        }
        events.push(&json_of(&entry.event(self.hostname.as_deref())), options);
    }
}

/// The JSON of an event. Plain fields can't fail; a truncated object would be refused as an event.
fn json_of(event: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(event).unwrap_or_default()
}

/// Returns the error for an event that is larger than the API allows.
pub(crate) fn too_large(json: &[u8]) -> Option<Invalid> {
    let message = || format!("the event has {} bytes; at most {IMPORT_LIMIT_BYTES} are allowed", json.len());
    (json.len() > IMPORT_LIMIT_BYTES).then(|| Invalid { code: "event_too_large", param: None, message: message() })
}

impl Events {
    /// Adds an event. Assigns an `external_id` if it has none, or skips the event if an earlier run
    /// read it.
    fn push(&mut self, event: &[u8], LineOptions { line, is_seen, tags }: LineOptions<'_>) {
        if is_seen && !has_own_id(event) {
            self.seen += 1;
            return;
        }
        let start = self.json.len();
        match tags {
            Some(tags) => write_tagged(event, &format!("{}:{line}", tags.prefix), &mut self.json),
            None => self.json.extend_from_slice(event),
        }
        self.spans.push((start..self.json.len(), line));
    }
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    let ends = memchr::memchr_iter(b'\n', bytes).chain((!bytes.ends_with(b"\n") && !bytes.is_empty()).then_some(bytes.len()));
    ends.map(move |end| std::mem::replace(&mut start, end + 1)..end)
}

/// The field that identifies an event.
#[derive(Deserialize)]
struct Probe<'a> {
    #[serde(borrow)]
    external_id: Option<&'a RawValue>,
}

impl Probe<'_> {
    /// Whether the engine accepts the value as an id: a number, or a text that is neither empty nor
    /// too long.
    fn is_id(&self) -> bool {
        let Some(value) = self.external_id.map(RawValue::get) else { return false };
        match value.as_bytes() {
            [b'"', ..] => serde_json::from_str::<String>(value).is_ok_and(|id| (1..=MAX_ID_BYTES).contains(&id.len())),
            [first, ..] => *first == b'-' || first.is_ascii_digit(),
            [] => false,
        }
    }
}

fn has_own_id(event: &[u8]) -> bool {
    serde_json::from_slice::<Probe<'_>>(event).is_ok_and(|probe| probe.is_id())
}

/// Writes the event, with this `external_id` if it has none. Writes other JSON unchanged; it is
/// refused later.
fn write_tagged(event: &[u8], external_id: &str, json: &mut Vec<u8>) {
    let Some(fields) = event.strip_prefix(b"{") else { return json.extend_from_slice(event) };
    match serde_json::from_slice::<Probe<'_>>(event) {
        Ok(Probe { external_id: None }) if !mentions_null_id(event) => {
            json.extend_from_slice(b"{\"external_id\":\"");
            json.extend_from_slice(external_id.as_bytes());
            json.extend_from_slice(if fields.trim_ascii_start().starts_with(b"}") { b"\"" } else { b"\"," });
            json.extend_from_slice(fields);
        }
        Ok(probe) if probe.is_id() => json.extend_from_slice(event),
        Ok(_) => write_replaced(event, external_id, json),
        Err(_) => json.extend_from_slice(event),
    }
}

/// Returns whether the event may have the key `external_id` with the value null, which means the
/// same as a missing key.
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
    use super::super::read_lines::ImportedPart;
    use super::*;

    fn block(text: &str) -> Block {
        let end = Place { offset: text.len() as u64, lines: text.lines().count() as u64 };
        Block { number: 0, bytes: text.as_bytes().to_vec(), start: Place::START, end, is_too_long: false }
    }

    fn ndjson(tags: Option<Tags>) -> Reading {
        Reading { format: Format::Ndjson, hostname: None, all: false, seen: ReadLines::default(), tags }
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
            (r#"{"external_id":true}"#, r#"{"external_id":"i:1"}"#),
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
    fn what_was_read_is_left_out_unless_it_has_an_id_or_was_refused() {
        let lines = ["{\"name\":\"a\"}", "{\"name\":\"b\",\"external_id\":\"x\"}", "{\"name\":\"c\"}", "{\"name\":\"d\"}"];
        let until = Place { offset: lines[..3].join("\n").len() as u64 + 1, lines: 3 };
        let mut reading = ndjson(None);
        reading.seen.add(&ImportedPart { from: Place::START, until, refused: vec![(3, 3)] });
        let events = reading.read(block(&lines.join("\n")));
        let read: Vec<u64> = events.spans.iter().map(|(_, line)| *line).collect();
        assert_eq!((read, events.seen), (vec![2, 3, 4], 1));
        assert_eq!(events.iter().next().unwrap(), lines[1].as_bytes());
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

//! What the same events become in the store, by the type of what is stored: another shape, or
//! another meaning, needs another version.

use std::collections::BTreeMap;
use std::hash::Hasher as _;

use headcount_domain::cells::StoredRows;
use headcount_domain::cells::packed::Packed;
use headcount_domain::company::CompanyKey;
use headcount_domain::records::NoSource;
use headcount_domain::records::Record;
use headcount_domain::{Event, KeyHasher, Project, RecordKey, RecordVisitor};
use serde::Serialize;
use siphasher::sip::SipHasher13;

use super::events::{SHAPES, at, of_company};
use super::pages_of;

/// What stands in the repository: each stored type, and the hash of what the events below become.
const KNOWN: &str = include_str!("stored_types.txt");

/// What was stored, by the line of its type that this begins with, and by key.
#[derive(Default)]
struct Stored(BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>>);

impl Stored {
    fn put<T: Serialize>(&mut self, kind: String, space: u8, key: &[u8], value: &T) {
        let bytes = headcount_storage::codec::encode(0, value).unwrap();
        self.0.entry(kind).or_default().insert([&[space], key].concat(), bytes);
    }

    /// The hash of everything of a type.
    fn hash(&self, kind: &str) -> u64 {
        let mut hasher = SipHasher13::new();
        for (key, value) in self.0.get(kind).unwrap_or_else(|| panic!("no event makes any: {kind}")) {
            [key, value].into_iter().for_each(|bytes| {
                hasher.write_usize(bytes.len());
                hasher.write(bytes);
            });
        }
        hasher.finish()
    }
}

impl RecordVisitor for Stored {
    fn visit<T: Record>(&mut self, key: RecordKey, record: &T) {
        let kind = || format!("record {} {}", T::SPACE, T::NAME);
        let bytes = |key: RecordKey| format!("{key:?}").into_bytes();
        self.put(kind(), T::SPACE, &bytes(key), record);
        record.dirty_pages(key, &mut |page, chunk| self.put(kind(), T::PAGE_SPACE, &bytes(page), chunk));
    }

    fn visit_part(&mut self, rows: StoredRows, number: u32, part: Option<&Packed>) {
        if let Some(part) = part {
            self.put(format!("rows {}", rows.tag), rows.tag, &number.to_be_bytes(), part);
        }
    }
}

/// Events that the shapes lack: links, e-mail addresses, and a company that reports its domain.
fn linked(number: u64) -> Event {
    let mut event = at((number * 60_000).cast_signed());
    event.who.user_id = (number % 3 == 2).then(|| format!("u{}", number % 7).into());
    event.who.anonymous_id = Some(format!("a{}", number % 11).into());
    if number.is_multiple_of(5) {
        event.details.email = Some(format!("p{}@mail.example", number % 13).into());
    }
    if number.is_multiple_of(17) {
        event = of_company(event, format!("Company {}", number % 4));
        event.name = "group".into();
        event.company_domain = CompanyKey::from_group_id(&format!("c{}.example", number % 4));
    }
    event
}

#[test]
fn what_is_stored_changes_with_its_version_only() {
    const EVENTS: u64 = 300;
    let (hasher, mut stored) = (KeyHasher::new([9; 16]), Stored::default());
    let shapes = SHAPES.iter().map(|shape| shape.event).chain([(|number, _| linked(number)) as fn(u64, u64) -> Event]);
    for (place, event) in shapes.enumerate() {
        let mut project = Project::new(pages_of(16));
        for number in 0..EVENTS {
            project.apply(&event(number, EVENTS), number + 1, &hasher, &NoSource).unwrap();
        }
        project.freeze();
        let mut of_shape = Stored::default();
        while project.drain_frozen(&mut of_shape) {}
        for (kind, values) in of_shape.0 {
            let values = values.into_iter().map(|(key, value)| ([vec![place as u8], key].concat(), value));
            stored.0.entry(kind).or_default().extend(values);
        }
    }
    let line = |name: String| {
        let kind = if name.starts_with("rows") { 2 } else { 3 };
        let kind = name.split(' ').take(kind).collect::<Vec<_>>().join(" ");
        format!("{name}: {:016x}\n", stored.hash(&kind))
    };
    let now: String = Project::stored_types().into_iter().map(line).collect();
    assert!(
        now == KNOWN,
        "what is stored differs from stored_types.txt. Raise the VERSION of each type whose hash is another one (a store of the former \
         version is rebuilt then), and make the file this:\n{now}"
    );
}

//! What rollups take in memory, and what a checkpoint writes of them, whatever one sender makes up.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is a failed test")]

use std::collections::BTreeMap;

use headcount_domain::acquisition::{Acquisition, Channel};
use headcount_domain::cells::StoredRows;
use headcount_domain::cells::packed::Packed;
use headcount_domain::company::CompanyKey;
use headcount_domain::intake::event::{Details, Money, SentIds};
use headcount_domain::limits::Limits;
use headcount_domain::records::NoSource;
use headcount_domain::records::Record;
use headcount_domain::{
    Amount, Cardinality, Currency, Day, Event, Instant, KeyHasher, Project, ProjectId, RecordKey, RecordVisitor,
};

const DAY_MS: i64 = 86_400_000;
const TODAY: i32 = 20_000;

/// An order of a new company from a new source, by a new user, and a view of a new page; of a new
/// team, every third time.
fn event(number: u32, day: i32) -> Event {
    let time = Instant(i64::from(day) * DAY_MS + i64::from(number) % DAY_MS);
    let amount = Amount::from_units(10);
    let money = Money { amount, currency: Currency::USD, in_project: Some(amount), in_organization: Some(amount), counted: true };
    let source = Acquisition {
        source: format!("source {number}").into(),
        medium: "cpc".into(),
        campaign: "(none)".into(),
        channel: Channel::PaidSearch,
    };
    let is_team = number.is_multiple_of(3);
    Event {
        project: ProjectId(1),
        time,
        received: time,
        day: Day(day),
        interactive: true,
        name: "pageview".into(),
        who: SentIds { user_id: Some(format!("user {number}").into()), ..SentIds::default() },
        external_id: None,
        money: Some(money),
        company: if is_team { None } else { CompanyKey::from_group_id(&format!("company {number}")) },
        company_domain: None,
        email_company: None,
        details: Details {
            url: Some(format!("https://shop.example/{number}").into()),
            group_type: Some(if is_team { "team" } else { "company" }.into()),
            group_id: Some(format!("group {number}").into()),
            acquisition: Some(source),
            ..Details::default()
        },
    }
}

fn hasher() -> KeyHasher {
    KeyHasher::new([9; 16])
}

/// The parts that a checkpoint writes.
#[derive(Default)]
struct Parts(BTreeMap<(u8, u32), Option<Packed>>);

impl RecordVisitor for Parts {
    fn visit<T: Record>(&mut self, _: RecordKey, _: &T) {}

    fn visit_part(&mut self, rows: StoredRows, number: u32, part: Option<&Packed>) {
        self.0.insert((rows.tag, number), part.cloned());
    }
}

fn checkpoint(project: &mut Project) -> Parts {
    let mut parts = Parts::default();
    project.freeze();
    while project.drain_frozen(&mut parts) {}
    project.mark_durable();
    parts
}

const EVENTS: u32 = 12_000;

/// Folds `EVENTS` events, on the days that `day` returns.
fn fold(day: fn(u32) -> i32) -> Project {
    let mut project = Project::default();
    for number in 0..EVENTS {
        project.apply(&event(number, day(number)), u64::from(number) + 1, &hasher(), &NoSource).unwrap();
    }
    project
}

#[test]
fn a_checkpoint_writes_what_changed_in_small_parts() {
    for day in [|_| TODAY, |number: u32| TODAY - i32::try_from(number % 400).unwrap()] {
        let mut project = fold(day);
        let all = checkpoint(&mut project);
        assert!(all.0.len() > 200, "{} parts", all.0.len());
        assert!(all.0.values().flatten().all(|part| part.bytes() <= 4096));
        assert!(checkpoint(&mut project).0.is_empty(), "nothing changed since");

        // Each row that an event changes is in one part; with a split, in two.
        project.apply(&event(EVENTS, day(EVENTS)), u64::from(EVENTS) + 1, &hasher(), &NoSource).unwrap();
        let some = checkpoint(&mut project);
        assert!(some.0.len() <= 40, "{} parts of {}", some.0.len(), all.0.len());

        let mut restored = Project::default();
        restored.dictionary.counts = project.dictionary.counts;
        let saved = all.0.into_iter().chain(some.0).collect::<BTreeMap<_, _>>();
        for ((tag, number), part) in saved {
            assert!(restored.restore_part(tag, number, part.unwrap()));
        }
        assert!(restored.rollups == project.rollups);
        assert_eq!(restored.cardinality(&hasher()), project.cardinality(&hasher()));
    }
}

#[test]
fn rollups_take_few_bytes_for_each_new_company_source_and_team() {
    for day in [|_| TODAY, |number: u32| TODAY - i32::try_from(number % 400).unwrap()] {
        let mut project = fold(day);
        let teams = EVENTS as usize / 3;
        // The medium and the campaign are sources, too.
        let sources = EVENTS as usize + 2;
        let expected = Cardinality { companies: EVENTS as usize - teams, groups: teams, sources, pages: EVENTS as usize };
        assert_eq!(project.cardinality(&hasher()), expected);
        let weight = project.rollups.weight();
        assert!((100_000..EVENTS as usize * 200).contains(&weight), "{} bytes an event", weight / EVENTS as usize);
        assert!(project.bytes().resident >= weight, "they are accounted for");
    }
}

/// Prints what a million rows take, and what changing them does. Run it in release with `--ignored
/// --nocapture`.
#[test]
#[ignore = "a measurement"]
fn memory_of_a_million() {
    use headcount_domain::contribution::Sign;
    use headcount_domain::facts::Touch;
    use headcount_domain::indexes::dictionary::TermId;
    use headcount_domain::rollups::{Rollups, Visits};

    let company = hasher().group_type("company");
    let measure = |name: &str, most: u32, each: &dyn Fn(&mut Rollups, u32)| {
        let (before, began) = (resident(), std::time::Instant::now());
        let mut rollups = Rollups::new(&Limits::DEFAULT);
        (0..most).for_each(|number| each(&mut rollups, number));
        let took = began.elapsed() / most;
        println!(
            "{name}: {} MiB resident, {} MiB by its own count, {took:?} each",
            (resident() - before) >> 20,
            rollups.weight() >> 20
        );
    };
    let active = |rollups: &mut Rollups, number: u32, day: i32| {
        let key = hasher().company(&number.to_string());
        let number = rollups.group_numbers.assign(company, key);
        rollups.group_activity.count(Day(day), company, number, 1, Sign::Plus);
    };
    measure("a million companies in a day", 1_000_000, &|rollups, number| active(rollups, number, TODAY));
    measure("a million companies, 1,000 days", 1_000_000, &|rollups, number| {
        active(rollups, number, TODAY - i32::try_from(number.wrapping_mul(0x9e37_79b1) % 1000).unwrap());
    });
    measure("100,000 sources in a day", 100_000, &|rollups, number| {
        let touch = Touch { source: TermId(number), medium: TermId(0), campaign: TermId(0) };
        rollups.traffic.change((TODAY, Channel::Referral, Some(touch)), |visits: &mut Visits| visits.sessions += 1);
    });
}

fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

proptest::proptest! {
    #[test]
    fn only_parts_decode(bytes in proptest::collection::vec(0..20u8, 0..60)) {
        let encoded = [&[9, u8::try_from(bytes.len()).unwrap()], &bytes[..]].concat();
        if let Ok(part) = headcount_storage::codec::decode::<Packed>(9, &encoded) {
            proptest::prop_assert_eq!(part.iter().count(), part.count());
            proptest::prop_assert_eq!(headcount_storage::codec::encode(9, &part).unwrap(), encoded);
        }
    }
}

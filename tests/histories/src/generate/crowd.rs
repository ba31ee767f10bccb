//! Crowds: many companies, groups and users with few events each, in up to eight projects. Their
//! lists are long, full of ties, and cut among ties.

use crate::history::History;
use crate::rng::Rng;
use crate::times::Times;
use headcount_model::served::company_id;
use headcount_model::{Json, Question};

const TITLES: [&str; 4] = ["Acme", "Umbrella", "acme", "Zeta"];
const LIMITS: [&str; 8] = ["1", "2", "3", "5", "8", "13", "20", "100"];
const RANGES: [&str; 8] = ["1", "2", "3", "8", "30", "31", "61", "365"];
const MOST_COMPANIES: usize = 40;

/// The number of companies, groups and users.
#[derive(Debug)]
pub(super) struct Crowd {
    companies: usize,
    groups: usize,
    users: usize,
    /// The percentage of `group` events that report a domain.
    linked: usize,
}

/// Returns a number below `bound`; small ones are more frequent, so that a few lead.
fn skewed(rng: &mut Rng, bound: usize) -> usize {
    let number = rng.below(bound);
    if rng.chance(40) { number.min(rng.below(bound)) } else { number }
}

/// Returns a group's key. Two of three share a prefix longer than the one that lists are sorted by.
fn team(number: usize) -> String {
    if number.is_multiple_of(3) { format!("t{number}") } else { format!("the team of the north {number}") }
}

impl Crowd {
    pub(super) fn new(rng: &mut Rng) -> Crowd {
        Crowd {
            companies: *rng.pick(&[6, 15, MOST_COMPANIES]),
            groups: *rng.pick(&[6, 15, 40]),
            users: *rng.pick(&[4, 12, 30]),
            linked: *rng.pick(&[0, 30, 80]),
        }
    }

    /// Returns a key of a company: half of them are domains from the start, the others may be
    /// linked to one.
    fn company(&self, rng: &mut Rng) -> String {
        let number = skewed(rng, self.companies);
        if number.is_multiple_of(2) { format!("c{number}.example") } else { format!("acct_{number}") }
    }

    /// Generates the next event.
    pub(super) fn next(&self, rng: &mut Rng, times: &mut Times) -> String {
        let user = format!("u{}", skewed(rng, self.users));
        let mut fields = Vec::new();
        let mut text = |name: &str, value: &str| fields.push((name.to_owned(), Json::from(value)));
        let knows = rng.below(10);
        if knows < 7 {
            text("user_id", &user);
        }
        if knows >= 5 {
            text("anonymous_id", &format!("a{}", rng.below(self.users)));
        }
        let kind = rng.below(100);
        match kind {
            0..10 => text("name", "identify"),
            10..25 => text("name", "group"),
            _ => text("name", rng.word(&["pageview", "pageview", "order"])),
        }
        match kind {
            0..10 => {}
            10..20 | 25..65 => text("group_id", &self.company(rng)),
            20..25 | 65..85 => {
                text("group_type", "team");
                text("group_id", &team(skewed(rng, self.groups)));
            }
            _ => {}
        }
        if rng.chance(3) {
            text("pc", "");
        }
        let traits = self.traits(rng, kind, &user);
        if !traits.is_empty() {
            let traits = traits.into_iter().map(|(name, value)| (name.to_owned(), value));
            fields.push(("metadata".to_owned(), Json::Object(traits.collect())));
        }
        if kind >= 25 && rng.chance(15) {
            fields.push(("value".to_owned(), Json::parse(rng.word(&["10", "2.50", "-5"])).expect("a number")));
        }
        let at_ms = times.fresh(rng);
        fields.push(("timestamp".to_owned(), Json::parse(&Times::spelled(rng, at_ms)).expect("an instant")));
        Json::Object(fields.into_iter().collect()).to_string()
    }

    fn traits(&self, rng: &mut Rng, kind: usize, user: &str) -> Vec<(&'static str, Json)> {
        let mut traits = Vec::new();
        if kind < 10 {
            let host = if rng.chance(80) { format!("c{}.example", rng.below(self.companies)) } else { "gmail.com".to_owned() };
            // Some share an address, under which lists name them.
            let user = if rng.chance(30) { "team" } else { user };
            traits.push(("email", Json::from(format!("{user}@{host}").as_str())));
        } else if kind < 25 {
            if rng.chance(60) {
                traits.push(("name", Json::from(rng.word(&TITLES))));
            }
            if rng.chance(self.linked) {
                traits.push(("domain", Json::from(format!("c{}.example", rng.below(self.companies)).as_str())));
            }
        }
        traits
    }
}

/// Generates a question about a crowd, usually a list.
pub(crate) fn question(rng: &mut Rng) -> Question {
    // Events of the first few are most frequent.
    let most = *rng.pick(&[4, 4, 8, MOST_COMPANIES]);
    let number = rng.below(most);
    let key = if number.is_multiple_of(2) { format!("c{number}.example") } else { format!("acct_{number}") };
    let about = |rest: &str| format!("/companies/{{{}}}/{rest}", company_id(&key));
    let limit = rng.word(&LIMITS).to_owned();
    let (path, own) = match rng.below(10) {
        0..3 => ("/companies/top".to_owned(), vec![("limit", limit)]),
        3..5 => ("/groups/top".to_owned(), vec![("group_type", "team".to_owned()), ("limit", limit)]),
        5..8 => (about("top-users"), vec![("limit", limit)]),
        8 => (about("metrics"), vec![]),
        _ => {
            let key = team(rng.below(8));
            ("/groups/metrics".to_owned(), vec![("group_type", "team".to_owned()), ("group_key", key)])
        }
    };
    let mut question = Question::get(&path, &[]);
    question.query.extend(own.into_iter().map(|(name, value)| (name.to_owned(), value)));
    if rng.chance(80) {
        question.query.push(("range_days".to_owned(), rng.word(&RANGES).to_owned()));
    }
    question
}

/// Returns the top lists of a whole year, cut at every second position.
pub(crate) fn closing() -> Vec<Question> {
    let of_limit = |limit: &&str| {
        let query = [("range_days", "365"), ("limit", *limit)];
        let groups = [("group_type", "team"), ("range_days", "365"), ("limit", *limit)];
        let users = |key| Question::get(&format!("/companies/{{{}}}/top-users", company_id(key)), &query);
        let [best, next] = ["c0.example", "c2.example"].map(users);
        [Question::get("/companies/top", &query), Question::get("/groups/top", &groups), best, next]
    };
    LIMITS.iter().flat_map(of_limit).collect()
}

/// Whether a history is one of a crowd, as every fifth is.
pub(crate) fn is_crowd(history: &History) -> bool {
    !history.live && of_seed(history.seed)
}

pub(super) fn of_seed(seed: u64) -> bool {
    seed % 5 == 2
}

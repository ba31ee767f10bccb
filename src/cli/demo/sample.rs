//! Sample events: sixty days of a small software company's site, the same for the same seed and end.
//!
//! Visitors arrive from a source and view pages. Some sign up, which links their anonymous id; some of those pay in one of three
//! currencies, and a few get a refund.

use headcount_actors::ingest::{Field, NewEvent};
use headcount_domain::intake::submission::Invalid;
use headcount_domain::time::MS_PER_DAY;

/// The number of days that the events cover.
pub(crate) const DAYS: u64 = 60;
/// The number of visitors.
const VISITORS: u64 = 4_500;
const DAY_MS: u64 = MS_PER_DAY.unsigned_abs();
const SITE: &str = "https://www.acme-demo.com";

const AGENTS: [&str; 6] = [
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Safari/605.1.15",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1",
    "Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Mobile Safari/537.36",
    "Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36 Edg/141.0.0.0",
];
const SCREENS: [&str; 6] = ["1920x1080", "1728x1117", "393x852", "412x915", "2560x1440", "1536x864"];
const LANGUAGES: [&str; 6] = ["en-US", "en-GB", "de-DE", "fr-FR", "es-ES", "ja-JP"];
/// Sources of visits: query of the landing page, referrer, and percentage.
const SOURCES: [(&str, &str, u64); 9] = [
    ("", "", 30),
    ("", "https://www.google.com/", 26),
    ("?utm_source=google&utm_medium=cpc&utm_campaign=autumn-sale", "https://www.google.com/", 10),
    ("?utm_source=newsletter&utm_medium=email&utm_campaign=october-news", "", 9),
    ("", "https://news.ycombinator.com/", 6),
    ("?utm_source=linkedin&utm_medium=social&utm_campaign=launch", "https://www.linkedin.com/", 6),
    ("", "https://github.com/", 5),
    ("", "https://chatgpt.com/", 4),
    ("?ref=partner-blog", "https://blog.partner.example/", 4),
];
const PAGES: [&str; 9] =
    ["/", "/pricing", "/docs", "/docs/start", "/docs/api", "/blog", "/blog/why-we-count", "/customers", "/about"];
const FEATURES: [&str; 5] = ["report", "export", "invite", "dashboard", "search"];
const COMPANIES: [&str; 12] = [
    "northwind.com",
    "contoso.com",
    "fabrikam.com",
    "initech.com",
    "hooli.com",
    "globex.com",
    "umbrella.co",
    "stark.io",
    "wonka.com",
    "tyrell.ai",
    "cyberdyne.io",
    "soylent.co",
];
const NAMES: [&str; 16] = [
    "ada", "grace", "alan", "edsger", "barbara", "donald", "margaret", "dennis", "frances", "ken", "radia", "linus", "hedy",
    "john", "annie", "tim",
];
const PLANS: [(&str, &str); 3] = [("starter", "29.00"), ("team", "99.00"), ("business", "349.00")];
const CURRENCIES: [&str; 4] = ["USD", "USD", "EUR", "GBP"];

/// Random choices for sample data.
#[derive(Debug, Clone)]
pub(crate) struct Dice(fastrand::Rng);

impl Dice {
    /// Creates dice that repeat for the same seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    /// Returns a number less than `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        self.0.u64(..bound.max(1))
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.0.usize(..from.len())]
    }

    /// Picks one, the first ones more often than the last.
    fn pick_early<T: Copy>(&mut self, from: &[T]) -> T {
        let bound = self.0.usize(..from.len());
        from[self.0.usize(..=bound)]
    }
}

/// A visitor of the site.
struct Visitor {
    number: u64,
    agent: &'static str,
    screen: &'static str,
    language: &'static str,
    user_id: Option<String>,
}

impl Visitor {
    fn new(number: u64, dice: &mut Dice) -> Self {
        let device = dice.0.usize(..AGENTS.len());
        Self { number, agent: AGENTS[device], screen: SCREENS[device], language: dice.pick_early(&LANGUAGES), user_id: None }
    }

    fn event(&self, name: &str, at_ms: u64) -> NewEvent {
        let event = NewEvent::new(name)
            .anonymous(format!("visitor-{:06}", self.number))
            .with(Field::UserAgent, self.agent)
            .with(Field::Screen, self.screen)
            .with(Field::Language, self.language)
            .at_ms(i64::try_from(at_ms).unwrap_or(i64::MAX));
        match &self.user_id {
            Some(user_id) => event.user(user_id),
            None => event,
        }
    }
}

/// Events up to `now_ms`. Later ones have not happened yet.
struct Timeline {
    events: Vec<(u64, NewEvent)>,
    now_ms: u64,
}

impl Timeline {
    fn add(&mut self, at_ms: u64, event: NewEvent) {
        if at_ms < self.now_ms {
            self.events.push((at_ms, event));
        }
    }
}

/// Returns the events of the sixty days before `now_ms`, in order of time.
pub(crate) fn history(seed: u64, now_ms: u64) -> Result<Vec<NewEvent>, Invalid> {
    let mut dice = Dice::new(seed);
    let mut timeline = Timeline { events: Vec::new(), now_ms };
    for number in 0..VISITORS {
        // More visitors in recent weeks: the company grows.
        let age_ms = dice.below(DAYS * DAY_MS).min(dice.below(DAYS * DAY_MS + DAY_MS * 10));
        let mut visitor = Visitor::new(number, &mut dice);
        let mut at_ms = working_hours(now_ms - age_ms, &mut dice);
        let visits = 1 + dice.below(5).min(dice.below(5));
        for visit in 0..visits {
            at_ms = visit_site(&mut timeline, &mut visitor, visit, at_ms, &mut dice)?;
            at_ms = working_hours(at_ms + DAY_MS * (1 + dice.below(9)), &mut dice);
        }
    }
    timeline.events.sort_by_key(|(at_ms, _)| *at_ms);
    Ok(timeline.events.into_iter().map(|(_, event)| event).collect())
}

/// Moves a time into working hours, in most cases.
fn working_hours(at_ms: u64, dice: &mut Dice) -> u64 {
    let hour = if dice.chance(85) { 7 + dice.below(14) } else { dice.below(24) };
    at_ms - at_ms % DAY_MS + hour * 3_600_000 + dice.below(3_600_000)
}

fn visit_site(
    timeline: &mut Timeline,
    visitor: &mut Visitor,
    visit: u64,
    began_ms: u64,
    dice: &mut Dice,
) -> Result<u64, Invalid> {
    let mut at_ms = began_ms;
    let (query, referrer) = source(dice);
    for page in 0..1 + dice.below(6).min(dice.below(7)) {
        let path = if page == 0 { dice.pick_early(&PAGES[..4]) } else { dice.pick(&PAGES) };
        let query = if page == 0 { query } else { "" };
        let mut event = visitor.event("pageview", at_ms).with(Field::Url, format!("{SITE}{path}{query}"));
        if page == 0 && !referrer.is_empty() {
            event = event.with(Field::Referrer, referrer);
        }
        timeline.add(at_ms, event);
        at_ms += 4_000 + dice.below(90_000);
    }
    if visitor.user_id.is_none() && dice.chance(if visit == 0 { 9 } else { 14 }) {
        at_ms = sign_up(timeline, visitor, at_ms, dice)?;
    }
    if visitor.user_id.is_some() {
        for _ in 0..dice.below(4) {
            let feature = dice.pick_early(&FEATURES);
            let metadata = serde_json::json!({ "feature": feature, "seconds": dice.below(90) });
            timeline.add(at_ms, visitor.event("feature_used", at_ms).metadata(&metadata)?);
            at_ms += 5_000 + dice.below(60_000);
        }
        if dice.chance(30) {
            pay(timeline, visitor, visit, at_ms, dice)?;
        }
    }
    Ok(at_ms)
}

fn source(dice: &mut Dice) -> (&'static str, &'static str) {
    let mut ticket = dice.below(100);
    for (query, referrer, share) in SOURCES {
        if ticket < share {
            return (query, referrer);
        }
        ticket -= share;
    }
    ("", "")
}

fn sign_up(timeline: &mut Timeline, visitor: &mut Visitor, at_ms: u64, dice: &mut Dice) -> Result<u64, Invalid> {
    let name = dice.pick(&NAMES);
    let domain = if dice.chance(70) { dice.pick_early(&COMPANIES) } else { "gmail.com" };
    visitor.user_id = Some(format!("user-{:05}", visitor.number));
    let traits = serde_json::json!({ "email": format!("{name}.{}@{domain}", visitor.number), "name": name });
    timeline.add(at_ms, visitor.event("identify", at_ms).metadata(&traits)?);
    let event = visitor.event("signup", at_ms + 1).with(Field::Url, format!("{SITE}/signup"));
    timeline.add(at_ms + 1, event);
    Ok(at_ms + 30_000)
}

fn pay(timeline: &mut Timeline, visitor: &Visitor, visit: u64, at_ms: u64, dice: &mut Dice) -> Result<(), Invalid> {
    let (plan, price) = dice.pick_early(&PLANS);
    let currency = dice.pick(&CURRENCIES);
    let order = format!("order-{}-{visit}", visitor.number);
    let metadata = serde_json::json!({ "plan": plan, "order": order });
    let money = |name: &str, at_ms, amount: &str| -> Result<NewEvent, Invalid> {
        visitor.event(name, at_ms).with(Field::Currency, currency).value(amount)?.metadata(&metadata)
    };
    timeline.add(at_ms, money("purchase", at_ms, price)?.external_id(order.as_str()));
    if dice.chance(6) {
        let later_ms = at_ms + DAY_MS * (1 + dice.below(6));
        timeline.add(later_ms, money("refund", later_ms, &format!("-{price}"))?.external_id(format!("{order}-refund")));
    }
    Ok(())
}

/// Returns one or a few events of a visitor who is on the site now.
pub(crate) fn live(dice: &mut Dice, now_ms: u64) -> Result<Vec<NewEvent>, Invalid> {
    let mut visitor = Visitor::new(VISITORS + dice.below(200), dice);
    let mut timeline = Timeline { events: Vec::new(), now_ms: u64::MAX };
    let (query, referrer) = source(dice);
    let path = dice.pick(&PAGES);
    let page = visitor.event("pageview", now_ms).with(Field::Url, format!("{SITE}{path}{query}"));
    timeline.add(now_ms, if referrer.is_empty() { page } else { page.with(Field::Referrer, referrer) });
    if dice.chance(4) {
        sign_up(&mut timeline, &mut visitor, now_ms, dice)?;
        if dice.chance(40) {
            pay(&mut timeline, &visitor, now_ms, now_ms + 2, dice)?;
        }
    }
    // A refund in a week has not happened yet.
    let happened = timeline.events.into_iter().filter(|(at_ms, _)| *at_ms <= now_ms + 10);
    Ok(happened.map(|(_, event)| event).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_yields_the_same_events() {
        const NOW: u64 = 1_795_000_000_000;
        let (one, two) = (history(7, NOW).unwrap(), history(7, NOW).unwrap());
        assert!((20_000..50_000).contains(&one.len()), "{}", one.len());
        assert_eq!(format!("{one:?}"), format!("{two:?}"));
        assert_eq!(SOURCES.iter().map(|(_, _, share)| share).sum::<u64>(), 100);
        let mut dice = Dice::new(1);
        assert!((0..500).all(|_| !live(&mut dice, NOW).unwrap().is_empty()));
    }
}

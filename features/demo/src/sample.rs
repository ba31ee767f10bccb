//! Sample events: sixty days of a small software company's site. The same seed and end give the
//! same events.
//!
//! Visitors arrive from a source and view pages. Some sign up, which links their anonymous id, and
//! come back to use the product in a workspace of their company; some of those pay in one of three
//! currencies, and a few get a refund. One day, the product was launched.

use headcount_actors::ingest::{Field, NewEvent};
use headcount_domain::intake::country::Country;
use headcount_domain::intake::submission::Invalid;
use headcount_domain::time::MS_PER_DAY;

/// The number of days that the events cover.
pub(crate) const DAYS: u64 = 60;
/// The number of visitors.
const VISITORS: u64 = 4_300;
/// The additional visitors of the launch, and how many days ago it was.
const LAUNCH_VISITORS: u64 = 620;
const LAUNCH_DAYS_AGO: u64 = 16;
/// The number of visitors on the site at the same time.
const LIVE_VISITORS: u64 = 48;
/// How long the site had live visitors before the demo began.
const RECENT_MS: u64 = 45 * 60_000;
/// The number of days at the beginning whose events were not recorded.
const UNRECORDED_DAYS: u64 = 14;
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
/// The countries of visitors: country, language and percentage.
const COUNTRIES: [(&str, &str, u64); 11] = [
    ("US", "en-US", 34),
    ("GB", "en-GB", 13),
    ("DE", "de-DE", 12),
    ("FR", "fr-FR", 8),
    ("IN", "en-IN", 8),
    ("CA", "en-CA", 6),
    ("ES", "es-ES", 5),
    ("NL", "nl-NL", 5),
    ("JP", "ja-JP", 4),
    ("CH", "de-CH", 3),
    ("BR", "pt-BR", 2),
];
const CRAWLER: &str = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";
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
/// Sources of visits for the launch.
const LAUNCH_SOURCES: [(&str, &str, u64); 4] = [
    ("", "https://news.ycombinator.com/", 58),
    ("?utm_source=producthunt&utm_medium=social&utm_campaign=launch", "https://www.producthunt.com/", 22),
    ("?utm_source=linkedin&utm_medium=social&utm_campaign=launch", "https://www.linkedin.com/", 12),
    ("", "", 8),
];
const PAGES: [&str; 9] =
    ["/", "/pricing", "/docs", "/docs/start", "/docs/api", "/blog", "/blog/why-we-count", "/customers", "/about"];
const FEATURES: [&str; 5] = ["report", "export", "invite", "dashboard", "search"];
const COMPANIES: [(&str, &str); 12] = [
    ("northwind.com", "Northwind Traders"),
    ("contoso.com", "Contoso"),
    ("fabrikam.com", "Fabrikam"),
    ("initech.com", "Initech"),
    ("hooli.com", "Hooli"),
    ("globex.com", "Globex Corporation"),
    ("umbrella.co", "Umbrella"),
    ("stark.io", "Stark Industries"),
    ("wonka.com", "Wonka"),
    ("tyrell.ai", "Tyrell"),
    ("cyberdyne.io", "Cyberdyne Systems"),
    ("soylent.co", "Soylent"),
];
const TEAMS: [&str; 3] = ["product", "growth", "support"];
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

    /// Picks by percentage.
    fn share(&mut self, from: &[(&'static str, &'static str, u64)]) -> (&'static str, &'static str) {
        let mut ticket = self.below(100);
        for (one, other, share) in from {
            if ticket < *share {
                return (one, other);
            }
            ticket -= share;
        }
        ("", "")
    }

    /// Picks an item, earlier items more often than later ones.
    fn pick_early<T: Copy>(&mut self, from: &[T]) -> T {
        let bound = self.0.usize(..from.len());
        from[self.0.usize(..=bound)]
    }
}

type Sources = [(&'static str, &'static str, u64)];

/// A visitor of the site.
struct Visitor {
    number: u64,
    agent: &'static str,
    screen: &'static str,
    language: &'static str,
    country: Option<Country>,
    user_id: Option<String>,
    /// The domain and name of the company, and the team.
    company: Option<(&'static str, &'static str, &'static str)>,
}

impl Visitor {
    fn new(number: u64, dice: &mut Dice) -> Self {
        let device = dice.0.usize(..AGENTS.len());
        let (country, language) = dice.share(&COUNTRIES);
        Self {
            number,
            agent: AGENTS[device],
            screen: SCREENS[device],
            language,
            country: Country::parse(country),
            user_id: None,
            company: None,
        }
    }

    fn event(&self, name: &str, at_ms: u64) -> NewEvent {
        let event = NewEvent::new(name)
            .anonymous(format!("visitor-{:06}", self.number))
            .with(Field::UserAgent, self.agent)
            .with(Field::Screen, self.screen)
            .with(Field::Language, self.language)
            .at_ms(i64::try_from(at_ms).unwrap_or(i64::MAX));
        let event = match self.country {
            Some(country) => event.country(country),
            None => event,
        };
        match &self.user_id {
            Some(user_id) => event.user(user_id),
            None => event,
        }
    }

    /// An event in the workspace of the visitor's team.
    fn work(&self, name: &str, at_ms: u64) -> NewEvent {
        let event = self.event(name, at_ms);
        match self.company {
            Some((_, company, team)) => event.with(Field::GroupType, "workspace").with(Field::GroupId, workspace(company, team)),
            None => event,
        }
    }
}

fn workspace(company: &str, team: &str) -> String {
    format!("{}-{team}", company.split(' ').next().unwrap_or_default().to_lowercase())
}

/// Collects events from `from_ms` to `now_ms`. Events before were not recorded, and events after
/// have not happened yet.
struct Timeline {
    events: Vec<(u64, NewEvent)>,
    from_ms: u64,
    now_ms: u64,
}

impl Timeline {
    fn add(&mut self, at_ms: u64, event: NewEvent) {
        if (self.from_ms..self.now_ms).contains(&at_ms) {
            self.events.push((at_ms, event));
        }
    }
}

/// Returns the events of the sixty days before `now_ms`, in order of time.
pub(crate) fn history(seed: u64, now_ms: u64) -> Result<Vec<NewEvent>, Invalid> {
    let mut dice = Dice::new(seed);
    let mut timeline = Timeline { events: Vec::new(), from_ms: now_ms - DAYS * DAY_MS, now_ms };
    let earliest_ms = (DAYS + UNRECORDED_DAYS) * DAY_MS;
    for number in 0..VISITORS {
        // More visitors in recent weeks: the company grows.
        let age_ms = if dice.chance(40) { dice.below(earliest_ms).min(dice.below(earliest_ms)) } else { dice.below(earliest_ms) };
        come(&mut timeline, number, now_ms - age_ms, &SOURCES, &mut dice)?;
    }
    for number in 0..LAUNCH_VISITORS {
        let late_days = dice.below(4).min(dice.below(4)).min(dice.below(3));
        let at_ms = now_ms - (LAUNCH_DAYS_AGO - late_days) * DAY_MS;
        come(&mut timeline, VISITORS + number, at_ms, &LAUNCH_SOURCES, &mut dice)?;
    }
    add_left_out(&mut timeline, &mut dice);
    let mut at_ms = now_ms - RECENT_MS;
    while at_ms < now_ms {
        timeline.events.extend(live(&mut dice, at_ms)?.into_iter().map(|event| (at_ms, event)));
        at_ms += 1_000 + dice.below(5_000);
    }
    timeline.events.sort_by_key(|(at_ms, _)| *at_ms);
    Ok(timeline.events.into_iter().map(|(_, event)| event).collect())
}

/// Adds a visitor, who comes for the first time on the day of `at_ms`.
fn come(timeline: &mut Timeline, number: u64, at_ms: u64, sources: &Sources, dice: &mut Dice) -> Result<(), Invalid> {
    let mut visitor = Visitor::new(number, dice);
    let mut at_ms = working_hours(at_ms, dice);
    let mut visits = 1 + dice.below(5).min(dice.below(5));
    let mut visit = 0;
    while visit < visits {
        let was_known = visitor.user_id.is_some();
        at_ms = visit_site(timeline, &mut visitor, visit, at_ms, if visit == 0 { sources } else { &SOURCES }, dice)?;
        if visitor.user_id.is_some() && !was_known {
            // People who sign up use the product for a while.
            visits += dice.below(14);
        }
        at_ms = working_hours(at_ms + DAY_MS * (1 + dice.below(9)), dice);
        visit += 1;
    }
    Ok(())
}

/// Adds events with special rules: crawlers, events that were sent twice, and visitors without
/// consent.
fn add_left_out(timeline: &mut Timeline, dice: &mut Dice) {
    let at_ms = |dice: &mut Dice, timeline: &Timeline| timeline.now_ms - 1 - dice.below(DAYS * DAY_MS);
    let page = |at_ms: u64, path: &str| {
        let at_ms = i64::try_from(at_ms).unwrap_or(i64::MAX);
        NewEvent::new("pageview").with(Field::Url, format!("{SITE}{path}")).at_ms(at_ms)
    };
    for _ in 0..180 {
        let (time, path) = (at_ms(dice, timeline), dice.pick(&PAGES));
        timeline.add(time, page(time, path).with(Field::UserAgent, CRAWLER));
    }
    for _ in 0..240 {
        let (time, path) = (at_ms(dice, timeline), dice.pick(&PAGES));
        timeline.add(time, page(time, path).with(Field::PrivacyCategories, "necessary"));
    }
    for number in 0..35 {
        let time = at_ms(dice, timeline);
        for _ in 0..2 {
            timeline.add(time, page(time, "/pricing").external_id(format!("retried-{number}")));
        }
    }
}

/// Moves a time into working hours and from weekends to weekdays, in most cases.
fn working_hours(at_ms: u64, dice: &mut Dice) -> u64 {
    let hour = if dice.chance(85) { 7 + dice.below(14) } else { dice.below(24) };
    let day = at_ms / DAY_MS;
    // The first day of 1970 was a Thursday.
    let day = match (day + 4) % 7 {
        0 if dice.chance(50) => day + 1,
        6 if dice.chance(50) => day - 1,
        _ => day,
    };
    day * DAY_MS + hour * 3_600_000 + dice.below(3_600_000)
}

fn visit_site(
    timeline: &mut Timeline,
    visitor: &mut Visitor,
    visit: u64,
    began_ms: u64,
    sources: &Sources,
    dice: &mut Dice,
) -> Result<u64, Invalid> {
    let mut at_ms = began_ms;
    let (query, referrer) = dice.share(sources);
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
            timeline.add(at_ms, visitor.work("feature_used", at_ms).metadata(&metadata)?);
            at_ms += 5_000 + dice.below(60_000);
        }
        if dice.chance(30) {
            pay(timeline, visitor, visit, at_ms, dice)?;
        }
    }
    Ok(at_ms)
}

fn sign_up(timeline: &mut Timeline, visitor: &mut Visitor, at_ms: u64, dice: &mut Dice) -> Result<u64, Invalid> {
    let name = dice.pick(&NAMES);
    let company = dice.chance(70).then(|| dice.pick_early(&COMPANIES));
    let domain = company.map_or("gmail.com", |(domain, _)| domain);
    visitor.company = company.map(|(domain, company)| (domain, company, dice.pick_early(&TEAMS)));
    visitor.user_id = Some(format!("user-{:05}", visitor.number));
    let email = format!("{name}.{}@{domain}", visitor.number);
    let traits = serde_json::json!({ "email": email, "name": name });
    timeline.add(at_ms, visitor.event("identify", at_ms).metadata(&traits)?);
    let event = visitor.event("signup", at_ms + 1).with(Field::Url, format!("{SITE}/signup"));
    let event = event.with(Field::Message, format!("{email} signed up")).with(Field::Channel, "growth").notify();
    timeline.add(at_ms + 1, event);
    if let Some((domain, company, team)) = visitor.company {
        let traits = serde_json::json!({ "name": company, "domain": domain });
        let event = visitor.event("group", at_ms + 2).with(Field::GroupType, "company").with(Field::GroupId, domain);
        timeline.add(at_ms + 2, event.metadata(&traits)?);
        let traits = serde_json::json!({ "name": format!("{company}: {team}") });
        timeline.add(at_ms + 3, visitor.work("group", at_ms + 3).metadata(&traits)?);
    }
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
    let purchase = money("purchase", at_ms, price)?.external_id(order.as_str());
    let purchase = purchase.with(Field::Message, format!("{plan} for {price} {currency}")).with(Field::Channel, "sales");
    timeline.add(at_ms, purchase.notify());
    if dice.chance(6) {
        let later_ms = at_ms + DAY_MS * (1 + dice.below(6));
        timeline.add(later_ms, money("refund", later_ms, &format!("-{price}"))?.external_id(format!("{order}-refund")));
    }
    Ok(())
}

/// Returns one or a few events of a visitor who is on the site now.
pub(crate) fn live(dice: &mut Dice, now_ms: u64) -> Result<Vec<NewEvent>, Invalid> {
    // The same visitor has the same agent and country.
    let number = VISITORS + LAUNCH_VISITORS + dice.below(LIVE_VISITORS);
    let mut visitor = Visitor::new(number, &mut Dice::new(number));
    let mut timeline = Timeline { events: Vec::new(), from_ms: 0, now_ms: u64::MAX };
    let (query, referrer) = dice.share(&SOURCES);
    let path = dice.pick(&PAGES);
    let page = visitor.event("pageview", now_ms).with(Field::Url, format!("{SITE}{path}{query}"));
    timeline.add(now_ms, if referrer.is_empty() { page } else { page.with(Field::Referrer, referrer) });
    if dice.chance(6) {
        visitor.number += dice.below(1_000) * LIVE_VISITORS;
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
        for shares in [&SOURCES[..], &LAUNCH_SOURCES, &COUNTRIES] {
            assert_eq!(shares.iter().map(|(_, _, share)| share).sum::<u64>(), 100);
        }
        let mut dice = Dice::new(1);
        assert!((0..500).all(|_| !live(&mut dice, NOW).unwrap().is_empty()));
    }
}

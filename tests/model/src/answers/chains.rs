//! The chains of a funnel: the events that took an entity from step to step.

use super::fields::Chosen;
use super::params::Params;
use super::{Asked, Wrong, account_or_identity};
use crate::decimal::Decimal;
use crate::facts::Account;
use crate::json::Json;
use crate::time::{Window, day_of};
use chrono::{Days, NaiveDate, NaiveTime};
use chrono_tz::Tz;
use std::collections::{BTreeMap, BTreeSet};

const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 24 * 60 * MINUTE_MS;

/// A step: its name, and the events that fit it.
struct Step {
    name: String,
    events: Chosen,
}

/// How long after the start of a chain its other steps may lie.
enum Within {
    Time(i64),
    Session,
}

/// What a funnel is asked of.
pub(super) struct Funnel {
    chosen: Chosen,
    steps: Vec<Step>,
    within: Within,
    order: &'static str,
    level: &'static str,
}

/// The events of a chain, by step.
pub(super) type Chain = Vec<usize>;

impl Step {
    fn read(json: &Json) -> Result<Step, Wrong> {
        let mut params = Params::of_part(json, "steps")?;
        let name = params.text("name")?;
        if name.as_ref().is_some_and(|name| name.chars().count() > 200) {
            return Err(Wrong::param("name"));
        }
        let goal = params.take("goal");
        let of_goal = goal.as_ref().map(|goal| goal.field("name").text().expect("a goal with a name").to_owned());
        let kinds = [params.text("event_name")?, params.pattern("page")?, of_goal];
        let _filters = params.take("filters");
        params.done()?;
        let mut kinds = kinds.into_iter().flatten();
        match (kinds.next(), kinds.next()) {
            (Some(kind), None) => Ok(Step { name: name.unwrap_or(kind), events: Chosen::of_events(json) }),
            _ => Err(Wrong::param("steps")),
        }
    }
}

impl Within {
    fn read(given: Option<Json>) -> Result<Within, Wrong> {
        let wrong = || Wrong::param("within");
        let fields = match given {
            None => return Ok(Within::Time(7 * DAY_MS)),
            Some(Json::Text(text)) if text == "session" => return Ok(Within::Session),
            Some(Json::Object(fields)) if fields.len() == 1 => fields,
            Some(_) => return Err(wrong()),
        };
        let (unit, count) = fields.into_iter().next().expect("one field");
        let unit_ms = match unit.as_str() {
            "minutes" => MINUTE_MS,
            "hours" => 60 * MINUTE_MS,
            "days" => DAY_MS,
            _ => return Err(wrong()),
        };
        let count = count.number().and_then(Decimal::whole).and_then(|count| i64::try_from(count).ok());
        let time_ms = count.filter(|count| (1..=90 * DAY_MS / unit_ms).contains(count)).ok_or_else(wrong)? * unit_ms;
        Ok(Within::Time(time_ms))
    }
}

impl Funnel {
    pub(super) fn of(params: &mut Params) -> Result<Funnel, Wrong> {
        params.refuse(&["event_name"])?;
        let chosen = Chosen::of(params)?;
        let steps = params.take("steps").ok_or_else(|| Wrong::param("steps"))?;
        let steps = steps.items().iter().map(Step::read).collect::<Result<Vec<_>, _>>()?;
        if !(2..=12).contains(&steps.len()) {
            return Err(Wrong::param("steps"));
        }
        let within = Within::read(params.take("within"))?;
        let order = params.word("order", &["loose", "strict", "any"])?;
        let level = params.word("level", &["identity", "account"])?;
        Ok(Funnel { chosen, steps, within, order, level })
    }

    /// The names of the steps.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().map(|step| step.name.as_str())
    }

    /// The chain of each entity that entered: of its longest ones, the first to be that long.
    pub(super) fn chains(&self, asked: &Asked<'_>, project: &str, window: Window) -> BTreeMap<Account, Chain> {
        let mut found: BTreeMap<Account, Vec<Chain>> = BTreeMap::new();
        for (entity, sequence) in self.sequences(asked, project, window) {
            let chains = match self.order {
                "loose" => self.loose(asked, window, &sequence),
                "strict" => self.strict(asked, window, &sequence),
                _ => self.any(asked, window, &sequence),
            };
            found.entry(entity).or_default().extend(chains);
        }
        let moment = |index: Option<&usize>| index.map(|&index| asked.facts.moment(index));
        let first = |chains: Vec<Chain>| {
            let depth = chains.iter().map(Vec::len).max()?;
            let longest = chains.into_iter().filter(|chain| chain.len() == depth);
            longest.min_by_key(|chain| (moment(chain.last()), moment(chain.first())))
        };
        found.into_iter().filter_map(|(entity, chains)| Some((entity, first(chains)?))).collect()
    }

    /// The events among which chains are looked for, in order, with their entity: all of an entity,
    /// or those of each session.
    fn sequences(&self, asked: &Asked<'_>, project: &str, window: Window) -> Vec<(Account, Vec<usize>)> {
        let end_ms = last_ms(asked.timezone, window.last);
        let is_in_time = |index: usize| {
            let day = asked.day(index);
            let is_later = match self.within {
                Within::Time(time_ms) => asked.facts.events[index].at_ms <= end_ms + time_ms,
                Within::Session => true,
            };
            day >= window.first && (day <= window.last || is_later)
        };
        let mut sequences: BTreeMap<(Account, Option<usize>), Vec<usize>> = BTreeMap::new();
        for index in asked.facts.of_project(project).filter(|&index| is_in_time(index)) {
            let is_left_out = self.order == "strict" && !asked.facts.events[index].interactive;
            if asked.facts.identities[index].is_none() || is_left_out || !self.chosen.chooses(asked, index, window) {
                continue;
            }
            let entity = account_or_identity(&asked.facts, index, self.level).expect("an identity has an account");
            let session = match self.within {
                Within::Time(_) => None,
                Within::Session => Some(asked.facts.session(index).map_or(index, |session| session.entry())),
            };
            sequences.entry((entity, session)).or_default().push(index);
        }
        sequences.values_mut().for_each(|sequence| sequence.sort_by_key(|&index| asked.facts.moment(index)));
        sequences.into_iter().map(|((entity, _), sequence)| (entity, sequence)).collect()
    }

    fn fits(&self, asked: &Asked<'_>, step: usize, index: usize) -> bool {
        self.steps[step].events.holds(asked, index)
    }

    /// Whether an event is not too late for the chains of a start.
    fn reaches(&self, asked: &Asked<'_>, start: usize, index: usize) -> bool {
        match self.within {
            Within::Time(time_ms) => asked.facts.events[index].at_ms - asked.facts.events[start].at_ms <= time_ms,
            Within::Session => true,
        }
    }

    /// All chains, of each number of steps, if other events may lie between.
    fn loose(&self, asked: &Asked<'_>, window: Window, sequence: &[usize]) -> Vec<Chain> {
        let moment = |index: &usize| asked.facts.moment(*index);
        let last = |chain: &Chain| moment(&chain[chain.len() - 1]);
        let starts = sequence.iter().filter(|&&index| window.holds(asked.day(index)) && self.fits(asked, 0, index));
        let mut all: Vec<Vec<Chain>> = vec![starts.map(|&index| vec![index]).collect()];
        for step in 1..self.steps.len() {
            let mut longer = Vec::new();
            for &index in sequence.iter().filter(|&&index| self.fits(asked, step, index)) {
                let before = all[step - 1].iter().filter(|chain| last(chain) < moment(&index));
                let latest = before.max_by_key(|chain| (moment(&chain[0]), last(chain)));
                if let Some(chain) = latest.filter(|chain| self.reaches(asked, chain[0], index)) {
                    longer.push([chain.as_slice(), &[index]].concat());
                }
            }
            all.push(longer);
        }
        all.concat()
    }

    /// The chain of each start, if no other event may lie between.
    fn strict(&self, asked: &Asked<'_>, window: Window, sequence: &[usize]) -> Vec<Chain> {
        let chain = |at: usize| -> Chain {
            let start = sequence[at];
            let events = sequence[at..].iter().zip(0..self.steps.len());
            let holds = |(index, step): &(&usize, usize)| self.fits(asked, *step, **index) && self.reaches(asked, start, **index);
            events.take_while(holds).map(|(index, _)| *index).collect()
        };
        let starts = (0..sequence.len()).filter(|&at| window.holds(asked.day(sequence[at])));
        starts.map(chain).filter(|chain| !chain.is_empty()).collect()
    }

    /// The chain of each start, if the steps may come in any order.
    fn any(&self, asked: &Asked<'_>, window: Window, sequence: &[usize]) -> Vec<Chain> {
        let chain = |at: usize| -> Chain {
            let (mut served, mut chain) = (BTreeSet::new(), Vec::new());
            for &index in sequence[at..].iter().filter(|&&index| self.reaches(asked, sequence[at], index)) {
                let mut steps = 0..self.steps.len();
                if let Some(step) = steps.find(|&step| self.fits(asked, step, index) && !served.contains(&step)) {
                    served.insert(step);
                    chain.push(index);
                }
            }
            chain
        };
        let fits = |index: usize| (0..self.steps.len()).any(|step| self.fits(asked, step, index));
        let starts = (0..sequence.len()).filter(|&at| window.holds(asked.day(sequence[at])) && fits(sequence[at]));
        starts.map(chain).collect()
    }
}

/// The last millisecond of a day.
fn last_ms(timezone: Tz, day: NaiveDate) -> i64 {
    let mut end_ms = (day + Days::new(3)).and_time(NaiveTime::MIN).and_utc().timestamp_millis();
    // Days begin with a minute, in any timezone.
    while day_of(end_ms - 1, timezone) > day {
        end_ms -= MINUTE_MS;
    }
    end_ms - 1
}

#[cfg(test)]
mod tests {
    use super::last_ms;
    use chrono_tz::Tz;

    #[test]
    fn days_end_with_their_timezone() {
        let end = |day: &str, timezone: &str| {
            let end_ms = last_ms(timezone.parse::<Tz>().unwrap(), day.parse().unwrap());
            chrono::DateTime::from_timestamp_millis(end_ms).unwrap().to_rfc3339()
        };
        assert_eq!(end("2024-03-10", "UTC"), "2024-03-10T23:59:59.999+00:00");
        assert_eq!(end("2024-03-10", "America/New_York"), "2024-03-11T03:59:59.999+00:00");
        assert_eq!(end("2024-03-09", "America/New_York"), "2024-03-10T04:59:59.999+00:00");
        // The clocks went ahead at midnight, to the day after, and back from it.
        assert_eq!(end("2018-11-03", "America/Sao_Paulo"), "2018-11-04T02:59:59.999+00:00");
        assert_eq!(end("2018-02-17", "America/Sao_Paulo"), "2018-02-18T02:59:59.999+00:00");
        assert_eq!(end("2011-12-29", "Pacific/Apia"), "2011-12-30T09:59:59.999+00:00");
    }
}

//! Coverage: how often funnels and journeys have something to tell.

use crate::coverage::Coverage;
use headcount_model::Json;
use headcount_model::decimal::Decimal;

fn count(json: &Json) -> i128 {
    json.number().and_then(Decimal::whole).unwrap_or_default()
}

/// How many milliseconds a chain may take, if that is a time.
fn within_sec(body: &Json) -> Json {
    let units = [("minutes", 60), ("hours", 3_600), ("days", 86_400)];
    let within = body.field("within");
    let given = units.iter().find(|(unit, _)| *within.field(unit) != Json::Null);
    given.map_or(Json::Null, |(unit, sec)| Json::from(Decimal::from(count(within.field(unit)) * sec)))
}

impl Coverage {
    /// Counts what an answer tells of the ways that people take.
    pub(crate) fn look_at_paths(&mut self, place: &str, body: &Json, answer: &Json) {
        match place {
            "funnel" => self.look_at_funnel(body, answer),
            "funnel people" => {
                let people = answer.field("people").items();
                let outcome = body.field("outcome").text().unwrap_or("reached");
                self.add(&format!("people who {outcome}"), people.len());
                let is_company = |row: &&Json| *row.field("company_id") != Json::Null;
                self.add("companies in funnels", people.iter().filter(is_company).count());
                self.add("people on several pages", usize::from(!people.is_empty() && answer.at("next").is_none()));
            }
            "journeys" => self.look_at_journeys(body, answer),
            _ => {}
        }
    }

    fn look_at_funnel(&mut self, body: &Json, answer: &Json) {
        let steps = answer.field("steps").items();
        let reaches = |step: usize| steps.get(step).is_some_and(|step| count(step.field("entities")) > 0);
        let order = body.field("order").text().unwrap_or("loose");
        let level = body.field("level").text().unwrap_or("identity");
        let within = if body.field("within").text().is_some() { "session" } else { "time" };
        self.add(&format!("funnels with a third step: {order}, {level}, {within}"), usize::from(reaches(2)));
        self.add("funnels with a sixth step", usize::from(reaches(5)));
        let any = |holds: &dyn Fn(&Json) -> bool| usize::from(steps.iter().any(holds));
        self.add("funnels in which somebody dropped", any(&|step| count(step.field("dropped")) > 0));
        self.add("funnels completed", usize::from(count(answer.field("completed")) > 0));
        let zero = Json::from(0);
        self.add("steps of one millisecond", any(&|step| *step.field("median_sec") == zero));
        self.add("funnels with refunds", any(&|step| step.field("revenue") < &zero));
        self.add("funnels with orders", any(&|step| step.field("revenue") > &zero));
        let is_exact = [answer, &Json::Null].into_iter().chain(steps).any(|times| {
            let allowed = within_sec(body);
            allowed != Json::Null && ["median_sec", "p75_sec"].iter().any(|time| *times.field(time) == allowed)
        });
        self.add("chains exactly as long as they may be", usize::from(is_exact));
        self.add("funnels with money without a rate", usize::from(*answer.field("unconverted") != Json::object([])));
        self.add("funnels with several rows", usize::from(answer.field("breakdown").items().len() > 1));
        self.add("funnels with rows cut", usize::from(*answer.field("truncated") == Json::from(true)));
        let before = answer.field("previous").field("steps").items();
        self.add("funnels compared", usize::from(before.first().is_some_and(|entities| count(entities) > 0)));
        let is_of_goal = |step: &Json| *step.field("goal") != Json::Null;
        let served = body.field("steps").items().iter().zip(steps);
        let served = served.filter(|(step, figures)| is_of_goal(step) && count(figures.field("entities")) > 0);
        self.add("steps that are goals", served.count());
    }

    fn look_at_journeys(&mut self, body: &Json, answer: &Json) {
        let sessions = count(answer.field("sessions"));
        if sessions == 0 {
            return self.count("journeys of nobody");
        }
        let by = body.field("by").text().unwrap_or("path");
        let end = ["from", "to"].into_iter().find(|end| *body.field(end) != Json::Null).unwrap_or("from the start");
        self.count(&format!("journeys by {by}, {end}"));
        let nodes = || answer.field("steps").items().iter().flat_map(|step| step.field("nodes").items());
        let exits: i128 = nodes().map(|node| count(node.field("exits"))).sum();
        self.add("journeys cut", usize::from(exits < sessions));
        self.add("nodes of others", nodes().filter(|node| count(node.field("other")) > 0).count());
        let money = |node: &&Json| *node.field("revenue") != Json::from(0);
        self.add("nodes with money", nodes().filter(money).count());
        let common = |node: &&Json| count(node.field("users")) < count(node.field("sessions"));
        self.add("nodes of fewer users than sessions", nodes().filter(common).count());
        let links = answer.field("links").items();
        let of_others = |link: &&Json| *link.field("from") == Json::Null || *link.field("to") == Json::Null;
        self.add("links of others", links.iter().filter(of_others).count());
        let groups: Vec<&Json> = body.field("groups").items().iter().map(|group| group.field("name")).collect();
        self.add("nodes that are groups", nodes().filter(|node| groups.contains(&node.field("value"))).count());
        self.add("lists of whole journeys cut", usize::from(answer.field("top").items().len() == 20));
    }
}

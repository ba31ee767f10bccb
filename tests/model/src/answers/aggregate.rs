//! `POST /projects/{project_id}/analytics/aggregate`

use super::fields::{Chosen, built_in, metadata, scalar};
use super::params::Params;
use super::{Asked, Wrong, ranked};
use crate::decimal::{Decimal, MICROS, Micros, TOO_LARGE};
use crate::json::Json;
use std::collections::BTreeMap;

#[derive(Default)]
struct Group {
    count: usize,
    /// The numbers, in millionths; `None` for one that is too large.
    numbers: Vec<Option<Micros>>,
}

impl Group {
    /// Returns the sum; `None` if it or one of the numbers is too large.
    fn total(&self) -> Option<Micros> {
        let numbers = self.numbers.iter().copied().collect::<Option<Vec<_>>>()?;
        // Sums of whole units fit where sums of millionths may not.
        let (units, rest) =
            numbers.iter().fold((0, 0), |(units, rest), number| (units + number / MICROS, rest + number % MICROS));
        units.checked_mul(MICROS)?.checked_add(rest).filter(|sum: &Micros| sum.abs() < TOO_LARGE)
    }
}

/// The property that events are grouped by.
enum By {
    Field(String),
    Metadata(String),
}

impl By {
    fn of(params: &mut Params, sums: bool) -> Result<By, Wrong> {
        match (params.text("group_by")?, params.text("metadata_field")?) {
            (Some(field), None) => {
                if sums && ["acquisition_channel", "entry_url"].contains(&field.as_str()) {
                    return Err(Wrong::Invalid { code: Some("unsupported_combination"), param: None });
                }
                Ok(By::Field(field))
            }
            (None, Some(path)) => Ok(By::Metadata(path)),
            _ => Err(Wrong::Invalid { code: None, param: None }),
        }
    }

    /// Returns the property's value for an event: a scalar; objects and lists count as null.
    fn value(&self, asked: &Asked<'_>, index: usize) -> Json {
        match self {
            By::Field(field) => built_in(asked, index, field).expect("a field of the model"),
            By::Metadata(path) => scalar(metadata(&asked.facts.events[index], path)),
        }
    }
}

pub(super) fn aggregate(asked: &Asked<'_>, project: &str, mut params: Params) -> Result<Json, Wrong> {
    if !params.has("start_date") {
        return Err(Wrong::param("start_date"));
    }
    let window = params.event_window(asked, project)?;
    let chosen = Chosen::of(&mut params)?;
    let limit = params.count("limit", 1..=1_000, 100)?;
    let sum_field = params.text("sum_metadata_field")?;
    let by = By::of(&mut params, sum_field.is_some())?;
    params.done()?;

    let mut groups: BTreeMap<Json, Group> = BTreeMap::new();
    for index in asked.facts.of_project(project) {
        if !window.holds(asked.day(index)) || !chosen.chooses(asked, index, window) {
            continue;
        }
        let group = groups.entry(by.value(asked, index)).or_default();
        group.count += 1;
        let number = sum_field.as_ref().and_then(|path| metadata(&asked.facts.events[index], path).number());
        if let Some(number) = number {
            group.numbers.push(number.micros_rounded());
        }
    }
    let figure = |(_, group): &(Json, Group)| {
        if sum_field.is_some() { group.total() } else { Some(group.count as Micros) }
    };
    let rows = ranked(groups.into_iter().collect(), figure, |(value, _)| name(value));
    Ok(Json::object([
        ("rows", Json::list(rows.iter().take(limit).map(|row| shown(row, sum_field.is_some())))),
        ("total_groups", Json::from(rows.len())),
        ("truncated", Json::from(rows.len() > limit)),
        ("start_date", Json::from(window.first.to_string())),
        ("end_date", Json::from(window.last.to_string())),
        ("timezone", Json::from(asked.timezone.name())),
    ]))
}

/// The sort key for ties: the text of the value, null last; a number or boolean precedes the text
/// with the same spelling.
pub(super) fn name(value: &Json) -> (bool, String, bool) {
    let text = match value {
        Json::Text(text) => text.clone(),
        Json::Number(number) => number.spelled(),
        other => other.to_string(),
    };
    (*value == Json::Null, text, value.text().is_some())
}

fn shown((value, group): &(Json, Group), sums: bool) -> Json {
    let mut row = Json::object([("value", value.clone()), ("count", Json::from(group.count))]);
    if let (true, Json::Object(fields)) = (sums, &mut row) {
        fields.insert("total".to_owned(), group.total().map_or(Json::Null, |total| Json::from(Decimal::of_micros(total))));
        fields.insert("summed".to_owned(), Json::from(group.numbers.len()));
    }
    row
}

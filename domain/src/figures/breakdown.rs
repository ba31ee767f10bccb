//! Rows of figures by the values of a property.

use super::event_figures::{EventFigures, OrderBy};
use crate::aggregate::{GroupKey, TopGroups};
use crate::filter::lower_case;
use crate::intake::fields::Scalar;
use crate::queries::Unconverted;

/// The answer to a breakdown question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breakdown {
    /// The first rows.
    pub rows: Vec<BreakdownRow>,
    /// The number of all rows.
    pub total_rows: u64,
    /// Whether there are more rows.
    pub truncated: bool,
    /// The money of the window that is left out because it has no rate.
    pub unconverted: Unconverted,
}

/// The events that share a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BreakdownRow {
    /// The value; null for events without the property.
    pub value: Scalar<'static>,
    /// Their figures.
    pub figures: EventFigures,
    /// The figures of the comparison window for the same value.
    pub previous: Option<EventFigures>,
}

/// Selects values that contain a text, ignoring case. The empty text selects all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Search(Box<str>);

impl Search {
    /// Selects the values that contain `part`.
    pub fn new(part: &str) -> Self {
        Self(lower_case(part).into())
    }

    /// Whether the value of a key is selected. Null is selected only by the empty text.
    pub fn selects(&self, key: GroupKey<'_>) -> bool {
        let contains = |text: &str| lower_case(text).contains(&*self.0);
        self.0.is_empty()
            || match key.value() {
                Scalar::Null => false,
                Scalar::Bool(value) => contains(if value { "true" } else { "false" }),
                Scalar::Number(number) => contains(&number.to_string()),
                Scalar::Text(text) => contains(&text),
            }
    }

    /// Its approximate heap memory, in bytes.
    pub fn weight(&self) -> usize {
        self.0.len()
    }
}

/// Selects the rows with the largest figures.
#[derive(Debug)]
pub struct RankedRows {
    order_by: OrderBy,
    is_compared: bool,
    top: TopGroups<(EventFigures, EventFigures)>,
}

impl RankedRows {
    /// Selects `limit` rows. With `is_compared`, rows have figures of a second window.
    pub fn new(order_by: OrderBy, limit: usize, is_compared: bool) -> Self {
        Self { order_by, is_compared, top: TopGroups::new(limit) }
    }

    /// Adds a whole row. Each key must be added once.
    pub fn add(&mut self, key: GroupKey<'_>, figures: EventFigures, previous: EventFigures) {
        self.top.add(Some(self.order_by.of(&figures)), key, (figures, previous));
    }

    /// Returns the answer.
    pub fn finish(self, unconverted: Unconverted) -> Breakdown {
        let Self { is_compared, top, .. } = self;
        let total_rows = top.count();
        let row = |(value, (figures, previous))| BreakdownRow { value, figures, previous: is_compared.then_some(previous) };
        let rows: Vec<BreakdownRow> = top.finish().map(row).collect();
        let truncated = total_rows > rows.len() as u64;
        Breakdown { rows, total_rows, truncated, unconverted }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::money::Amount;

    fn key(value: &Scalar<'_>) -> Vec<u8> {
        let mut key = Vec::new();
        GroupKey::write(value, &mut key);
        key
    }

    fn scalar(json: &str) -> Scalar<'static> {
        Scalar::parse(json).unwrap().into_owned()
    }

    #[test]
    fn a_search_finds_parts_of_texts() {
        for (part, json, found) in [
            ("", "null", true),
            ("nu", "null", false),
            ("RU", "true", true),
            ("2.5", "12.50", true),
            ("e", "100", false),
            ("ΟΔΟΣ", r#""οδοσ""#, true),
            ("a", r#""bc""#, false),
        ] {
            assert_eq!(Search::new(part).selects(GroupKey::read(&key(&scalar(json)))), found, "{part:?} in {json}");
        }
    }

    #[test]
    fn rows_are_ordered_by_their_figure_then_by_their_text() {
        let mut rows = RankedRows::new(OrderBy::Revenue, 5, true);
        for (json, revenue) in [("null", "2"), (r#""5""#, "2"), ("5", "2"), (r#""a""#, "-1"), ("true", "7"), (r#""b""#, "-2")] {
            let figures = EventFigures { revenue: Amount::parse(revenue).unwrap(), ..EventFigures::default() };
            rows.add(GroupKey::read(&key(&scalar(json))), figures, EventFigures::default());
        }
        let answer = rows.finish(Unconverted::new());
        let values: Vec<_> = answer.rows.iter().map(|row| row.value.clone()).collect();
        assert_eq!(values, ["true", "5", r#""5""#, "null", r#""a""#].map(scalar));
        assert_eq!((answer.total_rows, answer.truncated, answer.rows[0].previous.is_some()), (6, true, true));
    }
}

//! Predicates on events: an event name, and clauses that must all hold. A clause is a filter, or
//! alternatives: lists of filters, at least one of which must hold as a whole.
//!
//! Operands are parsed and checked once, so matching can't fail. A property that is absent, null,
//! an object or an array reads as null; built-in fields are text.
//!
//! | operator | operand | holds if the property is |
//! |---|---|---|
//! | `is` | a scalar, or a list of 1 to 1,000 scalars | equal to one of them: same JSON type, numbers by exact value; null equals null |
//! | `contains`, `starts_with`, `ends_with` | non-empty text | text that contains it, or begins or ends with it, ignoring case |
//! | `matches` | a pattern of 1 to 256 bytes | text that it fits as a whole: `*` stands for any run without `/`, `**` for any run |
//! | `gt`, `gte`, `lt`, `lte` | a number | a number for which the comparison holds |
//! | `is_set` | none | not null |
//! | `is_not`, `not_contains`, `is_not_set` | as without the "not" | anything for which the positive operator does not hold, including null |

mod path_pattern;
mod people;
mod predicate;

use std::cmp::Ordering;
use std::collections::HashSet;

pub use path_pattern::{MAX_PATTERN_BYTES, PathPattern};
pub use people::{MAX_AT_LEAST, MAX_PEOPLE, MAX_WITHIN_DAYS, Within};
pub use predicate::{Clause, MAX_CONDITIONS, MAX_LISTS, PartSet, PeopleCondition, Predicate, PredicatePart};
use serde_json::value::RawValue;

use crate::intake::event::Event;
use crate::intake::fields::{Entry, Field, FieldError, Number, Scalar};
use crate::intake::submission::Invalid;
use crate::named_values;
use crate::names::UnknownName;
use crate::text;

/// The maximum number of filters of a query, with those of alternatives.
pub const MAX_FILTERS: usize = 20;
/// The maximum number of values of `is` and `is_not`.
pub const MAX_VALUES: usize = 1_000;
/// The number of characters of an invalid value that an error message repeats.
const MAX_SHOWN_CHARS: usize = 64;

named_values! {
    /// A comparison operator of a filter.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Operator by as_str {
        /// Equal to the operand, or to one of its list.
        Is = "is",
        /// The negation of [`Operator::Is`].
        IsNot = "is_not",
        /// Text that contains the operand, ignoring case.
        Contains = "contains",
        /// The negation of [`Operator::Contains`].
        NotContains = "not_contains",
        /// Text that begins with the operand, ignoring case.
        StartsWith = "starts_with",
        /// Text that ends with the operand, ignoring case.
        EndsWith = "ends_with",
        /// Text that fits the pattern.
        Matches = "matches",
        /// Greater than the operand.
        Gt = "gt",
        /// Greater than or equal to the operand.
        Gte = "gte",
        /// Less than the operand.
        Lt = "lt",
        /// Less than or equal to the operand.
        Lte = "lte",
        /// Not null.
        IsSet = "is_set",
        /// Null.
        IsNotSet = "is_not_set",
    }
}

impl Operator {
    const fn is_negated(self) -> bool {
        matches!(self, Operator::IsNot | Operator::NotContains | Operator::IsNotSet)
    }
}

/// One condition on a property of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    field: Field,
    test: Condition,
    /// Whether the result of `test` is negated.
    negated: bool,
}

/// An operator without its "not", together with its operand.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Condition {
    AnyOf(HashSet<Scalar<'static>>),
    /// The operand, converted by [`lower_case`], and where the property has it.
    Contains(TextPlace, String),
    Fits(PathPattern),
    Compares(Comparison, Number),
    Set,
}

/// Where a text has a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextPlace {
    Anywhere,
    Start,
    End,
}

/// The operators that compare numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

impl Comparison {
    fn fits(self, ordering: Ordering) -> bool {
        match self {
            Comparison::Greater => ordering.is_gt(),
            Comparison::GreaterOrEqual => ordering.is_ge(),
            Comparison::Less => ordering.is_lt(),
            Comparison::LessOrEqual => ordering.is_le(),
        }
    }
}

impl Filter {
    /// Creates a filter. `value` is the JSON text of the operand; where no operand is allowed, null
    /// counts as absent.
    ///
    /// # Errors
    /// [`Invalid`] if one of the three is not allowed; its `param` is `field`, `operator` or
    /// `value`.
    pub fn new(field: &str, operator: &str, value: Option<&str>) -> Result<Filter, Invalid> {
        Filter::on(Field::parse(field), operator, value)
    }

    /// Creates a filter of a question about sessions.
    ///
    /// # Errors
    /// Same as [`Filter::new`].
    pub fn in_sessions(field: &str, operator: &str, value: Option<&str>) -> Result<Filter, Invalid> {
        Filter::on(Field::parse_in_sessions(field), operator, value)
    }

    fn on(field: Result<Field, FieldError>, operator: &str, value: Option<&str>) -> Result<Filter, Invalid> {
        let field = field.map_err(|error| Invalid::parameter("field", format!("`field` {error}")))?;
        let operator: Operator = operator.parse().map_err(|UnknownName { allowed }| {
            let given = text::cut_chars(operator, MAX_SHOWN_CHARS);
            Invalid::parameter("operator", format!("`operator` must be one of {allowed}, not {given:?}"))
        })?;
        Ok(Filter { field, test: Condition::read(operator, value.map(str::trim))?, negated: operator.is_negated() })
    }

    /// Whether evaluating the filter requires the entry of the event's session.
    pub fn needs_session(&self) -> bool {
        self.field.of_session()
    }

    /// Whether the filter holds for `event`, whose session has this `entry`.
    pub fn matches(&self, event: &Event, entry: Option<&Entry>) -> bool {
        self.holds(&self.field.value(event, entry))
    }

    /// The property that it tests.
    pub fn field(&self) -> &Field {
        &self.field
    }

    /// Whether the filter holds for an event whose property has this value.
    pub fn holds(&self, property: &Scalar<'_>) -> bool {
        self.test.holds(property) != self.negated
    }
}

impl Condition {
    fn read(operator: Operator, value: Option<&str>) -> Result<Condition, Invalid> {
        if matches!(operator, Operator::IsSet | Operator::IsNotSet) {
            return match value {
                None | Some("null") => Ok(Condition::Set),
                Some(given) => Err(wrong_value(operator, "absent", given)),
            };
        }
        let value = value.ok_or_else(|| Invalid::missing("value"))?;
        match operator {
            Operator::Contains | Operator::NotContains => read_part(TextPlace::Anywhere, value),
            Operator::StartsWith => read_part(TextPlace::Start, value),
            Operator::EndsWith => read_part(TextPlace::End, value),
            Operator::Matches => read_pattern(value),
            Operator::Gt => read_comparison(Comparison::Greater, value),
            Operator::Gte => read_comparison(Comparison::GreaterOrEqual, value),
            Operator::Lt => read_comparison(Comparison::Less, value),
            Operator::Lte => read_comparison(Comparison::LessOrEqual, value),
            Operator::Is | Operator::IsNot | Operator::IsSet | Operator::IsNotSet => read_scalars(value)
                .map(Condition::AnyOf)
                .ok_or("a string, a number, true, false or null, or a list of 1 to 1,000 of these"),
        }
        .map_err(|expected| wrong_value(operator, expected, value))
    }

    fn weight(&self) -> usize {
        match self {
            Condition::AnyOf(values) => values.iter().map(|value| 2 * size_of::<Scalar<'_>>() + value.text_bytes()).sum(),
            Condition::Contains(_, part) => part.len(),
            Condition::Fits(pattern) => pattern.weight(),
            Condition::Compares(..) | Condition::Set => 0,
        }
    }

    fn holds(&self, property: &Scalar<'_>) -> bool {
        match (self, property) {
            (Condition::AnyOf(values), _) => values.contains(property),
            (Condition::Contains(place, part), Scalar::Text(text)) => place.has(&lower_case(text), part),
            (Condition::Fits(pattern), Scalar::Text(text)) => pattern.fits(text),
            (Condition::Compares(comparison, bound), Scalar::Number(number)) => comparison.fits(number.cmp(bound)),
            (Condition::Contains(..) | Condition::Fits(_) | Condition::Compares(..), _) => false,
            (Condition::Set, _) => *property != Scalar::Null,
        }
    }
}

fn wrong_value(operator: Operator, expected: &str, given: &str) -> Invalid {
    let given = text::cut_chars(given, MAX_SHOWN_CHARS);
    Invalid::parameter("value", format!("`value` of `{}` must be {expected}, not {given}", operator.as_str()))
}

impl TextPlace {
    fn has(self, text: &str, part: &str) -> bool {
        match self {
            TextPlace::Anywhere => text.contains(part),
            TextPlace::Start => text.starts_with(part),
            TextPlace::End => text.ends_with(part),
        }
    }
}

fn read_part(place: TextPlace, json: &str) -> Result<Condition, &'static str> {
    match Scalar::parse(json) {
        Some(Scalar::Text(text)) if !text.is_empty() => Ok(Condition::Contains(place, lower_case(&text))),
        _ => Err("a string that is not empty"),
    }
}

fn read_pattern(json: &str) -> Result<Condition, &'static str> {
    let pattern =
        Scalar::parse(json).and_then(|pattern| if let Scalar::Text(text) = pattern { PathPattern::parse(&text) } else { None });
    pattern.map(Condition::Fits).ok_or("a pattern of 1 to 256 bytes")
}

fn read_comparison(comparison: Comparison, value: &str) -> Result<Condition, &'static str> {
    match Scalar::parse(value) {
        Some(Scalar::Number(bound)) => Ok(Condition::Compares(comparison, bound)),
        _ => Err("a number"),
    }
}

fn read_scalars(json: &str) -> Option<HashSet<Scalar<'static>>> {
    let items = if json.starts_with('[') {
        let items: Vec<&RawValue> = serde_json::from_str(json).ok().filter(|items: &Vec<_>| items.len() <= MAX_VALUES)?;
        items.into_iter().map(RawValue::get).collect()
    } else {
        vec![json]
    };
    let values: HashSet<_> = items.into_iter().map(|item| Scalar::parse(item).map(Scalar::into_owned)).collect::<Option<_>>()?;
    Some(values).filter(|values| !values.is_empty())
}

/// Lower-cases each letter on its own (unlike `str::to_lowercase`, which considers word ends), so
/// that a substring of a text is also a substring of its lower-case form.
pub(crate) fn lower_case(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests;

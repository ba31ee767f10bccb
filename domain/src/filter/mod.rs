//! Predicates on events: an event name, and filters that must all hold.
//!
//! Operands are parsed and checked once, so matching can't fail. A property that is absent, null,
//! an object or an array reads as null; built-in fields are text.
//!
//! | operator | operand | holds if the property is |
//! |---|---|---|
//! | `is` | a scalar, or a list of 1 to 1,000 scalars | equal to one of them: same JSON type, numbers by exact value; null equals null |
//! | `contains` | non-empty text | text that contains it, ignoring case |
//! | `gt`, `gte`, `lt`, `lte` | a number | a number for which the comparison holds |
//! | `is_set` | none | not null |
//! | `is_not`, `not_contains`, `is_not_set` | as without the "not" | anything for which the positive operator does not hold, including null |

use std::cmp::Ordering;
use std::collections::HashSet;

use serde_json::value::RawValue;

use crate::intake::event::Event;
use crate::intake::fields::{Decider, Entry, Field, FieldError, Number, Scalar};
use crate::intake::submission::{Invalid, MAX_NAME_CHARS};
use crate::named_values;
use crate::names::UnknownName;
use crate::text;
use crate::time::Window;
use crate::versions::Depends;

/// The maximum number of filters of a query.
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
    /// The operand, converted by [`lower_case`].
    Contains(String),
    Compares(Comparison, Number),
    Set,
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

    /// Whether the filter, which is on a field of the session, holds for events of a session with
    /// this `entry`.
    fn matches_entry(&self, entry: Option<&Entry>) -> bool {
        self.holds(&self.field.value_of_session(entry))
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
            Operator::Contains | Operator::NotContains => {
                read_text(value).map(Condition::Contains).ok_or("a string that is not empty")
            }
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
            Condition::Contains(part) => part.len(),
            Condition::Compares(..) | Condition::Set => 0,
        }
    }

    fn holds(&self, property: &Scalar<'_>) -> bool {
        match (self, property) {
            (Condition::AnyOf(values), _) => values.contains(property),
            (Condition::Contains(part), Scalar::Text(text)) => lower_case(text).contains(part.as_str()),
            (Condition::Compares(comparison, bound), Scalar::Number(number)) => comparison.fits(number.cmp(bound)),
            (Condition::Contains(_) | Condition::Compares(..), _) => false,
            (Condition::Set, _) => *property != Scalar::Null,
        }
    }
}

fn wrong_value(operator: Operator, expected: &str, given: &str) -> Invalid {
    let given = text::cut_chars(given, MAX_SHOWN_CHARS);
    Invalid::parameter("value", format!("`value` of `{}` must be {expected}, not {given}", operator.as_str()))
}

fn read_text(json: &str) -> Option<String> {
    match Scalar::parse(json)? {
        Scalar::Text(text) if !text.is_empty() => Some(lower_case(&text)),
        _ => None,
    }
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

/// A predicate on events: the event name and all filters must match. The default matches every
/// event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Predicate {
    event_name: Option<Box<str>>,
    filters: Vec<Filter>,
}

impl Predicate {
    /// Creates a predicate for events of this name, if given, for which all filters hold.
    ///
    /// # Errors
    /// [`Invalid`] if `event_name` can't be the name of an event, or if there are more than
    /// [`MAX_FILTERS`] filters.
    pub fn new(event_name: Option<&str>, filters: Vec<Filter>) -> Result<Predicate, Invalid> {
        let chars = event_name.map(|name| name.chars().count());
        if chars.is_some_and(|chars| chars == 0 || chars > MAX_NAME_CHARS) {
            return Err(Invalid::parameter("event_name", format!("`event_name` must have 1 to {MAX_NAME_CHARS} characters")));
        }
        if filters.len() > MAX_FILTERS {
            let message = format!("there are {} `filters`; at most {MAX_FILTERS} are allowed", filters.len());
            return Err(Invalid::parameter("filters", message));
        }
        Ok(Predicate { event_name: event_name.map(Into::into), filters })
    }

    /// Whether evaluating the predicate requires the entries of the events' sessions.
    pub fn needs_session(&self) -> bool {
        self.filters.iter().any(Filter::needs_session)
    }

    /// Returns the dependencies of an answer about the matching events of a window.
    pub fn depends(&self, window: Window) -> Depends {
        if self.needs_session() { Depends::on_sessions(window) } else { Depends::on_events(window) }
    }

    /// The name that events must have; `None` for any.
    pub fn event_name(&self) -> Option<&str> {
        self.event_name.as_deref()
    }

    /// The filters, all of which must hold.
    pub fn filters(&self) -> &[Filter] {
        &self.filters
    }

    /// The filters on properties of the session that this event of it decides.
    pub fn decided_by(&self, decider: Decider) -> impl Iterator<Item = &Filter> {
        self.filters.iter().filter(move |filter| filter.field.decider() == Some(decider))
    }

    /// Whether the filters on properties that this event of the session decides hold for a session
    /// with these fields.
    pub fn matches_decided(&self, decider: Decider, entry: Option<&Entry>) -> bool {
        self.decided_by(decider).all(|filter| filter.matches_entry(entry))
    }

    /// The approximate memory of its operands, in bytes.
    pub fn weight(&self) -> usize {
        self.filters.iter().map(|filter| size_of::<Filter>() + filter.test.weight()).sum()
    }

    /// Whether the predicate holds for `event`, whose session has this `entry`.
    pub fn matches(&self, event: &Event, entry: Option<&Entry>) -> bool {
        self.matches_event(event) && self.matches_entry(entry)
    }

    /// Whether all conditions outside of the session hold.
    pub fn matches_event(&self, event: &Event) -> bool {
        let is_named = self.event_name.as_ref().is_none_or(|name| **name == *event.name);
        is_named && self.filters.iter().all(|filter| filter.needs_session() || filter.matches(event, None))
    }

    /// Whether the filters on fields of the session hold for a session with this `entry`.
    pub fn matches_entry(&self, entry: Option<&Entry>) -> bool {
        self.filters.iter().all(|filter| !filter.needs_session() || filter.matches_entry(entry))
    }
}

#[cfg(test)]
mod tests;

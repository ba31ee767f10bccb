//! Query strings. A parameter that an operation does not have is an error, so that a mistyped name
//! can't silently change a number.
//!
//! [`query_parameters!`](crate::extract::query::query_parameters) declares the parameters of an
//! endpoint once: the struct that it defines reads them, checks them and documents them.

use std::cell::Cell;
use std::collections::BTreeMap;

use headcount_domain::time::CohortInterval;
use headcount_domain::{Day, Instant, Timezone, Window};
use utoipa::openapi::path;

use crate::app::AppState;
use crate::extract::share_rules::{NamedField, SharedQuestion};
use crate::request::HttpRequest;
use crate::respond::error::{ApiError, Result};

/// The parameters of a query string, as text.
#[derive(Debug)]
pub struct QueryString {
    values: BTreeMap<String, String>,
}

impl QueryString {
    /// Reads the parameters, each of which must be allowed and may be given once.
    fn read<Q: QueryParameters>(request: &HttpRequest) -> Result<Self> {
        let mut values = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(request.query_string().as_bytes()) {
            if !Q::allows(&name) {
                return Err(ApiError::unknown_parameter(&name, &Q::names()));
            }
            if values.insert(name.to_string(), value.into_owned()).is_some() {
                return Err(ApiError::parameter(name, "the parameter is given more than once"));
            }
        }
        Ok(Self { values })
    }

    /// Reads the first value of every parameter. Ingestion ignores unknown ones, because older servers meet newer trackers.
    pub fn read_leniently(request: &HttpRequest) -> Self {
        let mut values = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(request.query_string().as_bytes()) {
            values.entry(name.into_owned()).or_insert_with(|| value.into_owned());
        }
        Self { values }
    }

    /// Returns the text of a parameter.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }
}

/// The calendar that a question is asked by. It records whether the answer depends on the current day.
#[derive(Debug)]
pub struct Calendar {
    timezone: Timezone,
    now: Instant,
    today: Cell<Option<Day>>,
    variant: Cell<u64>,
}

impl Calendar {
    /// Creates the calendar of a question that is asked now.
    pub fn new(state: &AppState, timezone: Timezone) -> Self {
        Self { timezone, now: state.engine.clock().now(), today: Cell::new(None), variant: Cell::new(0) }
    }

    /// Returns the window between two dates, each of which has a default.
    pub fn window(&self, start: Option<&str>, end: Option<&str>) -> Result<Window> {
        let window = Window::resolve(start, end, self.timezone, self.now)?;
        if Window::depends_on_today(start, end) {
            self.today.set(Some(self.timezone.day_of(self.now)));
        }
        Ok(window)
    }

    /// Returns the window of the last `days` days.
    pub fn last_days(&self, days: u32) -> Window {
        let window = Window::last_days(days, self.timezone, self.now);
        self.today.set(Some(window.end));
        window
    }

    /// Returns the first day of the running interval: until it ends, the answer does not depend on the current day.
    pub fn running(&self, interval: CohortInterval) -> Day {
        let first = interval.first_day(interval.index_of(self.timezone.day_of(self.now)));
        self.today.set(Some(first));
        first
    }

    /// Returns the instant at which the question was asked.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Records a number of all that the answer depends on besides the events, the day and the request: the time, and who asks.
    pub fn set_variant(&self, variant: u64) {
        self.variant.set(variant);
    }

    /// Returns the number that was recorded.
    pub fn variant(&self) -> u64 {
        self.variant.get()
    }

    /// Returns the current day, or the first one of the running interval, if the answer depends on it.
    pub fn today(&self) -> Option<Day> {
        self.today.get()
    }
}

/// A parameter, or a few that belong together such as the ends of a window.
pub trait Parameter: Sized {
    /// The names in the query string. Empty if it is the name of the field.
    const NAMES: &'static [&'static str] = &[];

    /// Reads and checks the value of the field `name`.
    fn read(query: &QueryString, name: &'static str, calendar: &Calendar) -> Result<Self>;

    /// Documents the field `name`.
    fn document(name: &'static str, description: &str) -> Vec<path::Parameter>;
}

/// The parameters of an endpoint. Defined by [`query_parameters!`].
pub trait QueryParameters: Sized {
    /// Returns whether there is a parameter of this name.
    fn allows(name: &str) -> bool;

    /// Returns the names of all parameters.
    fn names() -> Vec<&'static str>;

    /// Reads the parameters in the order of the fields. The first error is returned.
    fn from_query(query: &QueryString, calendar: &Calendar) -> Result<Self>;

    /// Reads the parameters of a request.
    fn read(request: &HttpRequest, calendar: &Calendar) -> Result<Self> {
        Self::from_query(&QueryString::read::<Self>(request)?, calendar)
    }
}

/// Defines a struct of query parameters: reading, checks and documentation.
#[macro_export]
macro_rules! query_parameters {
    (
        $(#[doc = $summary:literal])+
        $visibility:vis struct $name:ident {
            $($(#[doc = $doc:literal])* $field:ident: $type:ty,)*
        }
    ) => {
        $(#[doc = $summary])+
        #[derive(Debug)]
        $visibility struct $name {
            $($(#[doc = $doc])* pub(crate) $field: $type,)*
        }

        impl $crate::extract::query::QueryParameters for $name {
            fn allows(name: &str) -> bool {
                Self::names().contains(&name)
            }

            fn names() -> Vec<&'static str> {
                let fields: [(&'static [&'static str], &'static str); _] =
                    [$((<$type as $crate::extract::query::Parameter>::NAMES, stringify!($field))),*];
                fields.into_iter().flat_map(|(names, field)| if names.is_empty() { vec![field] } else { names.to_vec() }).collect()
            }

            fn from_query(
                query: &$crate::extract::query::QueryString,
                calendar: &$crate::extract::query::Calendar,
            ) -> Result<Self, $crate::respond::error::ApiError> {
                Ok(Self { $($field: $crate::extract::query::Parameter::read(query, stringify!($field), calendar)?,)* })
            }
        }

        impl utoipa::IntoParams for $name {
            fn into_params(
                _: impl Fn() -> Option<utoipa::openapi::path::ParameterIn>,
            ) -> Vec<utoipa::openapi::path::Parameter> {
                [$(<$type as $crate::extract::query::Parameter>::document(
                    stringify!($field),
                    concat!($($doc, "\n"),*),
                )),*].concat()
            }
        }
    };
}
pub use query_parameters;

/// The parameters of an operation that has none.
#[derive(Debug)]
pub struct NoParameters;

impl SharedQuestion for NoParameters {
    fn named_fields(&self) -> Vec<NamedField> {
        Vec::new()
    }
}

impl NoParameters {
    /// Refuses any parameter.
    pub fn check(request: &HttpRequest) -> Result<()> {
        QueryString::read::<Self>(request).map(drop)
    }
}

impl QueryParameters for NoParameters {
    fn allows(_: &str) -> bool {
        false
    }

    fn names() -> Vec<&'static str> {
        Vec::new()
    }

    fn from_query(_: &QueryString, _: &Calendar) -> Result<Self> {
        Ok(Self)
    }
}

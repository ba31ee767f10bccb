//! The types of query parameters. Each reads, checks and documents itself.

use headcount_domain::intake::admission::is_group_type;
use headcount_domain::text::cut_chars;
use headcount_domain::time::CohortInterval;
use headcount_domain::{Day, NamedValues, UnknownName, Window};
use std::fmt::Display;
use std::str::FromStr;
use utoipa::IntoParams;
use utoipa::openapi::Required;
use utoipa::openapi::path::{Parameter as Documented, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};

use crate::extract::query::{Calendar, Parameter, QueryString};
use crate::respond::error::{ApiError, Result};

/// How much of a wrong value an error repeats.
const SHOWN_CHARACTERS: usize = 64;

/// An integer from `MIN` to `MAX`; `DEFAULT` if it is absent.
#[derive(Debug, Clone, Copy)]
pub struct Integer<const MIN: u32, const MAX: u32, const DEFAULT: u32>(pub u32);

/// The most rows that a list may have.
pub type Limit<const MAX: u32, const DEFAULT: u32> = Integer<1, MAX, DEFAULT>;

/// The limit of lists of companies, users and groups.
pub type ListLimit = Limit<100, 20>;

/// Text of 1 to `MAX` characters.
#[derive(Debug, Clone)]
pub struct Text<const MAX: usize>(pub String);

/// Reads the parameter `starting_after`: the id behind which a page of a list begins.
pub fn after<T: FromStr<Err: Display>>(sent: Option<Text<64>>) -> Result<Option<T>> {
    let id = |Text(id): Text<64>| id.parse().map_err(|error| ApiError::parameter("starting_after", format!("{error}")));
    sent.map(id).transpose()
}

/// One of a few words. The default if it is absent.
#[derive(Debug, Clone, Copy)]
pub struct Choice<T>(pub T);

/// The parameter `type`: one of a few words, if it is given.
#[derive(Debug, Clone, Copy)]
pub struct TypeFilter<T>(pub Option<T>);

/// `true` or `false`, which is the default.
#[derive(Debug, Clone, Copy)]
pub struct Flag(pub bool);

/// A group type, except `company`.
#[derive(Debug, Clone)]
pub struct GroupTypeName(pub String);

/// The parameters `start_date` and `end_date`.
#[derive(Debug, Clone, Copy)]
pub struct Dates(pub Window);

/// The parameters `start_date` and `end_date` of an answer about all time: read, and ignored.
#[derive(Debug, Clone, Copy)]
pub struct IgnoredDates;

/// The parameter `interval`: the length of the intervals of cohorts, with the first day of the running one.
#[derive(Debug, Clone, Copy)]
pub struct RunningInterval {
    /// The length.
    pub interval: CohortInterval,
    /// The first day of the running one.
    pub first_day: Day,
}

/// The parameter `range_days`: the last days, today included.
#[derive(Debug, Clone, Copy)]
pub struct RangeDays(pub Window);

impl<const MIN: u32, const MAX: u32, const DEFAULT: u32> Integer<MIN, MAX, DEFAULT> {
    /// Returns the value as a number of rows.
    pub fn rows(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl<const MIN: u32, const MAX: u32, const DEFAULT: u32> Parameter for Integer<MIN, MAX, DEFAULT> {
    fn read(query: &QueryString, name: &'static str, _: &Calendar) -> Result<Self> {
        let Some(text) = query.text(name) else { return Ok(Self(DEFAULT)) };
        let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let value = text.parse().ok().filter(|value| is_digits && (MIN..=MAX).contains(value));
        value.map(Self).ok_or_else(|| wrong(name, &format!("must be an integer from {MIN} to {MAX}"), text))
    }

    fn document(name: &'static str, description: &str) -> Vec<Documented> {
        let schema = ObjectBuilder::new().schema_type(Type::Integer).format(Some(SchemaFormat::KnownFormat(KnownFormat::Int32)));
        let schema = schema.minimum(Some(MIN)).maximum(Some(MAX)).default(Some(DEFAULT.into()));
        vec![documented(name, description, Required::False, schema)]
    }
}

impl<const MAX: usize> Parameter for Option<Text<MAX>> {
    fn read(query: &QueryString, name: &'static str, _: &Calendar) -> Result<Self> {
        let Some(text) = query.text(name) else { return Ok(None) };
        match text.chars().count() {
            0 => Err(ApiError::parameter(name, format!("`{name}` must not be empty"))),
            characters if characters > MAX => {
                Err(ApiError::parameter(name, format!("`{name}` must have at most {MAX} characters, not {characters}")))
            }
            _ => Ok(Some(Text(text.to_owned()))),
        }
    }

    fn document(name: &'static str, description: &str) -> Vec<Documented> {
        vec![documented(name, description, Required::False, text_schema(MAX))]
    }
}

impl<const MAX: usize> Parameter for Text<MAX> {
    fn read(query: &QueryString, name: &'static str, calendar: &Calendar) -> Result<Self> {
        Option::<Self>::read(query, name, calendar)?.ok_or_else(|| ApiError::missing(name))
    }

    fn document(name: &'static str, description: &str) -> Vec<Documented> {
        vec![documented(name, description, Required::True, text_schema(MAX))]
    }
}

impl<T: NamedValues + Default> Parameter for Choice<T> {
    fn read(query: &QueryString, name: &'static str, _: &Calendar) -> Result<Self> {
        let Some(text) = query.text(name) else { return Ok(Self(T::default())) };
        text.parse().map(Self).map_err(|UnknownName { allowed }| wrong(name, &format!("must be one of {allowed}"), text))
    }

    fn document(name: &'static str, description: &str) -> Vec<Documented> {
        let schema = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(T::names()));
        vec![documented(name, description, Required::False, schema.default(Some(T::default().to_string().into())))]
    }
}

impl<T: NamedValues> Parameter for Option<Choice<T>> {
    fn read(query: &QueryString, name: &'static str, _: &Calendar) -> Result<Self> {
        let Some(text) = query.text(name) else { return Ok(None) };
        let known = text.parse().map(Choice);
        known.map(Some).map_err(|UnknownName { allowed }| wrong(name, &format!("must be one of {allowed}"), text))
    }

    fn document(name: &'static str, description: &str) -> Vec<Documented> {
        let schema = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(T::names()));
        vec![documented(name, description, Required::False, schema)]
    }
}

impl<T: NamedValues> Parameter for TypeFilter<T> {
    const NAMES: &'static [&'static str] = &["type"];

    fn read(query: &QueryString, _: &'static str, calendar: &Calendar) -> Result<Self> {
        let given = Option::<Choice<T>>::read(query, "type", calendar)?;
        Ok(Self(given.map(|Choice(value)| value)))
    }

    fn document(_: &'static str, description: &str) -> Vec<Documented> {
        Option::<Choice<T>>::document("type", description)
    }
}

impl Parameter for Flag {
    fn read(query: &QueryString, name: &'static str, _: &Calendar) -> Result<Self> {
        match query.text(name) {
            None | Some("false") => Ok(Self(false)),
            Some("true") => Ok(Self(true)),
            Some(text) => Err(wrong(name, "must be true or false", text)),
        }
    }

    fn document(name: &'static str, description: &str) -> Vec<Documented> {
        let schema = ObjectBuilder::new().schema_type(Type::Boolean).default(Some(false.into()));
        vec![documented(name, description, Required::False, schema)]
    }
}

impl Parameter for GroupTypeName {
    fn read(query: &QueryString, name: &'static str, _: &Calendar) -> Result<Self> {
        let text = query.text(name).ok_or_else(|| ApiError::missing(name))?;
        if text == "company" {
            let message =
                "`group_type` must not be `company`: GET /companies/top and GET /companies/{company_id}/metrics are for those";
            return Err(ApiError::parameter(name, message));
        }
        if is_group_type(text) {
            return Ok(Self(text.to_owned()));
        }
        Err(wrong(name, "must be a group type that matches ^[a-z][a-z0-9_]{0,63}$", text))
    }

    fn document(name: &'static str, description: &str) -> Vec<Documented> {
        let schema = ObjectBuilder::new().schema_type(Type::String).pattern(Some("^[a-z][a-z0-9_]{0,63}$"));
        vec![documented(name, description, Required::True, schema)]
    }
}

const DATES: &[&str] = &["start_date", "end_date"];

impl Parameter for Dates {
    const NAMES: &'static [&'static str] = DATES;

    fn read(query: &QueryString, _: &'static str, calendar: &Calendar) -> Result<Self> {
        calendar.window(query.text("start_date"), query.text("end_date")).map(Self)
    }

    fn document(_: &'static str, _: &str) -> Vec<Documented> {
        let start = "The first day: `YYYY-MM-DD`, or an RFC 3339 instant of it. Default: 30 days before today.";
        dates([start, "The last day. Default: today."])
    }
}

impl Parameter for IgnoredDates {
    const NAMES: &'static [&'static str] = DATES;

    fn read(_: &QueryString, _: &'static str, _: &Calendar) -> Result<Self> {
        Ok(Self)
    }

    fn document(_: &'static str, _: &str) -> Vec<Documented> {
        dates(["Accepted and ignored: cohorts are of all time.", "Accepted and ignored."])
    }
}

impl Parameter for RangeDays {
    const NAMES: &'static [&'static str] = &["range_days"];

    fn read(query: &QueryString, _: &'static str, calendar: &Calendar) -> Result<Self> {
        let days = Integer::<1, 365, 30>::read(query, "range_days", calendar)?;
        Ok(Self(calendar.last_days(days.0)))
    }

    fn document(_: &'static str, _: &str) -> Vec<Documented> {
        Integer::<1, 365, 30>::document("range_days", "The number of calendar days up to today, today included.")
    }
}

impl Parameter for RunningInterval {
    fn read(query: &QueryString, name: &'static str, calendar: &Calendar) -> Result<Self> {
        let Choice(interval) = Choice::<CohortInterval>::read(query, name, calendar)?;
        Ok(Self { interval, first_day: calendar.running(interval) })
    }

    fn document(name: &'static str, description: &str) -> Vec<Documented> {
        Choice::<CohortInterval>::document(name, description)
    }
}

fn wrong(name: &'static str, expected: &str, text: &str) -> ApiError {
    ApiError::parameter(name, format!("`{name}` {expected}, not {:?}", cut_chars(text, SHOWN_CHARACTERS)))
}

/// Documents a query parameter.
pub fn documented(name: &str, description: &str, required: Required, schema: ObjectBuilder) -> Documented {
    let description: Vec<&str> = description.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Query)
        .required(required)
        .description(Some(description.join("\n")))
        .schema(Some(schema))
        .build()
}

fn text_schema(max_characters: usize) -> ObjectBuilder {
    let bounded = Some(max_characters).filter(|most| *most < usize::MAX);
    ObjectBuilder::new().schema_type(Type::String).min_length(Some(1)).max_length(bounded)
}

fn dates(descriptions: [&str; 2]) -> Vec<Documented> {
    let date = |(name, description): (&&str, _)| {
        documented(name, description, Required::False, ObjectBuilder::new().schema_type(Type::String))
    };
    DATES.iter().zip(descriptions).map(date).collect()
}

/// The public key in the query string, where no header can be set.
#[derive(Debug)]
pub struct KeyQuery;

impl IntoParams for KeyQuery {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Documented> {
        let schema = ObjectBuilder::new().schema_type(Type::String).pattern(Some("^pk_[0-9A-Za-z]{32}$"));
        let description = "The public key, where no header can be set (`sendBeacon`).";
        vec![documented("pk", description, Required::False, schema)]
    }
}

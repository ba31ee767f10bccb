//! JSON bodies. A field that an operation does not have is an error; null stands for an absent
//! field, unless the field says otherwise.
//!
//! [`json_body!`](crate::extract::json::json_body) declares the fields of a body once: the struct
//! that it defines reads them, checks them and documents them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

use actix_web::dev::Payload;
use actix_web::web::Bytes;
use headcount_actors::admission_gate::Holder;
use headcount_domain::NamedValues;
use headcount_domain::text::cut_chars;
use serde::Deserialize;
use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::app::AppState;
use crate::extract::body::{self, BodyContent, Media};
use crate::extract::query::NoParameters;
use crate::extract::standing;
use crate::request::HttpRequest;
use crate::respond::code::ErrorCode;
use crate::respond::error::{ApiError, Result};

/// The fields of a JSON object, unread.
#[derive(Debug, Default)]
pub struct Fields<'a> {
    values: BTreeMap<Cow<'a, str>, &'a RawValue>,
}

#[derive(Deserialize)]
#[serde(transparent)]
struct FieldName<'a>(#[serde(borrow)] Cow<'a, str>);

/// Reads the fields that are known, and the first unknown name in their order: a body of millions of fields takes no memory.
struct KnownFields<'n> {
    allowed: &'n [&'n str],
}

impl<'de> Visitor<'de> for KnownFields<'_> {
    type Value = (BTreeMap<Cow<'de, str>, &'de RawValue>, Option<Cow<'de, str>>);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut values, mut unknown) = (BTreeMap::new(), None);
        while let Some(FieldName(name)) = map.next_key::<FieldName<'de>>()? {
            let value: &'de RawValue = map.next_value()?;
            if self.allowed.contains(&name.as_ref()) {
                values.insert(name, value);
            } else if unknown.as_ref().is_none_or(|first| name < *first) {
                unknown = Some(name);
            }
        }
        Ok((values, unknown))
    }
}

impl<'a> Fields<'a> {
    /// Reads a body whose fields must be among `allowed`. An empty body is an empty object.
    pub fn read(body: &'a [u8], allowed: &[&str]) -> Result<Self> {
        if body.iter().all(u8::is_ascii_whitespace) {
            return Ok(Self::default());
        }
        let mut json = serde_json::Deserializer::from_slice(body);
        let read = json.deserialize_map(KnownFields { allowed }).and_then(|read| json.end().map(|()| read));
        match read {
            Ok((values, None)) => Ok(Self { values }),
            Ok((_, Some(unknown))) => Err(ApiError::unknown_parameter(&unknown, allowed)),
            Err(error) => Err(ApiError::new(ErrorCode::InvalidJson, format!("the body must be a JSON object: {error}"))),
        }
    }

    /// Reads an object of a list, which `place` names. Its errors name its fields alone.
    pub fn read_item(item: &'a RawValue, place: &str, allowed: &[&str]) -> Result<Self> {
        if !item.get().starts_with('{') {
            let shown = cut_chars(item.get(), 64);
            return Err(ApiError::parameter(place, format!("`{place}` must be an object, not {shown}")));
        }
        Self::read(item.get().as_bytes(), allowed).map_err(|error| error.within(place))
    }

    /// Whether a field is present, be it null.
    pub fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// Returns the JSON text of a field.
    pub fn raw(&self, name: &str) -> Option<&'a str> {
        self.values.get(name).map(|raw| raw.get()).filter(|raw| *raw != "null")
    }

    /// Reads a field, which must be `expected` (in words) if it is present.
    pub fn optional<T: Deserialize<'a>>(&self, name: &str, expected: impl AsRef<str>) -> Result<Option<T>> {
        let Some(raw) = self.raw(name) else { return Ok(None) };
        let wrong = |_| ApiError::parameter(name, format!("`{name}` must be {}, not {}", expected.as_ref(), cut_chars(raw, 64)));
        serde_json::from_str(raw).map(Some).map_err(wrong)
    }

    /// Reads a field that must be present.
    pub fn required<T: Deserialize<'a>>(&self, name: &str, expected: impl AsRef<str>) -> Result<T> {
        self.optional(name, expected)?.ok_or_else(|| ApiError::missing(name))
    }

    /// Reads a text field that `parse` understands if it is present.
    pub fn parsed<T>(&self, name: &str, expected: &str, parse: impl FnOnce(&str) -> Option<T>) -> Result<Option<T>> {
        let Some(text) = self.optional::<String>(name, "a string")? else { return Ok(None) };
        let wrong = || ApiError::parameter(name, format!("`{name}` must be {expected}, not {:?}", cut_chars(&text, 64)));
        parse(&text).map(Some).ok_or_else(wrong)
    }

    /// Reads the name of one of a list if it is present.
    pub fn optional_name<T: NamedValues>(&self, name: &str) -> Result<Option<T>> {
        self.parsed(name, &format!("one of {}", T::names().join(", ")), |text| text.parse().ok())
    }

    /// Reads the name of one of a list, or returns the default.
    pub fn name<T: NamedValues>(&self, name: &str, default: T) -> Result<T> {
        Ok(self.optional_name(name)?.unwrap_or(default))
    }

    /// Reads a number within bounds, or returns the default.
    pub fn count(&self, name: &str, (bounds, default): (RangeInclusive<usize>, usize)) -> Result<usize> {
        let expected = format!("an integer from {} to {}", bounds.start(), bounds.end());
        match self.optional::<usize>(name, &expected)? {
            None => Ok(default),
            Some(count) if bounds.contains(&count) => Ok(count),
            Some(count) => Err(ApiError::parameter(name, format!("`{name}` must be {expected}, not {count}"))),
        }
    }

    /// Reads a field by a function of its own.
    pub fn with<T>(&self, name: &str, read: impl FnOnce(&Self, &str) -> Result<T>) -> Result<T> {
        read(self, name)
    }
}

/// A JSON body. Defined by [`json_body!`].
pub trait JsonBody: Sized {
    /// Reads the fields in their order. The first error is returned.
    fn from_json(body: &[u8]) -> Result<Self>;
}

/// Reads the JSON body of a request.
pub async fn read<B: JsonBody>(state: &AppState, request: &HttpRequest, payload: Payload) -> Result<B> {
    read_within(state, request, payload, body::BATCH_LIMIT_BYTES).await
}

/// Reads the JSON body of a request, which is at most so large.
pub async fn read_within<B: JsonBody>(
    state: &AppState,
    request: &HttpRequest,
    payload: Payload,
    limit_bytes: usize,
) -> Result<B> {
    B::from_json(&read_bytes(state, request, payload, limit_bytes).await?)
}

/// Reads a JSON body without events, of an operation that has no parameters beside it. The request keeps its permit.
pub async fn read_bytes(state: &AppState, request: &HttpRequest, payload: Payload, limit_bytes: usize) -> Result<Bytes> {
    NoParameters::check(request)?;
    body::check_media(request, Media::Json)?;
    let content = BodyContent::Other(standing::organization(request).map(Holder::Organization));
    let permit = body::admit(state, request, content, body::FIRST_BYTES)?;
    let (body, permit) = body::read(state, request, payload, permit, limit_bytes).await?;
    request.extensions_mut().insert(permit);
    Ok(body)
}

/// Defines a struct for a JSON body: reading, checks and documentation. Each field is followed by the function of [`Fields`] that reads
/// it, with its argument: `optional` or `required` and what is expected, or `with` and a function. `into`: it becomes a struct of the
/// engine with the same fields.
#[macro_export]
macro_rules! json_body {
    (@into $name:ident [$($field:ident)*]) => {};
    (@into $name:ident [$($field:ident)*] $target:ident) => {
        impl From<$name> for $target {
            fn from($name { $($field),* }: $name) -> Self {
                Self { $($field),* }
            }
        }
    };
    (
        $(#[$summary:meta])+
        $visibility:vis struct $name:ident $(into $target:ident)? {
            $($(#[$attribute:meta])* $field:ident: $type:ty = $read:ident($argument:expr),)*
        }
    ) => {
        #[derive(Debug, utoipa::ToSchema)]
        $(#[$summary])+
        $visibility struct $name {
            $($(#[$attribute])* $visibility $field: $type,)*
        }

        impl $crate::extract::json::JsonBody for $name {
            fn from_json(body: &[u8]) -> Result<Self, $crate::respond::error::ApiError> {
                let fields = $crate::extract::json::Fields::read(body, &[$(stringify!($field)),*])?;
                Ok(Self { $($field: fields.$read(stringify!($field), $argument)?,)* })
            }
        }

        $crate::json_body!(@into $name [$($field)*] $($target)?);
    };
}
pub use json_body;

/// The body of an operation that takes none: empty, or an empty object.
#[derive(Debug)]
pub struct EmptyBody;

impl JsonBody for EmptyBody {
    fn from_json(body: &[u8]) -> Result<Self> {
        Fields::read(body, &[]).map(|_| Self)
    }
}

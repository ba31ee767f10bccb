//! JSON bodies. A field that an operation does not have is an error; null stands for an absent field, unless the field says otherwise.
//!
//! [`json_body!`](crate::http::extract::json::json_body) declares the fields of a body once: the struct that it defines reads them,
//! checks them and documents them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use actix_web::HttpRequest;
use actix_web::web::{Data, Payload};
use headcount_domain::text::cut_chars;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::http::app::AppState;
use crate::http::extract::body::{self, Media};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;

/// What an operation with a JSON body takes of a request. The body is read once the caller is known.
pub(crate) type BodyArguments = (Data<AppState>, HttpRequest, Payload);

/// The fields of a JSON object, unread.
#[derive(Debug, Default)]
pub(crate) struct Fields<'a> {
    values: BTreeMap<Cow<'a, str>, &'a RawValue>,
}

#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(transparent)]
struct FieldName<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> Fields<'a> {
    /// Reads a body whose fields must be among `allowed`. An empty body is an empty object.
    pub(crate) fn read(body: &'a [u8], allowed: &[&str]) -> Result<Self, ApiError> {
        if body.iter().all(u8::is_ascii_whitespace) {
            return Ok(Self::default());
        }
        let values: BTreeMap<FieldName<'a>, &RawValue> = serde_json::from_slice(body)
            .map_err(|error| ApiError::new(ErrorCode::InvalidJson, format!("the body must be a JSON object: {error}")))?;
        let values: BTreeMap<Cow<'a, str>, &RawValue> =
            values.into_iter().map(|(FieldName(name), value)| (name, value)).collect();
        match values.keys().find(|name| !allowed.contains(&name.as_ref())) {
            Some(unknown) => Err(ApiError::unknown_parameter(unknown, allowed)),
            None => Ok(Self { values }),
        }
    }

    /// Whether a field is present, be it null.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// Returns the JSON text of a field.
    pub(crate) fn raw(&self, name: &str) -> Option<&'a str> {
        self.values.get(name).map(|raw| raw.get()).filter(|raw| *raw != "null")
    }

    /// Reads a field, which must be `expected` (in words) if it is present.
    pub(crate) fn optional<T: Deserialize<'a>>(&self, name: &str, expected: impl AsRef<str>) -> Result<Option<T>, ApiError> {
        let Some(raw) = self.raw(name) else { return Ok(None) };
        let wrong = |_| ApiError::parameter(name, format!("`{name}` must be {}, not {}", expected.as_ref(), cut_chars(raw, 64)));
        serde_json::from_str(raw).map(Some).map_err(wrong)
    }

    /// Reads a field that must be present.
    pub(crate) fn required<T: Deserialize<'a>>(&self, name: &str, expected: impl AsRef<str>) -> Result<T, ApiError> {
        self.optional(name, expected)?.ok_or_else(|| ApiError::missing(name))
    }

    /// Reads a text field that `parse` understands if it is present.
    pub(crate) fn parsed<T>(
        &self,
        name: &str,
        expected: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, ApiError> {
        let Some(text) = self.optional::<String>(name, "a string")? else { return Ok(None) };
        let wrong = || ApiError::parameter(name, format!("`{name}` must be {expected}, not {:?}", cut_chars(&text, 64)));
        parse(&text).map(Some).ok_or_else(wrong)
    }

    /// Reads a field by a function of its own.
    pub(crate) fn with<T>(&self, name: &str, read: impl FnOnce(&Self, &str) -> Result<T, ApiError>) -> Result<T, ApiError> {
        read(self, name)
    }
}

/// A JSON body. Defined by [`json_body!`].
pub(crate) trait JsonBody: Sized {
    /// Reads the fields in their order. The first error is returned.
    fn from_json(body: &[u8]) -> Result<Self, ApiError>;
}

/// Reads the JSON body of a request.
pub(crate) async fn read<B: JsonBody>(request: &HttpRequest, payload: Payload) -> Result<B, ApiError> {
    read_within(request, payload, body::BATCH_LIMIT_BYTES).await
}

/// Reads the JSON body of a request, which is at most so large.
pub(crate) async fn read_within<B: JsonBody>(request: &HttpRequest, payload: Payload, limit_bytes: usize) -> Result<B, ApiError> {
    body::check_media(request, Media::Json)?;
    B::from_json(&body::read(request, payload, limit_bytes).await?)
}

/// Defines a struct for a JSON body: reading, checks and documentation. Each field is followed by the function of [`Fields`] that reads
/// it, with its argument: `optional` or `required` and what is expected, or `with` and a function.
macro_rules! json_body {
    (
        $(#[$summary:meta])+
        $visibility:vis struct $name:ident {
            $($(#[$attribute:meta])* $field:ident: $type:ty = $read:ident($argument:expr),)*
        }
    ) => {
        #[derive(Debug, utoipa::ToSchema)]
        $(#[$summary])+
        $visibility struct $name {
            $($(#[$attribute])* pub(crate) $field: $type,)*
        }

        impl $crate::http::extract::json::JsonBody for $name {
            fn from_json(body: &[u8]) -> Result<Self, $crate::http::respond::error::ApiError> {
                let fields = $crate::http::extract::json::Fields::read(body, &[$(stringify!($field)),*])?;
                Ok(Self { $($field: fields.$read(stringify!($field), $argument)?,)* })
            }
        }
    };
}
pub(crate) use json_body;

/// The body of an operation that takes none: empty, or an empty object.
#[derive(Debug)]
pub(crate) struct EmptyBody;

impl JsonBody for EmptyBody {
    fn from_json(body: &[u8]) -> Result<Self, ApiError> {
        Fields::read(body, &[]).map(|_| Self)
    }
}

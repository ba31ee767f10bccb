//! The write key of a request, which is a public key: the user of HTTP Basic, or a field of the
//! body.

use actix_web::http::header;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use headcount_api::endpoint::*;
use headcount_control::PublicKey;
use headcount_domain::intake::json_fields::readable;
use headcount_domain::intake::segment::write_key;

use crate::ingest::known_key;

/// Returns the key of the header. `None`: there is no header, or one without a user.
pub(super) fn of_header(state: &AppState, request: &HttpRequest) -> Option<Result<PublicKey>> {
    let mut values = request.headers().get_all(header::AUTHORIZATION);
    let value = values.next()?;
    if values.next().is_some() {
        let message = "there are several `Authorization` headers; a request has one credential";
        return Some(Err(ApiError::new(ErrorCode::DuplicateCredentials, message)));
    }
    match value.to_str().ok().and_then(user) {
        Some(user) if user.is_empty() => None,
        Some(user) => Some(known_key(state, &user)),
        None => {
            Some(Err(ApiError::unauthenticated("the `Authorization` header must be HTTP Basic with the write key as the user")))
        }
    }
}

/// Returns the key of the body.
pub(super) fn of_body(state: &AppState, body: &[u8]) -> Result<PublicKey> {
    let body = readable(body);
    let key = write_key(&body);
    let key =
        key.ok_or_else(|| ApiError::unauthenticated("a write key is required: as the user of HTTP Basic, or `writeKey`"))?;
    known_key(state, &key)
}

/// Returns the user of a Basic credential.
fn user(value: &str) -> Option<String> {
    let (scheme, encoded) = value.split_once(' ')?;
    let decoded = STANDARD.decode(encoded.trim()).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
    let credential = String::from_utf8(decoded).ok()?;
    Some(credential.split(':').next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_of_basic_is_the_key() {
        let basic = |credential: &str| format!("Basic {}", STANDARD.encode(credential));
        for (value, expected) in [
            (basic("pk_1:"), Some("pk_1")),
            (basic("pk_1"), Some("pk_1")),
            (basic("pk_1:secret:more"), Some("pk_1")),
            (basic("pk_1:").replace("Basic", "basic "), Some("pk_1")),
            (basic(":"), Some("")),
            (basic("pk_1:").replace("Basic", "Bearer"), None),
            ("Basic %".to_owned(), None),
            ("Basic".to_owned(), None),
            (String::new(), None),
        ] {
            assert_eq!(user(&value).as_deref(), expected, "{value}");
        }
    }
}

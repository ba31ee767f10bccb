//! Changes to the whole document: the credentials, and which objects are closed.

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AdditionalProperties, Schema};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, ToSchema};

use super::event::EventShape;

/// How callers say who they are.
pub(crate) struct Credentials;

impl Modify for Credentials {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let bearer = |format: &str, description: &str| {
            let http = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format(format);
            SecurityScheme::Http(http.description(Some(description)).build())
        };
        let public_key = ApiKeyValue::with_description(
            "x-service-pk",
            "A project's public key, `pk_…`. It can only send events, so that it may be in a page.",
        );
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("api_token", bearer("sk_…", "An API token of the organization. It is a secret."));
        let cookie = ApiKeyValue::with_description(
            "headcount",
            "The cookie of `POST /session`, `__Host-headcount` over https. It counts only in requests of the page itself, and not beside a token.",
        );
        components.add_security_scheme("session", SecurityScheme::ApiKey(ApiKey::Cookie(cookie)));
        components
            .add_security_scheme("root_token", bearer("rk_…", "The root token, which makes organizations and nothing else."));
        let operator = "The operator token, in the file `operator-token` of the data directory. Every start makes a new one.";
        components.add_security_scheme("operator_token", bearer("op_…", operator));
        components.add_security_scheme("public_key", SecurityScheme::ApiKey(ApiKey::Header(public_key)));
    }
}

/// Every object has the properties that it has, and no others. Only events may hold more: older servers meet newer
/// trackers.
pub(crate) struct Closed;

impl Modify for Closed {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let schemas = document.components.iter_mut().flat_map(|components| components.schemas.iter_mut());
        for (name, schema) in schemas {
            if *name == EventShape::name() {
                continue;
            }
            if let RefOr::T(Schema::Object(object)) = schema
                && !object.properties.is_empty()
            {
                object.additional_properties.get_or_insert_with(|| Box::new(AdditionalProperties::FreeForm(false)));
            }
        }
    }
}

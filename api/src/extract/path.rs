//! The parameters in paths.

use std::str::FromStr;

use utoipa::openapi::Required;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};

use crate::request::HttpRequest;
use crate::respond::error::{ApiError, Result};

/// Makes types of parameters in paths, for the OpenAPI document.
#[macro_export]
macro_rules! path_parameters {
    ($($name:ident $parameter:literal $pattern:literal $description:literal;)*) => {$(
        #[doc = concat!("`{", $parameter, "}`: ", $description)]
        #[derive(Debug)]
        pub struct $name;

        impl ::utoipa::IntoParams for $name {
            fn into_params(
                _: impl Fn() -> Option<::utoipa::openapi::path::ParameterIn>,
            ) -> Vec<::utoipa::openapi::path::Parameter> {
                vec![$crate::extract::path::in_path($parameter, $pattern, $description)]
            }
        }
    )*};
}
pub use path_parameters;

/// Describes a parameter in a path.
pub fn in_path(name: &str, pattern: &str, description: &str) -> Parameter {
    let schema = ObjectBuilder::new().schema_type(Type::String).pattern(Some(pattern));
    let parameter = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Path).required(Required::True);
    parameter.description(Some(description)).schema(Some(schema)).build()
}

path_parameters! {
    ProjectPath "project_id" "^prj_[0-9A-Za-z]{11}$" "The project.";
    CompanyPath "company_id" "^co_[0-9A-Za-z]{22}$" "The company's id, as answers show it.";
    KeyPath "public_key" "^pk_[0-9A-Za-z]{32}$" "The public key.";
    MemberPath "member_id" "^mem_[0-9A-Za-z]{16}$" "The member's id.";
    PrivacyRequestPath "request_id" "^pr_[0-9A-Za-z]{16}$" "The privacy request's id.";
    SharePath "share_id" "^shr_[0-9A-Za-z]{16}$" "The share's id.";
    TokenPath "token_id" "^tok_[0-9A-Za-z]{16}$" "The token's id.";
}

/// Returns the id in the path. A text that is no id is treated as the id of no `thing`.
pub fn id_in_path<T: FromStr>(request: &HttpRequest, parameter: &str, thing: &'static str) -> Result<T> {
    request.parameter(parameter).parse().map_err(|_| ApiError::not_found(thing))
}

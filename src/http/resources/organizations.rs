//! `POST /organizations`: needs the root token.

use actix_web::HttpResponse;
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::call::ApiCall;
use crate::http::extract::auth;
use crate::http::extract::json::{self, json_body};
use crate::http::extract::query::NoParameters;
use crate::http::resources::management;
use crate::http::respond::error::ApiError;

json_body! {
    /// An organization to be made.
    #[schema(example = json!({"name": "Acme"}))]
    pub(crate) struct NewOrganizationShape {
        /// Its name.
        #[schema(min_length = 1, max_length = 200)]
        name: String = required("a string"),
    }
}

/// A new organization, and the keys that it comes with.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NewOrganizationAnswer {
    /// Its id.
    organization_id: String,
    /// Its first project.
    project_id: String,
    /// The public key of that project.
    public_key: String,
    /// A token of role owner with every scope. It is shown here once, and kept nowhere.
    api_token: String,
}

/// Makes an organization, with one project and one token.
#[utoipa::path(
    post, path = "/organizations", tag = "management", operation_id = "create_organization",
    request_body = NewOrganizationShape,
    responses(
        (status = 201, description = "The organization, and its token, which is shown this once.", body = NewOrganizationAnswer),
    ),
    security(("root_token" = []))
)]
pub(crate) async fn create(ApiCall { state, request, payload }: ApiCall) -> Result<HttpResponse, ApiError> {
    let author = auth::root(&state, &request)?;
    NoParameters::check(&request)?;
    let NewOrganizationShape { name } = json::read(&state, &request, payload).await?;
    let keys = management::change(&state, author, move |registry, by| registry.create_organization(&name, by)).await?;
    Ok(management::created(&NewOrganizationAnswer {
        organization_id: keys.organization_id.to_string(),
        project_id: keys.project_id.to_string(),
        public_key: keys.public_key,
        api_token: keys.api_token.expose().to_owned(),
    }))
}

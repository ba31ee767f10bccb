//! `POST /organizations`: what a root token is for.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::AppState;
use crate::http::extract::auth;
use crate::http::extract::query::{Fields, Query};
use crate::http::openapi::{BodyErrors, RequestErrors, TokenErrors, UnavailableErrors};
use crate::http::respond::error::ApiError;

/// An organization to be made.
#[derive(Debug, ToSchema)]
#[allow(dead_code, reason = "the shape for the document; the body is read field by field")]
pub struct NewOrganizationShape {
    /// Its name.
    #[schema(min_length = 1, max_length = 200)]
    name: String,
}

/// A new organization, and the keys that it comes with.
#[derive(Debug, Serialize, ToSchema)]
pub struct NewOrganizationAnswer {
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
        RequestErrors, TokenErrors, BodyErrors, UnavailableErrors,
    ),
    security(("root_token" = []))
)]
pub async fn create(state: web::Data<AppState>, request: HttpRequest, payload: web::Payload) -> Result<HttpResponse, ApiError> {
    auth::root(&state, &request)?;
    Query::read(&request, &[])?;
    let body = super::json_body(&request, payload).await?;
    let name = super::required(Fields::read(&body, &["name"])?.text("name")?, "name")?;
    let keys = super::change(&state, move |registry, now| registry.create_organization(&name, now)).await?;
    Ok(super::created(&NewOrganizationAnswer {
        organization_id: keys.organization_id.to_string(),
        project_id: keys.project_id.to_string(),
        public_key: keys.public_key,
        api_token: keys.api_token.expose().to_owned(),
    }))
}

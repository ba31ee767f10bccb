//! Where a request of a project goes.

use actix_web::body::BoxBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::middleware::Next;
use actix_web::web::Data;
use actix_web::{Error, HttpRequest, HttpResponse};
use headcount_actors::admission_gate::Holder;
use headcount_common::{NOT_HERE, Owner, home_of, partition_of};
use headcount_domain::ids::ProjectId;

use super::owner_node::OwnerNode;
use super::send::forward;
use super::travel::Travel;
use super::upload::Upload;
use crate::http::app::AppState;
use crate::http::client_end::while_client_waits;
use crate::http::extract::auth;
use crate::http::min_position;
use crate::http::request_metrics::Forwarded;
use crate::http::respond::error::ApiError;

/// Returns the node that a request of a project goes to. `None`: it is answered here.
///
/// A request that came from another node goes no further: the two may each take the other for the owner.
pub(crate) fn way(state: &AppState, request: &HttpRequest, project: ProjectId) -> Result<Option<OwnerNode>, ApiError> {
    way_to(state, request, partition_of(project), Holder::Project(project))
}

/// The same for whatever goes to the owner of a partition.
fn way_to(state: &AppState, request: &HttpRequest, partition: u16, holder: Holder) -> Result<Option<OwnerNode>, ApiError> {
    let owners = state.engine.owners();
    if owners.is_alone() {
        return Ok(None);
    }
    match owners.of(partition) {
        Owner::Here => Ok(None),
        Owner::There(address) if state.first_node(request).is_none() => Ok(Some(OwnerNode { partition, address, holder })),
        Owner::There(_) | Owner::Nowhere => {
            state.request_metrics.count_forwarded(Forwarded::NoOwner);
            Err(ApiError::overloaded(NOT_HERE))
        }
    }
}

/// The middleware of the operations of one webhook that its project's owner does.
pub(crate) async fn by_webhook(
    request: ServiceRequest,
    next: Next<BoxBody>,
    travel: Travel,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let Some(state) = request.app_data::<Data<AppState>>().cloned() else { return next.call(request).await };
    let project = request.match_info().query("webhook_id").parse().ok().and_then(|id| state.engine.project_of_webhook(&id));
    let Some(project) = project else { return next.call(request).await };
    // As for a project: for whom it does not exist, this node says so.
    if !auth::is_visible(&state, request.request(), project) {
        return next.call(request).await;
    }
    let to = match way(&state, request.request(), project) {
        Ok(None) => return next.call(request).await,
        Ok(Some(to)) => to,
        Err(error) => return Ok(request.error_response(error)),
    };
    let (request, payload) = request.into_parts();
    let answer = forward(&state, &request, Upload::from(payload), to, travel).await;
    Ok(ServiceResponse::new(request, answer.unwrap_or_else(HttpResponse::from_error)))
}

/// The middleware of the operations of an organization that its home does.
pub(crate) async fn by_home(
    request: ServiceRequest,
    next: Next<BoxBody>,
    travel: Travel,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let Some(state) = request.app_data::<Data<AppState>>().cloned() else { return next.call(request).await };
    // To whom is nobody, this node says so.
    let Some(organization) = auth::organization_of(&state, request.request()) else { return next.call(request).await };
    let to = match way_to(&state, request.request(), home_of(organization), Holder::Organization(organization)) {
        Ok(None) => return next.call(request).await,
        Ok(Some(to)) => to,
        Err(error) => return Ok(request.error_response(error)),
    };
    let (request, payload) = request.into_parts();
    let answer = forward(&state, &request, Upload::from(payload), to, travel).await;
    Ok(ServiceResponse::new(request, answer.unwrap_or_else(HttpResponse::from_error)))
}

/// The middleware of the operations below `/projects/{project_id}` that travel.
pub(crate) async fn by_path(
    request: ServiceRequest,
    next: Next<BoxBody>,
    travel: Travel,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let Some(state) = request.app_data::<Data<AppState>>().cloned() else { return next.call(request).await };
    let Ok(project) = request.match_info().query("project_id").parse() else { return next.call(request).await };
    let to = match way(&state, request.request(), project) {
        Ok(None) if travel.reads() => return min_position::by_path(request, next).await,
        Ok(None) => return next.call(request).await,
        // For whom the project does not exist, this node says so in the same words as the owner, whether or not there is one.
        _ if !auth::is_visible(&state, request.request(), project) => return next.call(request).await,
        Ok(Some(to)) => to,
        Err(error) => return Ok(request.error_response(error)),
    };
    let (request, payload) = request.into_parts();
    let answer = forward(&state, &request, Upload::from(payload), to, travel);
    let answer = if travel.reads() { while_client_waits(&request, answer).await } else { answer.await };
    Ok(ServiceResponse::new(request, answer.unwrap_or_else(HttpResponse::from_error)))
}

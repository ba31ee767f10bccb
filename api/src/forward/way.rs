//! The node that a request of a project goes to.

use headcount_actors::admission_gate::Holder;
use headcount_common::{NOT_HERE, Owner, home_of, partition_of};
use headcount_domain::ProjectId;

use super::travel::{Destination, OwnerNode};
use crate::app::AppState;
use crate::extract::auth;
use crate::request::HttpRequest;
use crate::request_metrics::Forwarded;
use crate::respond::error::{ApiError, Result};

/// Returns the node that a request of a project goes to. `None`: it is answered here.
///
/// A request that came from another node goes no further: the two may each take the other for the
/// owner.
pub fn way(state: &AppState, request: &HttpRequest, project: ProjectId) -> Result<Option<OwnerNode>> {
    way_to(state, request, partition_of(project), Holder::Project(project))
}

/// The same for requests to the owner of a partition.
fn way_to(state: &AppState, request: &HttpRequest, partition: u16, holder: Holder) -> Result<Option<OwnerNode>> {
    match state.engine.owners().of(partition) {
        Owner::Here => Ok(None),
        Owner::There(address) if request.first_node().is_none() => Ok(Some(OwnerNode { partition, address, holder })),
        Owner::There(_) | Owner::Nowhere => {
            state.request_metrics.count_forwarded(Forwarded::NoOwner);
            Err(ApiError::overloaded(NOT_HERE))
        }
    }
}

/// Returns the node that a request to an endpoint goes to. `None`: it is answered here.
pub(crate) fn way_of(state: &AppState, request: &HttpRequest, destination: Destination) -> Result<Option<OwnerNode>> {
    let named = |parameter| request.parameter(parameter);
    match destination {
        Destination::Here | Destination::ByHandler => Ok(None),
        Destination::ProjectOwner(_) => {
            let Ok(project) = named("project_id").parse() else { return Ok(None) };
            match way(state, request, project) {
                Ok(None) => Ok(None),
                // If the project does not exist for the caller, this node answers so in the same
                // words as an owner would.
                _ if !auth::is_visible(state, request, project) => Ok(None),
                way => way,
            }
        }
        Destination::OwnerOf(_, find) => {
            match find(state, request).filter(|project| auth::is_visible(state, request, *project)) {
                Some(project) => way(state, request, project),
                None => Ok(None),
            }
        }
        Destination::Home(_) => match auth::organization_of(state, request) {
            Some(organization) => way_to(state, request, home_of(organization), Holder::Organization(organization)),
            // This node refuses unknown callers itself.
            None => Ok(None),
        },
    }
}

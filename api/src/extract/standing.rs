//! Whether a request may go on: a client chooses how long its body takes, and its credential may
//! end meanwhile.

use crate::respond::error::Result;
use headcount_control::Authority;
use headcount_domain::OrganizationId;

use crate::app::AppState;
use crate::request::HttpRequest;

/// What a request was let in with.
#[derive(Debug, Clone)]
pub(crate) struct LetIn {
    pub(crate) organization: OrganizationId,
    pub(crate) authority: Authority,
}

impl LetIn {
    /// Keeps it with the request.
    pub(crate) fn note(self, request: &HttpRequest) {
        request.extensions_mut().insert(self);
    }
}

/// Returns the organization of the caller of a request, once the caller is known.
pub fn organization(request: &HttpRequest) -> Option<OrganizationId> {
    request.extensions().get().map(|LetIn { organization, .. }| *organization)
}

/// Checks that the credential is still worth what it was when the request was let in (`auth.rs`). Every body ends with this check.
pub(crate) fn check_again(state: &AppState, request: &HttpRequest) -> Result<()> {
    let extensions = request.extensions();
    let Some(LetIn { authority, .. }) = extensions.get() else { return Ok(()) };
    Ok(state.engine.registry().check_authority(authority, state.engine.clock().now())?)
}

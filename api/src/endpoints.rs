//! The table of endpoints: each feature has a part of it.

use headcount_actors::Engine;
#[doc(hidden)]
pub use headcount_control::Scope;
#[doc(hidden)]
pub use pastey;
use utoipa::openapi::{HttpMethod, OpenApi};

use crate::app::FeatureState;
use crate::dispatch::Endpoint;
use crate::extra_paths::ExtraPaths;
use crate::routes::Router;

/// An operation of the document: its path and its methods, and what answers them.
pub type Operation = (String, Vec<HttpMethod>, Endpoint);

/// The endpoints of a feature, as [`endpoints!`](crate::endpoints!) makes them.
#[derive(Clone, Copy)]
pub struct Endpoints {
    /// Their operations.
    pub operations: fn() -> Vec<Operation>,
    /// Their part of the OpenAPI document.
    pub document: fn() -> OpenApi,
    /// Makes the state of a server that handlers ask for with [`AppState::of`](crate::app::AppState::of).
    pub state: Option<fn(&Engine) -> FeatureState>,
    /// Adds paths that are not in the document.
    pub paths: Option<fn(&mut Router, &ExtraPaths)>,
}

impl Endpoints {
    /// Gives the handlers a state, which a server makes once.
    #[must_use]
    pub const fn with_state(self, state: fn(&Engine) -> FeatureState) -> Self {
        Self { state: Some(state), ..self }
    }

    /// Adds paths that are not in the document.
    #[must_use]
    pub const fn with_paths(self, paths: fn(&mut Router, &ExtraPaths)) -> Self {
        Self { paths: Some(paths), ..self }
    }
}

/// Makes [`Endpoints`] of a table. A row has the module and the handler, who may ask
/// ([`Access`](crate::dispatch::Access)), and which node answers if it is not any
/// ([`Destination`](crate::forward::travel::Destination)). Routes, HEAD, 405, authorization,
/// forwarding and the OpenAPI document follow from it.
#[macro_export]
macro_rules! endpoints {
    (@access $handler:path, $access:ident) => {
        $crate::dispatch::Access::$access(|call| Box::pin($handler(call)))
    };
    (@access $handler:path, $access:ident $scope:ident $role:ident) => {
        $crate::dispatch::Access::$access(
            $crate::endpoints::Scope::$scope,
            $crate::extract::auth::MinRole::$role,
            |call, caller| Box::pin($handler(call, caller)),
        )
    };
    (@destination) => {
        $crate::forward::travel::Destination::Here
    };
    (@destination $destination:ident) => {
        $crate::forward::travel::Destination::$destination
    };
    (@destination $destination:ident $travel:ident) => {
        $crate::forward::travel::Destination::$destination($crate::forward::travel::Travel::$travel)
    };
    (@destination $destination:ident $travel:ident $find:path) => {
        $crate::forward::travel::Destination::$destination($crate::forward::travel::Travel::$travel, $find)
    };
    ($($($module:ident)::+ => $handler:ident: $access:ident $(($scope:ident, $role:ident))? $(, $destination:ident $(($travel:ident $(, $find:path)?))?)?;)*) => {{
        fn operations() -> Vec<$crate::endpoints::Operation> {
            use ::utoipa::Path as _;
            $crate::endpoints::pastey::paste! {
                vec![$({
                    use $($module)::+::{[<__path_ $handler>] as Documented, $handler};
                    let access = $crate::endpoints!(@access $handler, $access $($scope $role)?);
                    let destination = $crate::endpoints!(@destination $($destination $($travel $($find)?)?)?);
                    (Documented::path(), Documented::methods(), $crate::dispatch::Endpoint { access, destination })
                }),*]
            }
        }

        #[derive(::utoipa::OpenApi)]
        #[openapi(paths($($($module)::+::$handler),*))]
        struct Document;

        $crate::endpoints::Endpoints { operations, document: <Document as ::utoipa::OpenApi>::openapi, state: None, paths: None }
    }};
}

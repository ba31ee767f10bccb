//! `POST /v1/track` and the other calls, `/v1/batch` and `/v1/import`, under all their names.

use actix_web::HttpResponse;
use actix_web::http::Method;
use headcount_domain::intake::segment::Call;

use super::answer::SegmentAnswer;
use super::ingest::{CallBody, receive};
use crate::http::call::ApiCall;
use crate::http::openapi::responses::SegmentErrors;
use crate::http::openapi::segment::{MessageBatchShape, MessageShape};
use crate::http::resources::events::cors;
use crate::http::respond::error::ApiError;
use crate::http::routes::Router;

macro_rules! calls {
    ($($name:ident $id:tt $path:tt ($($further:tt)*) $shape:ident $kind:expr, $summary:tt $example:tt;)*) => {
        $(
            #[doc = $summary]
            #[utoipa::path(
                post, path = $path, tag = "segment", operation_id = $id,
                request_body(content(($shape = "application/json", example = json!($example)), (String = "text/plain"))),
                responses(
                    (status = 200, description = "The valid messages are on disk, and every later read counts them.", body = SegmentAnswer),
                    SegmentErrors,
                ),
                security(("write_key" = []), ())
            )]
            pub(crate) async fn $name(call: ApiCall) -> Result<HttpResponse, ApiError> {
                receive(call, $kind).await
            }
        )*

        /// Adds the names that the document leaves out.
        pub(super) fn add_further_paths(router: &mut Router) {
            $(
                for path in [concat!($path, "/"), $($further, concat!($further, "/"),)*] {
                    router.on(path, Method::POST, |call| Box::pin($name(call)));
                    router.on(path, Method::OPTIONS, cors::segment_preflight);
                }
                router.on($path, Method::OPTIONS, cors::segment_preflight);
            )*
        }
    };
}

calls! {
    track "segment_track" "/v1/track" ("/v1/t") MessageShape CallBody::Message(Call::Track),
        "Records what a user did. Also `/v1/t`." {"userId": "ada", "event": "Order Completed", "properties": {"revenue": 25}};
    identify "segment_identify" "/v1/identify" ("/v1/i") MessageShape CallBody::Message(Call::Identify),
        "Records traits of a user. Also `/v1/i`." {"userId": "ada", "anonymousId": "a-1", "traits": {"email": "ada@acme.com"}};
    page "segment_page" "/v1/page" ("/v1/p") MessageShape CallBody::Message(Call::Page),
        "Records a pageview. Also `/v1/p`." {"anonymousId": "a-1", "context": {"page": {"url": "https://acme.com/"}}};
    screen "segment_screen" "/v1/screen" ("/v1/s") MessageShape CallBody::Message(Call::Screen),
        "Records that a user saw a screen of an app. Also `/v1/s`." {"userId": "ada", "name": "Cart"};
    group "segment_group" "/v1/group" ("/v1/g") MessageShape CallBody::Message(Call::Group),
        "Records the company of a user. Also `/v1/g`." {"userId": "ada", "groupId": "acme.com", "traits": {"name": "Acme"}};
    alias "segment_alias" "/v1/alias" ("/v1/a") MessageShape CallBody::Message(Call::Alias),
        "Links an anonymous id to a user. Also `/v1/a`." {"userId": "ada", "previousId": "a-1"};
    batch "segment_batch" "/v1/batch" ("/v1/b") MessageBatchShape CallBody::Batch,
        "Records a batch. Also `/v1/b`." {"batch": [{"type": "track", "userId": "ada", "event": "Signed Up", "messageId": "m-1"}]};
    import "segment_import" "/v1/import" () MessageBatchShape CallBody::Batch,
        "Records a batch, as `/v1/batch` does." {"batch": [{"type": "track", "userId": "ada", "event": "Signed Up", "timestamp": "2024-05-01T10:00:00Z"}]};
}

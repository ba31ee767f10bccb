//! What the files of endpoints import: the request and its caller, parameters and bodies, answers
//! and errors, and their documentation.

pub use actix_web::HttpResponse;
pub use serde::Serialize;
pub use utoipa::ToSchema;

pub use crate::app::AppState;
pub use crate::call::ApiCall;
pub use crate::extract::auth::{self, Asker, Caller, ProjectCaller};
pub use crate::extract::json::{self, EmptyBody, Fields, JsonBody, json_body};
pub use crate::extract::parameters::{
    Choice, Dates, Flag, GroupTypeName, IgnoredDates, KeyQuery, Limit, ListLimit, RangeDays, RunningInterval, Text, TypeFilter,
    after, documented,
};
pub use crate::extract::path::{
    CompanyPath, KeyPath, MemberPath, PrivacyRequestPath, ProjectPath, SharePath, TokenPath, id_in_path, path_parameters,
};
pub use crate::extract::query::{Calendar, NoParameters, QueryParameters, query_parameters};
pub use crate::extract::question::{OrganizationQuestion, ProjectQuestion};
pub use crate::extract::share_rules::{NamedField, SharedQuestion, names_no_field};
pub use crate::openapi::own_schema;
pub use crate::openapi::responses::{
    BodyErrors, ConflictErrors, DownloadErrors, GoneErrors, NotFoundErrors, NotModified, PixelErrors, PublicEventErrors,
    SegmentErrors, SegmentNotFoundErrors, ServerEventErrors, SignInErrors, UnavailableErrors,
};
pub use crate::request::HttpRequest;
pub use crate::respond::answer::{Decimal, Timestamp, answer, shown};
pub use crate::respond::code::ErrorCode;
pub use crate::respond::error::{ApiError, Result};
pub use crate::respond::etag;

//! What the files of endpoints import: the request and its caller, parameters and bodies, answers and
//! errors, and their documentation.

pub(crate) use actix_web::{HttpRequest, HttpResponse};
pub(crate) use serde::Serialize;
pub(crate) use utoipa::ToSchema;

pub(crate) use crate::http::app::AppState;
pub(crate) use crate::http::call::ApiCall;
pub(crate) use crate::http::extract::auth::{self, Asker, Caller, ProjectCaller};
pub(crate) use crate::http::extract::json::{self, EmptyBody, Fields, JsonBody, json_body};
pub(crate) use crate::http::extract::parameters::{
    Choice, Dates, Flag, GroupTypeName, IgnoredDates, KeyQuery, Limit, ListLimit, RangeDays, RunningInterval, Text, TypeFilter,
    documented,
};
pub(crate) use crate::http::extract::path::{
    BuildRunPath, CompanyPath, CompanyProfilePath, KeyPath, MemberPath, PrivacyRequestPath, ProjectPath, SharePath, TokenPath,
    WebhookPath, id_in_path,
};
pub(crate) use crate::http::extract::query::{Calendar, NoParameters, QueryParameters, query_parameters};
pub(crate) use crate::http::extract::question::{OrganizationQuestion, ProjectQuestion};
pub(crate) use crate::http::extract::share_rules::{NamedField, SharedQuestion};
pub(crate) use crate::http::openapi::own_schema;
pub(crate) use crate::http::openapi::responses::{
    BodyErrors, ConflictErrors, DownloadErrors, GoneErrors, NotFoundErrors, NotModified, PixelErrors, PublicEventErrors,
    SegmentErrors, SegmentNotFoundErrors, ServerEventErrors, SignInErrors, UnavailableErrors,
};
pub(crate) use crate::http::respond::answer::{Decimal, Timestamp, answer};
pub(crate) use crate::http::respond::code::ErrorCode;
pub(crate) use crate::http::respond::error::ApiError;
pub(crate) use crate::http::respond::etag;

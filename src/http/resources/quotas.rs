//! The quotas of a project, as requests and answers have them.

use headcount_api::endpoint::*;
use headcount_control::{MAX_QUOTA, OwnQuotas};
use headcount_domain::quota::Quotas;
use serde_json::value::RawValue;
use utoipa::openapi::schema::{AdditionalProperties, Object, ObjectBuilder, Schema, Type};

/// How many different things a project may have over its lifetime. An event with one more is refused: 429 `quota_exceeded`.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct QuotasAnswer {
    /// Groups.
    groups: u64,
    /// Companies.
    companies: u64,
    /// Pages.
    pages: u64,
    /// Sources, mediums, campaigns and referrers, together.
    sources: u64,
}

impl From<Quotas> for QuotasAnswer {
    fn from(quotas: Quotas) -> Self {
        let Quotas { groups, companies, sources, pages } = quotas;
        Self { groups: groups as u64, companies: companies as u64, pages: pages as u64, sources: sources as u64 }
    }
}

/// The schema of the quotas to change.
pub(crate) fn schema() -> Object {
    let quota = || ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).maximum(Some(MAX_QUOTA));
    let names = OwnQuotas::default().named().map(|(name, _)| name);
    names
        .into_iter()
        .fold(ObjectBuilder::new().schema_type(Type::Object), |object, name| object.property(name, quota()))
        .description(Some("The quotas to change. Absent ones stay unchanged."))
        .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)))
        .build()
}

/// Reads the quotas to change.
pub(crate) fn read(fields: &Fields<'_>, name: &str) -> Result<OwnQuotas, ApiError> {
    let Some(object) = fields.optional::<&RawValue>(name, "an object such as {\"pages\": 5000}")? else {
        return Ok(OwnQuotas::default());
    };
    let mut quotas = OwnQuotas::default();
    let names = quotas.named().map(|(name, _)| name);
    let own = Fields::read(object.get().as_bytes(), &names).map_err(|error| error.within(name))?;
    for (kind, quota) in quotas.named() {
        *quota = own.optional(kind, format!("an integer from 1 to {MAX_QUOTA}")).map_err(|error| error.within(name))?;
    }
    Ok(quotas)
}

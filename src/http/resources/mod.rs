//! The endpoints that are no feature's: one file for each, or for each small family, and their
//! table.

pub(crate) mod company_profiles;
pub(crate) mod docs;
pub(crate) mod health;
pub(crate) mod metrics;
mod node_metrics;
pub(crate) mod page;
pub(crate) mod privacy_artifact;
pub(crate) mod privacy_download;
pub(crate) mod privacy_requests;
pub(crate) mod webhooks;

use headcount_api::endpoints;
use headcount_api::endpoints::Endpoints;

/// The endpoints that are no feature's.
pub(crate) const ENDPOINTS: Endpoints = endpoints! {
    company_profiles => build: Organization(CompaniesWrite, Admin);
    company_profiles => show_build: Organization(CompaniesRead, Admin);
    company_profiles => list: Organization(CompaniesRead, Admin);
    company_profiles => create: Organization(CompaniesWrite, Admin);
    company_profiles => show: Organization(CompaniesRead, Admin);
    company_profiles => change: Organization(CompaniesWrite, Admin);
    company_profiles => remove: Organization(CompaniesWrite, Admin);
    webhooks => list: Organization(Admin, Admin);
    webhooks => create: Organization(Admin, Admin), ByHandler;
    webhooks => show: Organization(Admin, Admin);
    webhooks => change: Organization(Admin, Admin);
    webhooks => remove: Organization(Admin, Admin);
    webhooks => rotate_secret: Organization(Admin, Admin);
    webhooks => deliveries: Organization(Admin, Admin), WebhookOwner(Reads);
    webhooks => replay: Organization(Admin, Admin), WebhookOwner(Records);
    privacy_requests => list: Organization(PrivacyRequestsRead, Member), Home(Reads);
    privacy_requests => create: Organization(PrivacyRequestsWrite, Admin), Home(Records);
    privacy_requests => show: Organization(PrivacyRequestsRead, Member), Home(Reads);
    privacy_download => download: Organization(PrivacyRequestsRead, Member), Home(ReadsForLong);
    health => healthz: Open;
    health => readyz: Open;
    health => version: Open;
    metrics => metrics: Open;
    docs => openapi_json: Open;
    docs => docs: Open;
};

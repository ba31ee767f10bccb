//! The subject of a request, as answers and artifacts have it.

use serde::Serialize;
use utoipa::ToSchema;

use crate::request::PrivacySubject;

/// Whom a request is about: one of `email`, `user_id` and `anonymous_id`. The value is `[erased]` once the person is erased.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct PrivacySubjectAnswer {
    /// The e-mail address.
    #[serde(skip_serializing_if = "Option::is_none")]
    email: Option<String>,
    /// The user's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    user_id: Option<String>,
    /// The anonymous id.
    #[serde(skip_serializing_if = "Option::is_none")]
    anonymous_id: Option<String>,
    /// The only project of the anonymous id, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    project_id: Option<String>,
}

impl From<&PrivacySubject> for PrivacySubjectAnswer {
    fn from(subject: &PrivacySubject) -> Self {
        match subject.clone() {
            PrivacySubject::Email(email) => Self { email: Some(email), ..Self::default() },
            PrivacySubject::UserId(user) => Self { user_id: Some(user), ..Self::default() },
            PrivacySubject::AnonymousId { anonymous_id, project } => {
                let project_id = project.map(|project| project.to_string());
                Self { anonymous_id: Some(anonymous_id), project_id, ..Self::default() }
            }
        }
    }
}

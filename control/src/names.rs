//! The enumerations of the management API, each value with its only spelling.

use headcount_domain::named_values;
use serde::{Deserialize, Serialize};

/// Declares an enum whose names are stored and sent unchanged.
macro_rules! names {
    ($(#[$doc:meta])* $name:ident { $($(#[$value_doc:meta])* $value:ident = $text:literal,)+ }) => {
        named_values! {
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
            pub enum $name by as_str {
                $($(#[$value_doc])* #[serde(rename = $text)] $value = $text,)+
            }
        }
    };
}

names! {
    /// A permission of an API token. No scope implies another.
    Scope {
        /// Events, sessions, pages, aggregates.
        AnalyticsRead = "analytics:read",
        /// Orders, attribution, cohorts.
        RevenueRead = "revenue:read",
        /// Users and their activity.
        IdentitiesRead = "identities:read",
        /// Companies, company profiles and their builds.
        CompaniesRead = "companies:read",
        /// Changes of company profiles.
        CompaniesWrite = "companies:write",
        /// Groups.
        GroupsRead = "groups:read",
        /// Lists of privacy requests and their artifacts.
        PrivacyRequestsRead = "privacy_requests:read",
        /// New privacy requests.
        PrivacyRequestsWrite = "privacy_requests:write",
        /// Projects, keys, tokens, the organization's settings.
        Admin = "admin",
        /// The recorded events: lists and exports.
        EventsRead = "events:read",
        /// Events sent by servers.
        EventsWrite = "events:write",
    }
}

names! {
    /// The role of a token's holder in the organization, from the highest to the lowest.
    Role {
        /// May do everything that the token's scopes allow.
        Owner = "owner",
        /// May do everything that the token's scopes allow.
        Admin = "admin",
        /// May not do anything that concerns the whole organization.
        Member = "member",
    }
}

names! {
    /// An optional feature of an organization.
    Capability {
        /// Company profiles of the kind `account`.
        TargetAccounts = "target_accounts",
    }
}

names! {
    /// The action of an audit entry.
    AuditAction {
        /// A new organization.
        OrganizationCreated = "organization.created",
        /// A change of the organization's settings.
        OrganizationUpdated = "organization.updated",
        /// A new project.
        ProjectCreated = "project.created",
        /// A change of a project's settings.
        ProjectUpdated = "project.updated",
        /// The deletion of a project.
        ProjectDeleted = "project.deleted",
        /// A new public key of a project.
        PublicKeyCreated = "public_key.created",
        /// A change of a public key's rate limit.
        PublicKeyUpdated = "public_key.updated",
        /// The removal of a public key.
        PublicKeyDeleted = "public_key.deleted",
        /// A new API token.
        ApiTokenCreated = "api_token.created",
        /// A change of an API token.
        ApiTokenUpdated = "api_token.updated",
        /// The revocation of an API token.
        ApiTokenRevoked = "api_token.revoked",
        /// A new member.
        MemberCreated = "member.created",
        /// A change of a member.
        MemberUpdated = "member.updated",
        /// The removal of a member.
        MemberRemoved = "member.removed",
        /// A new privacy request.
        PrivacyRequestCreated = "privacy_request.created",
        /// A new company profile.
        CompanyProfileCreated = "company_profile.created",
        /// A change of a company profile.
        CompanyProfileUpdated = "company_profile.updated",
        /// The removal of a company profile.
        CompanyProfileDeleted = "company_profile.deleted",
        /// A new webhook.
        WebhookCreated = "webhook.created",
        /// A change of a webhook.
        WebhookUpdated = "webhook.updated",
        /// The removal of a webhook, or of its project.
        WebhookDeleted = "webhook.deleted",
        /// A new signing secret of a webhook.
        WebhookSecretRotated = "webhook.secret_rotated",
        /// A replay of notifications.
        WebhookReplayed = "webhook.replayed",
        /// A new share of a project.
        ShareCreated = "share.created",
        /// The revocation of a share, or the deletion of its project.
        ShareRevoked = "share.revoked",
        /// A new segment, goal, funnel, annotation or alert of a project, or a new channel.
        DefinitionCreated = "definition.created",
        /// A change of one.
        DefinitionUpdated = "definition.updated",
        /// The removal of one.
        DefinitionDeleted = "definition.deleted",
    }
}

names! {
    /// The type of the target of a change.
    TargetType {
        /// An organization.
        Organization = "organization",
        /// A project.
        Project = "project",
        /// A public key.
        PublicKey = "public_key",
        /// An API token.
        ApiToken = "api_token",
        /// A member.
        Member = "member",
        /// A privacy request.
        PrivacyRequest = "privacy_request",
        /// A company profile.
        CompanyProfile = "company_profile",
        /// A webhook.
        Webhook = "webhook",
        /// A share of a project.
        Share = "share",
        /// A segment of a project.
        Segment = "segment",
        /// A goal of a project.
        Goal = "goal",
        /// A funnel of a project.
        Funnel = "funnel",
        /// An annotation of a project.
        Annotation = "annotation",
        /// A channel of an organization.
        Channel = "channel",
        /// An alert of a project.
        Alert = "alert",
    }
}

names! {
    /// The kind of a definition.
    DefinitionKind {
        /// Filters and conditions on people, with a name.
        Segment = "segment",
        /// Events that count as conversions.
        Goal = "goal",
        /// Steps in a row.
        Funnel = "funnel",
        /// A text about a day.
        Annotation = "annotation",
        /// Where messages go.
        Channel = "channel",
        /// A figure, and the threshold at which messages are sent.
        Alert = "alert",
    }
}

names! {
    /// The reason for a change of a balance of Actions.
    ActionReason {
        /// A build of a company profile spent them.
        Build = "build",
        /// A build failed, and its price was refunded.
        Refund = "refund",
        /// An administrator set the balance.
        Set = "set",
    }
}

names! {
    /// The kind of actor who made a change.
    ActorKind {
        /// The holder of an API token.
        Token = "token",
        /// The holder of a root token.
        Root = "root",
        /// A command on the data directory of a stopped server.
        Cli = "cli",
        /// The program itself, or a program that embeds it.
        System = "system",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_reads_back_and_is_what_json_says() {
        for scope in Scope::ALL {
            assert_eq!(scope.as_str().parse(), Ok(*scope));
            assert_eq!(serde_json::to_string(scope).unwrap(), format!("\"{scope}\""));
        }
        assert_eq!(Scope::ALL.len(), 11);
        let error = "root".parse::<Role>().unwrap_err();
        assert_eq!(error.to_string(), "is not one of: owner, admin, member");
    }
}

"""Contains all the data models used in inputs/outputs"""

from .action_row import ActionRow
from .action_row_reason import ActionRowReason
from .actions_answer import ActionsAnswer
from .actor_row import ActorRow
from .actor_row_kind import ActorRowKind
from .aggregate_answer import AggregateAnswer
from .aggregate_question import AggregateQuestion
from .attribution_answer import AttributionAnswer
from .attribution_answer_unconverted import AttributionAnswerUnconverted
from .attribution_row import AttributionRow
from .audit_answer import AuditAnswer
from .audit_row import AuditRow
from .audit_row_action import AuditRowAction
from .audit_row_changes import AuditRowChanges
from .batch_answer import BatchAnswer
from .batch_error import BatchError
from .batch_shape import BatchShape
from .batch_warning import BatchWarning
from .breakdown_answer import BreakdownAnswer
from .breakdown_answer_unconverted import BreakdownAnswerUnconverted
from .breakdown_body import BreakdownBody
from .bucket_figures import BucketFigures
from .build_error_answer import BuildErrorAnswer
from .build_shape import BuildShape
from .build_started_answer import BuildStartedAnswer
from .built_in_name import BuiltInName
from .clock_answer import ClockAnswer
from .clock_confirmation import ClockConfirmation
from .clock_jump_answer import ClockJumpAnswer
from .code_answer import CodeAnswer
from .cohort_of_users import CohortOfUsers
from .cohort_row import CohortRow
from .cohorts_answer import CohortsAnswer
from .cohorts_answer_unconverted import CohortsAnswerUnconverted
from .company_profile_answer import CompanyProfileAnswer
from .company_profile_answer_kind import CompanyProfileAnswerKind
from .company_profile_answer_social import CompanyProfileAnswerSocial
from .company_profile_shape import CompanyProfileShape
from .company_profile_shape_social_type_0 import CompanyProfileShapeSocialType0
from .company_profiles_answer import CompanyProfilesAnswer
from .company_row import CompanyRow
from .compare_shape_type_0 import CompareShapeType0
from .compare_shape_type_1 import CompareShapeType1
from .completed_company_answer import CompletedCompanyAnswer
from .completed_group_answer import CompletedGroupAnswer
from .completed_profile_answer import CompletedProfileAnswer
from .completed_referrers_answer import CompletedReferrersAnswer
from .completed_top_companies_answer import CompletedTopCompaniesAnswer
from .completed_top_groups_answer import CompletedTopGroupsAnswer
from .completed_top_identities_answer import CompletedTopIdentitiesAnswer
from .completed_top_pages_answer import CompletedTopPagesAnswer
from .completed_top_users_answer import CompletedTopUsersAnswer
from .contributing_event import ContributingEvent
from .contribution_reason import ContributionReason
from .damaged_file_answer import DamagedFileAnswer
from .deliveries_answer import DeliveriesAnswer
from .delivery_answer import DeliveryAnswer
from .delivery_answer_status import DeliveryAnswerStatus
from .differing_cell_answer import DifferingCellAnswer
from .dimension_name import DimensionName
from .dropped_by_reason import DroppedByReason
from .entity_level_name import EntityLevelName
from .error_body import ErrorBody
from .error_detail import ErrorDetail
from .error_type import ErrorType
from .event_row import EventRow
from .event_shape import EventShape
from .event_warning import EventWarning
from .events_answer import EventsAnswer
from .explain_answer import ExplainAnswer
from .explain_body import ExplainBody
from .export_events_format import ExportEventsFormat
from .field_change_row import FieldChangeRow
from .field_row import FieldRow
from .fields_answer import FieldsAnswer
from .figure_name import FigureName
from .figures_row import FiguresRow
from .filter_shape import FilterShape
from .filter_shape_operator import FilterShapeOperator
from .group_answer import GroupAnswer
from .group_row import GroupRow
from .health_answer import HealthAnswer
from .identity_row import IdentityRow
from .intake_answer import IntakeAnswer
from .intake_answer_repaired import IntakeAnswerRepaired
from .interval_name import IntervalName
from .key_answer import KeyAnswer
from .key_limit_answer import KeyLimitAnswer
from .key_limit_shape import KeyLimitShape
from .keys_answer import KeysAnswer
from .lifetime_figures_answer import LifetimeFiguresAnswer
from .list_privacy_requests_status import ListPrivacyRequestsStatus
from .list_privacy_requests_type import ListPrivacyRequestsType
from .list_webhook_deliveries_status import ListWebhookDeliveriesStatus
from .member_answer import MemberAnswer
from .member_answer_role import MemberAnswerRole
from .member_patch_shape import MemberPatchShape
from .member_patch_shape_role import MemberPatchShapeRole
from .members_answer import MembersAnswer
from .metrics_answer import MetricsAnswer
from .metrics_answer_unconverted import MetricsAnswerUnconverted
from .new_member_shape import NewMemberShape
from .new_member_shape_role import NewMemberShapeRole
from .new_organization_answer import NewOrganizationAnswer
from .new_organization_shape import NewOrganizationShape
from .new_privacy_request_shape import NewPrivacyRequestShape
from .new_privacy_request_shape_type import NewPrivacyRequestShapeType
from .new_project_shape import NewProjectShape
from .new_project_shape_bots import NewProjectShapeBots
from .new_project_shape_signals_policy import NewProjectShapeSignalsPolicy
from .new_share_answer import NewShareAnswer
from .new_share_shape import NewShareShape
from .new_token_answer import NewTokenAnswer
from .new_token_answer_role import NewTokenAnswerRole
from .new_token_answer_scopes_item import NewTokenAnswerScopesItem
from .new_token_shape import NewTokenShape
from .new_token_shape_role import NewTokenShapeRole
from .new_token_shape_scopes_item import NewTokenShapeScopesItem
from .new_webhook_answer import NewWebhookAnswer
from .new_webhook_answer_events_item import NewWebhookAnswerEventsItem
from .new_webhook_answer_status import NewWebhookAnswerStatus
from .new_webhook_shape import NewWebhookShape
from .new_webhook_shape_events_item import NewWebhookShapeEventsItem
from .omission_reason import OmissionReason
from .order_by_name import OrderByName
from .organization_answer import OrganizationAnswer
from .organization_answer_capabilities_item import OrganizationAnswerCapabilitiesItem
from .organization_answer_fx_rates import OrganizationAnswerFxRates
from .organization_patch_shape import OrganizationPatchShape
from .organization_patch_shape_capabilities_item import (
    OrganizationPatchShapeCapabilitiesItem,
)
from .organization_patch_shape_fx_rates import OrganizationPatchShapeFxRates
from .overrides_shape import OverridesShape
from .page_count import PageCount
from .previous_figures import PreviousFigures
from .previous_row import PreviousRow
from .previous_window import PreviousWindow
from .privacy_artifact_shape import PrivacyArtifactShape
from .privacy_artifact_shape_companies_item import PrivacyArtifactShapeCompaniesItem
from .privacy_artifact_shape_events_item import PrivacyArtifactShapeEventsItem
from .privacy_artifact_shape_groups_item import PrivacyArtifactShapeGroupsItem
from .privacy_artifact_shape_identities_item import PrivacyArtifactShapeIdentitiesItem
from .privacy_artifact_shape_identities_item_anonymous_ids_item import (
    PrivacyArtifactShapeIdentitiesItemAnonymousIdsItem,
)
from .privacy_artifact_shape_identities_item_traits import (
    PrivacyArtifactShapeIdentitiesItemTraits,
)
from .privacy_artifact_shape_identity_type_1 import PrivacyArtifactShapeIdentityType1
from .privacy_artifact_shape_identity_type_1_anonymous_ids_item import (
    PrivacyArtifactShapeIdentityType1AnonymousIdsItem,
)
from .privacy_artifact_shape_identity_type_1_traits import (
    PrivacyArtifactShapeIdentityType1Traits,
)
from .privacy_artifact_shape_orders_item import PrivacyArtifactShapeOrdersItem
from .privacy_artifact_shape_sessions_item import PrivacyArtifactShapeSessionsItem
from .privacy_audit_answer import PrivacyAuditAnswer
from .privacy_detail import PrivacyDetail
from .privacy_failure_answer import PrivacyFailureAnswer
from .privacy_request_answer import PrivacyRequestAnswer
from .privacy_request_answer_status import PrivacyRequestAnswerStatus
from .privacy_request_answer_type import PrivacyRequestAnswerType
from .privacy_requests_answer import PrivacyRequestsAnswer
from .privacy_subject_answer import PrivacySubjectAnswer
from .profile_build_answer import ProfileBuildAnswer
from .profile_build_answer_status import ProfileBuildAnswerStatus
from .profile_source_answer import ProfileSourceAnswer
from .project_answer import ProjectAnswer
from .project_answer_bots import ProjectAnswerBots
from .project_answer_signals_policy import ProjectAnswerSignalsPolicy
from .project_patch_shape import ProjectPatchShape
from .project_patch_shape_bots import ProjectPatchShapeBots
from .project_patch_shape_quotas import ProjectPatchShapeQuotas
from .project_patch_shape_signals_policy import ProjectPatchShapeSignalsPolicy
from .projects_answer import ProjectsAnswer
from .quotas_answer import QuotasAnswer
from .referrer_count import ReferrerCount
from .report_answer import ReportAnswer
from .report_answer_unconverted import ReportAnswerUnconverted
from .report_body import ReportBody
from .retention_answer import RetentionAnswer
from .retention_interval import RetentionInterval
from .revenue_by_attribution_dimension import RevenueByAttributionDimension
from .revenue_by_attribution_level import RevenueByAttributionLevel
from .revenue_by_attribution_model import RevenueByAttributionModel
from .revenue_day import RevenueDay
from .revenue_ltv_cohorts_level import RevenueLtvCohortsLevel
from .rotated_secret_answer import RotatedSecretAnswer
from .seal_answer import SealAnswer
from .session_answer import SessionAnswer
from .session_answer_role import SessionAnswerRole
from .session_answer_scopes_item import SessionAnswerScopesItem
from .session_project import SessionProject
from .sessions_row import SessionsRow
from .share_answer import ShareAnswer
from .shares_answer import SharesAnswer
from .sign_in_shape import SignInShape
from .target_row import TargetRow
from .target_row_type import TargetRowType
from .timeseries_answer import TimeseriesAnswer
from .timeseries_answer_unconverted import TimeseriesAnswerUnconverted
from .token_answer import TokenAnswer
from .token_answer_role import TokenAnswerRole
from .token_answer_scopes_item import TokenAnswerScopesItem
from .token_patch_shape import TokenPatchShape
from .tokens_answer import TokensAnswer
from .top_identities_sort import TopIdentitiesSort
from .total_figures import TotalFigures
from .touch_model_name import TouchModelName
from .track_answer import TrackAnswer
from .track_status import TrackStatus
from .traffic_answer import TrafficAnswer
from .unconverted_money import UnconvertedMoney
from .uncounted_event import UncountedEvent
from .unique_users_answer import UniqueUsersAnswer
from .unique_users_question import UniqueUsersQuestion
from .unverified_partition_answer import UnverifiedPartitionAnswer
from .user_row import UserRow
from .users_day import UsersDay
from .verified_project_answer import VerifiedProjectAnswer
from .verify_answer import VerifyAnswer
from .version_answer import VersionAnswer
from .webhook_answer import WebhookAnswer
from .webhook_answer_events_item import WebhookAnswerEventsItem
from .webhook_answer_status import WebhookAnswerStatus
from .webhook_patch_shape import WebhookPatchShape
from .webhook_patch_shape_events_item import WebhookPatchShapeEventsItem
from .webhook_patch_shape_status import WebhookPatchShapeStatus
from .webhook_replay_answer import WebhookReplayAnswer
from .webhook_replay_shape import WebhookReplayShape
from .webhooks_answer import WebhooksAnswer

__all__ = (
    "ActionRow",
    "ActionRowReason",
    "ActionsAnswer",
    "ActorRow",
    "ActorRowKind",
    "AggregateAnswer",
    "AggregateQuestion",
    "AttributionAnswer",
    "AttributionAnswerUnconverted",
    "AttributionRow",
    "AuditAnswer",
    "AuditRow",
    "AuditRowAction",
    "AuditRowChanges",
    "BatchAnswer",
    "BatchError",
    "BatchShape",
    "BatchWarning",
    "BreakdownAnswer",
    "BreakdownAnswerUnconverted",
    "BreakdownBody",
    "BucketFigures",
    "BuildErrorAnswer",
    "BuildShape",
    "BuildStartedAnswer",
    "BuiltInName",
    "ClockAnswer",
    "ClockConfirmation",
    "ClockJumpAnswer",
    "CodeAnswer",
    "CohortOfUsers",
    "CohortRow",
    "CohortsAnswer",
    "CohortsAnswerUnconverted",
    "CompanyProfileAnswer",
    "CompanyProfileAnswerKind",
    "CompanyProfileAnswerSocial",
    "CompanyProfileShape",
    "CompanyProfileShapeSocialType0",
    "CompanyProfilesAnswer",
    "CompanyRow",
    "CompareShapeType0",
    "CompareShapeType1",
    "CompletedCompanyAnswer",
    "CompletedGroupAnswer",
    "CompletedProfileAnswer",
    "CompletedReferrersAnswer",
    "CompletedTopCompaniesAnswer",
    "CompletedTopGroupsAnswer",
    "CompletedTopIdentitiesAnswer",
    "CompletedTopPagesAnswer",
    "CompletedTopUsersAnswer",
    "ContributingEvent",
    "ContributionReason",
    "DamagedFileAnswer",
    "DeliveriesAnswer",
    "DeliveryAnswer",
    "DeliveryAnswerStatus",
    "DifferingCellAnswer",
    "DimensionName",
    "DroppedByReason",
    "EntityLevelName",
    "ErrorBody",
    "ErrorDetail",
    "ErrorType",
    "EventRow",
    "EventShape",
    "EventWarning",
    "EventsAnswer",
    "ExplainAnswer",
    "ExplainBody",
    "ExportEventsFormat",
    "FieldChangeRow",
    "FieldRow",
    "FieldsAnswer",
    "FigureName",
    "FiguresRow",
    "FilterShape",
    "FilterShapeOperator",
    "GroupAnswer",
    "GroupRow",
    "HealthAnswer",
    "IdentityRow",
    "IntakeAnswer",
    "IntakeAnswerRepaired",
    "IntervalName",
    "KeyAnswer",
    "KeyLimitAnswer",
    "KeyLimitShape",
    "KeysAnswer",
    "LifetimeFiguresAnswer",
    "ListPrivacyRequestsStatus",
    "ListPrivacyRequestsType",
    "ListWebhookDeliveriesStatus",
    "MemberAnswer",
    "MemberAnswerRole",
    "MemberPatchShape",
    "MemberPatchShapeRole",
    "MembersAnswer",
    "MetricsAnswer",
    "MetricsAnswerUnconverted",
    "NewMemberShape",
    "NewMemberShapeRole",
    "NewOrganizationAnswer",
    "NewOrganizationShape",
    "NewPrivacyRequestShape",
    "NewPrivacyRequestShapeType",
    "NewProjectShape",
    "NewProjectShapeBots",
    "NewProjectShapeSignalsPolicy",
    "NewShareAnswer",
    "NewShareShape",
    "NewTokenAnswer",
    "NewTokenAnswerRole",
    "NewTokenAnswerScopesItem",
    "NewTokenShape",
    "NewTokenShapeRole",
    "NewTokenShapeScopesItem",
    "NewWebhookAnswer",
    "NewWebhookAnswerEventsItem",
    "NewWebhookAnswerStatus",
    "NewWebhookShape",
    "NewWebhookShapeEventsItem",
    "OmissionReason",
    "OrderByName",
    "OrganizationAnswer",
    "OrganizationAnswerCapabilitiesItem",
    "OrganizationAnswerFxRates",
    "OrganizationPatchShape",
    "OrganizationPatchShapeCapabilitiesItem",
    "OrganizationPatchShapeFxRates",
    "OverridesShape",
    "PageCount",
    "PreviousFigures",
    "PreviousRow",
    "PreviousWindow",
    "PrivacyArtifactShape",
    "PrivacyArtifactShapeCompaniesItem",
    "PrivacyArtifactShapeEventsItem",
    "PrivacyArtifactShapeGroupsItem",
    "PrivacyArtifactShapeIdentitiesItem",
    "PrivacyArtifactShapeIdentitiesItemAnonymousIdsItem",
    "PrivacyArtifactShapeIdentitiesItemTraits",
    "PrivacyArtifactShapeIdentityType1",
    "PrivacyArtifactShapeIdentityType1AnonymousIdsItem",
    "PrivacyArtifactShapeIdentityType1Traits",
    "PrivacyArtifactShapeOrdersItem",
    "PrivacyArtifactShapeSessionsItem",
    "PrivacyAuditAnswer",
    "PrivacyDetail",
    "PrivacyFailureAnswer",
    "PrivacyRequestAnswer",
    "PrivacyRequestAnswerStatus",
    "PrivacyRequestAnswerType",
    "PrivacyRequestsAnswer",
    "PrivacySubjectAnswer",
    "ProfileBuildAnswer",
    "ProfileBuildAnswerStatus",
    "ProfileSourceAnswer",
    "ProjectAnswer",
    "ProjectAnswerBots",
    "ProjectAnswerSignalsPolicy",
    "ProjectPatchShape",
    "ProjectPatchShapeBots",
    "ProjectPatchShapeQuotas",
    "ProjectPatchShapeSignalsPolicy",
    "ProjectsAnswer",
    "QuotasAnswer",
    "ReferrerCount",
    "ReportAnswer",
    "ReportAnswerUnconverted",
    "ReportBody",
    "RetentionAnswer",
    "RetentionInterval",
    "RevenueByAttributionDimension",
    "RevenueByAttributionLevel",
    "RevenueByAttributionModel",
    "RevenueDay",
    "RevenueLtvCohortsLevel",
    "RotatedSecretAnswer",
    "SealAnswer",
    "SessionAnswer",
    "SessionAnswerRole",
    "SessionAnswerScopesItem",
    "SessionProject",
    "SessionsRow",
    "ShareAnswer",
    "SharesAnswer",
    "SignInShape",
    "TargetRow",
    "TargetRowType",
    "TimeseriesAnswer",
    "TimeseriesAnswerUnconverted",
    "TokenAnswer",
    "TokenAnswerRole",
    "TokenAnswerScopesItem",
    "TokenPatchShape",
    "TokensAnswer",
    "TopIdentitiesSort",
    "TotalFigures",
    "TouchModelName",
    "TrackAnswer",
    "TrackStatus",
    "TrafficAnswer",
    "UnconvertedMoney",
    "UncountedEvent",
    "UniqueUsersAnswer",
    "UniqueUsersQuestion",
    "UnverifiedPartitionAnswer",
    "UserRow",
    "UsersDay",
    "VerifiedProjectAnswer",
    "VerifyAnswer",
    "VersionAnswer",
    "WebhookAnswer",
    "WebhookAnswerEventsItem",
    "WebhookAnswerStatus",
    "WebhookPatchShape",
    "WebhookPatchShapeEventsItem",
    "WebhookPatchShapeStatus",
    "WebhookReplayAnswer",
    "WebhookReplayShape",
    "WebhooksAnswer",
)

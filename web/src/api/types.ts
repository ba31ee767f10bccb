// The server's answers, as `/openapi.json` describes them.

import type { Clause } from "../lib/filters";
import type { Condition } from "../lib/people";

export interface Project {
  project_id: string;
  name: string;
  currency: string;
  retention_days: number | null;
  retention_floor: string | null;
}

export interface Session {
  role: "owner" | "admin" | "member";
  scopes: string[];
  projects: Project[];
  timezone: string;
  /** A share shows one project, without people and companies. */
  share: boolean;
}

export interface Figures {
  unique_users: number;
  sessions: number;
  pageviews: number;
  events: number;
  bounce_rate: number;
  duration_avg_sec: number;
  /** Absent without access to revenue. */
  revenue?: number;
  orders?: number;
}

export type FigureName = keyof Figures;
export type Interval = "hour" | "day" | "week" | "month";

export interface Bucket extends Figures {
  bucket: string;
  complete: boolean;
}

export type Unconverted = Record<string, { revenue: number; orders: number }>;

export interface Report {
  totals: Figures;
  series: Bucket[];
  previous: { totals: Figures; series: Bucket[]; start_date: string; end_date: string } | null;
  unconverted?: Unconverted;
  currency?: string;
  interval: Interval;
  start_date: string;
  end_date: string;
  timezone: string;
}

export interface ExplainedEvent {
  event_id: string;
  position: number;
  at: string;
  name: string;
  identity_id: string | null;
  /** Absent without access to revenue. */
  value?: number | null;
  currency?: string | null;
  /** Absent if the event isn't counted. */
  contributes?: number;
  why: string;
}

export interface Explanation {
  result: number;
  rows: ExplainedEvent[];
  not_counted: ExplainedEvent[];
  next: string | null;
  currency?: string;
  start_date: string;
  end_date: string;
}

export type Scalar = string | number | boolean | null;

export interface BreakdownFigures {
  unique_users: number;
  sessions: number;
  pageviews: number;
  events: number;
  revenue?: number;
  orders?: number;
}

export interface BreakdownRow extends BreakdownFigures {
  value: Scalar;
  previous: BreakdownFigures | null;
}

export interface Breakdown {
  rows: BreakdownRow[];
  total_rows: number;
  truncated: boolean;
  currency?: string;
  timezone: string;
}

export interface Retention {
  cohorts: { cohort: string; users: number; returned: number[] }[];
  interval: "week" | "month";
  timezone: string;
  truncated: boolean;
}

export interface RevenueMetrics {
  total_revenue: number;
  orders: number;
  aov: number;
  arpa: number;
  arpu: number;
  currency: string;
  unconverted: Unconverted;
}

export interface RevenueSeries {
  currency: string;
  series: { day: string; revenue: number; orders: number }[];
  unconverted: Unconverted;
}

export interface Attribution {
  currency: string;
  rows: { dimension: string; revenue: number; orders: number }[];
  truncated: boolean;
}

export interface LtvCohorts {
  currency: string;
  cohorts: { cohort: string; entities: number; revenue: number; orders: number; ltv: number }[];
  truncated: boolean;
}

export interface CompanyRow {
  company_id: string;
  name: string | null;
  domain: string | null;
  events: number;
  users: number;
  revenue: number;
  last_seen: string;
}

/** An answer across projects: before `complete_from`, some of them no longer store events. */
export interface Completed {
  complete_from: string | null;
}

export interface CompanyFigures extends CompanyRow, Completed {
  sessions: number;
  orders: number;
  currency: string;
  first_seen: string;
}

export interface UserRow {
  resolved_identifier: string;
  identity_id: string;
  user_id: string | null;
  email: string | null;
  events: number;
  last_seen: string;
}

export interface PersonRow extends UserRow {
  revenue: number;
}

export interface People extends Completed {
  identities: PersonRow[];
  currency: string;
  truncated: boolean;
}

export interface PersonProfile extends Completed {
  identity_id: string;
  events: number;
  pageviews: number;
  sessions: number;
  duration_avg_sec: number;
  duration_p90_sec: number;
  bounce_rate: number;
  active_days: number;
  first_seen: string;
  last_seen: string;
  revenue: number;
}

export interface GroupRow {
  group_type: string;
  group_key: string;
  name: string | null;
  events: number;
  users: number;
  last_seen: string;
}

export interface Intake {
  recorded: number;
  without_consent: number;
  duplicates: number;
  dropped: { bot: number; consent: number; opted_out: number; retention: number };
  invalid: number;
  repaired: Record<string, number>;
  last_event_at: string | null;
  approximate: boolean;
}

export interface LiveToday {
  events: number;
  unique_users: number;
  sessions: number;
  pageviews: number;
  revenue?: number;
  orders?: number;
}

export interface LiveMinute {
  minute: string;
  events: number;
  users: number;
}

export interface LiveFrame {
  at: string;
  today: LiveToday;
  online: { users_5m: number };
  minutes: LiveMinute[];
  currency?: string;
}

export interface LiveNotification {
  event_id: string;
  name: string;
  message: string | null;
  channel: string | null;
  at: string;
  position: number;
}

export interface Organization {
  name: string;
  timezone: string;
  currency: string;
  fx_rates: Record<string, number>;
}

export interface ProjectSettings extends Project {
  public_key: string;
  public_keys: string[];
  allowed_origins: string[];
  cookieless: boolean;
  bots: "drop" | "record";
  signals_policy: "record" | "anonymize" | "drop";
  server_only_revenue: boolean;
  own_domains: string[];
  ignored_referrers: string[];
  created_at: string;
}

export interface Token {
  token_id: string;
  name: string;
  role: string;
  scopes: string[];
  project_id: string | null;
  created_at: string;
  expires_at: string | null;
}

export interface Member {
  member_id: string;
  email: string;
  name: string | null;
  role: string;
  created_at: string;
}

export interface Webhook {
  id: string;
  project_id: string;
  url: string;
  events: string[];
  status: string;
  created_at: string;
}

export interface PrivacyRequest {
  id: string;
  type: "export" | "erasure";
  status: string;
  subject: Record<string, string | null>;
  created_at: string;
  completed_at: string | null;
  download_available: boolean;
}

export interface Goal {
  goal_id: string;
  name: string;
  event_name: string | null;
  page: string | null;
  filters: Clause[];
  created_at: string;
}

export interface GoalFigures {
  conversions: number;
  converters: number;
  rate: number;
  revenue?: number;
}

export interface GoalRow extends GoalFigures {
  goal_id: string;
  name: string;
  previous: GoalFigures | null;
}

export interface Goals {
  goals: GoalRow[];
  unique_users: number;
  previous: { unique_users: number; start_date: string; end_date: string } | null;
  currency?: string;
}

export interface Segment {
  segment_id: string;
  name: string;
  filters: Clause[];
  people: Condition[];
}

export interface Annotation {
  annotation_id: string;
  day: string;
  text: string;
  author: string | null;
}

export interface FunnelStep {
  name: string;
  entities: number;
  rate: number;
  step_rate: number | null;
  median_sec: number | null;
  p75_sec: number | null;
  dropped: number;
  revenue?: number;
}

export interface FunnelRow {
  value: Scalar;
  steps: number[];
  rate: number;
}

export interface Funnel {
  steps: FunnelStep[];
  completed: number;
  rate: number;
  median_sec: number | null;
  p75_sec: number | null;
  breakdown: FunnelRow[] | null;
  total_rows: number;
  truncated: boolean;
  previous: { steps: number[]; completed: number; rate: number; start_date: string; end_date: string } | null;
  unconverted?: Unconverted;
  currency?: string;
  start_date: string;
  end_date: string;
}

export interface FunnelPerson {
  identity_id?: string;
  company_id?: string;
  /** Null for a visitor without any id. */
  resolved_identifier: string | null;
  at: string;
}

export interface JourneyNode {
  /** Null stands for `other` values. */
  value: string | null;
  sessions: number;
  users: number;
  exits: number;
  revenue?: number;
  other: number;
}

export interface JourneyLink {
  /** The number of the step that it leads to. */
  step: number;
  from: string | null;
  to: string | null;
  sessions: number;
  users: number;
}

export interface Journeys {
  sessions: number;
  steps: { nodes: JourneyNode[] }[];
  links: JourneyLink[];
  top: { path: string[]; sessions: number; users: number; revenue?: number }[];
  unconverted?: Unconverted;
  currency?: string;
  start_date: string;
  end_date: string;
}

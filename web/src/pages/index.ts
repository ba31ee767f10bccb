import type { FunctionComponent } from "preact";
import { Companies } from "./Companies";
import { Funnels } from "./Funnels";
import { Groups } from "./Groups";
import { Health } from "./Health";
import { Journeys } from "./Journeys";
import { Live } from "./Live";
import { Overview } from "./Overview";
import { People } from "./People";
import { RetentionPage } from "./Retention";
import { Revenue } from "./Revenue";
import { Settings } from "./Settings";

export interface Page {
  id: string;
  name: string;
  icon: string;
  group: string;
  /** Who sees the page. A share sees only pages for `anyone`, and `money` if it shows revenue. */
  needs: "anyone" | "token" | "money" | "admin";
  hasPeriod?: boolean;
  hasFilters?: boolean;
  View: FunctionComponent;
}

const PROJECT = "Project";
const ORGANIZATION = "Organization";
export const SETUP = "Setup";

export const PAGES: Page[] = [
  { id: "overview", name: "Overview", icon: "overview", group: PROJECT, needs: "anyone", hasPeriod: true, hasFilters: true, View: Overview },
  { id: "live", name: "Live", icon: "live", group: PROJECT, needs: "anyone", View: Live },
  { id: "revenue", name: "Revenue", icon: "revenue", group: PROJECT, needs: "money", hasPeriod: true, View: Revenue },
  { id: "retention", name: "Retention", icon: "retention", group: PROJECT, needs: "anyone", View: RetentionPage },
  { id: "funnels", name: "Funnels", icon: "funnel", group: PROJECT, needs: "anyone", hasPeriod: true, hasFilters: true, View: Funnels },
  { id: "journeys", name: "Journeys", icon: "journeys", group: PROJECT, needs: "anyone", hasPeriod: true, hasFilters: true, View: Journeys },
  { id: "companies", name: "Companies", icon: "companies", group: ORGANIZATION, needs: "token", View: Companies },
  { id: "people", name: "People", icon: "people", group: ORGANIZATION, needs: "token", View: People },
  { id: "groups", name: "Groups", icon: "groups", group: ORGANIZATION, needs: "token", View: Groups },
  { id: "health", name: "Data health", icon: "health", group: SETUP, needs: "token", View: Health },
  { id: "settings", name: "Settings", icon: "settings", group: SETUP, needs: "admin", View: Settings },
];

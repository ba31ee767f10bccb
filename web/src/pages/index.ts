import type { FunctionComponent } from "preact";
import { Companies } from "./Companies";
import { Groups } from "./Groups";
import { Health } from "./Health";
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
  { id: "companies", name: "Companies", icon: "companies", group: ORGANIZATION, needs: "token", View: Companies },
  { id: "people", name: "People", icon: "people", group: ORGANIZATION, needs: "token", View: People },
  { id: "groups", name: "Groups", icon: "groups", group: ORGANIZATION, needs: "token", View: Groups },
  { id: "health", name: "Data health", icon: "health", group: SETUP, needs: "token", View: Health },
  { id: "settings", name: "Settings", icon: "settings", group: SETUP, needs: "admin", View: Settings },
];

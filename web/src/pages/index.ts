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
  /** Who sees it: a share sees only what is for anyone, and money if it may. */
  needs: "anyone" | "token" | "money" | "admin";
  hasPeriod?: boolean;
  hasFilters?: boolean;
  View: FunctionComponent;
}

const WHAT = "Project";
const WHO = "Organization";
const HOW = "Setup";

export const PAGES: Page[] = [
  { id: "overview", name: "Overview", icon: "overview", group: WHAT, needs: "anyone", hasPeriod: true, hasFilters: true, View: Overview },
  { id: "live", name: "Live", icon: "live", group: WHAT, needs: "anyone", View: Live },
  { id: "revenue", name: "Revenue", icon: "revenue", group: WHAT, needs: "money", hasPeriod: true, View: Revenue },
  { id: "retention", name: "Retention", icon: "retention", group: WHAT, needs: "anyone", View: RetentionPage },
  { id: "companies", name: "Companies", icon: "companies", group: WHO, needs: "token", View: Companies },
  { id: "people", name: "People", icon: "people", group: WHO, needs: "token", View: People },
  { id: "groups", name: "Groups", icon: "groups", group: WHO, needs: "token", View: Groups },
  { id: "health", name: "Data health", icon: "health", group: HOW, needs: "token", View: Health },
  { id: "settings", name: "Settings", icon: "settings", group: HOW, needs: "admin", View: Settings },
];

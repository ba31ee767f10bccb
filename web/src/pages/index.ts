import type { FunctionComponent } from "preact";
import { Overview } from "./Overview";

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

export const PAGES: Page[] = [
  { id: "overview", name: "Overview", icon: "overview", group: "", needs: "anyone", hasPeriod: true, hasFilters: true, View: Overview },
];

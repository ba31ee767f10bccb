import type { Dimension } from "../parts/BreakdownCard";

export const SOURCES: Dimension[] = [
  { id: "source", name: "Sources", field: "source", figure: "unique_users", showsMoney: true },
  { id: "channel", name: "Channels", field: "acquisition_channel", figure: "unique_users", showsMoney: true },
  { id: "medium", name: "Mediums", field: "medium", figure: "unique_users", showsMoney: true },
  { id: "campaign", name: "Campaigns", field: "campaign", figure: "unique_users", showsMoney: true },
];

export const PAGES_OF_SITE: Dimension[] = [
  { id: "path", name: "Pages", field: "path", figure: "pageviews" },
  { id: "entry", name: "Entry pages", field: "entry_url", figure: "sessions" },
  { id: "exit", name: "Exit pages", field: "exit_url", figure: "sessions" },
  { id: "host", name: "Hostnames", field: "hostname", figure: "pageviews" },
];

export const LOCATIONS: Dimension[] = [
  { id: "country", name: "Countries", field: "location_country", figure: "unique_users", none: "Unknown" },
  { id: "language", name: "Languages", field: "language", figure: "unique_users", none: "Unknown" },
];

export const DEVICES: Dimension[] = [
  { id: "browser", name: "Browsers", field: "browser", figure: "unique_users", none: "Unknown" },
  { id: "os", name: "OS", field: "os", figure: "unique_users", none: "Unknown" },
  { id: "device", name: "Types", field: "device", figure: "unique_users", none: "Unknown" },
  { id: "screen", name: "Screens", field: "screen", figure: "unique_users", none: "Unknown" },
];

export const EVENTS: Dimension = { id: "name", name: "Events", field: "name", figure: "events" };

const PATHS = {
  overview: "M2.5 13.5v-4M6.2 13.5v-8M9.8 13.5v-5.5M13.5 13.5V3",
  live: "M8 8h.01M5.2 10.8a4 4 0 0 1 0-5.6M10.8 5.2a4 4 0 0 1 0 5.6M3 13a7 7 0 0 1 0-10M13 3a7 7 0 0 1 0 10",
  revenue: "M8 1.8v12.4M11.2 4.6C10.6 3.6 9.4 3.2 8 3.2c-1.9 0-3.2.9-3.2 2.300C4.8 9 11.4 7 11.4 10.300c0 1.5-1.5 2.5-3.4 2.5-1.6 0-2.9-.6-3.5-1.7",
  retention: "M2.5 3.500h11M2.5 8h8M2.5 12.500h5",
  companies: "M2.5 13.500v-11h6.500v11M9 6.500h4.500v7M1.5 13.500h13M5 5.500h1.500M5 8h1.500M5 10.500h1.5",
  people: "M8 7.500a2.7 2.7 0 1 0 0-5.4 2.7 2.7 0 0 0 0 5.400zM2.8 13.800c.4-2.7 2.5-4.2 5.2-4.200s4.8 1.5 5.2 4.2",
  groups: "M5.5 7.500a2.2 2.2 0 1 0 0-4.4 2.2 2.2 0 0 0 0 4.400zM1.5 13c.3-2.3 1.9-3.5 4-3.500s3.7 1.2 4 3.500M10.5 3.300a2.2 2.2 0 0 1 0 4M11.7 9.800c1.6.4 2.6 1.5 2.8 3.2",
  health: "M1.5 8.500h3l1.8-5 3 9.5 2-4.500h3.2",
  settings: "M2 4.500h6M11.5 4.500H14M2 11.500h2.500M8 11.500h6M9.8 6.300a1.8 1.8 0 1 0 0-3.6 1.8 1.8 0 0 0 0 3.600zM6.2 13.300a1.8 1.8 0 1 0 0-3.6 1.8 1.8 0 0 0 0 3.600z",
  sun: "M8 10.800a2.8 2.8 0 1 0 0-5.6 2.8 2.8 0 0 0 0 5.600zM8 1.500v1.300M8 13.200v1.300M1.5 8h1.300M13.2 8h1.300M3.4 3.400l.9.9M11.7 11.700l.9.9M3.4 12.600l.9-.9M11.7 4.300l.9-.9",
  moon: "M13.3 9.700A5.7 5.7 0 0 1 6.3 2.700a5.7 5.7 0 1 0 7 7z",
  auto: "M2 3h12v8H2zM5.5 13.500h5M8 11v2.5",
  download: "M8 2v8M4.8 7.2 8 10.400l3.2-3.200M2.5 13.500h11",
  table: "M2 3h12v10H2zM2 6.400h12M2 9.700h12M6.5 6.400V13",
  chart: "M2 12l3.5-4 3 2L14 4",
  expand: "M9.5 2.500h4v4M6.5 13.500h-4v-4M13.5 2.5 9 7M2.5 13.5 7 9",
  up: "M8 13V3M3.500 7.500 8 3l4.500 4.500",
  funnel: "M2 3h12M4 6.300h8M5.800 9.700h4.400M7.200 13h1.600",
  journeys: "M2 4h3c4 0 3 8 7 8h2M2 12h3M10.500 4H14M2 8h12",
  plus: "M8 3v10M3 8h10",
  flag: "M3.500 14.500v-12h8.500l-2 3.500 2 3.500H3.500",
  edit: "M3 13l.6-2.800 7.300-7.300 2.200 2.200-7.300 7.300zM9.600 4.800l2.200 2.200",
  remove: "M3 4.500h10M6.500 4.500v-2h3v2M4.500 4.500l.6 9h5.800l.6-9",
  note: "M2.500 3h11v8h-6l-3 2.800V11h-2z",
  close: "M3.5 3.500l9 9M12.5 3.500l-9 9",
  search: "M7 11.500a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.3 10.3 14 14",
  menu: "M2 4.500h12M2 8h12M2 11.500h12",
  filter: "M2 3.500h12M4.5 8h7M6.5 12.500h3",
  down: "M4 6l4 4 4-4",
  out: "M6.5 2.500h-4v11h4M10 5l3 3-3 3M13 8H6",
  calendar: "M2.5 3.500h11v10h-11zM2.5 6.800h11M5.5 1.800v3M10.5 1.800v3",
  keyboard: "M1.5 4h13v8h-13zM4 6.800h.01M6.7 6.800h.01M9.3 6.800h.01M12 6.800h.01M4.5 9.500h7",
  copy: "M5.5 5.500h8v8h-8zM10.5 5.500v-3h-8v8h3",
  warn: "M8 2.2 14.5 13.500h-13zM8 6.500v3.200M8 11.600h.01",
} as const;

export type IconName = keyof typeof PATHS;

/** An icon beside text, or in a button with an accessible name. */
export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 16 16" fill="none" stroke="currentColor" stroke-width="1.4" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}

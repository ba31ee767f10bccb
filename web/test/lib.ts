export * from "../src/lib/csv";
export * from "../src/lib/days";
export * from "../src/lib/filters";
export * from "../src/lib/format";
export * from "../src/lib/people";
export * from "../src/lib/period";
export * from "../src/chart/scale";

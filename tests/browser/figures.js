// Figures and days as the page writes them for an American reader.

export const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en-US", { notation: "compact", maximumSignificantDigits: 3 });
export const brief = (value) => (Math.abs(value) < 10_000 ? whole.format(value) : short.format(value));
export const money = (value, currency = "USD") => new Intl.NumberFormat("en-US", { style: "currency", currency }).format(value);
export const briefMoney = (value) => (Math.abs(value) < 1_000 ? money(value) : new Intl.NumberFormat("en-US", { style: "currency", currency: "USD", maximumFractionDigits: 0 }).format(value));
export const share = (value) => new Intl.NumberFormat("en-US", { style: "percent", maximumFractionDigits: 1 }).format(value);
export const duration = (seconds) => {
  const all = Math.round(seconds);
  return all < 60 ? `${all}s` : `${Math.floor(all / 60)}m ${String(all % 60).padStart(2, "0")}s`;
};

export const today = () => new Date().toISOString().slice(0, 10);
export const addDays = (day, days) => new Date(Date.parse(day) + days * 86_400_000).toISOString().slice(0, 10);

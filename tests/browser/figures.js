// Figures and days as the page writes them for an American reader.

export const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en-US", { notation: "compact", maximumSignificantDigits: 3 });
export const brief = (value) => (Math.abs(value) < 10_000 ? whole.format(value) : short.format(value));
export const money = (value, currency = "USD") => new Intl.NumberFormat("en-US", { style: "currency", currency }).format(value);
export const briefMoney = (value) => (Math.abs(value) < 1_000 ? money(value) : new Intl.NumberFormat("en-US", { style: "currency", currency: "USD", maximumFractionDigits: 0 }).format(value));
export const share = (value) => new Intl.NumberFormat("en-US", { style: "percent", maximumFractionDigits: 1 }).format(value);
export const duration = (seconds) => {
  const all = Math.round(seconds);
  const [hours, minutes] = [Math.floor(all / 3_600), Math.floor((all % 3_600) / 60)];
  if (hours) return hours < 48 ? `${hours}h ${String(minutes).padStart(2, "0")}m` : `${Math.floor(hours / 24)}d ${hours % 24}h`;
  return minutes ? `${minutes}m ${String(all % 60).padStart(2, "0")}s` : `${all}s`;
};

export const today = () => new Date().toISOString().slice(0, 10);
export const addDays = (day, days) => new Date(Date.parse(day) + days * 86_400_000).toISOString().slice(0, 10);

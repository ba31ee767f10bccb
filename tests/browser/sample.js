// Events of some weeks: visitors, people of companies, orders and refunds in two currencies, a currency without a rate.

const DAY_MS = 86_400_000;
const AGENT = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36";
const SOURCES = ["", "?utm_source=news&utm_medium=email&utm_campaign=spring", "?utm_source=google&utm_medium=cpc&utm_campaign=brand", "?ref=partner"];
const PATHS = ["/", "/pricing", "/docs", "/blog"];
const LANGUAGES = ["en-US", "de-DE", "fr-FR"];

export function sample(now, visitors = 90) {
  const events = [];
  for (let number = 0; number < visitors; number += 1) {
    // Spread over 40 days, with times near midnight too: days differ between timezones.
    let at = now - ((number * 7_919) % 40) * DAY_MS - ((number * 4_801) % 86_400) * 1_000;
    const visits = 1 + (number % 3);
    for (let visit = 0; visit < visits && at < now; visit += 1) {
      visitOnce(events, number, visit, at, now);
      at += DAY_MS * (1 + (number % 6));
    }
  }
  return events.filter(({ timestamp }) => timestamp < now).sort((a, b) => a.timestamp - b.timestamp);
}

function visitOnce(events, number, visit, at) {
  const isKnown = number % 4 === 0;
  const person = isKnown ? { user_id: `user-${number}` } : {};
  const visitor = { anonymous_id: `visitor-${number}`, user_agent: AGENT, language: LANGUAGES[number % 3], ...person };
  const url = (path, query = "") => `https://shop.example${path}${query}`;
  for (let page = 0; page <= (number + visit) % 4; page += 1) {
    const query = page === 0 ? SOURCES[(number + visit) % 4] : "";
    events.push({ name: "pageview", ...visitor, url: url(PATHS[(number + page) % 4], query), timestamp: at + page * 30_000 });
  }
  if (!isKnown) return;
  const company = ["acme.com", "globex.com", "gmail.com"][number % 3];
  if (visit === 0) events.push({ name: "identify", ...visitor, metadata: { email: `p${number}@${company}` }, timestamp: at + 130_000 });
  events.push({ name: "used", ...visitor, metadata: { feature: number % 8 ? "search" : "export" }, group_type: "team", group_id: `team-${number % 5}`, timestamp: at + 140_000 });
  if (number % 8 === 0) {
    const currency = number % 16 ? "USD" : "EUR";
    events.push({ name: "order", ...visitor, value: 19.9 + number, currency, external_id: `order-${number}-${visit}`, timestamp: at + 150_000 });
    if (number % 24 === 0) events.push({ name: "refund", ...visitor, value: -5.25, currency, timestamp: at + 160_000 });
  }
  if (number === 16) events.push({ name: "order", ...visitor, value: 5_000, currency: "JPY", timestamp: at + 170_000 });
}

//! The cases. The reason for each number is stated next to it.

use super::Act::{Batch, Floor, Restart, Send};
use super::{Case, USUAL};

const TWO_PROJECTS: &[&str] = &[r#"{"name": "shop"}"#, r#"{"name": "blog"}"#];

#[rustfmt::skip]
pub(super) static CASES: &[Case] = &[
    // 10:00 and 10:50 are two sessions; 10:25 merges them into one, which begins at 10:00. The
    // touch of 10:50 stays one.
    Case {
        name: "a late event bridges two sessions; only the second had a touch",
        acts: &[
            Send("shop", r#"{"name": "pageview", "user_id": "ada", "url": "https://s.example/a", "timestamp": "2024-03-04T10:00:00Z"}"#),
            Send("shop", r#"{"name": "pageview", "user_id": "ada", "url": "https://s.example/?utm_source=news&utm_medium=email", "timestamp": "2024-03-04T10:50:00Z"}"#),
            Send("shop", r#"{"name": "order", "user_id": "ada", "value": 10, "timestamp": "2024-03-04T10:55:00Z"}"#),
            Send("shop", r#"{"name": "pageview", "user_id": "ada", "url": "https://s.example/b", "timestamp": "2024-03-04T10:25:00Z"}"#),
        ],
        says: &[
            ("/projects/{shop}/revenue/by-attribution?start_date=2024-03-04&end_date=2024-03-04", "rows.0.dimension", r#""news""#),
            ("/projects/{shop}/revenue/by-attribution?model=last_touch&start_date=2024-03-04&end_date=2024-03-04", "rows.0.dimension", r#""news""#),
            ("/projects/{shop}/analytics/traffic?start_date=2024-03-04&end_date=2024-03-04", "by_source.0.value", r#""news""#),
            ("/identities/profile?user_id=ada&start_date=2024-03-04&end_date=2024-03-04", "sessions", "1"),
            ("/identities/profile?user_id=ada&start_date=2024-03-04&end_date=2024-03-04", "duration_avg_sec", "3300"),
        ],
        ..USUAL
    },
    // A page that also tells who it is stays a bounce; what comes 30 minutes after it is attached,
    // a millisecond later it isn't.
    Case {
        name: "traits, timers and what comes after a visit make no session",
        acts: &[
            Send("shop", r#"{"name": "identify", "user_id": "ada", "anonymous_id": "a1", "timestamp": "2024-03-04T10:00:00Z"}"#),
            Send("shop", r#"{"name": "pageview", "anonymous_id": "a1", "referrer": "https://www.google.com/", "timestamp": "2024-03-04T10:00:00Z"}"#),
            Send("shop", r#"{"name": "tick", "user_id": "ada", "non_interaction": true, "timestamp": "2024-03-04T10:30:00Z"}"#),
            Send("shop", r#"{"name": "tick", "user_id": "ada", "non_interaction": true, "timestamp": "2024-03-04T10:30:00.001Z"}"#),
            Send("shop", r#"{"name": "renewal", "user_id": "ada", "value": 5, "sent_by": "server", "timestamp": "2024-03-04T10:29:00Z"}"#),
        ],
        says: &[
            ("/identities/profile?user_id=ada&start_date=2024-03-04&end_date=2024-03-04", "events", "5"),
            ("/identities/profile?user_id=ada&start_date=2024-03-04&end_date=2024-03-04", "sessions", "1"),
            ("/identities/profile?user_id=ada&start_date=2024-03-04&end_date=2024-03-04", "bounce_rate", "1"),
            ("/identities/profile?user_id=ada&start_date=2024-03-04&end_date=2024-03-04", "duration_avg_sec", "0"),
            ("/projects/{shop}/analytics/traffic?start_date=2024-03-04&end_date=2024-03-04", "bounces", "1"),
            ("/projects/{shop}/revenue/by-attribution?model=last_touch&start_date=2024-03-04&end_date=2024-03-04", "rows.0.dimension", r#""google""#),
        ],
        ..USUAL
    },
    // A click on an ad within a visit is its source, and the touch of what is bought from then on.
    Case {
        name: "a click within a visit, and the thank-you page opened again",
        acts: &[
            Send("shop", r#"{"name": "pageview", "user_id": "ada", "url": "https://s.example/a", "timestamp": "2024-03-04T10:00:00Z"}"#),
            Send("shop", r#"{"name": "order", "user_id": "ada", "value": 3, "url": "https://s.example/thanks", "external_id": "o-1", "timestamp": "2024-03-04T10:05:00Z"}"#),
            Send("shop", r#"{"name": "pageview", "user_id": "ada", "url": "https://s.example/b?gclid=x", "timestamp": "2024-03-04T10:10:00Z"}"#),
            Send("shop", r#"{"name": "order", "user_id": "ada", "value": 10, "url": "https://s.example/thanks", "external_id": "o-2", "timestamp": "2024-03-04T10:15:00Z"}"#),
            Send("shop", r#"{"name": "order", "user_id": "ada", "value": 10, "url": "https://s.example/thanks", "external_id": "o-2", "timestamp": "2024-03-04T11:15:00Z"}"#),
        ],
        says: &[
            ("/projects/{shop}/revenue/by-attribution?model=last_touch&start_date=2024-03-04&end_date=2024-03-04", "rows.0.dimension", r#""google""#),
            ("/projects/{shop}/revenue/by-attribution?model=last_touch&start_date=2024-03-04&end_date=2024-03-04", "rows.0.orders", "1"),
            ("/projects/{shop}/revenue/by-attribution?model=last_touch&start_date=2024-03-04&end_date=2024-03-04", "rows.1.dimension", r#""(direct)""#),
            ("/projects/{shop}/revenue/by-attribution?start_date=2024-03-04&end_date=2024-03-04", "rows.0.revenue", "13"),
            ("/projects/{shop}/analytics/traffic?start_date=2024-03-04&end_date=2024-03-04", "by_channel.0.value", r#""Paid Search""#),
            ("/identities/profile?user_id=ada&start_date=2024-03-04&end_date=2024-03-04", "sessions", "1"),
        ],
        ..USUAL
    },
    // The inverse: a late event before all others brings the touch.
    Case {
        name: "a late event becomes the entry of a session, and its day is the day before",
        acts: &[
            Send("shop", r#"{"name": "pageview", "user_id": "ada", "url": "https://s.example/a", "timestamp": "2024-03-05T00:10:00Z"}"#),
            Send("shop", r#"{"name": "order", "user_id": "ada", "value": 10, "timestamp": "2024-03-05T00:15:00Z"}"#),
            Send("shop", r#"{"name": "pageview", "user_id": "ada", "url": "https://s.example/?ref=hn", "timestamp": "2024-03-04T23:50:00Z"}"#),
        ],
        says: &[
            ("/projects/{shop}/revenue/by-attribution?start_date=2024-03-05&end_date=2024-03-05", "rows.0.dimension", r#""hn""#),
            ("/identities/profile?user_id=ada&start_date=2024-03-05&end_date=2024-03-05", "sessions", "0"),
            ("/identities/profile?user_id=ada&start_date=2024-03-04&end_date=2024-03-04", "sessions", "1"),
        ],
        ..USUAL
    },
    // The first touch is that of the whole history; the last touch must begin at or before the
    // order.
    Case {
        name: "the first touch is later than the order",
        acts: &[
            Send("shop", r#"{"name": "order", "user_id": "ada", "value": 10, "timestamp": "2024-03-04T10:00:00Z"}"#),
            Send("shop", r#"{"name": "pageview", "user_id": "ada", "url": "https://s.example/?utm_source=news", "timestamp": "2024-03-06T10:00:00Z"}"#),
        ],
        says: &[
            ("/projects/{shop}/revenue/by-attribution?start_date=2024-03-04&end_date=2024-03-04", "rows.0.dimension", r#""news""#),
            ("/projects/{shop}/revenue/by-attribution?model=last_touch&start_date=2024-03-04&end_date=2024-03-04", "rows.0.dimension", r#""(direct)""#),
        ],
        ..USUAL
    },
    // ada was first seen in March; since April, the visits of a1 in January are hers.
    Case {
        name: "a link moves the first month",
        acts: &[
            Send("shop", r#"{"name": "order", "user_id": "ada", "value": 10, "timestamp": "2024-03-04T10:00:00Z"}"#),
            Send("shop", r#"{"name": "pageview", "anonymous_id": "a1", "timestamp": "2024-01-31T23:59:59.999Z"}"#),
            Send("shop", r#"{"name": "identify", "user_id": "ada", "anonymous_id": "a1", "timestamp": "2024-04-01T00:00:00Z"}"#),
        ],
        says: &[
            ("/projects/{shop}/revenue/ltv-cohorts?level=identity", "cohorts.0.cohort", r#""2024-01""#),
            ("/projects/{shop}/revenue/ltv-cohorts?level=identity", "cohorts.0.entities", "1"),
            ("/projects/{shop}/revenue/ltv-cohorts?level=identity", "cohorts.0.revenue", "10"),
            ("/projects/{shop}/revenue/ltv-cohorts?level=identity", "cohorts.1", "null"),
            ("/projects/{shop}/revenue/ltv-cohorts", "cohorts.0.cohort", r#""2024-01""#),
        ],
        ..USUAL
    },
    // The shop recorded it first, the blog earlier by event time: organization-wide, acct_1 is
    // globex.io, and acme.com only has the users who named it.
    Case {
        name: "a company reports its domain in two projects that disagree",
        projects: TWO_PROJECTS,
        acts: &[
            Send("shop", r#"{"name": "order", "user_id": "ada", "group_id": "acct_1", "value": 10, "timestamp": "@-9 10:00:00"}"#),
            Send("blog", r#"{"name": "pageview", "user_id": "ben", "group_id": "acct_1", "timestamp": "@-9 11:00:00"}"#),
            Send("shop", r#"{"name": "pageview", "user_id": "cleo", "group_id": "acme.com", "timestamp": "@-9 12:00:00"}"#),
            Send("shop", r#"{"name": "group", "user_id": "ada", "group_id": "acct_1", "metadata": {"domain": "acme.com", "name": "Acme"}, "timestamp": "@-4 10:00:00"}"#),
            Send("blog", r#"{"name": "group", "user_id": "ben", "group_id": "acct_1", "metadata": {"domain": "globex.io", "name": "Globex"}, "timestamp": "@-6 10:00:00"}"#),
            Restart,
        ],
        says: &[
            ("/companies/lookup?domain=globex.io", "events", "4"),
            ("/companies/lookup?domain=globex.io", "users", "2"),
            ("/companies/lookup?domain=globex.io", "revenue", "10"),
            ("/companies/lookup?domain=acme.com", "events", "1"),
            // In the shop itself, ada and cleo share an account: the link of the blog does not
            // apply here.
            ("/projects/{shop}/revenue/metrics", "arpa", "10"),
        ],
        ..USUAL
    },
    // The identity found for the address depends on who was seen last; a link counts as being seen.
    Case {
        name: "an e-mail that two users share finds the one seen last",
        acts: &[
            Send("shop", r#"{"name": "identify", "user_id": "ada", "metadata": {"email": "team@acme.com"}, "timestamp": "@-9 10:00:00"}"#),
            Send("shop", r#"{"name": "identify", "user_id": "ben", "metadata": {"email": " TEAM@acme.com"}, "timestamp": "@-8 10:00:00"}"#),
            Send("shop", r#"{"name": "pageview", "user_id": "ada", "url": "https://s.example/", "timestamp": "@-7 10:00:00"}"#),
            Send("shop", r#"{"name": "pageview", "anonymous_id": "a1", "url": "https://s.example/b", "timestamp": "@-2 10:00:00"}"#),
            Send("shop", r#"{"name": "pageview", "anonymous_id": "a1", "url": "https://s.example/b", "timestamp": "@-2 10:01:00"}"#),
            Send("shop", r#"{"name": "login", "anonymous_id": "a1", "user_id": "ben", "timestamp": "@-8 09:00:00"}"#),
        ],
        says: &[
            ("/identities/profile?email=team@acme.com", "events", "4"),
            ("/identities/profile?email=team@acme.com", "pageviews", "2"),
            ("/identities/profile?user_id=ada", "events", "2"),
        ],
        ..USUAL
    },
    // The larger history is the anonymous one. The user's company was recorded first, so it applies
    // to both.
    Case {
        name: "the anonymous history is larger than the user's at the link",
        acts: &[
            Send("shop", r#"{"name": "identify", "user_id": "ada", "metadata": {"email": "ada@acme.com"}, "timestamp": "@-5 10:00:00"}"#),
            Batch("shop", &[
                r#"{"name": "pageview", "anonymous_id": "a1", "url": "https://s.example/?utm_source=news", "timestamp": "@-12 10:00:00"}"#,
                r#"{"name": "order", "anonymous_id": "a1", "value": 10, "timestamp": "@-11 10:00:00"}"#,
                r#"{"name": "pageview", "anonymous_id": "a1", "timestamp": "@-10 10:00:00"}"#,
                r#"{"name": "order", "anonymous_id": "a1", "value": 5, "group_id": "globex.io", "timestamp": "@-9 10:00:00"}"#,
                r#"{"name": "pageview", "anonymous_id": "a1", "timestamp": "@-8 10:00:00"}"#,
                r#"{"name": "refund", "anonymous_id": "a1", "value": -2, "timestamp": "@-7 10:00:00"}"#,
                r#"{"name": "pageview", "anonymous_id": "a1", "timestamp": "@-6 10:00:00"}"#,
            ]),
            Send("shop", r#"{"name": "login", "user_id": "ada", "anonymous_id": "a1", "timestamp": "@-4 10:00:00"}"#),
        ],
        says: &[
            ("/companies/lookup?domain=acme.com", "events", "8"),
            ("/companies/lookup?domain=acme.com", "revenue", "8"),
            ("/companies/lookup?domain=globex.io", "events", "1"),
            ("/companies/lookup?domain=globex.io", "revenue", "5"),
            ("/identities/profile?user_id=ada", "events", "9"),
            ("/identities/profile?user_id=ada", "revenue", "13"),
            // The order of globex.io has no touch: that event was acme.com's.
            ("/projects/{shop}/revenue/by-attribution", "rows.0.dimension", r#""news""#),
            ("/projects/{shop}/revenue/by-attribution", "rows.0.revenue", "8"),
            ("/projects/{shop}/revenue/by-attribution", "rows.1.dimension", r#""(direct)""#),
            ("/projects/{shop}/revenue/by-attribution?level=identity", "rows.0.revenue", "13"),
        ],
        ..USUAL
    },
    // The visit came at the order's own time, and was recorded first.
    Case {
        name: "a touch and an order at the same millisecond, the touch first",
        acts: &[
            Send("shop", r#"{"name": "pageview", "user_id": "ada", "url": "https://s.example/?utm_source=news", "timestamp": "2024-03-04T10:00:00.123Z"}"#),
            Send("shop", r#"{"name": "order", "user_id": "ada", "value": 10, "timestamp": "2024-03-04T10:00:00.123Z"}"#),
        ],
        says: &[("/projects/{shop}/revenue/by-attribution?model=last_touch&start_date=2024-03-04&end_date=2024-03-04", "rows.0.dimension", r#""news""#)],
        ..USUAL
    },
    // The order was recorded first; but the touches of its own millisecond, a colleague's too, came
    // at or before it.
    Case {
        name: "a touch and an order at the same millisecond, the order first",
        acts: &[
            Send("shop", r#"{"name": "order", "user_id": "ada", "group_id": "acme.com", "value": 10, "timestamp": "2024-03-04T10:00:00.123Z"}"#),
            Send("shop", r#"{"name": "pageview", "user_id": "ada", "url": "https://s.example/?utm_source=news", "timestamp": "2024-03-04T10:00:00.123Z"}"#),
            Send("shop", r#"{"name": "pageview", "user_id": "ben", "group_id": "acme.com", "url": "https://s.example/?utm_source=paper", "timestamp": "2024-03-04T10:00:00.123Z"}"#),
        ],
        says: &[
            ("/projects/{shop}/revenue/by-attribution?model=last_touch&level=identity&start_date=2024-03-04&end_date=2024-03-04", "rows.0.dimension", r#""news""#),
            ("/projects/{shop}/revenue/by-attribution?model=last_touch&level=account&start_date=2024-03-04&end_date=2024-03-04", "rows.0.dimension", r#""paper""#),
        ],
        ..USUAL
    },
    // 0.00001 INR are 0.00000012 dollars, which round to 0; the event is still a refund and an
    // order.
    Case {
        name: "a refund and an order that convert to nothing",
        rates: &[("INR", "0.0119833")],
        acts: &[
            Send("shop", r#"{"name": "refund", "user_id": "ada", "value": -0.00001, "currency": "INR", "timestamp": "2024-03-04T10:00:00Z"}"#),
            Send("shop", r#"{"name": "order", "user_id": "ben", "value": 0.00001, "currency": "inr", "timestamp": "2024-03-04T11:00:00Z"}"#),
            Send("shop", r#"{"name": "refund", "user_id": "cleo", "value": -5, "currency": "CHF", "timestamp": "2024-03-04T12:00:00Z"}"#),
        ],
        says: &[
            ("/projects/{shop}/revenue/metrics?start_date=2024-03-04&end_date=2024-03-04", "total_revenue", "0"),
            ("/projects/{shop}/revenue/metrics?start_date=2024-03-04&end_date=2024-03-04", "orders", "1"),
            ("/projects/{shop}/revenue/metrics?start_date=2024-03-04&end_date=2024-03-04", "unconverted.CHF.revenue", "-5"),
            ("/projects/{shop}/revenue/metrics?start_date=2024-03-04&end_date=2024-03-04", "unconverted.CHF.orders", "0"),
        ],
        ..USUAL
    },
    // The clocks went back by an hour one minute past midnight: 02:30:30Z is 00:00:30 of the 30th,
    // a minute later it is 23:01:30 of the 29th again, and the 30th resumes at 03:30:00Z. All of it
    // is one session, which began on the 30th.
    Case {
        name: "local dates go back where the clocks change a minute past midnight",
        timezone: "America/St_Johns",
        acts: &[
            Send("shop", r#"{"name": "order", "user_id": "ada", "value": 1, "timestamp": "2005-10-30T02:31:30Z"}"#),
            Send("shop", r#"{"name": "pageview", "user_id": "ada", "timestamp": "2005-10-30T02:30:30Z"}"#),
            Send("shop", r#"{"name": "order", "user_id": "ada", "value": 2, "timestamp": "2005-10-30T03:00:00Z"}"#),
            Send("shop", r#"{"name": "order", "user_id": "ada", "value": 4, "timestamp": "2005-10-30T03:30:00Z"}"#),
            Send("shop", r#"{"name": "order", "user_id": "ada", "value": 8, "timestamp": "2005-10-30T03:29:59.999Z"}"#),
            Send("shop", r#"{"name": "pageview", "user_id": "ada", "url": "https://s.example/?ref=hn", "timestamp": "2005-10-30T02:29:59.999Z"}"#),
        ],
        says: &[
            ("/projects/{shop}/revenue/metrics?start_date=2005-10-29&end_date=2005-10-29", "total_revenue", "11"),
            ("/projects/{shop}/revenue/metrics?start_date=2005-10-30&end_date=2005-10-30", "total_revenue", "4"),
            ("/projects/{shop}/revenue/timeseries?start_date=2005-10-30T02:30:30Z&end_date=2005-10-30T03:30:00Z", "series.0.day", r#""2005-10-30""#),
            ("/identities/profile?user_id=ada&start_date=2005-10-29&end_date=2005-10-30", "active_days", "2"),
            ("/identities/profile?user_id=ada&start_date=2005-10-29&end_date=2005-10-29", "sessions", "1"),
        ],
        ..USUAL
    },
    // The explicit company was recorded first, so it is the identity's, before and after.
    Case {
        name: "an explicit company before that of an e-mail",
        acts: &[
            Send("shop", r#"{"name": "pageview", "user_id": "ada", "timestamp": "@-9 10:00:00"}"#),
            Send("shop", r#"{"name": "order", "user_id": "ada", "group_id": "acct_1", "value": 10, "timestamp": "@-5 10:00:00"}"#),
            Send("shop", r#"{"name": "identify", "user_id": "ada", "metadata": {"email": "ada@acme.com"}, "timestamp": "@-10 10:00:00"}"#),
            Send("shop", r#"{"name": "pageview", "user_id": "ada", "timestamp": "@-3 10:00:00"}"#),
        ],
        says: &[
            ("/companies/top", "companies.0.events", "4"),
            ("/companies/top", "companies.0.domain", "null"),
            ("/companies/top", "companies.1", "null"),
            ("/companies/lookup?domain=acme.com", "error.type", r#""not_found""#),
        ],
        ..USUAL
    },
    // Within one event the explicit company takes precedence; an e-mail address in an earlier event
    // is recorded first.
    Case {
        name: "an explicit company and an e-mail in one event, and an e-mail before an explicit company",
        acts: &[
            Send("shop", r#"{"name": "identify", "user_id": "ada", "group_id": "globex.io", "metadata": {"email": "ada@acme.com"}, "timestamp": "@-9 10:00:00"}"#),
            Send("shop", r#"{"name": "pageview", "user_id": "ada", "timestamp": "@-8 10:00:00"}"#),
            Send("shop", r#"{"name": "identify", "user_id": "ben", "metadata": {"email": "ben@acme.com"}, "timestamp": "@-9 11:00:00"}"#),
            Send("shop", r#"{"name": "pageview", "user_id": "ben", "group_id": "globex.io", "timestamp": "@-8 11:00:00"}"#),
            Send("shop", r#"{"name": "pageview", "user_id": "ben", "timestamp": "@-7 11:00:00"}"#),
        ],
        says: &[
            ("/companies/lookup?domain=globex.io", "events", "3"),
            ("/companies/lookup?domain=globex.io", "users", "2"),
            ("/companies/lookup?domain=acme.com", "events", "2"),
            ("/companies/lookup?domain=acme.com", "users", "1"),
        ],
        ..USUAL
    },
    // It has no identity, but its company is an active account, and its money counts.
    Case {
        name: "an event without consent that names a company",
        acts: &[
            Send("shop", r#"{"name": "order", "user_id": "ada", "group_id": "acme.com", "value": 10, "privacy_categories": "", "url": "https://s.example/?utm_source=news", "timestamp": "@-3 10:00:00"}"#),
            Send("shop", r#"{"name": "pageview", "user_id": "ben", "url": "https://s.example/", "timestamp": "@-2 10:00:00"}"#),
            Send("shop", r#"{"name": "pageview", "user_id": "cleo", "group_id": "acme.com", "url": "https://s.example/?utm_source=paper", "timestamp": "@-1 10:00:00"}"#),
        ],
        says: &[
            ("/projects/{shop}/revenue/metrics", "total_revenue", "10"),
            ("/projects/{shop}/revenue/metrics", "arpa", "5"),
            ("/projects/{shop}/revenue/metrics", "arpu", "5"),
            ("/projects/{shop}/revenue/by-attribution", "rows.0.dimension", r#""(direct)""#),
            ("/companies/lookup?domain=acme.com", "events", "2"),
            ("/companies/lookup?domain=acme.com", "users", "1"),
            ("/companies/lookup?domain=acme.com", "sessions", "1"),
            ("/companies/lookup?domain=acme.com", "revenue", "10"),
            ("/identities/profile?user_id=ada", "error.type", r#""not_found""#),
        ],
        ..USUAL
    },
    // The latest report by event time takes effect, in any order of arrival.
    Case {
        name: "a group is renamed by a late event",
        acts: &[
            Send("shop", r#"{"name": "group", "user_id": "ada", "group_type": "team", "group_id": "t1", "metadata": {"name": "New"}, "timestamp": "@-3 10:00:00"}"#),
            Send("shop", r#"{"name": "group", "user_id": "ada", "group_type": "team", "group_id": "t1", "metadata": {"name": "Old"}, "timestamp": "@-5 10:00:00"}"#),
            Send("shop", r#"{"name": "group", "user_id": "ada", "group_id": "acct_1", "metadata": {"name": "Zeta"}, "timestamp": "@-3 11:00:00"}"#),
            Send("shop", r#"{"name": "group", "user_id": "ben", "group_id": "acme.com", "metadata": {"name": "Acme"}, "timestamp": "@-4 11:00:00"}"#),
            Send("shop", r#"{"name": "group", "user_id": "ada", "group_id": "acct_1", "metadata": {"domain": "acme.com"}, "timestamp": "@-6 11:00:00"}"#),
        ],
        says: &[
            ("/groups/metrics?group_type=team&group_key=t1", "name", r#""New""#),
            ("/groups/metrics?group_type=team&group_key=t1", "events", "2"),
            ("/companies/lookup?domain=acme.com", "name", r#""Zeta""#),
            ("/companies/lookup?domain=acme.com", "events", "5"),
        ],
        ..USUAL
    },
    // The first link takes effect, even if it was recorded with a later time; the second user gets
    // nothing of a1.
    Case {
        name: "a second link of an anonymous id, earlier by its time",
        acts: &[
            Send("shop", r#"{"name": "pageview", "anonymous_id": "a1", "url": "https://s.example/?ref=hn", "timestamp": "2024-03-01T10:00:00Z"}"#),
            Send("shop", r#"{"name": "login", "anonymous_id": "a1", "user_id": "ada", "timestamp": "2024-03-09T10:00:00Z"}"#),
            Send("shop", r#"{"name": "login", "anonymous_id": "a1", "user_id": "ben", "timestamp": "2024-03-02T10:00:00Z"}"#),
            Send("shop", r#"{"name": "order", "anonymous_id": "a1", "value": 3, "timestamp": "2024-03-03T10:00:00Z"}"#),
            Send("shop", r#"{"name": "order", "user_id": "ben", "value": 5, "timestamp": "2024-03-03T10:00:00Z"}"#),
        ],
        says: &[
            ("/identities/profile?user_id=ada&start_date=2024-03-01&end_date=2024-03-31", "events", "3"),
            ("/identities/profile?user_id=ada&start_date=2024-03-01&end_date=2024-03-31", "revenue", "3"),
            ("/identities/profile?user_id=ben&start_date=2024-03-01&end_date=2024-03-31", "events", "2"),
            ("/projects/{shop}/revenue/by-attribution?level=identity&start_date=2024-03-01&end_date=2024-03-31", "rows.0.dimension", r#""(direct)""#),
            ("/projects/{shop}/revenue/by-attribution?level=identity&start_date=2024-03-01&end_date=2024-03-31", "rows.1.revenue", "3"),
        ],
        ..USUAL
    },
    // A gap of exactly 30 minutes continues the session; one more millisecond starts another.
    Case {
        name: "a gap of exactly half an hour",
        acts: &[
            Send("shop", r#"{"name": "pageview", "user_id": "ada", "timestamp": "2024-03-04T10:00:00Z"}"#),
            Send("shop", r#"{"name": "pageview", "user_id": "ada", "timestamp": "2024-03-04T11:00:00.001Z"}"#),
            Send("shop", r#"{"name": "pageview", "user_id": "ada", "timestamp": "2024-03-04T10:30:00Z"}"#),
        ],
        says: &[
            ("/identities/profile?user_id=ada&start_date=2024-03-04&end_date=2024-03-04", "sessions", "2"),
            ("/identities/profile?user_id=ada&start_date=2024-03-04&end_date=2024-03-04", "bounce_rate", "0.5"),
        ],
        ..USUAL
    },
    // 23:30 and 00:00:01 UTC are two sessions of one New York day until 23:40 arrives. With small
    // pages the first session was already sealed, and the following event extends a session outside
    // of the recent part. It revealed that the dictionary's numbers, although no answers, depend on
    // pages.
    Case {
        name: "a session is bridged back over the end of a sealed page",
        timezone: "America/New_York",
        acts: &[
            Send("shop", r#"{"name": "order", "user_id": "ada", "value": 1, "url": "https://s.example/?ref=hn", "timestamp": "2024-03-04T23:30:00.006Z"}"#),
            Send("shop", r#"{"name": "signup", "user_id": "ada", "url": "https://s.example/?utm_source=partner&utm_medium=affiliate", "timestamp": "2024-03-05T00:00:01.006Z"}"#),
            Send("shop", r#"{"name": "pageview", "user_id": "ada", "timestamp": "2024-03-04T23:40:00.006Z"}"#),
            Send("shop", r#"{"name": "pageview", "user_id": "ada", "url": "https://s.example/?gclid=x", "timestamp": "2024-03-05T00:09:59.006Z"}"#),
            Send("shop", r#"{"name": "order", "user_id": "ada", "value": 2, "timestamp": "2024-03-05T00:39:00Z"}"#),
            Send("shop", r#"{"name": "order", "user_id": "ada", "value": 4, "timestamp": "2024-03-05T01:09:00.001Z"}"#),
        ],
        says: &[
            ("/projects/{shop}/revenue/by-attribution?model=last_touch&start_date=2024-03-04&end_date=2024-03-04", "rows.0.dimension", r#""google""#),
            ("/projects/{shop}/revenue/by-attribution?model=last_touch&start_date=2024-03-04&end_date=2024-03-04", "rows.0.revenue", "6"),
            ("/identities/profile?user_id=ada&start_date=2024-03-04&end_date=2024-03-04", "sessions", "2"),
        ],
        ..USUAL
    },
    // Three orders are many enough, with tiny limits, to be counted under a key whose touch is
    // looked up. The first floor freezes none of them, the second all. The visits of a1 then become
    // ada's: her first touch is "early" and the last before the orders "mid", but not in frozen
    // figures.
    Case {
        name: "a link gives other touches to orders that are frozen",
        acts: &[
            Send("shop", r#"{"name": "pageview", "anonymous_id": "a1", "url": "https://s.example/?utm_source=early", "timestamp": "@-9 10:00:00"}"#),
            Send("shop", r#"{"name": "pageview", "anonymous_id": "a1", "url": "https://s.example/?utm_source=mid", "timestamp": "@-7 10:00:00"}"#),
            Batch("shop", &[
                r#"{"name": "order", "user_id": "ada", "value": 1, "timestamp": "@-6 10:00:00"}"#,
                r#"{"name": "order", "user_id": "ada", "value": 2, "timestamp": "@-6 12:00:00"}"#,
                r#"{"name": "order", "user_id": "ada", "value": 4, "timestamp": "@-5 14:00:00"}"#,
            ]),
            Send("shop", r#"{"name": "pageview", "user_id": "ada", "url": "https://s.example/?utm_source=late", "timestamp": "@-8 10:00:00"}"#),
            Floor("shop", 6),
            Floor("shop", 4),
            Send("shop", r#"{"name": "identify", "user_id": "ada", "anonymous_id": "a1", "timestamp": "@-4 10:00:00"}"#),
            Send("shop", r#"{"name": "order", "user_id": "ada", "value": 8, "timestamp": "@-4 11:00:00"}"#),
        ],
        says: &[
            ("/projects/{shop}/revenue/by-attribution", "rows.0.dimension", r#""early""#),
            ("/projects/{shop}/revenue/by-attribution", "rows.1.dimension", r#""late""#),
            ("/projects/{shop}/revenue/by-attribution", "rows.1.revenue", "7"),
            ("/projects/{shop}/revenue/by-attribution?model=last_touch", "rows.0.dimension", r#""mid""#),
            ("/projects/{shop}/revenue/by-attribution?model=last_touch", "rows.1.dimension", r#""late""#),
            ("/projects/{shop}/revenue/by-attribution?model=last_touch", "rows.1.revenue", "7"),
        ],
        ..USUAL
    },
];

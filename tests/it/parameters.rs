//! Parameters of the reads that are asked by query string: every bound at both ends and one past,
//! and which parameter an error names. Values out of range are refused, never clamped.

use crate::client::Answer;
use crate::errors::assert_refused;
use crate::paths::OF_ORGANIZATION;
use crate::tenant::Tenant;

/// The expected answer: `None` for a valid query (whose subject may not exist), or the code and the
/// parameter.
type Expected = Option<(&'static str, Option<&'static str>)>;

const FINE: Expected = None;

const fn invalid(param: &'static str) -> Expected {
    Some(("invalid_parameter", Some(param)))
}

const fn missing(param: &'static str) -> Expected {
    Some(("missing_parameter", Some(param)))
}

/// Neither or both of two: no parameter is at fault alone.
const NOT_ONE: Expected = Some(("invalid_parameter", None));

#[track_caller]
fn assert_answered(what: &str, answer: &Answer, expected: Expected) {
    match expected {
        None => assert!([200, 404].contains(&answer.status), "{what}: {} {}", answer.status, answer.text()),
        Some((code, param)) => assert_refused(what, answer, 400, code, param),
    }
}

/// A target with one more parameter.
fn with(target: &str, parameter: &str) -> String {
    let mark = if target.contains('?') { '&' } else { '?' };
    if parameter.is_empty() { target.to_owned() } else { format!("{target}{mark}{parameter}") }
}

/// The questions that have a parameter. Everything else about them is valid.
fn targets(tenant: &Tenant, has_it: impl Fn(&str) -> bool) -> Vec<String> {
    let of_organization = OF_ORGANIZATION.iter().map(|operation| with(operation.path, operation.query));
    let of_project = ["by-attribution", "ltv-cohorts"].map(|name| tenant.path(&format!("revenue/{name}")));
    of_organization.chain(of_project).filter(|target| has_it(target)).collect()
}

#[test]
fn ranges_have_1_to_365_days() {
    let tenant = Tenant::new();
    let has_range = |target: &str| {
        target.starts_with("/companies") || target.starts_with("/groups") || target.starts_with("/identities/top?")
    };
    let targets = targets(&tenant, has_range);
    assert_eq!(targets.len(), 7);
    let table = [
        ("", FINE),
        ("range_days=1", FINE),
        ("range_days=30", FINE),
        ("range_days=365", FINE),
        ("range_days=0", invalid("range_days")),
        ("range_days=366", invalid("range_days")),
        ("range_days=-1", invalid("range_days")),
        ("range_days=1.5", invalid("range_days")),
        ("range_days=1e2", invalid("range_days")),
        ("range_days=", invalid("range_days")),
        ("range_days=%201", invalid("range_days")),
        ("range_days=week", invalid("range_days")),
        ("range_days=4294967297", invalid("range_days")),
        ("range_days=99999999999999999999", invalid("range_days")),
        ("range_days=7&range_days=7", invalid("range_days")),
    ];
    for target in targets {
        for (parameter, expected) in table {
            let target = with(&target, parameter);
            assert_answered(&target, &tenant.get(&target), expected);
        }
        for window in ["start_date=2024-01-01", "end_date=2024-01-01"] {
            let target = with(&target, window);
            let name = window.split('=').next();
            assert_refused(&target, &tenant.get(&target), 400, "unknown_parameter", name);
        }
    }
}

#[test]
fn lists_have_their_limits() {
    let tenant = Tenant::new();
    let has_limit = |target: &str| {
        ["referrers", "top-pages", "/top", "top-users", "by-attribution", "ltv-cohorts"].iter().any(|name| target.contains(name))
    };
    let targets = targets(&tenant, has_limit);
    assert_eq!(targets.len(), 8);
    for target in targets {
        let most = match target.split('/').nth(1) {
            Some("identities") if !target.contains("/top?") => 50,
            _ if target.contains("ltv-cohorts") => 60,
            _ => 100,
        };
        for (limit, expected) in [
            ("1", FINE),
            (&*most.to_string(), FINE),
            ("0", invalid("limit")),
            (&*(most + 1).to_string(), invalid("limit")),
            ("-1", invalid("limit")),
            ("2.0", invalid("limit")),
            ("", invalid("limit")),
            ("all", invalid("limit")),
            ("18446744073709551617", invalid("limit")),
        ] {
            let target = with(&target, &format!("limit={limit}"));
            assert_answered(&target, &tenant.get(&target), expected);
        }
        let twice = with(&target, "limit=5&limit=5");
        assert_answered(&twice, &tenant.get(&twice), invalid("limit"));
    }
    for target in
        ["/identities/profile?user_id=ada", "/companies/lookup?domain=acme.com", "/groups/metrics?group_type=a&group_key=b"]
    {
        let target = with(target, "limit=5");
        assert_refused(&target, &tenant.get(&target), 400, "unknown_parameter", Some("limit"));
    }
}

#[test]
fn a_user_is_named_in_one_way() {
    let tenant = Tenant::new();
    let long = "x".repeat(5000);
    let table = [
        ("email=ada%40acme.com", FINE),
        ("email=a", FINE),
        ("email=%20", FINE),
        ("user_id=a", FINE),
        ("user_id=%20", FINE),
        (&*format!("user_id={long}"), FINE),
        ("", NOT_ONE),
        ("email=ada%40acme.com&user_id=ada", NOT_ONE),
        ("email=", invalid("email")),
        ("user_id=", invalid("user_id")),
        ("email=&user_id=ada", invalid("email")),
        ("email=ada%40acme.com&user_id=", invalid("user_id")),
        ("email=a&email=a", invalid("email")),
        ("user_id=a&user_id=b", invalid("user_id")),
        ("user_id=ada&start_date=", invalid("start_date")),
        // An error in the window comes before one in the user.
        ("start_date=tomorrow", invalid("start_date")),
        ("email=&end_date=2024-02-30", invalid("end_date")),
        ("user_id=ada&start_date=2024-01-02&end_date=2024-01-01", invalid("start_date")),
        ("user_id=ada&start_date=2014-12-24&end_date=2024-12-31", invalid("start_date")),
        ("user_id=ada&start_date=2014-12-25&end_date=2024-12-31", FINE),
    ];
    for path in ["/identities/profile", "/identities/referrers", "/identities/top-pages"] {
        for (query, expected) in table {
            let target = with(path, query);
            assert_answered(&target, &tenant.get(&target), expected);
        }
        for name in ["anonymous_id", "identity_id", "range_days"] {
            let target = with(path, &format!("{name}=1"));
            assert_refused(&target, &tenant.get(&target), 400, "unknown_parameter", Some(name));
        }
    }
    for (query, given) in [("", "neither"), ("?email=a&user_id=a", "both")] {
        let says = tenant.get(&format!("/identities/profile{query}")).text();
        assert!(says.contains("exactly one of `email` and `user_id`") && says.contains(given), "{says}");
    }
}

#[test]
fn a_domain_has_1_to_255_characters() {
    let tenant = Tenant::new();
    let (longest, too_long) = ("x".repeat(255), "x".repeat(256));
    let umlauts = "%C3%BC".repeat(255);
    let table = [
        (format!("domain={longest}"), FINE),
        (format!("domain={umlauts}"), FINE),
        ("domain=a".to_owned(), FINE),
        ("domain=https%3A%2F%2FWWW.acme.com%3A8080%2Fabout".to_owned(), FINE),
        (format!("domain={too_long}"), invalid("domain")),
        (format!("domain={umlauts}x"), invalid("domain")),
        ("domain=".to_owned(), invalid("domain")),
        (String::new(), missing("domain")),
        ("domain=a.com&domain=b.com".to_owned(), invalid("domain")),
        ("range_days=0".to_owned(), invalid("range_days")),
    ];
    for (query, expected) in table {
        let target = with("/companies/lookup", &query);
        assert_answered(&target, &tenant.get(&target), expected);
    }
    for none in ["acme", "%20", "a..b", "-", "ac%20me.com", "%40"] {
        let target = format!("/companies/lookup?domain={none}");
        assert_refused(&target, &tenant.get(&target), 404, "not_found", None);
    }
}

#[test]
fn groups_are_named_by_type_and_key() {
    let tenant = Tenant::new();
    let (longest, too_long) = ("a".repeat(64), "a".repeat(65));
    let types = [
        ("a".to_owned(), FINE),
        ("team_2".to_owned(), FINE),
        ("companys".to_owned(), FINE),
        (longest, FINE),
        (too_long, invalid("group_type")),
        (String::new(), invalid("group_type")),
        ("company".to_owned(), invalid("group_type")),
        ("Team".to_owned(), invalid("group_type")),
        ("2team".to_owned(), invalid("group_type")),
        ("_team".to_owned(), invalid("group_type")),
        ("te-am".to_owned(), invalid("group_type")),
        ("te%C3%A4m".to_owned(), invalid("group_type")),
        ("team%0A".to_owned(), invalid("group_type")),
        ("%20team".to_owned(), invalid("group_type")),
        ("team&group_type=team".to_owned(), invalid("group_type")),
    ];
    for (kind, expected) in types {
        for target in [format!("/groups/top?group_type={kind}"), format!("/groups/metrics?group_key=t1&group_type={kind}")] {
            assert_answered(&target, &tenant.get(&target), expected);
        }
    }
    let keys = [
        ("a".to_owned(), FINE),
        ("%20".to_owned(), FINE),
        ("x".repeat(512), FINE),
        ("%C3%BC".repeat(512), FINE),
        ("x".repeat(513), invalid("group_key")),
        ("%C3%BC".repeat(512) + "x", invalid("group_key")),
        (String::new(), invalid("group_key")),
        ("a&group_key=a".to_owned(), invalid("group_key")),
    ];
    for (key, expected) in keys {
        let target = format!("/groups/metrics?group_type=team&group_key={key}");
        assert_answered(&target, &tenant.get(&target), expected);
    }
    let table = [
        ("/groups/top", missing("group_type")),
        ("/groups/metrics", missing("group_type")),
        ("/groups/metrics?group_key=t1", missing("group_type")),
        ("/groups/metrics?group_type=team", missing("group_key")),
        ("/groups/metrics?group_type=company&group_key=acme.com", invalid("group_type")),
        ("/groups/metrics?group_type=Team&group_key=", invalid("group_type")),
        ("/groups/metrics?group_type=Team&range_days=0", invalid("range_days")),
        ("/groups/top?group_type=Team&limit=0", invalid("group_type")),
        ("/groups/top?group_type=Team&limit=0&range_days=0", invalid("range_days")),
    ];
    for (target, expected) in table {
        assert_answered(target, &tenant.get(target), expected);
    }
    let unknown = tenant.get("/groups/top?group_type=team&group_key=t1");
    assert_refused("a key among lists", &unknown, 400, "unknown_parameter", Some("group_key"));
}

#[test]
fn revenue_is_asked_for_in_words() {
    let tenant = Tenant::new();
    let table = [
        ("by-attribution", "model=first_touch&level=account&dimension=source", FINE),
        ("by-attribution", "model=last_touch&level=identity&dimension=medium", FINE),
        ("by-attribution", "dimension=campaign", FINE),
        ("by-attribution", "model=linear", invalid("model")),
        ("by-attribution", "model=First_Touch", invalid("model")),
        ("by-attribution", "model=", invalid("model")),
        ("by-attribution", "model=%20first_touch", invalid("model")),
        ("by-attribution", "level=company", invalid("level")),
        ("by-attribution", "level=", invalid("level")),
        ("by-attribution", "dimension=channel", invalid("dimension")),
        ("by-attribution", "dimension=", invalid("dimension")),
        ("by-attribution", "model=first_touch&model=first_touch", invalid("model")),
        ("by-attribution", "model=x&level=x&dimension=x&start_date=x&limit=0", invalid("model")),
        ("by-attribution", "level=x&dimension=x&start_date=x&limit=0", invalid("level")),
        ("by-attribution", "dimension=x&start_date=x&limit=0", invalid("dimension")),
        ("by-attribution", "start_date=x&limit=0", invalid("start_date")),
        ("by-attribution", "start_date=2024-01-02&end_date=2024-01-01", invalid("start_date")),
        ("ltv-cohorts", "level=account", FINE),
        ("ltv-cohorts", "level=identity&limit=60", FINE),
        ("ltv-cohorts", "level=accounts", invalid("level")),
        ("ltv-cohorts", "level=", invalid("level")),
        ("ltv-cohorts", "level=x&limit=0", invalid("level")),
    ];
    for (name, query, expected) in table {
        let target = tenant.path(&format!("revenue/{name}?{query}"));
        assert_answered(&target, &tenant.get(&target), expected);
    }
    for name in ["model", "dimension", "range_days"] {
        let answer = tenant.get(&tenant.path(&format!("revenue/ltv-cohorts?{name}=source")));
        assert_refused(name, &answer, 400, "unknown_parameter", Some(name));
    }
    let says = tenant.get(&tenant.path("revenue/by-attribution?dimension=channel")).text();
    assert!(says.contains("source, medium, campaign") && says.contains("channel"), "{says}");
}

/// Cohorts are of all time: dates are accepted and ignored.
#[test]
fn cohorts_ignore_dates() {
    let tenant = Tenant::new();
    tenant.recorded(&serde_json::json!({"name": "order", "user_id": "ada", "value": 5, "timestamp": "2024-01-05T10:00:00Z"}));
    let ask = |query: &str| tenant.get(&tenant.path(&format!("revenue/ltv-cohorts?{query}"))).ok(200);
    let all = ask("");
    for dates in [
        "start_date=2024-02-01&end_date=2024-02-02",
        "start_date=2024-02-02&end_date=2024-02-01",
        "start_date=0001-01-01",
        "start_date=&end_date=",
        "start_date=yesterday",
        "end_date=2024-02-30",
    ] {
        assert_eq!(ask(dates), all, "{dates}");
    }
}

/// An error in a question comes before the 404 for its subject.
#[test]
fn a_wrong_question_is_400_about_nothing_too() {
    let tenant = Tenant::new();
    let table = [
        ("/companies/co_0000000000000000000000/metrics?range_days=0", invalid("range_days")),
        ("/companies/none/top-users?limit=0", invalid("limit")),
        ("/companies/none/top-users?limit=0&range_days=0", invalid("range_days")),
        ("/companies/lookup?domain=acme&range_days=366", invalid("range_days")),
        ("/identities/profile?user_id=nobody&start_date=x", invalid("start_date")),
        ("/identities/top-pages?user_id=nobody&limit=51", invalid("limit")),
        ("/identities/top-pages?limit=51", invalid("limit")),
        ("/groups/metrics?group_type=team&group_key=none&range_days=x", invalid("range_days")),
    ];
    for (target, expected) in table {
        assert_answered(target, &tenant.get(target), expected);
    }
}

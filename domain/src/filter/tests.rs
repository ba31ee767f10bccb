use proptest::prelude::*;

use super::*;
use crate::acquisition::Channel;
use crate::intake::fields::tests::event;
use crate::intake::submission::MAX_NAME_CHARS;

const EVENT: &str = r#"{
    "name": "saved", "url": "https://shop.example/Pricing", "user_id": "5", "language": "ΟΔΟΣ ÉTÉ",
    "metadata": {
        "n": 10, "t": "10", "yes": true, "none": null, "empty": "", "list": [10], "object": {"inner": "Deep"},
        "big": 9007199254740993, "price": 0.30
    }
}"#;

/// Parses a filter written as `field operator value`.
fn filter(text: &str) -> Filter {
    let mut parts = text.splitn(3, ' ');
    let mut part = || parts.next();
    let (field, operator) = (part().unwrap_or_default(), part().unwrap_or_default());
    Filter::new(field, operator, part()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn holds(text: &str) -> bool {
    filter(text).matches(&event(EVENT), None)
}

#[test]
fn is_compares_exactly_with_the_json_type() {
    let table = [
        ("metadata.n is 10", true),
        ("metadata.n is 10.0", true),
        ("metadata.n is 1e1", true),
        ("metadata.n is \"10\"", false),
        ("metadata.t is \"10\"", true),
        ("metadata.t is 10", false),
        ("metadata.n is [1, \"10\"]", false),
        ("metadata.n is [1, \"10\", 10]", true),
        ("metadata.yes is true", true),
        ("metadata.yes is \"true\"", false),
        ("metadata.yes is 1", false),
        ("metadata.big is 9007199254740993", true),
        ("metadata.big is 9007199254740992", false),
        ("metadata.price is 0.3", true),
        ("metadata.empty is \"\"", true),
        ("metadata.object.inner is \"Deep\"", true),
        ("metadata.object.inner is \"deep\"", false),
        // Built-in fields are text.
        ("user_id is \"5\"", true),
        ("user_id is 5", false),
        ("name is [\"opened\", \"saved\"]", true),
        // Null stands for null, absent values, objects and arrays.
        ("metadata.none is null", true),
        ("metadata.nothing is null", true),
        ("metadata.object is null", true),
        ("metadata.empty is null", false),
        ("metadata.n is null", false),
        ("referrer is null", true),
        ("referrer is [null, \"google.com\"]", true),
        ("metadata.none is \"null\"", false),
        ("metadata.list is 10", false),
    ];
    for (text, expected) in table {
        assert_eq!(holds(text), expected, "{text}");
        assert_eq!(holds(&text.replacen(" is ", " is_not ", 1)), !expected, "not {text}");
    }
}

#[test]
fn contains_takes_text_and_ignores_case() {
    let table = [
        ("url contains \"PRICING\"", true),
        ("url contains \"shop.EXAMPLE/p\"", true),
        ("url contains \"pricings\"", false),
        ("language contains \"été\"", true),
        ("language contains \"οδοσ\"", true),
        ("metadata.t contains \"1\"", true),
        ("metadata.n contains \"1\"", false),
        ("metadata.yes contains \"t\"", false),
        ("metadata.list contains \"1\"", false),
        ("metadata.none contains \"null\"", false),
        ("referrer contains \"google\"", false),
    ];
    for (text, expected) in table {
        assert_eq!(holds(text), expected, "{text}");
        assert_eq!(holds(&text.replacen("contains", "not_contains", 1)), !expected, "not {text}");
    }
}

#[test]
fn comparisons_take_numbers_and_match_only_those() {
    let table = [
        // value of the filter; gt, gte, lt, lte of the number 10
        ("9.99", [true, true, false, false]),
        ("1e1", [false, true, false, true]),
        ("10.000000000000000001", [false, false, true, true]),
        ("-1e400", [true, true, false, false]),
        ("1e400", [false, false, true, true]),
    ];
    for (value, expected) in table {
        for (operator, expected) in ["gt", "gte", "lt", "lte"].into_iter().zip(expected) {
            assert_eq!(holds(&format!("metadata.n {operator} {value}")), expected, "{operator} {value}");
            for field in
                ["metadata.t", "metadata.yes", "metadata.none", "metadata.nothing", "metadata.list", "user_id", "referrer"]
            {
                assert!(!holds(&format!("{field} {operator} {value}")), "{field} {operator} {value}");
            }
        }
    }
    assert!(holds("metadata.big gt 9007199254740992") && !holds("metadata.big gt 9007199254740993"));
}

#[test]
fn set_is_what_is_not_null() {
    let table = [
        ("metadata.n", true),
        ("metadata.empty", true),
        ("metadata.yes", true),
        ("metadata.object.inner", true),
        ("metadata.none", false),
        ("metadata.nothing", false),
        ("metadata.list", false),
        ("metadata.object", false),
        ("name", true),
        ("device", true),
        ("referrer", false),
        ("location_country", true),
        ("entry_url", false),
    ];
    for (field, expected) in table {
        assert_eq!(holds(&format!("{field} is_set")), expected, "{field}");
        assert_eq!(holds(&format!("{field} is_not_set null")), !expected, "{field}");
    }
}

#[test]
fn what_can_not_be_read_is_refused_by_the_part_that_is_wrong() {
    let table = [
        // field, operator, value; the invalid part, and a part of the message
        ("plan", "is", Some("1"), "field", "metadata.<path> or one of name, browser"),
        ("metadata.", "is", Some("1"), "field", "must be a path"),
        ("", "", None, "field", "not \"\""),
        (
            "name",
            "equals",
            Some("1"),
            "operator",
            "one of is, is_not, contains, not_contains, starts_with, ends_with, matches, gt, gte, lt, lte, is_set, is_not_set, \
             not \"equals\"",
        ),
        ("name", "IS", Some("1"), "operator", "not \"IS\""),
        ("name", "is", None, "value", "required"),
        ("name", "is", Some("{}"), "value", "`value` of `is` must be a string, a number, true, false or null, or a list"),
        ("name", "is", Some("[]"), "value", "not []"),
        ("name", "is_not", Some("[[1]]"), "value", "not [[1]]"),
        ("name", "is", Some("[1, {}]"), "value", "list"),
        ("name", "is", Some("saved"), "value", "not saved"),
        ("name", "is", Some("\"\\ud800\""), "value", "string"),
        ("name", "contains", None, "value", "required"),
        ("name", "contains", Some("null"), "value", "not null"),
        ("name", "contains", Some("5"), "value", "a string that is not empty, not 5"),
        ("name", "contains", Some("\"\""), "value", "a string that is not empty"),
        ("name", "not_contains", Some("[\"a\"]"), "value", "a string"),
        ("name", "starts_with", Some("\"\""), "value", "a string that is not empty"),
        ("name", "ends_with", Some("[\"a\"]"), "value", "a string that is not empty"),
        ("path", "matches", Some("\"\""), "value", "a pattern of 1 to 256 bytes"),
        ("path", "matches", Some("5"), "value", "a pattern of 1 to 256 bytes, not 5"),
        ("metadata.n", "gt", Some("\"5\""), "value", "`value` of `gt` must be a number, not \"5\""),
        ("metadata.n", "lte", Some("[5]"), "value", "a number"),
        ("metadata.n", "gte", Some("null"), "value", "a number"),
        ("metadata.n", "lt", None, "value", "required"),
        ("name", "is_set", Some("true"), "value", "absent"),
        ("name", "is_not_set", Some("\"\""), "value", "absent"),
    ];
    for (field, operator, value, part, message) in table {
        let error = Filter::new(field, operator, value).expect_err(&format!("{field} {operator} {value:?}"));
        assert_eq!(error.param.as_deref(), Some(part), "{error}");
        assert!(error.message.contains(message), "{error}");
    }
    let values = |count: usize| format!("[{}]", vec!["1"; count].join(","));
    for operator in ["is", "is_not"] {
        assert!(Filter::new("name", operator, Some(&values(MAX_VALUES))).is_ok());
        let error = Filter::new("name", operator, Some(&values(MAX_VALUES + 1))).expect_err("too many");
        assert!(error.message.contains("a list of 1 to 1,000"), "{error}");
    }
    let error = Filter::new("name", "is", Some(&"[".repeat(100_000))).expect_err("deep");
    assert!(error.message.len() < 300, "{error}");
}

#[test]
fn a_predicate_asks_for_the_name_and_for_all_filters() {
    let table: [(Option<&str>, &[&str], bool); 8] = [
        (None, &[], true),
        (Some("saved"), &[], true),
        (Some("Saved"), &[], false),
        (None, &["metadata.n is 10"], true),
        (Some("saved"), &["metadata.n is 10", "user_id is_set"], true),
        (Some("saved"), &["metadata.n is 10", "user_id is_not_set"], false),
        (Some("saved"), &["metadata.n is 11", "user_id is_set"], false),
        (Some("other"), &["metadata.n is 10"], false),
    ];
    for (name, filters, expected) in table {
        let predicate = Predicate::new(name, filters.iter().map(|text| filter(text).into()).collect()).expect("allowed");
        assert_eq!(predicate.matches(&event(EVENT), None), expected, "{name:?} {filters:?}");
        assert!(!predicate.needs_session());
    }
}

#[test]
fn texts_are_compared_at_their_ends_and_with_patterns() {
    let table = [
        ("url starts_with \"HTTPS://SHOP\"", true),
        ("url starts_with \"shop\"", false),
        ("url ends_with \"pricinG\"", true),
        ("url ends_with \"pric\"", false),
        ("language ends_with \"été\"", true),
        ("path matches \"/*\"", true),
        ("path matches \"/pricing\"", false),
        ("path matches \"/Pri**g\"", true),
        ("metadata.n starts_with \"1\"", false),
        ("metadata.t ends_with \"0\"", true),
        ("metadata.t matches \"1*\"", true),
        ("metadata.n matches \"**\"", false),
        ("referrer matches \"**\"", false),
    ];
    for (text, expected) in table {
        assert_eq!(holds(text), expected, "{text}");
    }
}

fn predicate(clauses: &[&[&[&str]]]) -> Predicate {
    let list = |filters: &&[&str]| filters.iter().map(|text| filter(text)).collect();
    let clause = |lists: &&[&[&str]]| Clause::any(lists.iter().map(list).collect()).expect("alternatives");
    Predicate::new(None, clauses.iter().map(clause).collect()).expect("allowed")
}

#[test]
fn one_list_of_alternatives_holds_as_a_whole() {
    let (yes, no) = ("metadata.n is 10", "metadata.n is 11");
    let table: [(&[&[&[&str]]], bool); 6] = [
        (&[&[&[yes, no], &[yes]]], true),
        (&[&[&[yes, no], &[no]]], false),
        (&[&[&[yes, yes]]], true),
        (&[&[&[yes]], &[&[no]]], false),
        (&[&[&[no], &[yes]], &[&[yes], &[no]]], true),
        (&[&[&[no, yes], &[yes, no]]], false),
    ];
    for (clauses, expected) in table {
        let predicate = predicate(clauses);
        assert!(predicate.has_alternatives() && !predicate.needs_session());
        assert_eq!(predicate.matches(&event(EVENT), None), expected, "{clauses:?}");
        assert_eq!(predicate.matches_event(&event(EVENT)), expected, "{clauses:?}");
    }
}

#[test]
fn alternatives_of_event_and_session_are_decided_together() {
    let (of_event, other, of_session) = ("metadata.n is 10", "metadata.n is 11", "entry_url contains \"blog\"");
    let blog = Entry { url: Some("https://shop.example/blog".into()), channel: None };
    let table: [(&[&[&str]], bool, bool); 4] = [
        // the lists; whether they hold in a session of the blog, and in none
        (&[&[of_event, of_session], &[other]], true, false),
        (&[&[of_session], &[other]], true, false),
        (&[&[of_event], &[of_session]], true, true),
        (&[&[other, of_session], &[other]], false, false),
    ];
    for (lists, in_blog, alone) in table {
        let (predicate, event) = (predicate(&[lists]), event(EVENT));
        assert!(predicate.needs_session());
        assert_eq!(predicate.matches(&event, Some(&blog)), in_blog, "{lists:?}");
        assert_eq!(predicate.matches(&event, None), alone, "{lists:?}");
        let parts = predicate.parts_of(&event) & predicate.mask(None);
        assert_eq!(predicate.holds(parts | predicate.parts_in(Some(&blog))), in_blog, "{lists:?}");
        assert_eq!(predicate.may_hold(parts), predicate.matches_event(&event), "{lists:?}");
        assert!(predicate.matches_event(&event) || !(in_blog || alone), "{lists:?}");
    }
}

#[test]
fn alternatives_have_bounds() {
    let lists = |count: usize, filters: usize| Clause::any(vec![vec![filter("name is_set"); filters]; count]);
    for refused in [lists(0, 1), lists(11, 1), lists(2, 0)] {
        assert_eq!(refused.expect_err("refused").param.as_deref(), Some("any"));
    }
    let refused = |clauses: Vec<Clause>| Predicate::new(None, clauses).is_err();
    let ten = || lists(10, 2).expect("alternatives");
    assert!(!refused(vec![ten(); 3]) && refused(vec![ten(), ten(), ten(), filter("name is_set").into()]));
    // The most parts: all of them have bits.
    let most = (0..30).map(|_| lists(2, 1).expect("alternatives")).collect();
    assert!(Predicate::new(None, most).expect("allowed").matches(&event(EVENT), None));
}

#[test]
fn a_predicate_has_bounds() {
    let of = |name: Option<&str>, filters: usize| {
        let filters = vec![filter("name is_set").into(); filters];
        Predicate::new(name, filters).map_err(|error| error.param.unwrap_or_default()).err()
    };
    assert_eq!(of(Some(&"é".repeat(MAX_NAME_CHARS)), MAX_CONDITIONS), None);
    assert_eq!(of(Some(&"é".repeat(MAX_NAME_CHARS + 1)), 0).as_deref(), Some("event_name"));
    assert_eq!(of(Some(""), 0).as_deref(), Some("event_name"));
    assert_eq!(of(None, MAX_CONDITIONS + 1).as_deref(), Some("filters"));
}

#[test]
fn fields_of_the_session_are_its_entrys() {
    let event = event(EVENT);
    let entry = Entry { url: Some("https://shop.example/blog".into()), channel: Some(Channel::Email) };
    for text in ["entry_url contains \"BLOG\"", "acquisition_channel is \"Email\""] {
        let predicate = Predicate::new(None, vec![filter("name is_set").into(), filter(text).into()]).expect("allowed");
        assert!(predicate.needs_session(), "{text}");
        assert!(predicate.matches(&event, Some(&entry)), "{text}");
        assert!(!predicate.matches(&event, None), "{text}");
    }
}

#[test]
fn fewer_is_the_opposite_of_enough() {
    let condition =
        |is_negated| PeopleCondition { predicate: Predicate::default(), at_least: 2, is_negated, within: Within::Ever };
    assert_eq!([0, 1, 2, 3].map(|count| condition(false).holds(count)), [false, false, true, true]);
    assert_eq!([0, 1, 2, 3].map(|count| condition(true).holds(count)), [true, true, false, false]);
}

/// Any JSON, most of it small.
fn json() -> impl Strategy<Value = serde_json::Value> {
    use serde_json::Value;
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let object = proptest::collection::btree_map("[a-c.]{0,3}", inner.clone(), 0..4);
        prop_oneof![
            proptest::collection::vec(inner, 0..4).prop_map(Value::from),
            object.prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn nothing_panics_and_not_is_the_opposite(metadata in json(), value in json(), path in "[a-c.]{1,5}", raw in ".{0,12}") {
        let mut event = event(EVENT);
        event.details.metadata = Some(metadata.to_string().into());
        for value in [value.to_string(), raw] {
            for operator in Operator::ALL {
                let _ = Filter::new(&format!("metadata.{value}"), operator.as_str(), Some(&value));
                let Ok(filter) = Filter::new(&format!("metadata.{path}"), operator.as_str(), Some(&value)) else { continue };
                let holds = filter.matches(&event, None);
                let opposite = match operator {
                    Operator::Is => "is_not",
                    Operator::Contains => "not_contains",
                    Operator::IsSet => "is_not_set",
                    _ => continue,
                };
                let opposite = Filter::new(&format!("metadata.{path}"), opposite, Some(&value)).expect("the same operand");
                prop_assert_eq!(opposite.matches(&event, None), !holds);
            }
        }
    }

    #[test]
    fn a_value_is_itself(metadata in json()) {
        let text = metadata.to_string();
        let mut event = event(EVENT);
        event.details.metadata = Some(format!("{{\"x\":{text}}}").into());
        if let Ok(filter) = Filter::new("metadata.x", "is", Some(&text)) {
            // A list is a set of values as an operand, but null as a property.
            prop_assert!(filter.matches(&event, None) || metadata.is_array());
        }
    }

    #[test]
    fn a_text_contains_its_parts_in_any_case(before in ".{0,5}", part in ".{1,5}", after in ".{0,5}") {
        let text = format!("{before}{part}{after}");
        let mut event = event(EVENT);
        event.details.metadata = Some(serde_json::json!({ "x": text }).to_string().into());
        for part in [part.clone(), lower_case(&part)] {
            let value = serde_json::json!(part).to_string();
            prop_assert!(Filter::new("metadata.x", "contains", Some(&value)).expect("text").matches(&event, None));
        }
    }
}

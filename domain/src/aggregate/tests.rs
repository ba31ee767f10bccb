use proptest::prelude::*;

use super::*;
use crate::filter::{Filter, Predicate};
use crate::intake::fields::tests::event;
use crate::intake::fields::{Entry, Field, MetadataPath, Number, Scalar};

fn number(text: &str) -> Scalar<'static> {
    Scalar::Number(Number::parse(text).expect(text))
}

fn text(text: &str) -> Scalar<'static> {
    Scalar::Text(text.to_owned().into())
}

fn key(value: &Scalar<'_>) -> Vec<u8> {
    let mut key = Vec::new();
    GroupKey::write(value, &mut key);
    key
}

fn sum_of(numbers: &[&str]) -> Option<String> {
    let mut group = GroupFigures::default();
    numbers.iter().for_each(|text| group.merge(GroupFigures::of(Summand::of(&number(text)))));
    assert_eq!((group.count, group.summed), (numbers.len() as u64, numbers.len() as u64));
    group.total.amount().map(|amount| amount.to_string())
}

#[test]
fn sums_are_exact() {
    let nines = "99999999999999999999999999999999";
    let negative = format!("-{nines}");
    let table: [(&[&str], Option<&str>); 12] = [
        (&[], Some("0")),
        (&["0.1", "0.2"], Some("0.3")),
        (&["1e20", "0.000001", "-1e20"], Some("0.000001")),
        // Each is rounded by itself.
        (&["0.0000005", "0.0000005"], Some("0.000002")),
        (&["0.0000004", "0.0000004"], Some("0")),
        (&["-0.0000005"], Some("-0.000001")),
        (&[nines], Some(nines)),
        (&[nines, "1"], None),
        // What is out of range in between comes back.
        (&[nines, nines, nines, &negative, &negative, "-0.5"], Some("99999999999999999999999999999998.5")),
        (&[&negative, &negative, &negative, nines, nines, nines], Some("0")),
        (&["1e32", "-1e32"], None),
        (&["-1e400"], None),
    ];
    for (numbers, expected) in table {
        assert_eq!(sum_of(numbers).as_deref(), expected, "{numbers:?}");
        let reversed: Vec<&str> = numbers.iter().rev().copied().collect();
        assert_eq!(sum_of(&reversed).as_deref(), expected, "{reversed:?}");
    }
}

#[test]
fn only_numbers_are_summed() {
    for value in [text("12"), Scalar::Bool(true), Scalar::Null] {
        let group = GroupFigures::of(Summand::of(&value));
        assert_eq!((group.count, group.summed, group.total.amount().map(|it| it.to_string())), (1, 0, Some("0".into())));
    }
}

fn shown(aggregate: &Aggregate) -> String {
    let value = |value: &Scalar<'_>| match value {
        Scalar::Text(text) => format!("{text:?}"),
        Scalar::Number(number) => number.to_string(),
        Scalar::Bool(value) => value.to_string(),
        Scalar::Null => "null".to_owned(),
    };
    let total = |sum: &GroupSum| sum.total.map_or("null".to_owned(), |total| total.to_string());
    let row = |row: &AggregateRow| match &row.sum {
        Some(sum) => format!("{}={} of {}", value(&row.value), total(sum), sum.summed),
        None => format!("{}={}", value(&row.value), row.count),
    };
    aggregate.rows.iter().map(row).collect::<Vec<_>>().join(" ")
}

fn ranked(sums: bool, limit: usize, groups: &[(Scalar<'_>, GroupFigures)]) -> Aggregate {
    let mut ranking = Ranking::new(sums, limit);
    for (value, group) in groups {
        ranking.add(GroupKey::read(&key(value)), *group);
    }
    ranking.finish()
}

#[test]
fn groups_are_ordered_by_figure_then_by_text() {
    let values = [
        Scalar::Null,
        text("5"),
        number("5.0"),
        text(""),
        text("true"),
        Scalar::Bool(true),
        number("1e21"),
        number("1e-7"),
        number("1e20"),
        text("ä"),
        text("Z"),
        text("a"),
        number("-3"),
        text("null"),
    ];
    let groups: Vec<_> = values.map(|value| (value, GroupFigures { count: 2, ..GroupFigures::default() })).into();
    let order =
        r#"""=2 -3=2 0.0000001=2 100000000000000000000=2 1e21=2 5=2 "5"=2 "Z"=2 "a"=2 "null"=2 true=2 "true"=2 "ä"=2 null=2"#;
    assert_eq!(shown(&ranked(false, 100, &groups)), order);
    for limit in 1..=groups.len() {
        let aggregate = ranked(false, limit, &groups);
        assert_eq!(shown(&aggregate), order.split(' ').take(limit).collect::<Vec<_>>().join(" "));
        assert_eq!((aggregate.total_groups, aggregate.truncated), (14, limit < 14));
    }
}

#[test]
fn sums_are_ordered_before_counts_and_what_is_too_large_comes_last() {
    let group = |numbers: &[&str], more: u64| {
        let mut group = GroupFigures { count: more, ..GroupFigures::default() };
        numbers.iter().for_each(|text| group.merge(GroupFigures::of(Summand::of(&number(text)))));
        group
    };
    let groups = [
        (text("none"), group(&[], 9)),
        (text("large"), group(&["1e40"], 0)),
        (text("small"), group(&["-0.5"], 7)),
        (Scalar::Null, group(&["3"], 0)),
        (text("two"), group(&["1", "2"], 0)),
    ];
    assert_eq!(shown(&ranked(true, 9, &groups)), r#""two"=3 of 2 null=3 of 1 "none"=0 of 0 "small"=-0.5 of 1 "large"=null of 1"#);
    assert_eq!(shown(&ranked(false, 1, &groups)), r#""none"=9"#);
}

#[test]
fn an_event_is_in_the_group_of_its_value() {
    let body = r#"{"name": "a", "metadata": {"plan": {"name": "pro"}, "seats": 5.0, "text": "5", "list": [1]}}"#;
    let of = |by: &str, sum: Option<&str>| {
        let path = sum.map(|path| MetadataPath::parse(path).expect(path));
        let grouping = Grouping::new(Field::parse(by).expect(by), path).expect("allowed");
        let mut key = Vec::new();
        grouping.write_key(&event(body), &mut key);
        let group = grouping.contribution(&event(body));
        (GroupKey::read(&key).value().into_owned(), group.summed, group.total.amount().expect("in range").to_string())
    };
    assert_eq!(of("name", None), (text("a"), 0, "0".into()));
    assert_eq!(of("metadata.seats", Some("seats")), (number("5"), 1, "5".into()));
    assert_eq!(of("metadata.text", Some("text")), (text("5"), 0, "0".into()));
    assert_eq!(of("metadata.plan", Some("plan")), (Scalar::Null, 0, "0".into()));
    assert_eq!(of("metadata.plan.name", Some("list")), (text("pro"), 0, "0".into()));
    assert_eq!(of("url", Some("nothing")), (Scalar::Null, 0, "0".into()));
}

#[test]
fn fields_of_the_session_are_its_entrys_and_take_no_sum() {
    let seats = || Some(MetadataPath::parse("seats").expect("a path"));
    for field in ["entry_url", "acquisition_channel"] {
        let error = Grouping::new(Field::parse(field).expect(field), seats()).expect_err(field);
        assert_eq!((error.code, error.param.as_deref()), ("unsupported_combination", Some("sum_metadata_field")));
    }
    let grouping = Grouping::new(Field::parse("entry_url").expect("a field"), None).expect("allowed");
    assert!(grouping.is_by_session() && !grouping.sums());
    let entry = Entry { url: Some("/a".into()), channel: None };
    let mut key = Vec::new();
    grouping.write_session_key(&entry, &mut key);
    assert_eq!(GroupKey::read(&key).value(), text("/a"));
    let filter = |field, operator, value| Filter::new(field, operator, value).expect("a filter");
    let filters = [filter("entry_url", "is", Some("\"/a\"")), filter("name", "is", Some("\"a\""))];
    let predicate = Predicate::new(None, filters.map(Into::into).into()).expect("allowed");
    let (named, other) = (event(r#"{"name": "a"}"#), event(r#"{"name": "b"}"#));
    assert!(predicate.matches_event(&named) && !predicate.matches_event(&other));
    assert!(predicate.matches(&named, Some(&entry)) && !predicate.matches(&other, Some(&entry)));
}

fn scalar() -> impl Strategy<Value = Scalar<'static>> {
    prop_oneof![
        Just(Scalar::Null),
        any::<bool>().prop_map(Scalar::Bool),
        "-?(0|[1-9][0-9]{0,4})(\\.[0-9]{1,3})?([eE]-?[0-9]{1,2})?".prop_map(|text| number(&text)),
        ".{0,6}".prop_map(|it| text(&it)),
        "[0-9.]{0,3}".prop_map(|it| text(&it)),
    ]
}

proptest! {
    #[test]
    fn equal_values_have_equal_keys(one in scalar(), other in scalar()) {
        let written = key(&one);
        prop_assert_eq!(GroupKey::read(&written).value(), one.clone());
        prop_assert_eq!(key(&one) == key(&other), one == other);
    }

    #[test]
    fn parts_of_a_sum_merge_in_any_order(parts in proptest::collection::vec((any::<i128>(), any::<bool>()), 0..20), at in 0usize..20) {
        // Parts of the magnitude of the bound, so that sums overflow.
        let groups: Vec<GroupFigures> = parts.iter().map(|(part, large)| {
            GroupFigures::of(if *large && part % 50 == 0 { Summand::TooLarge } else { Summand::Micros(part % 10_i128.pow(38)) })
        }).collect();
        let sum = |groups: &[GroupFigures]| groups.iter().fold(GroupFigures::default(), |mut sum, group| { sum.merge(*group); sum });
        let (left, right) = groups.split_at(at.min(groups.len()));
        let mut merged = sum(right);
        merged.merge(sum(left));
        prop_assert_eq!(merged, sum(&groups));
    }
}

use super::*;

fn columns(documents: &[String]) -> Vec<String> {
    let mut counts = PathCounts::default();
    documents.iter().for_each(|json| counts.add(json));
    counts.columns().iter().map(ToString::to_string).collect()
}

#[test]
fn the_most_frequent_paths_become_columns() {
    let many: String = (0..100).map(|key| format!(r#""k{key:02}":1,"#)).collect();
    let documents = [format!(r#"{{{many}"z":{{"y":2}}}}"#), r#"{"z":{"y":3},"k99":1}"#.into(), r#"{"z":{"y":4}}"#.into()];
    let found = columns(&documents);
    assert_eq!(found.len(), MAX_PATH_COLUMNS);
    assert_eq!(found[..4], ["z.y", "k99", "k00", "k01"]);
}

#[test]
fn rare_paths_long_paths_and_other_spellings_stay_out() {
    let mut documents = vec![r#"{"Plan":1,"plan":2}"#.to_owned(); 150];
    documents.push(r#"{"plan":3,"once":4}"#.to_owned());
    documents.push(format!(r#"{{"{}":5}}"#, "x".repeat(MAX_COLUMN_PATH_BYTES + 1)));
    assert_eq!(columns(&documents), ["plan"]);
}

#[test]
fn what_is_counted_is_bounded() {
    let mut counts = PathCounts::default();
    for number in 0..20_000 {
        counts.add(&format!(r#"{{"always":1,"key-{number}":2}}"#));
    }
    assert_eq!(counts.counts.len(), MAX_COUNTED_PATHS);
    assert_eq!(counts.columns().iter().map(MetadataPath::as_str).collect::<Vec<_>>(), ["always"]);
}

#[test]
fn equal_scalars_have_equal_texts() {
    let mut found = Vec::new();
    visit_scalars(r#"{"a":5.0,"b":5e0,"c":"\u0041\n","d":true,"e":{"f":false}}"#, |_, text| found.push(text.into_owned()));
    assert_eq!(found, ["5", "5", r#""A\n""#, "true", "false"]);
}

#[test]
fn the_last_value_of_a_key_counts() {
    for keys in [2, FEW_ENTRIES, FEW_ENTRIES + 1, 100] {
        let once: String = (0..keys).map(|key| format!(r#""k{key:03}":{key},"#)).collect();
        let twice: String = (0..keys).map(|key| format!(r#""k{key:03}":{},"#, key + 1)).collect();
        // The key "k000.x" hides what "k000" has at "x".
        let json = format!(r#"{{{once}{twice}"k000":{{"x":"nested","y":-3}},"k000.x":null}}"#);
        let mut found = Vec::new();
        visit_scalars(&json, |path, text| found.push((path.to_owned(), text.into_owned())));
        found.sort();
        let mut expected: Vec<_> = (1..keys).map(|key| (format!("k{key:03}"), (key + 1).to_string())).collect();
        expected.push(("k000.y".into(), "-3".into()));
        expected.sort();
        assert_eq!(found, expected, "{keys} keys");
    }
}

#[test]
fn only_the_shortest_text_of_a_scalar_needs_no_parsing() {
    let short = [r#""""#, r#""plan""#, r#""é""#, "5", "-5", "120", "12.5", "-10.05", "100000000000000000000"];
    let long = ["null", "[1]", "{}", r#""\u0041""#, "0", "-0", "0.5", "5.0", "5e0", "1E3", "12.50", "1000000000000000000000"];
    assert_eq!(short.map(is_shortest), [true; 9]);
    assert_eq!(long.map(is_shortest), [false; 12]);
    let mut random = 1_u64;
    let mut shortest = 0;
    for _ in 0..50_000 {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let zeros = 10_u64.pow(u32::try_from(random >> 60).unwrap());
        let (whole, fraction) = (random % 100 * zeros, random / 100 % 1_000);
        let sign = if random & 1 == 0 { "-" } else { "" };
        let json = if random & 2 == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") };
        if is_shortest(&json) {
            shortest += 1;
            assert_eq!(shortest_text(&json), json);
        }
    }
    assert!(shortest > 20_000, "{shortest}");
}

/// The text that parsing leads to.
fn shortest_text(json: &str) -> String {
    let scalar = Scalar::parse(json).unwrap_or_else(|| panic!("{json}"));
    shortest(json, &scalar).unwrap().into_owned()
}

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

use super::*;
use crate::base::BaseName;
use crate::file::FileName;
use headcount_domain::Day;
use headcount_domain::time::Month;

const PROJECT: ProjectId = ProjectId(5);

fn entry(first: Position, last: Position, month: i32) -> FileEntry {
    let name = FileName { first, last, month: Month(2026 * 12 + month), rewrites: 0 };
    FileEntry { name, rows: 1, first_day: Day(20_000), last_day: Day(20_001), bytes: 9, sha256: "ab".repeat(32) }
}

#[test]
fn the_list_is_the_documented_json() {
    let manifest = Manifest::new(PROJECT, 20, vec![entry(1, 7, 9)]).unwrap();
    let text = manifest.text().unwrap();
    let expected = concat!(
        r#"{"format":1,"project_id":"prj_00000000005","sealed_until":20,"files":["#,
        r#"{"name":"month=2026-10/00000000000000000001-00000000000000000007.parquet","rows":1,"#,
        r#""first_day":"2024-10-04","last_day":"2024-10-05","bytes":9,"sha256":""#
    );
    assert!(text.starts_with(expected), "{text}");
    assert_eq!(parse(text.as_bytes(), PROJECT).unwrap(), manifest);
}

#[test]
fn a_base_is_part_of_the_list_and_raises_its_format() {
    let base = BaseEntry { name: BaseName { position: 30, rewrites: 0 }, bytes: 8, sha256: "cd".repeat(32) };
    let manifest = Manifest::new(PROJECT, 20, vec![entry(1, 7, 9)]).unwrap().with_base(base.clone());
    let text = manifest.text().unwrap();
    let expected = r#""base":{"name":"state-00000000000000000030","bytes":8,"sha256":"cdcd"#;
    assert!(text.starts_with(r#"{"format":2,"#) && text.contains(expected), "{text}");
    assert_eq!(parse(text.as_bytes(), PROJECT).unwrap(), manifest);
    assert_eq!(manifest.with_files(25, Vec::new()).unwrap().base(), Some(&base), "sealing and merging keep it");
    let again = manifest.with_base(BaseEntry { name: base.next_name(30), ..base.clone() });
    let text_again = again.text().unwrap();
    assert!(text_again.contains(r#""name":"state-00000000000000000030-1""#), "{text_again}");
    assert_eq!(parse(text_again.as_bytes(), PROJECT).unwrap(), again);
    assert_eq!(again.base().unwrap().next_name(31), BaseName { position: 31, rewrites: 0 });
    let other = |from: &str, to: &str| {
        let object = text.replace(from, to);
        let end = object.rfind(",\"crc32c\"").unwrap();
        parse(checksum::append(format!("{}}}", &object[..end])).as_bytes(), PROJECT).unwrap_err()
    };
    assert!(other(r#""format":2"#, r#""format":1"#).contains("format is 1"));
    assert!(other("state-00000000000000000030", "state-30").contains("not the name of a base"));
}

#[test]
fn floors_are_listed_in_a_format_of_their_own() {
    let manifest = Manifest::new(PROJECT, 20, vec![entry(1, 7, 9)]).unwrap();
    let with = |floors: &[(Position, i32)]| {
        manifest.clone().with_floors(floors.iter().map(|(position, day)| (*position, Day(*day))).collect())
    };
    let listed = with(&[(3, 20_000), (20, 20_001)]).unwrap();
    let text = listed.text().unwrap();
    assert!(text.starts_with(r#"{"format":2,"#) && text.contains(r#""floors":[[3,"2024-10-04"],[20,"2024-10-05"]]"#), "{text}");
    assert_eq!(parse(text.as_bytes(), PROJECT).unwrap(), listed);
    assert!(with(&[(3, 20_000), (3, 20_001)]).is_err(), "two at one position");
    assert!(with(&[(3, 20_000), (4, 20_000)]).is_err(), "the floor does not rise");
    assert!(with(&[(21, 20_000)]).is_err(), "the record is not sealed");
}

#[test]
fn every_flipped_bit_and_every_cut_is_noticed() {
    let manifest = Manifest::new(PROJECT, 20, vec![entry(1, 7, 9), entry(8, 9, 10)]).unwrap();
    let text = manifest.with_floors(vec![(8, Day(20_000))]).unwrap().text().unwrap();
    for at in 0..text.len() {
        assert!(parse(&text.as_bytes()[..at], PROJECT).is_err(), "cut at {at}");
        for bit in 0..8 {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1 << bit;
            assert!(parse(&bytes, PROJECT).is_err(), "bit {bit} of byte {at}");
        }
    }
    assert!(parse(text.as_bytes(), ProjectId(6)).is_err(), "another project's");
}

#[test]
fn files_are_in_order_and_sealed() {
    let new = |sealed_until, files: &[FileEntry]| Manifest::new(PROJECT, sealed_until, files.to_vec());
    assert!(new(9, &[entry(1, 7, 9), entry(8, 9, 9)]).is_ok());
    assert!(new(9, &[entry(1, 8, 9), entry(8, 9, 9)]).is_err(), "they overlap");
    assert!(new(9, &[entry(1, 7, 9), entry(8, 9, 8)]).is_err(), "the month falls");
    assert!(new(8, &[entry(1, 7, 9), entry(8, 9, 9)]).is_err(), "the last one is not sealed");
    assert!(new(9, &[FileEntry { rows: 8, ..entry(1, 7, 9) }]).is_err(), "more rows than positions");
}

#[test]
fn names_are_read_in_one_spelling() {
    let name = entry(1, 7, 9).name;
    assert_eq!(name.to_string().parse(), Ok(name));
    let rewritten = FileName { rewrites: 3, ..name };
    assert_eq!(rewritten.base(), "00000000000000000001-00000000000000000007-3.parquet");
    assert_eq!(rewritten.to_string().parse(), Ok(rewritten));
    for wrong in [
        "month=2026-10/1-7.parquet",
        "month=2026-1/00000000000000000001-00000000000000000007.parquet",
        "month=2026-10/00000000000000000008-00000000000000000007.parquet",
        "month=2026-10/../00000000000000000001-00000000000000000007.parquet",
        "00000000000000000001-00000000000000000007.parquet",
        "month=2026-10/00000000000000000001-00000000000000000007-0.parquet",
        "month=2026-10/00000000000000000001-00000000000000000007-03.parquet",
        "month=2026-10/00000000000000000001-00000000000000000007-3-4.parquet",
    ] {
        assert!(wrong.parse::<FileName>().is_err(), "{wrong}");
    }
}

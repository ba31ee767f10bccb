//! Habits that a machine can check: the length of files and functions, and words that the tree must
//! not hold.
//!
//! The lists of exceptions only shrink.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is a failed test")]

use std::collections::BTreeSet;

use headcount_tidy::functions::functions;
use headcount_tidy::imports::{CRATES, Modules, circles};
use headcount_tidy::lines::{by_crate, of_default_build, production_lines};
use headcount_tidy::names;
use headcount_tidy::source::{Source, files, tree};
use headcount_tidy::words::{self, Replaced};

const MAX_FILE_LINES: usize = 500;
const MAX_FUNCTION_LINES: usize = 70;
/// The most characters of a line with a comment. Tables and code in comments may be wider.
const MAX_COMMENT_WIDTH: usize = 100;
/// The budget of `just lines`. It only shrinks.
const MAX_PRODUCTION_LINES: usize = 102_500;
/// The budget of a build without the feature `cluster`.
const MAX_DEFAULT_LINES: usize = 91_750;

/// The most public methods of `Engine` (ADR 32). Its parts have the others.
const MAX_ENGINE_METHODS: usize = 30;

/// The most fields of a struct that a function takes as a parameter.
const MAX_PARAMETER_FIELDS: usize = 15;

/// Values that have more: settings, and what events, projects and figures of a process consist of.
const LARGE_VALUES: &[&str] = &["Details", "Draft", "EngineConfig", "Project", "Settings", "Vitals"];

/// Files that are longer, each with its reason.
const LONG_FILES: &[&str] = &[];

/// Words that say that something is unfinished. Spelled in halves, so that this file doesn't hold
/// them.
const UNFINISHED: &[(&str, &str)] = &[("TO", "DO"), ("FIX", "ME"), ("unimple", "mented!"), ("to", "do!("), ("db", "g!(")];

#[test]
fn files_and_functions_fit() {
    let mut long = Vec::new();
    for Source { name, text } in tree() {
        let lines = text.lines().count();
        if lines > MAX_FILE_LINES && !LONG_FILES.contains(&name.as_str()) {
            long.push(format!("{name}: {lines} lines"));
        }
        for (line, length, function) in functions(&text) {
            if length > MAX_FUNCTION_LINES {
                long.push(format!("{name}:{line}: {length} lines: {function}"));
            }
        }
    }
    assert!(long.is_empty(), "too long:\n{}", long.join("\n"));
}

#[test]
fn production_lines_stay_within_the_budget() {
    let tree = tree();
    let (crates, default) = (by_crate(&tree), of_default_build(&tree));
    crates.iter().for_each(|(folder, lines)| println!("{lines:>7}  {folder}"));
    let all: usize = crates.values().sum();
    println!("{all:>7}  in all, of {MAX_PRODUCTION_LINES}");
    println!("{default:>7}  without the feature `cluster`, of {MAX_DEFAULT_LINES}");
    assert!(all <= MAX_PRODUCTION_LINES, "{all} production lines: take some away before you add others");
    assert!(default <= MAX_DEFAULT_LINES, "{default} production lines of a default build: take some away, or gate them");
}

#[test]
fn comments_fit_the_width_of_prose() {
    // Macros make texts of the API's document of these, each of one line.
    let documents = ["api/", "features/", "src/http/", "domain/src/intake/submission.rs"];
    let mut wide = Vec::new();
    for source in tree() {
        let has_texts = documents.iter().any(|folder| source.name.starts_with(folder));
        let mut is_code = false;
        for (number, line) in (1..).zip(source.text.lines()) {
            let comment = line.trim_start().strip_prefix("//").filter(|text| !has_texts || !text.starts_with('/'));
            let comment = comment.map(|text| text.trim_start_matches(['/', '!']));
            is_code = comment.is_some_and(|text| is_code != text.trim_start().starts_with("```"));
            let is_prose = comment.is_some_and(|text| !is_code && !text.starts_with(" |") && !text.starts_with("     "));
            if is_prose && line.chars().count() > MAX_COMMENT_WIDTH {
                wide.push(format!("{}:{number}", source.name));
            }
        }
    }
    assert!(wide.is_empty(), "wrap these comments at {MAX_COMMENT_WIDTH} characters:\n{}", wide.join("\n"));
}

#[test]
fn production_lines_are_neither_blank_nor_comments_nor_tests() {
    let text = "//! Head.\n\nuse a::b;\n\n/// Doc.\nfn f() {\n    // Why.\n    g();\n}\n\n#[cfg(test)]\n#[path = \"x.rs\"]\nmod other;\n\n\
                impl A {\n    #[cfg(test)]\n    fn h() {\n        if x {\n        }\n    }\n}\n\n#[cfg(test)]\nmod tests {\n    fn t() {}\n}\n";
    assert_eq!(production_lines(text), 6);
}

#[test]
fn nothing_says_that_it_is_unfinished() {
    let mut found = Vec::new();
    for Source { name, text } in tree() {
        for (number, line) in text.lines().enumerate() {
            if UNFINISHED.iter().any(|(first, second)| line.contains(&format!("{first}{second}"))) {
                found.push(format!("{name}:{}: {line}", number + 1));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Words and names that `docs/GLOSSARY.md` lists as replaced don't come back, in code, comments,
/// messages or documents.
#[test]
fn replaced_words_do_not_come_back() {
    let replaced = Replaced::read(include_str!("../../../docs/GLOSSARY.md"));
    assert!(replaced.words.len() > 5 && replaced.names.len() > 5, "{replaced:?}");
    let found = words::found(&files(&[".rs", ".md", ".py"]), &replaced);
    assert!(found.is_empty(), "docs/GLOSSARY.md says what they are called now:\n{}", found.join("\n"));
}

#[test]
fn replaced_words_are_found_in_names_and_in_prose() {
    let list = "## Replaced words and names\n\n| word | now |\n|---|---|\n| moved, shop | x |\n\n| name | now |\n|---|---|\n| `OldName` | y |\n\n## Next\n| it | z |\n";
    let replaced = Replaced::read(list);
    for (line, expected) in [
        ("fn has_moved(shop: &ShopKeeper)", &["moved", "shop"][..]),
        ("// Moved, as it was.", &["moved"]),
        ("let it = OldName::new(removed);", &["OldName"]),
        ("OldNames and workshops", &[]),
    ] {
        assert_eq!(replaced.found_in(line), expected, "{line}");
    }
}

#[test]
fn imports_go_one_way() {
    for (folder, forbidden) in [
        (
            "domain/src",
            &["headcount_storage", "headcount_actors", "actix", "sled::", "tokio", "std::fs", "std::net", "SystemTime"][..],
        ),
        ("storage/src", &["headcount_domain", "headcount_actors", "actix"]),
        ("archive/src", &["headcount_actors", "actix", "tokio", "std::fs::", "std::thread", "SystemTime", "time::Instant::now"]),
        ("common/src", &["headcount_control", "headcount_actors", "actix", "tokio"]),
        ("control/src", &["headcount_archive", "headcount_actors", "actix"]),
        ("actors/src", &["actix_web"]),
        ("api/src", &["headcount_cluster", "headcount::"]),
        ("cluster/src", &["headcount_api", "headcount::"]),
        ("benches/load", &["headcount::", "headcount_"]),
        ("tests/model", &["headcount_domain", "headcount_storage", "headcount_actors"]),
        ("tests/histories", &["headcount_domain", "headcount_storage", "headcount_actors"]),
    ] {
        for Source { name, text } in tree().iter().filter(|source| source.name.starts_with(folder)) {
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            let wrong = code.filter(|line| forbidden.iter().any(|word| line.contains(word))).collect::<Vec<_>>();
            assert!(wrong.is_empty(), "{name} knows what it must not: {wrong:?}");
        }
    }
}

/// Features never import each other, and only the program imports them.
#[test]
fn features_are_on_their_own() {
    let features: BTreeSet<&str> =
        CRATES.iter().filter_map(|one| one.src.strip_prefix("features/")?.strip_suffix("/src/")).collect();
    let sources = tree();
    let in_features = sources.iter().filter_map(|source| source.name.strip_prefix("features/")?.split('/').next());
    assert_eq!(in_features.collect::<BTreeSet<_>>(), features, "`CRATES` has every feature");
    for source in sources.iter().filter(|source| CRATES.iter().any(|one| source.name.starts_with(one.src))) {
        let (Source { name, text }, is_program) = (source, source.name.starts_with("src/"));
        let others = features.iter().filter(|feature| !is_program && !name.starts_with(&format!("features/{feature}/")));
        for feature in others {
            assert!(!text.contains(&format!("headcount_{feature}")), "{name} imports the feature {feature}");
        }
        assert!(is_program || source.is_test() || !text.contains("headcount::"), "{name} imports the program");
    }
}

/// No two files and no two folders of a crate import each other, directly or through others: each
/// can be understood after those that it builds on.
#[test]
fn no_files_import_each_other() {
    let sources = tree();
    let mut found = Vec::new();
    for one in &CRATES {
        let modules = Modules::read(one, &sources);
        let edges = modules.edges();
        for edges in [modules.folder_edges(one), edges] {
            for circle in circles(&edges) {
                found.push(format!("{} of {}:", circle.len(), one.src));
                for file in &circle {
                    let to: Vec<_> = edges[file].iter().filter(|to| circle.contains(to)).collect();
                    found.push(format!("  {file} -> {to:?}"));
                }
            }
        }
    }
    assert!(found.is_empty(), "files that import each other:\n{}", found.join("\n"));
}

/// Types that share a name in a crate, each with its reason.
const SHARED_NAMES: &[(&str, &str)] = &[];

/// Items that only tests use, each with its reason.
const FOR_TESTS: &[(&str, &str)] = &[
    ("rearm", "part of the fault switch, which is built for tests only"),
    ("failed_paths", "part of the fault switch, which is built for tests only"),
    ("for_each_row", "what the tests of the archive read it with"),
];

fn excepted(list: &[(&str, &str)], name: &str) -> bool {
    list.iter().any(|(listed, reason)| *listed == name && !reason.is_empty())
}

/// One name, one thing: no two types of a crate share a name.
#[test]
fn types_have_names_of_their_own() {
    let found = names::types_of_one_name(&tree());
    let found = found.iter().filter(|((_, name), _)| !excepted(SHARED_NAMES, name));
    let found: Vec<_> = found.map(|((_, name), files)| format!("{name}: {}", files.join(", "))).collect();
    assert!(found.is_empty(), "{} names of several types:\n{}", found.len(), found.join("\n"));
}

#[test]
fn what_is_public_is_used() {
    let found: Vec<_> = names::unused(&tree(), false).into_iter().map(|(file, name)| format!("{file}: {name}")).collect();
    assert!(found.is_empty(), "nobody uses:\n{}", found.join("\n"));
}

#[test]
fn what_production_defines_it_uses() {
    let unused = names::unused(&tree(), true);
    let found = unused.iter().filter(|(_, name)| !excepted(FOR_TESTS, name));
    let found: Vec<_> = found.map(|(file, name)| format!("{file}: {name}")).collect();
    assert!(found.is_empty(), "only tests use:\n{}", found.join("\n"));
    for (name, _) in FOR_TESTS {
        assert!(unused.iter().any(|(_, unused)| unused == name), "{name} is no exception any more");
    }
}

#[test]
fn the_engine_has_few_public_methods() {
    let tree = tree();
    let sources = tree.iter().filter(|source| source.name.starts_with("actors/src/"));
    let found: Vec<_> = sources.flat_map(|source| names::public_methods(source, "Engine")).collect();
    assert!(found.len() <= MAX_ENGINE_METHODS, "Engine has {} public methods:\n{}", found.len(), found.join("\n"));
    assert!(found.iter().any(|name| name == "open"), "none is found");
}

#[test]
fn structs_that_functions_take_have_few_fields() {
    let large = names::large_parameters(&tree(), MAX_PARAMETER_FIELDS);
    assert_eq!(large.keys().map(String::as_str).collect::<Vec<_>>(), LARGE_VALUES, "{large:?}");
}

/// What is dead is removed.
#[test]
fn nothing_dead_is_allowed() {
    let words = [concat!("allow(dead_", "code"), concat!("expect(dead_", "code")];
    let tree = tree();
    let dead = tree.iter().filter(|source| !source.is_test() && words.iter().any(|word| source.text.contains(word)));
    let found: Vec<_> = dead.map(|source| source.name.as_str()).collect();
    assert!(found.is_empty(), "dead code is allowed in {found:?}");
}

/// What CI runs of a campaign, as the last column of the table says it.
#[test]
fn ci_runs_the_slices_that_the_document_names() {
    let ci = include_str!("../../../.ci/run").replace("\\\n", " ");
    let rows = include_str!("../../../tests/crash/README.md").lines().filter_map(|line| line.strip_prefix("| `"));
    let mut compared = 0;
    for row in rows {
        let (campaign, rest) = row.split_once('`').unwrap();
        let Some(slice) = rest.rsplit(" | ").next().unwrap().split('`').nth(1) else { continue };
        let runs =
            |line: &&str| [format!("crash {campaign} "), format!("crash\" {campaign} ")].iter().any(|call| line.contains(call));
        let line = ci.lines().find(runs).unwrap_or_else(|| panic!(".ci/run does not run {campaign}"));
        assert!(
            line.split_once(campaign).unwrap().1.ends_with(slice),
            ".ci/run has another slice of {campaign} than tests/crash/README.md: {line}"
        );
        compared += 1;
    }
    assert_eq!(compared, 8, "campaigns");
}

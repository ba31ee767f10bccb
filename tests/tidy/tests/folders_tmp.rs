use headcount_tidy::imports::{CRATES, Modules};
use headcount_tidy::source::tree;
use std::collections::BTreeSet;
#[test]
fn list() {
    let sources = tree();
    for one in &CRATES {
        let m = Modules::read(one, &sources);
        let mut set = BTreeSet::new();
        let top = |f: &str| f[one.src.len()..].split('/').next().unwrap().trim_end_matches(".rs").to_owned();
        for (f, tos) in m.edges() {
            for t in tos {
                let (a, b) = (top(f), top(t));
                if a != b && a != "lib" && b != "lib" {
                    set.insert((a, b, format!("{f}->{t}")));
                }
            }
        }
        // circles among folders
        let pairs: BTreeSet<(String, String)> = set.iter().map(|x| (x.0.clone(), x.1.clone())).collect();
        for (a, b, w) in &set {
            if pairs.contains(&(b.clone(), a.clone())) {
                println!("BOTH {a}<->{b}: {w}");
            }
        }
        let names: BTreeSet<_> = pairs.iter().flat_map(|p| [p.0.clone(), p.1.clone()]).collect();
        for n in names {
            println!("{} {n}: {:?}", one.src, pairs.iter().filter(|p| p.0 == n).map(|p| p.1.as_str()).collect::<Vec<_>>());
        }
    }
}

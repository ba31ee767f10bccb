//! Lists the files in `src/answers/rollups/`: a new one is compared with the engine without a line
//! elsewhere. `cargo fmt` does not see them, so `just check` formats them by their names.

#![allow(clippy::expect_used, reason = "a build that can't list them has failed")]

use std::path::PathBuf;
use std::{env, fs};

fn main() {
    let folder = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("src/answers/rollups");
    println!("cargo::rerun-if-changed={}", folder.display());
    let files = fs::read_dir(&folder).expect("the folder").map(|entry| entry.expect("a file").path());
    let mut files: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect();
    files.sort();
    let (mut modules, mut list) = (String::new(), String::new());
    for file in files {
        let name = file.file_stem().expect("a name").display();
        modules += &format!("#[path = {file:?}]\nmod {name};\n");
        list += &format!("(\"{name}\", {name}::rows), ");
    }
    let list = format!("{modules}const BY_ROWS: &[(&str, RowsOf)] = &[{list}];\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("rollups.rs");
    fs::write(out, list).expect("the list");
}

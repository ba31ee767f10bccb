//! The tree's source files: their text, and what the compiler would make of it without its tests.

use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Attribute, File, Item};

/// A source file.
pub struct Source {
    /// The path from the root of the repository.
    pub name: String,
    /// What it says.
    pub text: String,
}

impl Source {
    /// Its items, without those that only tests have.
    ///
    /// # Panics
    /// It is not Rust.
    pub fn items(&self) -> Vec<Item> {
        let file: File = syn::parse_file(&self.text).unwrap_or_else(|error| panic!("{}: {error}", self.name));
        without_tests(file.items)
    }

    /// Whether it holds tests or what only tests use.
    pub fn is_test(&self) -> bool {
        let stem = self.name.rsplit('/').next().unwrap().trim_end_matches(".rs");
        self.name.starts_with("tests/")
            || self.name.starts_with("benches/")
            || self.name.starts_with("examples/")
            || self.name.split('/').any(|part| part == "tests" || part == "examples" || part == "benches")
            || stem == "tests"
            || stem == "testing"
            || stem.ends_with("_tests")
    }
}

fn paths(dir: &Path, endings: &[&str], into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            if !matches!(name, "target" | ".git" | "node_modules") {
                paths(&path, endings, into);
            }
        } else if endings.iter().any(|ending| name.ends_with(ending)) {
            into.push(path);
        }
    }
}

/// Every Rust file of the repository.
pub fn tree() -> Vec<Source> {
    files(&[".rs"])
}

/// Every file of the repository whose name has one of these endings.
///
/// # Panics
/// The repository is not there.
pub fn files(endings: &[&str]) -> Vec<Source> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let mut files = Vec::new();
    paths(root, endings, &mut files);
    files.sort();
    assert!(files.len() > 10, "the tree was not found");
    let source = |path: PathBuf| Source {
        name: path.strip_prefix(root).unwrap().to_str().unwrap().to_owned(),
        text: fs::read_to_string(&path).unwrap(),
    };
    files.into_iter().map(source).collect()
}

/// The attributes of an item that can have `#[cfg(test)]`.
pub fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let tokens = attribute.meta.to_token_stream().to_string();
        tokens.starts_with("cfg") && tokens.contains("test") && !tokens.contains("not")
    })
}

fn without_tests(items: Vec<Item>) -> Vec<Item> {
    let mut kept: Vec<Item> = items.into_iter().filter(|item| !is_for_tests(attributes(item))).collect();
    for item in &mut kept {
        if let Item::Impl(block) = item {
            block.items.retain(|item| match item {
                syn::ImplItem::Fn(function) => !is_for_tests(&function.attrs),
                _ => true,
            });
        }
    }
    kept
}

/// Calls `visit` with every path (`a::b::c`; a lone identifier is one, too) in `tokens`.
pub fn visit_paths(tokens: TokenStream, visit: &mut impl FnMut(&[String])) {
    let mut path: Vec<String> = Vec::new();
    let mut colons = 0;
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => {
                if colons != 2 && !path.is_empty() {
                    visit(&path);
                    path.clear();
                }
                path.push(ident.to_string());
                colons = 0;
            }
            TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
            other => {
                if !path.is_empty() {
                    visit(&path);
                    path.clear();
                }
                colons = 0;
                if let TokenTree::Group(group) = other {
                    visit_paths(group.stream(), visit);
                }
            }
        }
    }
    if !path.is_empty() {
        visit(&path);
    }
}

//! Which file takes names from which: the imports of a crate, resolved to the files that define the
//! names.

use std::collections::{BTreeMap, BTreeSet};

use quote::ToTokens;
use syn::{Item, UseTree, Visibility};

use crate::source::{Source, visit_paths};

/// A crate of the product.
pub struct Crate {
    /// The folder of its sources.
    pub src: &'static str,
    /// The file of its root module.
    pub root: &'static str,
}

/// The crates of the product.
pub const CRATES: [Crate; 23] = [
    Crate { src: "allocator/src/", root: "lib.rs" },
    Crate { src: "scheduling/src/", root: "lib.rs" },
    Crate { src: "suffixes/src/", root: "lib.rs" },
    Crate { src: "domain/src/", root: "lib.rs" },
    Crate { src: "storage/src/", root: "lib.rs" },
    Crate { src: "archive/src/", root: "lib.rs" },
    Crate { src: "common/src/", root: "lib.rs" },
    Crate { src: "control/src/", root: "lib.rs" },
    Crate { src: "actors/src/", root: "lib.rs" },
    Crate { src: "api/src/", root: "lib.rs" },
    Crate { src: "cluster/src/", root: "lib.rs" },
    Crate { src: "features/demo/src/", root: "lib.rs" },
    Crate { src: "features/events/src/", root: "lib.rs" },
    Crate { src: "features/import/src/", root: "lib.rs" },
    Crate { src: "features/organization/src/", root: "lib.rs" },
    Crate { src: "features/paths/src/", root: "lib.rs" },
    Crate { src: "features/questions/src/", root: "lib.rs" },
    Crate { src: "features/upkeep/src/", root: "lib.rs" },
    Crate { src: "features/privacy/src/", root: "lib.rs" },
    Crate { src: "features/profiles/src/", root: "lib.rs" },
    Crate { src: "features/pushed/src/", root: "lib.rs" },
    Crate { src: "features/webhooks/src/", root: "lib.rs" },
    Crate { src: "src/", root: "lib.rs" },
];

type Path = Vec<String>;

#[derive(Default)]
struct Module {
    file: String,
    children: BTreeSet<String>,
    /// What it defines itself.
    names: BTreeSet<String>,
    /// What it imports or hands on, by the name that it has here.
    imports: BTreeMap<String, Path>,
    globs: Vec<Path>,
    /// The paths of its imports that are for itself, and of its code.
    uses: Vec<Path>,
}

/// The modules of one crate.
pub struct Modules {
    modules: BTreeMap<Path, Module>,
}

impl Modules {
    /// Reads the imports of a crate.
    pub fn read(of: &Crate, sources: &[Source]) -> Self {
        let mut modules = BTreeMap::new();
        for source in sources.iter().filter(|source| source.name.starts_with(of.src) && !source.is_test()) {
            let file = &source.name[of.src.len()..];
            if file == "main.rs" || file.starts_with("bin/") {
                continue;
            }
            let path = if file == of.root { Vec::new() } else { module_path(file) };
            modules.insert(path, module(source));
        }
        Self { modules }
    }

    /// Each file with the files that it takes names from.
    pub fn edges(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut edges: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (at, module) in &self.modules {
            let to = edges.entry(&module.file).or_default();
            for path in &module.uses {
                to.extend(self.definition(at, path, 0).filter(|file| *file != module.file));
            }
        }
        edges
    }

    /// Each folder or file directly in the sources with the others that it takes names from. The
    /// root module is not one.
    #[must_use]
    pub fn folder_edges<'a>(&'a self, of: &Crate) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
        let mut edges: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (file, to) in self.edges() {
            let from = folder(&file[of.src.len()..]);
            let to = to.into_iter().map(|to| folder(&to[of.src.len()..]));
            edges.entry(from).or_default().extend(to.filter(|to| *to != from && *to != "lib"));
        }
        edges.remove("lib");
        edges
    }

    /// The file that defines what `path` names in the module `at`.
    fn definition(&self, at: &Path, path: &[String], depth: usize) -> Option<&str> {
        let (first, rest) = path.split_first()?;
        if depth > 16 {
            return None;
        }
        match first.as_str() {
            "crate" => return self.below(&Vec::new(), rest, depth),
            "self" => return self.below(at, rest, depth),
            "super" => return self.below(&at[..at.len().checked_sub(1)?].to_vec(), rest, depth),
            _ => {}
        }
        let module = self.modules.get(at)?;
        let is_known = module.children.contains(first)
            || module.names.contains(first)
            || module.imports.contains_key(first)
            || !module.globs.is_empty();
        if is_known { self.below(at, path, depth) } else { None }
    }

    /// The file that defines what `path` names as seen from outside of the module `at`.
    fn below(&self, at: &Path, path: &[String], depth: usize) -> Option<&str> {
        let module = self.modules.get(at)?;
        let (first, rest) = path.split_first()?;
        if first == "super" {
            return self.below(&at[..at.len().checked_sub(1)?].to_vec(), rest, depth);
        }
        if module.names.contains(first) {
            return Some(&module.file);
        }
        if module.children.contains(first) {
            let child = [at.as_slice(), std::slice::from_ref(first)].concat();
            return self.below(&child, rest, depth);
        }
        if let Some(target) = module.imports.get(first) {
            let target = [target.as_slice(), rest].concat();
            // `use self::a as a` and the like must not go round for ever.
            return if target == path { None } else { self.definition(at, &target, depth + 1) };
        }
        module.globs.iter().find_map(|glob| self.definition(at, &[glob.as_slice(), path].concat(), depth + 1))
    }
}

fn folder(file: &str) -> &str {
    file.split('/').next().unwrap_or(file).trim_end_matches(".rs")
}

fn module_path(file: &str) -> Path {
    let file = file.trim_end_matches(".rs");
    let file = file.strip_suffix("/mod").unwrap_or(file);
    file.split('/').map(str::to_owned).collect()
}

fn module(source: &Source) -> Module {
    let mut module = Module { file: source.name.clone(), ..Module::default() };
    for item in source.items() {
        match &item {
            Item::Mod(inner) if inner.content.is_none() => {
                module.children.insert(inner.ident.to_string());
            }
            Item::Use(import) => {
                let is_private = matches!(import.vis, Visibility::Inherited);
                visit_imports(&import.tree, &mut Vec::new(), &mut |name, path| {
                    if is_private {
                        module.uses.push(path.clone());
                    }
                    match name {
                        Some(name) => drop(module.imports.insert(name, path)),
                        None => module.globs.push(path),
                    }
                });
            }
            _ => {
                module.names.extend(defined(&item));
                visit_paths(item.to_token_stream(), &mut |path| {
                    // A lone word in lower case may be a variable.
                    if path.len() > 1 || path[0].starts_with(char::is_uppercase) {
                        module.uses.push(path.to_vec());
                    }
                });
            }
        }
    }
    module
}

/// The name that an item defines in its module.
pub fn defined(item: &Item) -> Option<String> {
    match item {
        Item::Const(item) => Some(item.ident.to_string()),
        Item::Enum(item) => Some(item.ident.to_string()),
        Item::Fn(item) => Some(item.sig.ident.to_string()),
        Item::Macro(item) => item.ident.as_ref().map(ToString::to_string),
        Item::Static(item) => Some(item.ident.to_string()),
        Item::Struct(item) => Some(item.ident.to_string()),
        Item::Trait(item) => Some(item.ident.to_string()),
        Item::Type(item) => Some(item.ident.to_string()),
        _ => None,
    }
}

/// Calls `visit` for each name that an import brings, with its path; without a name for all names
/// of a module.
fn visit_imports(tree: &UseTree, before: &mut Path, visit: &mut impl FnMut(Option<String>, Path)) {
    match tree {
        UseTree::Path(path) => {
            before.push(path.ident.to_string());
            visit_imports(&path.tree, before, visit);
            before.pop();
        }
        UseTree::Name(name) => {
            let name = name.ident.to_string();
            if name == "self" {
                visit(before.last().cloned(), before.clone());
            } else {
                visit(Some(name.clone()), [before.as_slice(), &[name]].concat());
            }
        }
        UseTree::Rename(rename) => {
            let path = [before.as_slice(), &[rename.ident.to_string()]].concat();
            visit(Some(rename.rename.to_string()), path);
        }
        UseTree::Glob(_) => visit(None, before.clone()),
        UseTree::Group(group) => group.items.iter().for_each(|tree| visit_imports(tree, before, visit)),
    }
}

/// The sets of files that import each other, directly or by way of others.
pub fn circles<'a>(edges: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> Vec<Vec<&'a str>> {
    let reach: BTreeMap<&str, BTreeSet<&str>> = edges.keys().map(|file| (*file, reachable(file, edges))).collect();
    let mut circles = BTreeSet::new();
    for (file, reached) in &reach {
        if reached.contains(file) {
            circles.insert(reached.iter().copied().filter(|other| reach[other].contains(file)).collect::<Vec<_>>());
        }
    }
    circles.into_iter().collect()
}

fn reachable<'a>(from: &str, edges: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut next = vec![from];
    while let Some(file) = next.pop() {
        for to in edges.get(file).into_iter().flatten() {
            if reached.insert(*to) {
                next.push(to);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::{Crate, Modules, circles};
    use crate::source::Source;

    fn circles_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let source = |(name, text): &(&str, &str)| Source { name: format!("c/src/{name}"), text: (*text).to_owned() };
        let sources: Vec<_> = files.iter().map(source).collect();
        let modules = Modules::read(&Crate { src: "c/src/", root: "lib.rs" }, &sources);
        let edges = modules.edges();
        circles(&edges)
            .into_iter()
            .map(|circle| circle.into_iter().map(|file| file["c/src/".len()..].to_owned()).collect())
            .collect()
    }

    #[test]
    fn files_that_import_each_other_are_found() {
        let lib = ("lib.rs", "mod a; mod b;");
        let b = ("b.rs", "use crate::a::A; pub struct B(A);");
        assert_eq!(circles_of(&[lib, ("a.rs", "pub struct A;"), b]), Vec::<Vec<String>>::new());
        let both = [["a.rs", "b.rs"]];
        assert_eq!(circles_of(&[lib, ("a.rs", "use super::b::B; pub struct A(B);"), b]), both);
        assert_eq!(circles_of(&[lib, ("a.rs", "pub struct A; fn f() { crate::b::B::new(); }"), b]), both);
        assert_eq!(circles_of(&[lib, ("a.rs", "use crate::b as other; pub struct A; fn f() { vec![other::B]; }"), b]), both);
        assert_eq!(circles_of(&[lib, ("a.rs", "use crate::b::*; pub struct A(B);"), b]), both);
    }

    #[test]
    fn names_that_a_module_hands_on_lead_to_their_file() {
        let lib = ("lib.rs", "mod a;");
        let face = ("a/mod.rs", "mod one; mod two; pub use one::One; pub use two::Two;");
        let files = [lib, face, ("a/one.rs", "pub struct One;"), ("a/two.rs", "use super::One; pub struct Two(One);")];
        assert_eq!(circles_of(&files), Vec::<Vec<String>>::new());
        let files = [lib, face, ("a/one.rs", "use crate::a::Two; pub struct One(Two);"), files[3]];
        assert_eq!(circles_of(&files), [["a/one.rs", "a/two.rs"]]);
    }

    #[test]
    fn what_only_tests_import_is_no_circle() {
        let lib = ("lib.rs", "mod a; mod b;");
        let a = ("a.rs", "pub struct A; #[cfg(test)] mod tests { use crate::b::B; fn t(_: B) {} }");
        assert_eq!(circles_of(&[lib, a, ("b.rs", "use crate::a::A; pub struct B(A);")]), Vec::<Vec<String>>::new());
    }
}

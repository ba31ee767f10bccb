//! What is defined where, and how often each name occurs.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{FnArg, ImplItem, Item, Signature, TraitItem, Visibility};

use crate::imports::{CRATES, defined};
use crate::source::Source;

fn is_type(item: &Item) -> bool {
    matches!(item, Item::Enum(_) | Item::Struct(_) | Item::Trait(_) | Item::Type(_))
}

/// Types of one crate that share a name: the crate's folder and the name, with the files that
/// define it.
#[must_use]
pub fn types_of_one_name(sources: &[Source]) -> BTreeMap<(&'static str, String), Vec<String>> {
    let mut files: BTreeMap<(&'static str, String), Vec<String>> = BTreeMap::new();
    for one in &CRATES {
        for source in sources.iter().filter(|source| source.name.starts_with(one.src) && !source.is_test()) {
            for item in source.items().iter().filter(|item| is_type(item)) {
                files.entry((one.src, defined(item).unwrap_or_default())).or_default().push(source.name.clone());
            }
        }
    }
    files.retain(|_, files| files.len() > 1);
    files
}

/// Public items and methods whose name occurs nowhere but where they are defined, with their files.
/// `production`: what tests use doesn't count.
#[must_use]
pub fn unused(sources: &[Source], production: bool) -> Vec<(String, String)> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut public: BTreeMap<String, (usize, BTreeSet<String>)> = BTreeMap::new();
    for source in sources {
        let is_ours = CRATES.iter().any(|one| source.name.starts_with(one.src)) && !source.is_test();
        if production && !is_ours {
            continue;
        }
        if production {
            let items = source.items();
            items.iter().filter(|item| !is_reexport(item)).for_each(|item| count(item.to_token_stream(), &mut counts));
        } else {
            count(TokenStream::from_str(&source.text).unwrap(), &mut counts);
        }
        if is_ours {
            for name in source.items().iter().flat_map(public_names) {
                let (times, files) = public.entry(name).or_default();
                *times += 1;
                files.insert(source.name.clone());
            }
        }
    }
    let unused = public.into_iter().filter(|(name, (times, _))| counts.get(name).is_none_or(|count| count <= times));
    unused.flat_map(|(name, (_, files))| files.into_iter().map(move |file| (file, name.clone()))).collect()
}

/// The methods of a type that other crates can call.
#[must_use]
pub fn public_methods(source: &Source, of: &str) -> Vec<String> {
    let items = source.items();
    let blocks = items.iter().filter_map(|item| if let Item::Impl(block) = item { Some(block) } else { None });
    let own = blocks.filter(|block| block.trait_.is_none() && block.self_ty.to_token_stream().to_string() == of);
    let methods = own.flat_map(|block| &block.items).filter_map(|item| match item {
        ImplItem::Fn(method) if matches!(method.vis, Visibility::Public(_)) => Some(method.sig.ident.to_string()),
        _ => None,
    });
    methods.collect()
}

/// The structs with more than `most` fields that functions take as parameters, each with the number
/// of its fields.
#[must_use]
pub fn large_parameters(sources: &[Source], most: usize) -> BTreeMap<String, usize> {
    let ours = |source: &&Source| CRATES.iter().any(|one| source.name.starts_with(one.src)) && !source.is_test();
    let items: Vec<Item> = sources.iter().filter(ours).flat_map(Source::items).collect();
    let mut taken = BTreeMap::new();
    for input in items.iter().flat_map(signatures).flat_map(|signature| &signature.inputs) {
        if let FnArg::Typed(parameter) = input {
            count(parameter.ty.to_token_stream(), &mut taken);
        }
    }
    let structs = items.iter().filter_map(|item| if let Item::Struct(item) = item { Some(item) } else { None });
    let large = structs.map(|item| (item.ident.to_string(), item.fields.len())).filter(|(_, fields)| *fields > most);
    large.filter(|(name, _)| taken.contains_key(name)).collect()
}

fn signatures(item: &Item) -> Vec<&Signature> {
    match item {
        Item::Fn(function) => vec![&function.sig],
        Item::Impl(block) => {
            block.items.iter().filter_map(|item| if let ImplItem::Fn(method) = item { Some(&method.sig) } else { None }).collect()
        }
        Item::Trait(defined) => defined
            .items
            .iter()
            .filter_map(|item| if let TraitItem::Fn(method) = item { Some(&method.sig) } else { None })
            .collect(),
        _ => Vec::new(),
    }
}

/// Whether an item only gives others a second way to a name.
fn is_reexport(item: &Item) -> bool {
    matches!(item, Item::Use(item) if is_public(&item.vis))
}

fn is_public(visibility: &Visibility) -> bool {
    !matches!(visibility, Visibility::Inherited)
}

fn public_names(item: &Item) -> Vec<String> {
    let visibility = match item {
        Item::Const(item) => &item.vis,
        Item::Enum(item) => &item.vis,
        Item::Fn(item) => &item.vis,
        Item::Static(item) => &item.vis,
        Item::Struct(item) => &item.vis,
        Item::Trait(item) => &item.vis,
        Item::Type(item) => &item.vis,
        Item::Impl(block) if block.trait_.is_none() => {
            let public = block.items.iter().filter_map(|item| match item {
                ImplItem::Fn(function) if is_public(&function.vis) => Some(function.sig.ident.to_string()),
                ImplItem::Const(constant) if is_public(&constant.vis) => Some(constant.ident.to_string()),
                _ => None,
            });
            return public.collect();
        }
        _ => return Vec::new(),
    };
    if is_public(visibility) { defined(item).into_iter().collect() } else { Vec::new() }
}

/// Counts the identifiers of `tokens`, those that attributes name in strings included
/// (`serialize_with = "name"`).
fn count(tokens: TokenStream, counts: &mut BTreeMap<String, usize>) {
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => *counts.entry(ident.to_string()).or_default() += 1,
            TokenTree::Group(group) => count(group.stream(), counts),
            TokenTree::Literal(literal) => {
                let text = literal.to_string();
                let path = text.trim_matches('"');
                if path.len() < text.len() && path.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | ':')) {
                    path.split("::").for_each(|name| *counts.entry(name.to_owned()).or_default() += 1);
                }
            }
            TokenTree::Punct(_) => {}
        }
    }
}

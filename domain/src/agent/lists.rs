//! The lists of `data/`, read when they are first needed.

use std::sync::LazyLock;

use super::patterns::Patterns;

pub(super) const BROWSER_LISTS: &[&str] = &[include_str!("data/own_browsers.tsv"), include_str!("data/browsers.tsv")];
pub(super) const SYSTEM_LISTS: &[&str] = &[include_str!("data/own_systems.tsv"), include_str!("data/systems.tsv"), JAVA];
/// Phones that name no other system.
const JAVA: &str = "midp|j2me\t(MIDP|J2ME)\tJava ME\t";
pub(super) const PHONE_LISTS: &[&str] = &[include_str!("data/phones.tsv")];
pub(super) const TABLET_LISTS: &[&str] = &[include_str!("data/tablets.tsv")];

pub(super) static BROWSERS: LazyLock<Option<Patterns>> = LazyLock::new(|| Patterns::read(BROWSER_LISTS));
pub(super) static SYSTEMS: LazyLock<Option<Patterns>> = LazyLock::new(|| Patterns::read(SYSTEM_LISTS));
pub(super) static PHONES: LazyLock<Option<Patterns>> = LazyLock::new(|| Patterns::read(PHONE_LISTS));
pub(super) static TABLETS: LazyLock<Option<Patterns>> = LazyLock::new(|| Patterns::read(TABLET_LISTS));

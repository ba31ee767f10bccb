//! The lists of `data/`, which are read on first use.

use std::sync::LazyLock;

use super::patterns::Patterns;

pub(super) const BROWSER_LISTS: &[&str] = &[include_str!("data/own_browsers.tsv"), include_str!("data/browsers.tsv")];
pub(super) const SYSTEM_LISTS: &[&str] = &[include_str!("data/own_systems.tsv"), include_str!("data/systems.tsv"), JAVA];
/// Phones without another system.
const JAVA: &str = "midp|j2me\t(MIDP|J2ME)\tJava ME\t";
pub(super) const PHONE_LISTS: &[&str] = &[include_str!("data/phones.tsv")];
pub(super) const SCREEN_LISTS: &[&str] = &[include_str!("data/own_screens.tsv")];
pub(super) const TABLET_WORD_LISTS: &[&str] = &[include_str!("data/own_tablets.tsv")];
pub(super) const OLD_TABLET_LISTS: &[&str] = &[include_str!("data/tablets.tsv")];

/// Series of models by the naming schemes of makers. The name of a match is the kind of device.
pub(super) const SERIES_LISTS: &[&str] = &[include_str!("data/own_models.tsv")];
/// Models that are not phones, with their kinds.
pub(super) const MODELS: &str = include_str!("data/models.tsv");

pub(super) static BROWSERS: LazyLock<Option<Patterns>> = LazyLock::new(|| Patterns::read(BROWSER_LISTS));
pub(super) static SYSTEMS: LazyLock<Option<Patterns>> = LazyLock::new(|| Patterns::read(SYSTEM_LISTS));
pub(super) static PHONES: LazyLock<Option<Patterns>> = LazyLock::new(|| Patterns::read(PHONE_LISTS));
pub(super) static SCREENS: LazyLock<Option<Patterns>> = LazyLock::new(|| Patterns::read(SCREEN_LISTS));
pub(super) static TABLET_WORDS: LazyLock<Option<Patterns>> = LazyLock::new(|| Patterns::read(TABLET_WORD_LISTS));
pub(super) static OLD_TABLETS: LazyLock<Option<Patterns>> = LazyLock::new(|| Patterns::read(OLD_TABLET_LISTS));
pub(super) static MODEL_SERIES: LazyLock<Option<Patterns>> = LazyLock::new(|| Patterns::read(SERIES_LISTS));

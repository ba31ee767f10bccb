//! The country of an address, from a database in MaxMind's format, with the layout of its country
//! and city databases (GeoLite2, GeoIP2). DB-IP's databases have the same layout.
//!
//! The file is held in memory (a country database has 5 to 10 MB, a city database 60 to 130 MB),
//! and a lookup takes well below a microsecond. It is read once: a replacement takes effect at the
//! next start.

use std::collections::HashSet;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use headcount_domain::intake::country::Country;
use maxminddb::{LookupResult, MaxMindDbError, PathElement, Reader, WithinOptions};

/// The fields of a record: the country where the address is used, or else where its network is
/// registered.
const PATHS: [[PathElement<'_>; 2]; 2] = [
    [PathElement::Key("country"), PathElement::Key("iso_code")],
    [PathElement::Key("registered_country"), PathElement::Key("iso_code")],
];

/// The reason why a database can't be used.
#[derive(Debug, thiserror::Error)]
pub enum GeoError {
    /// The file can't be read.
    #[error("the geo database {} can't be read: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file is not a database, or is incomplete.
    #[error("the geo database {} is damaged, or no .mmdb file: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The error.
        reason: String,
    },
    /// The database is of another kind.
    #[error("the geo database {} names no countries: it is of the type {kind:?}; a country or city database is needed", path.display())]
    NoCountries {
        /// The file.
        path: PathBuf,
        /// The declared kind.
        kind: String,
    },
}

type Bytes = Vec<u8>;

/// A database of countries.
pub(crate) struct GeoDatabase {
    reader: Reader<Bytes>,
}

impl GeoDatabase {
    /// Reads a file and all parts that will be read later. This takes at most a second for the
    /// largest.
    ///
    /// # Errors
    /// See [`GeoError`].
    pub(crate) fn open(path: &Path) -> Result<Self, GeoError> {
        let bytes = std::fs::read(path).map_err(|source| GeoError::Unreadable { path: path.to_owned(), source })?;
        let damaged = |error: MaxMindDbError| GeoError::Damaged { path: path.to_owned(), reason: error.to_string() };
        let reader = Reader::from_source(bytes).map_err(damaged)?;
        let kind = &reader.metadata().database_type;
        if !names_countries(&reader).map_err(damaged)? {
            return Err(GeoError::NoCountries { path: path.to_owned(), kind: kind.clone() });
        }
        tracing::info!(path = %path.display(), kind, built = reader.metadata().build_epoch, "countries are looked up");
        Ok(Self { reader })
    }

    /// Returns the country of an address; `None` if the database lacks it.
    pub(crate) fn country(&self, address: IpAddr) -> Option<Country> {
        let found = self.reader.lookup(address.to_canonical()).ok()?;
        country(&found).ok().flatten()
    }
}

fn country(found: &LookupResult<'_, Bytes>) -> Result<Option<Country>, MaxMindDbError> {
    for path in &PATHS {
        let code: Option<&str> = found.decode_path(path)?;
        if let Some(country) = code.and_then(Country::parse) {
            return Ok(Some(country));
        }
    }
    Ok(None)
}

/// Checks that any network has a country. Visits every network, so that damage shows now and not
/// during an event.
fn names_countries(reader: &Reader<Bytes>) -> Result<bool, MaxMindDbError> {
    // A tree has one leaf more than nodes, unless parts of it are reached in several ways. If it
    // has far more, it has a cycle.
    let most = usize::try_from(reader.metadata().node_count).unwrap_or(usize::MAX).saturating_mul(3);
    let (mut found, mut failure) = (false, None);
    let mut seen = HashSet::new();
    for (count, network) in reader.networks(WithinOptions::default().include_networks_without_data())?.enumerate() {
        if count > most {
            return Err(MaxMindDbError::invalid_database("its tree has a circle"));
        }
        let network = network?;
        if network.offset().is_some_and(|offset| seen.insert(offset)) {
            match country(&network) {
                Ok(country) => found |= country.is_some(),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
    }
    match failure {
        // If all records of another shape fail in the same way, this is another kind of database,
        // not damage.
        Some(error) if found => Err(error),
        _ => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/geo").join(name)
    }

    fn refusal(path: &Path) -> String {
        let error = GeoDatabase::open(path).err().expect("it is refused").to_string();
        assert!(error.contains(&path.display().to_string()), "it names the file: {error}");
        error
    }

    #[test]
    fn addresses_and_their_countries() {
        let table = [
            ("country.mmdb", "192.0.2.1", Some("CH")),
            ("country.mmdb", "192.0.2.200", Some("DE")),
            ("country.mmdb", "198.51.100.8", Some("IN")),
            ("country.mmdb", "198.51.100.7", None),
            ("country.mmdb", "203.0.113.1", None),
            ("country.mmdb", "::ffff:192.0.2.1", Some("CH")),
            ("country.mmdb", "2001:db8:1::5", Some("CH")),
            ("country.mmdb", "2001:db8:2:ffff::1", Some("IN")),
            ("country.mmdb", "2001:db8:3::1", None),
            ("city.mmdb", "192.0.2.1", Some("CH")),
            ("city.mmdb", "::ffff:192.0.2.1", Some("CH")),
            ("city.mmdb", "203.0.113.1", None),
            ("city.mmdb", "2001:db8:1::5", None),
        ];
        for (name, address, expected) in table {
            let database = GeoDatabase::open(&file(name)).unwrap();
            let found = database.country(address.parse().unwrap());
            assert_eq!(found.as_ref().map(Country::as_str), expected, "{address} in {name}");
        }
    }

    #[test]
    fn what_names_no_countries_is_refused() {
        for (name, kind) in [("asn.mmdb", "GeoLite2-ASN"), ("text.mmdb", "ipinfo country.mmdb")] {
            let error = refusal(&file(name));
            assert!(error.contains("names no countries") && error.contains(kind), "{error}");
        }
    }

    #[test]
    fn what_is_no_database_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        assert!(refusal(&dir.path().join("missing.mmdb")).contains("can't be read"));
        assert!(refusal(dir.path()).contains("can't be read"));
        assert!(refusal(&file("make.py")).contains("damaged, or no .mmdb file"));
        let cut = dir.path().join("cut.mmdb");
        let whole = std::fs::read(file("country.mmdb")).unwrap();
        for length in (0..whole.len()).step_by(7) {
            std::fs::write(&cut, &whole[..length]).unwrap();
            assert!(refusal(&cut).contains("damaged, or no .mmdb file"), "cut to {length} of {} bytes", whole.len());
        }
    }

    /// A damaged byte may show or not, but causes no panic, at the start or later.
    #[test]
    fn damage_is_no_panic() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("damaged.mmdb");
        let whole = std::fs::read(file("country.mmdb")).unwrap();
        let addresses = ["192.0.2.1", "198.51.100.7", "2001:db8:1::5", "::"].map(|address| address.parse::<IpAddr>().unwrap());
        let mut refused = 0;
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0xff;
            std::fs::write(&path, &bytes).unwrap();
            match GeoDatabase::open(&path) {
                Ok(database) => {
                    assert!(addresses.iter().filter_map(|address| database.country(*address)).count() <= addresses.len())
                }
                Err(_) => refused += 1,
            }
        }
        assert!(refused > whole.len() / 4, "{refused} of {} were noticed", whole.len());
    }
}

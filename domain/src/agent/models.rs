//! The kind of device of a model, by lists of models and by the naming schemes of makers.
//!
//! Android agents contain the model, but few contain the kind of device.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::kinds::Device;
use super::lists::{MODEL_SERIES, MODELS};

/// The maximum length of a model's name.
const MAX_BYTES: usize = 64;

/// The kinds of models that are not phones, by lower-case name.
static KINDS: LazyLock<HashMap<&'static str, Device>> = LazyLock::new(|| {
    let lines = MODELS.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once('\t')).filter_map(|(model, kind)| Some((model, kind.parse().ok()?))).collect()
});

/// The kind of a model, if a list or its name shows it.
pub(super) fn kind(model: &str) -> Option<Device> {
    if model.is_empty() || model.len() > MAX_BYTES {
        return None;
    }
    let known = || KINDS.get(model.to_lowercase().as_str()).copied();
    let series = || MODEL_SERIES.as_ref()?.first(model)?.name.parse().ok();
    series().or_else(known)
}

/// The model in an Android agent: the rest of the comment without versions, languages and builds.
pub(super) fn model(agent: &str) -> Option<&str> {
    let start = ["Android", "android", "HarmonyOS"].into_iter().find_map(|system| agent.find(system))?;
    let comment = &agent[start..];
    // Some leave the brackets out.
    let end =
        [")", " AppleWebKit/", " applewebkit/"].into_iter().filter_map(|mark| comment.find(mark)).min().unwrap_or(comment.len());
    let parts = comment[..end].split(';').skip(1).map(str::trim);
    let models =
        parts.map(|part| part.split_once("Build/").or_else(|| part.split_once("build/")).map_or(part, |(model, _)| model.trim()));
    models.into_iter().find(|part| !part.is_empty() && !is_other(part))
}

/// Whether a part of the comment is not a model: a language, a browser revision, or a mark of a
/// program.
fn is_other(part: &str) -> bool {
    let bytes = part.as_bytes();
    let is_language = || {
        let (first, rest) = bytes.split_at(bytes.len().min(2));
        first.iter().all(u8::is_ascii_lowercase) && (rest.is_empty() || (matches!(rest[0], b'-' | b'_') && rest.len() <= 5))
    };
    ["U", "K", "wv", "Mobile", "Tablet", "HarmonyOS"].contains(&part)
        || part.starts_with("rv:")
        || (bytes.len() <= 7 && is_language())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_name_models() {
        for (agent, expected) in [
            ("Mozilla/5.0 (Linux; Android 13; SM-X700) AppleWebKit/537.36", Some("SM-X700")),
            ("Mozilla/5.0 (Linux; U; Android 4.2.2; fa-ir; SM-T311 Build/JDQ39) AppleWebKit/534.30", Some("SM-T311")),
            ("Mozilla/5.0 (Linux; Android 9; HarmonyOS; JDN2-AL50HN; HMSCore 6.4.0.311) AppleWebKit/537.36", Some("JDN2-AL50HN")),
            ("Mozilla/5.0 Linux; Android 7.0; BQ-7084G Build/NRD90M; wv AppleWebKit/537.36", Some("BQ-7084G")),
            ("Dalvik/1.6.0 (Linux; U; Android 4.4.2; MITO T888 Build/KOT49H)", Some("MITO T888")),
            ("Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36", None),
            ("Mozilla/5.0 (Android; Tablet; rv:27.0) Gecko/27.0 Firefox/27.0", None),
            ("Mozilla/5.0 (Linux; Android 11) AppleWebKit/537.36", None),
            ("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36", None),
            ("Android", None),
        ] {
            assert_eq!(model(agent), expected, "{agent}");
        }
    }
}

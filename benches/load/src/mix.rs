//! The kinds of requests, and their shares.

use serde::{Deserialize, Serialize};

/// The maximum sum of shares.
const MAX_SHARES: u32 = 10_000;

/// A kind of request. Each kind is measured separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RequestKind {
    /// One event to `/i`.
    Single,
    /// Events to `/i/batch`.
    Batch,
    /// A question of a dashboard, with the `ETag` of its last answer.
    Poll,
    /// The profile of a user whose event was sent.
    Profile,
    /// A question of a dashboard that polls each second (background load).
    Dashboard,
    /// A request on an idle connection (background load).
    Idle,
    /// A request to another server.
    Raw,
}

impl RequestKind {
    /// The number of kinds.
    pub(crate) const COUNT: usize = 7;
    /// The kinds that a mix can have, with their names.
    const OF_MIX: [(&'static str, Self); 4] =
        [("single", Self::Single), ("batch", Self::Batch), ("poll", Self::Poll), ("profile", Self::Profile)];
    /// All kinds.
    pub(crate) const ALL: [Self; Self::COUNT] =
        [Self::Single, Self::Batch, Self::Poll, Self::Profile, Self::Dashboard, Self::Idle, Self::Raw];

    /// Its name in results.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Batch => "batch",
            Self::Poll => "poll",
            Self::Profile => "profile",
            Self::Dashboard => "dashboard",
            Self::Idle => "idle",
            Self::Raw => "raw",
        }
    }
}

/// Shares of kinds, spread evenly over the requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mix {
    shares: Vec<(RequestKind, u32)>,
    /// The kinds of the first requests, which repeat.
    slots: Vec<RequestKind>,
}

impl Mix {
    /// A mix of one kind.
    pub(crate) fn only(kind: RequestKind) -> Self {
        Self { shares: vec![(kind, 1)], slots: vec![kind] }
    }

    /// Parses shares such as `single=70,batch=5,poll=20,profile=5`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut shares: Vec<(RequestKind, u32)> = Vec::new();
        for part in text.split(',') {
            let wrong = || {
                format!("{part:?} is not KIND=SHARE, where KIND is single, batch, poll or profile, and SHARE is a whole number")
            };
            let (name, share) = part.trim().split_once('=').ok_or_else(wrong)?;
            let (_, kind) = RequestKind::OF_MIX.iter().find(|(known, _)| *known == name).ok_or_else(wrong)?;
            if shares.iter().any(|(known, _)| known == kind) {
                return Err(format!("{name} is given twice"));
            }
            shares.push((*kind, share.parse().map_err(|_| wrong())?));
        }
        shares.retain(|(_, share)| *share > 0);
        let sum = shares.iter().fold(0u32, |sum, (_, share)| sum.saturating_add(*share));
        if sum == 0 || sum > MAX_SHARES {
            return Err(format!("the shares must add up to 1 to {MAX_SHARES}"));
        }
        Ok(Self { slots: spread(&shares, sum), shares })
    }

    /// The kind of the request with this number.
    pub(crate) fn kind(&self, number: u64) -> RequestKind {
        let at = usize::try_from(number % self.slots.len() as u64).unwrap_or(0);
        self.slots.get(at).copied().unwrap_or(RequestKind::Single)
    }

    /// Whether it has requests of a kind.
    pub(crate) fn has(&self, kind: RequestKind) -> bool {
        self.shares.iter().any(|(known, _)| *known == kind)
    }

    /// The shares, as `--mix` takes them.
    pub(crate) fn describe(&self) -> String {
        let shares: Vec<String> = self.shares.iter().map(|(kind, share)| format!("{}={share}", kind.name())).collect();
        shares.join(",")
    }
}

/// Smooth weighted round robin: in every interval each kind has its share, as far as whole numbers
/// allow.
fn spread(shares: &[(RequestKind, u32)], sum: u32) -> Vec<RequestKind> {
    let mut credits = vec![0i64; shares.len()];
    let mut slots = Vec::new();
    for _ in 0..sum {
        for (credit, (_, share)) in credits.iter_mut().zip(shares) {
            *credit += i64::from(*share);
        }
        // The first kind with the greatest credit.
        let chosen = credits.iter().enumerate().max_by_key(|(at, credit)| (**credit, std::cmp::Reverse(*at)));
        let at = chosen.map_or(0, |(at, _)| at);
        if let (Some(credit), Some((kind, _))) = (credits.get_mut(at), shares.get(at)) {
            *credit -= i64::from(sum);
            slots.push(*kind);
        }
    }
    slots
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_kept_and_spread() {
        let mix = Mix::parse("single=70,batch=5,poll=20, profile=5").unwrap();
        assert_eq!(mix.describe(), "single=70,batch=5,poll=20,profile=5");
        let count = |kind, of: std::ops::Range<u64>| of.filter(|number| mix.kind(*number) == kind).count();
        for (kind, share) in
            [(RequestKind::Single, 70), (RequestKind::Batch, 5), (RequestKind::Poll, 20), (RequestKind::Profile, 5)]
        {
            assert_eq!(count(kind, 0..100), share, "{kind:?}");
            assert_eq!(count(kind, 300..500), 2 * share, "{kind:?}");
        }
        // A fifth of any stretch are polls.
        for start in 0..100 {
            assert!((3..=5).contains(&count(RequestKind::Poll, start..start + 20)), "{start}");
        }
        assert!(mix.has(RequestKind::Poll) && !mix.has(RequestKind::Raw));
        assert!(!Mix::parse("single=1,poll=0").unwrap().has(RequestKind::Poll));
    }

    #[test]
    fn mistaken_shares_are_refused() {
        for (text, what) in [
            ("", "KIND=SHARE"),
            ("single", "KIND=SHARE"),
            ("single=x", "KIND=SHARE"),
            ("single=-1", "KIND=SHARE"),
            ("raw=1", "KIND=SHARE"),
            ("single=1,single=2", "twice"),
            ("single=0", "add up"),
            ("single=10000,poll=1", "add up"),
            ("single=4294967295,poll=4294967295", "add up"),
        ] {
            assert!(Mix::parse(text).unwrap_err().contains(what), "{text}");
        }
    }

    #[test]
    fn kinds_have_the_names_of_the_results() {
        for (at, kind) in RequestKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, at);
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
    }
}

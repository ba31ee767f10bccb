//! Assigns events to projects and users.

/// A project that receives events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Destination {
    /// Its id; `None` if it is unknown for lack of a token.
    pub(crate) project: Option<String>,
    /// A public key.
    pub(crate) key: String,
    /// An API token, or empty.
    pub(crate) token: String,
}

/// The users of one project, by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UserRange {
    /// The first user.
    pub(crate) start: u64,
    /// The number of users.
    pub(crate) size: u64,
}

/// The distribution of events over projects. Each user belongs to one project.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spread {
    projects: u64,
    users: u64,
    /// Percentage of events for the first project; 0: an even share.
    hot: u64,
}

impl Spread {
    /// Spreads events of `users` over `projects`, with `hot` percent for the first project.
    pub(crate) fn new(projects: usize, users: u64, hot: u32) -> Self {
        let hot = if projects > 1 { u64::from(hot) } else { 0 };
        Self { projects: projects.max(1) as u64, users: users.max(projects as u64), hot }
    }

    /// The number of users.
    pub(crate) fn users(&self) -> u64 {
        self.users
    }

    /// The project of the request whose first event has this number.
    pub(crate) fn project(&self, number: u64) -> usize {
        if self.projects == 1 {
            return 0;
        }
        let mixed = mixed(number);
        let chosen = match self.hot {
            0 => (mixed >> 32) % self.projects,
            hot if mixed % 100 < hot => 0,
            _ => 1 + (mixed >> 32) % (self.projects - 1),
        };
        usize::try_from(chosen).unwrap_or(0)
    }

    /// The users of a project.
    pub(crate) fn users_of(&self, project: usize) -> UserRange {
        let project = project as u64;
        if self.hot == 0 {
            let start = self.share(self.users, project, self.projects);
            return UserRange { start, size: self.share(self.users, project + 1, self.projects) - start };
        }
        // At least one user for each project.
        let others = self.projects - 1;
        let hot = (self.users * self.hot / 100).clamp(1, self.users - others);
        if project == 0 {
            return UserRange { start: 0, size: hot };
        }
        let start = self.share(self.users - hot, project - 1, others);
        UserRange { start: hot + start, size: self.share(self.users - hot, project, others) - start }
    }

    #[expect(clippy::cast_possible_truncation, reason = "at most `whole`")]
    fn share(self, whole: u64, part: u64, parts: u64) -> u64 {
        (u128::from(whole) * u128::from(part) / u128::from(parts.max(1))) as u64
    }
}

/// Hashes a number (the finalizer of splitmix64).
pub(crate) fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(spread: Spread, projects: usize) -> Vec<usize> {
        let mut counts = vec![0; projects];
        (0..100_000).for_each(|number| counts[spread.project(number)] += 1);
        counts
    }

    #[test]
    fn every_user_is_of_one_project() {
        for (projects, users, hot) in
            [(1, 10, 0), (1, 10, 50), (8, 100_000, 0), (8, 100_000, 90), (7, 7, 99), (100, 3, 0), (3, 1_000, 100)]
        {
            let spread = Spread::new(projects, users, hot);
            let mut next = 0;
            for project in 0..projects {
                let range = spread.users_of(project);
                assert_eq!(range.start, next, "{projects} {users} {hot}");
                assert!(range.size > 0, "{projects} {users} {hot}");
                next += range.size;
            }
            assert_eq!(next, spread.users());
            assert_eq!(next, users.max(projects as u64));
        }
    }

    #[test]
    fn projects_share_the_events_evenly_but_for_a_hot_one() {
        for count in shares(Spread::new(8, 1_000, 0), 8) {
            assert!((11_500..13_500).contains(&count), "{count}");
        }
        let hot = shares(Spread::new(11, 1_000, 80), 11);
        assert!((78_000..82_000).contains(&hot[0]), "{hot:?}");
        assert!(hot[1..].iter().all(|count| (1_600..2_400).contains(count)), "{hot:?}");
        assert_eq!(shares(Spread::new(2, 1_000, 100), 2), [100_000, 0]);
        assert_eq!(shares(Spread::new(1, 1_000, 50), 1), [100_000]);
    }
}

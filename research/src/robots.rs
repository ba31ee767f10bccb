//! What `robots.txt` allows (RFC 9309).

use texting_robots::Robot;

/// The name that rules are for.
pub(crate) const AGENT: &str = "headcount";
/// The most bytes of a file, which is what the RFC asks for at least.
pub(crate) const MAX_BYTES: usize = 512 << 10;

/// The rules of one origin.
pub(crate) enum Rules {
    /// There are none.
    None,
    /// They could not be read, so that nothing is allowed.
    Unknown,
    Read(Box<Robot>),
}

impl Rules {
    /// The rules that an answer to the request for `robots.txt` makes.
    pub(crate) fn of(status: u16, body: &[u8]) -> Self {
        match status {
            200..=299 => Robot::new(AGENT, body).map_or(Self::Unknown, |robot| Self::Read(Box::new(robot))),
            400..=499 => Self::None,
            _ => Self::Unknown,
        }
    }

    pub(crate) fn allow(&self, url: &str) -> bool {
        match self {
            Self::None => true,
            Self::Unknown => false,
            Self::Read(robot) => robot.allowed(url),
        }
    }
}

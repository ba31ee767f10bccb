//! The interface to send requests, and the times of retries.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A request of a webhook: a POST of JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedRequest {
    /// The URL.
    pub url: String,
    /// The value of the header `headcount-signature`.
    pub signature: String,
    /// The body: the same for each try.
    pub body: Vec<u8>,
    /// The time limit.
    pub timeout: Duration,
}

/// The reason why there was no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryFailure {
    /// A stable code, such as `timeout`.
    pub code: &'static str,
}

/// Sends requests. The methods block.
pub trait Deliver: Send + Sync + 'static {
    /// Checks a URL without connecting, and returns it as it is to be stored.
    ///
    /// # Errors
    /// The error, in words.
    fn check(&self, url: &str) -> Result<String, String>;

    /// Sends a request, and returns the status of the answer. Redirects are not followed.
    ///
    /// # Errors
    /// There was no answer.
    fn send(&self, request: &SignedRequest) -> Result<u16, DeliveryFailure>;
}

/// The settings of webhooks.
#[derive(Clone)]
pub struct WebhookSettings {
    /// The transport that sends them.
    pub transport: Arc<dyn Deliver>,
    /// The pause after each failed try of a notification. The last one repeats.
    pub waits: Vec<Duration>,
    /// How long a notification is tried.
    pub give_up_after: Duration,
    /// The time limit of an answer.
    pub timeout: Duration,
    /// Whether webhooks are sent. Commands on a stopped data directory only manage them.
    pub sends: bool,
}

impl WebhookSettings {
    /// Creates settings with the waits 1, 5, 30 s, 2, 10, 30 min, 1 h and so on, for 24 hours, and
    /// 10 s for an answer.
    #[must_use]
    pub fn new(transport: Arc<dyn Deliver>) -> Self {
        Self {
            transport,
            waits: [1, 5, 30, 120, 600, 1_800, 3_600].map(Duration::from_secs).to_vec(),
            give_up_after: Duration::from_secs(24 * 60 * 60),
            timeout: Duration::from_secs(10),
            sends: true,
        }
    }

    /// Returns the pause after the failure number `attempts`.
    pub(crate) fn wait_after(&self, attempts: u32) -> Duration {
        let at = usize::try_from(attempts.saturating_sub(1)).unwrap_or(usize::MAX);
        self.waits.get(at).or(self.waits.last()).copied().unwrap_or(Duration::from_secs(1))
    }
}

impl fmt::Debug for WebhookSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookSettings").field("waits", &self.waits).finish_non_exhaustive()
    }
}

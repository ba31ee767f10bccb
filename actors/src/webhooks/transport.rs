//! What sends, and when it is tried again.

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
    /// The body: the same at each try.
    pub body: Vec<u8>,
    /// How long it may take.
    pub timeout: Duration,
}

/// Why there was no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryFailure {
    /// A stable code, such as `timeout`.
    pub code: &'static str,
}

/// Sends requests. The methods block.
pub trait Deliver: Send + Sync + 'static {
    /// Checks a URL without connecting, and returns how it is stored.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    fn check(&self, url: &str) -> Result<String, String>;

    /// Sends a request, and returns the status of the answer. Redirects are not followed.
    ///
    /// # Errors
    /// There was no answer.
    fn send(&self, request: &SignedRequest) -> Result<u16, DeliveryFailure>;
}

/// How webhooks are sent.
#[derive(Clone)]
pub struct WebhookSettings {
    /// What sends them.
    pub transport: Arc<dyn Deliver>,
    /// The pause after each failed try of a notification; the last one repeats.
    pub waits: Vec<Duration>,
    /// For how long a notification is tried.
    pub give_up_after: Duration,
    /// How long an answer may take.
    pub timeout: Duration,
    /// Whether anything is sent. Commands on a stopped data directory only manage webhooks.
    pub sends: bool,
}

impl WebhookSettings {
    /// The waits 1, 5, 30 s, 2, 10, 30 min, 1 h and so on, for 24 hours, with 10 s for an answer.
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

    /// The pause after the failure number `attempts`.
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

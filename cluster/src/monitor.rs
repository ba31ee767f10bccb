//! The monitoring address of a broker.

use std::time::Duration;

use serde::Deserialize;

const TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum size of an answer.
const MAX_BYTES: u64 = 4 << 20;

/// The storage settings of a broker, as it reports them.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Storage {
    /// The id of the broker.
    pub(crate) server_id: String,
    #[serde(default)]
    config: StorageConfig,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct StorageConfig {
    #[serde(default)]
    sync_always: bool,
}

impl Storage {
    /// Asks the broker with the monitoring address `base`, such as `http://10.0.0.1:8222`.
    ///
    /// # Errors
    /// The reason why there is no answer.
    pub(crate) fn ask(base: &str) -> Result<Self, String> {
        let agent: ureq::Agent = ureq::Agent::config_builder().timeout_global(Some(TIMEOUT)).max_redirects(0).build().into();
        let mut answer =
            agent.get(format!("{}/jsz?config=1", base.trim_end_matches('/'))).call().map_err(|error| error.to_string())?;
        let text = answer.body_mut().with_config().limit(MAX_BYTES).read_to_string().map_err(|error| error.to_string())?;
        serde_json::from_str(&text).map_err(|error| format!("this is not the monitoring address of a broker: {error}"))
    }

    /// Whether the broker syncs each message before it confirms it.
    pub(crate) fn syncs_always(&self) -> bool {
        self.config.sync_always
    }
}

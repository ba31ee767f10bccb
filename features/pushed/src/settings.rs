//! How messages are sent.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use headcount_outbound::url::Url;
use headcount_outbound::{AllowList, Method, Outbound, OutboundRequest};

use crate::mail::MailSettings;

/// How long a receiver may take to answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The API of bots of Telegram.
const TELEGRAM: &str = "https://api.telegram.org";

/// Checks a URL without connecting. The error is in words.
type CheckUrl = Arc<dyn Fn(&str) -> Result<Url, String> + Send + Sync>;
/// Sends JSON to a URL, and returns the status of the answer, or a stable code, such as `timeout`,
/// if there was no answer. Redirects are not followed. Blocks.
type SendJson = Arc<dyn Fn(&str, Vec<u8>) -> Result<u16, &'static str> + Send + Sync>;

/// The settings of what is sent by itself.
#[derive(Clone)]
pub struct PushSettings {
    pub(crate) check: CheckUrl,
    pub(crate) send: SendJson,
    /// The API of bots of Telegram, without a slash at its end.
    pub telegram: String,
    /// The server for e-mail, if there is one.
    pub(crate) mail: Option<Arc<MailSettings>>,
    /// The address of this server, for links.
    pub(crate) public_url: Option<String>,
    pub(crate) evaluates: bool,
}

impl PushSettings {
    /// Settings with which requests only go to globally reachable addresses, and to addresses that
    /// the operator allows. `evaluates` if alerts are evaluated.
    pub fn guarded(allowed: AllowList, evaluates: bool) -> Self {
        let client = Outbound::new(concat!("headcount/", env!("CARGO_PKG_VERSION")), allowed);
        let checking = client.clone();
        Self {
            check: Arc::new(move |url| checking.parse(url).map_err(|error| format!("can't be used: {error}"))),
            send: Arc::new(move |url, body| send(&client, url, body)),
            telegram: TELEGRAM.to_owned(),
            mail: None,
            public_url: None,
            evaluates,
        }
    }

    /// The same with a server for e-mail, and with the address of this server, if there are any.
    #[must_use]
    pub fn with_mail(self, mail: Option<Arc<MailSettings>>, public_url: Option<String>) -> Self {
        Self { mail, public_url, ..self }
    }
}

impl fmt::Debug for PushSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PushSettings").field("telegram", &self.telegram).finish_non_exhaustive()
    }
}

fn send(client: &Outbound, url: &str, body: Vec<u8>) -> Result<u16, &'static str> {
    let url = client.parse(url).map_err(|_| "blocked_address")?;
    let (headers, body) = (vec![("content-type", "application/json".to_owned())], Some(body));
    let request = OutboundRequest { method: Method::Post, url, headers, body, timeout: TIMEOUT, most_body_bytes: None };
    client.send(&request).map(|response| response.status).map_err(|error| error.code())
}

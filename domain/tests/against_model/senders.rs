//! What the events of a history were sent from: the user agent and the client hints of their
//! requests, as the HTTP server reads them.

use headcount_domain::agent::{Agent, Hints, parse_with};
use headcount_histories::sent_headers;

/// The user agent of events that name none.
const USUAL: &str = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0 Safari/537.36";

/// The headers of a request with a public key.
pub(crate) struct Sent(Vec<(String, String)>);

impl Sent {
    pub(crate) fn of(body: &str) -> Sent {
        Sent(sent_headers(body))
    }

    fn field(&self, name: &str) -> Option<&str> {
        let (_, field) = self.0.iter().find(|(known, _)| known == name)?;
        Some(field).map(|field| field.trim()).filter(|field| field.bytes().all(|byte| (b' '..=b'~').contains(&byte)))
    }

    pub(crate) fn user_agent(&self) -> &str {
        self.field("user-agent").unwrap_or(USUAL)
    }

    pub(crate) fn agent(&self) -> Agent {
        let (brands, platform) = (self.field("sec-ch-ua"), self.field("sec-ch-ua-platform"));
        let hints = Hints {
            brands,
            platform,
            full_versions: self.field("sec-ch-ua-full-version-list"),
            mobile: self.field("sec-ch-ua-mobile"),
            platform_version: self.field("sec-ch-ua-platform-version"),
            model: self.field("sec-ch-ua-model"),
            form_factors: self.field("sec-ch-ua-form-factors"),
        };
        parse_with(self.user_agent(), if brands.or(platform).is_none() { &Hints::NONE } else { &hints })
    }
}

//! The settings of the mail server.

use std::sync::Arc;

use headcount_pushed::MailSettings;

use super::value::public_url;
use super::{ConfigError, Reader};

impl Reader<'_> {
    /// Returns the mail server, if there is one. Links in mails need the server's own address.
    pub(super) fn mail(&self) -> Result<Option<Arc<MailSettings>>, ConfigError> {
        let (password, ca) = (self.content("smtp_password_file")?, self.content("smtp_ca")?);
        let from = self.value("mail_from", |text| Ok::<_, &str>(text.to_owned()))?;
        let address = self.value("public_url", |text| Ok::<_, &str>(public_url(text).flatten()))?;
        let url = self.value("smtp_url", |url| Ok::<_, &str>(url.to_owned()))?;
        if url.is_empty() {
            return Ok(None);
        }
        let Some(address) = address else {
            return Err(self.refused("smtp_url", "needs public_url, the address of this server for links in mails"));
        };
        let mail = MailSettings::new((&url, password), &from, &address, ca.as_deref());
        // A URL with a password is not repeated.
        mail.map(|mail| Some(Arc::new(mail))).map_err(|(name, reason)| self.refused(name, reason))
    }

    /// Returns the text of a file; `None` if there is none.
    fn content(&self, name: &'static str) -> Result<Option<String>, ConfigError> {
        let text = self.file(name)?.map(std::fs::read_to_string).transpose();
        self.value(name, |_| text.map_err(|error| format!("must be a file that can be read ({error})")))
    }
}

//! Events of the embedded API.

use headcount_domain::Instant;
use headcount_domain::intake::country::Country;
use headcount_domain::intake::submission::{Invalid, Submission};
use serde_json::value::RawValue;

use super::prepared::Origin;

/// An event of the embedded API: the fields of `POST /track`, typed.
#[derive(Debug, Clone, Default)]
pub struct NewEvent {
    name: String,
    texts: Vec<(Field, String)>,
    metadata: Option<Box<RawValue>>,
    value: Option<Box<RawValue>>,
    timestamp: Option<Box<RawValue>>,
    notify: bool,
    country: Option<Country>,
}

/// The text fields of [`NewEvent`], by their names in `POST /track`.
pub use headcount_domain::intake::submission::TextField as Field;

impl NewEvent {
    /// Creates an event of this name, happening now.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Sets a text field.
    #[must_use]
    pub fn with(mut self, field: Field, text: impl Into<String>) -> Self {
        self.texts.push((field, text.into()));
        self
    }

    /// Sets the user.
    #[must_use]
    pub fn user(self, user_id: impl Into<String>) -> Self {
        self.with(Field::UserId, user_id)
    }

    /// Sets the browser or device.
    #[must_use]
    pub fn anonymous(self, anonymous_id: impl Into<String>) -> Self {
        self.with(Field::AnonymousId, anonymous_id)
    }

    /// Sets the idempotency key: a repeated one changes nothing.
    #[must_use]
    pub fn external_id(self, external_id: impl Into<String>) -> Self {
        self.with(Field::ExternalId, external_id)
    }

    /// Marks the event as a notification: features may send it, and watchers of the project see
    /// it.
    #[must_use]
    pub fn notify(mut self) -> Self {
        self.notify = true;
        self
    }

    /// Sets the visitor's country, if you know it. Otherwise it comes from the field `ip`, if the
    /// engine has a database of countries.
    #[must_use]
    pub fn country(mut self, country: Country) -> Self {
        self.country = Some(country);
        self
    }

    /// The origin of a request that would carry it.
    pub(crate) fn origin(&self) -> Origin<'static> {
        Origin { country: self.country, ..Origin::SERVER }
    }

    /// Sets the money, as the text of a decimal number (`"12.50"`), so that it stays exact.
    ///
    /// # Errors
    /// The text is not a number.
    pub fn value(mut self, amount: &str) -> Result<Self, Invalid> {
        let raw = RawValue::from_string(amount.to_owned());
        self.value = Some(raw.map_err(|_| Invalid::parameter("value", "`value` must be a decimal number"))?);
        Ok(self)
    }

    /// Sets the time of the event, in milliseconds since 1970.
    #[must_use]
    pub fn at_ms(mut self, epoch_ms: i64) -> Self {
        // A small number would be taken for seconds.
        let is_small = (0..100_000_000_000).contains(&epoch_ms);
        let json = if is_small { format!("\"{}\"", Instant(epoch_ms)) } else { epoch_ms.to_string() };
        self.timestamp = RawValue::from_string(json).ok();
        self
    }

    /// Sets the metadata: any value that serialises to JSON.
    ///
    /// # Errors
    /// It does not serialise.
    pub fn metadata(mut self, metadata: &impl serde::Serialize) -> Result<Self, Invalid> {
        let raw = serde_json::value::to_raw_value(metadata);
        self.metadata = Some(raw.map_err(|error| Invalid::parameter("metadata", error.to_string()))?);
        Ok(self)
    }

    pub(crate) fn size_bytes(&self) -> usize {
        let raw = [&self.metadata, &self.value, &self.timestamp];
        let raw: usize = raw.into_iter().flatten().map(|raw| raw.get().len()).sum();
        256 + self.name.len() + raw + self.texts.iter().map(|(_, text)| text.len()).sum::<usize>()
    }

    pub(crate) fn with_submission<R>(&self, use_it: impl FnOnce(&Submission<'_>) -> R) -> R {
        let mut submission = Submission::new(&self.name);
        for (field, text) in &self.texts {
            submission.set(*field, text);
        }
        submission.set_notify(self.notify.then_some(true));
        submission.set_raw(self.value.as_deref(), self.metadata.as_deref(), self.timestamp.as_deref());
        use_it(&submission)
    }
}

//! The window that figures are compared with.

use headcount_api::endpoint::*;
use headcount_domain::Window;
use headcount_domain::figures::ComparedWindows;
use utoipa::openapi::schema::{
    AdditionalProperties, KnownFormat, Object, ObjectBuilder, OneOfBuilder, Schema, SchemaFormat, Type,
};

const PREVIOUS_PERIOD: &str = "previous_period";
const PREVIOUS_YEAR: &str = "previous_year";
const DATES: &[&str] = &["start_date", "end_date"];

/// What a window is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Compare {
    Nothing,
    PreviousPeriod,
    PreviousYear,
    /// A window of its own: its first and its last day, as sent.
    Own([String; 2]),
}

/// The schema of [`Compare`].
#[derive(Debug)]
pub(crate) struct CompareShape;

own_schema!(CompareShape, {
    let day = |what: &str| {
        let format = SchemaFormat::KnownFormat(KnownFormat::Date);
        ObjectBuilder::new().schema_type(Type::String).format(Some(format)).description(Some(what))
    };
    let names = ObjectBuilder::new().schema_type(Type::String).enum_values(Some([PREVIOUS_PERIOD, PREVIOUS_YEAR]));
    let own = ObjectBuilder::new()
        .schema_type(Type::Object)
        .property("start_date", day("The first day."))
        .property("end_date", day("The last day."))
        .required("start_date")
        .required("end_date")
        .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)));
    OneOfBuilder::new().item(names).item(own).item(Object::with_type(Type::Null)).into()
});

impl Compare {
    /// Reads the field of a body.
    pub(crate) fn read(fields: &Fields<'_>, name: &str) -> Result<Self> {
        let Some(json) = fields.raw(name) else { return Ok(Self::Nothing) };
        if json.starts_with('{') {
            let dates = Fields::read(json.as_bytes(), DATES).map_err(|error| error.within(name))?;
            let date = |date: &str| dates.required(date, "a string").map_err(|error| error.within(name));
            return Ok(Self::Own([date("start_date")?, date("end_date")?]));
        }
        let expected = format!("null, one of {PREVIOUS_PERIOD}, {PREVIOUS_YEAR}, or an object of {}", DATES.join(", "));
        let known = |text: &str| match text {
            PREVIOUS_PERIOD => Some(Self::PreviousPeriod),
            PREVIOUS_YEAR => Some(Self::PreviousYear),
            _ => None,
        };
        Ok(fields.parsed(name, &expected, known)?.unwrap_or(Self::Nothing))
    }

    /// Returns the windows of a question that reads events, and whose window is this one.
    pub(crate) async fn event_windows<Q>(&self, question: &ProjectQuestion<'_, Q>, window: Window) -> Result<ComparedWindows> {
        let windows = self.windows(question, window)?;
        let Some(previous) = windows.previous else { return Ok(windows) };
        let previous = question.chosen_window(previous).await.map_err(|error| error.with_param("compare"))?;
        Ok(ComparedWindows { window, previous: Some(previous) })
    }

    /// Returns the windows of a question whose window is this one.
    pub(crate) fn windows<Q>(&self, question: &ProjectQuestion<'_, Q>, window: Window) -> Result<ComparedWindows> {
        let previous = match self {
            Self::Nothing => return Ok(ComparedWindows { window, previous: None }),
            Self::PreviousPeriod => window.previous_period(),
            Self::PreviousYear => window.previous_year(),
            Self::Own([start, end]) => question.window(Some(start), Some(end)).map_err(|error| error.within("compare"))?,
        };
        if previous.start.ymd().0 < 0 {
            return Err(ApiError::parameter("compare", "`compare`: there are no days before the year 0"));
        }
        Ok(ComparedWindows { window, previous: Some(previous) })
    }
}

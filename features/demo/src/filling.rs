//! Records the sample events.

use std::path::Path;

use headcount_actors::Engine;
use headcount_api::command::{CommandSettings, Failure, InitialCredentials};
use headcount_control::{DefinitionKind, OrganizationPatch};
use headcount_domain::intake::policy::Rates;
use headcount_domain::{Currency, ProjectId, Rate, Timezone};

use super::sample;

const SEED: u64 = 20_150_517;
/// The number of events in a batch.
const BATCH: usize = 2_000;
const ANNOTATED_DAYS_AGO: i32 = 21;

/// A data directory with the sample events, open.
pub(super) struct Sample {
    pub(super) engine: Engine,
    pub(super) made: InitialCredentials,
    pub(super) project: ProjectId,
    pub(super) events: usize,
}

impl Sample {
    /// Creates the data directory.
    pub(super) async fn open(settings: &dyn CommandSettings, data_dir: &Path) -> Result<Self, Failure> {
        let engine = Engine::open(settings.serving_engine(data_dir))?;
        let made = InitialCredentials::from(&engine.registry().initialize(engine.clock().now())?);
        made.save(data_dir)?;
        let project = made.project_id.parse().map_err(|_| Failure("the project has no id".into()))?;
        set_rates(&engine)?;
        define(&engine, project)?;
        let events = fill(&engine, project).await?;
        Ok(Self { engine, made, project, events })
    }
}

fn set_rates(engine: &Engine) -> Result<(), Failure> {
    let rate = |code: &str, worth: &str| Some((Currency::parse(code).ok()?, Rate::parse(worth).ok()?));
    let fx_rates: Rates = [rate("EUR", "1.08"), rate("GBP", "1.27")].into_iter().flatten().collect();
    for organization in engine.registry().organizations() {
        let patch = OrganizationPatch { fx_rates: Some(fx_rates.clone()), ..OrganizationPatch::default() };
        engine.registry().update_organization(organization.id, patch, engine.clock().now())?;
    }
    Ok(())
}

/// Defines goals, a funnel, a segment and an annotation, as somebody with this website would.
fn define(engine: &Engine, project: ProjectId) -> Result<(), Failure> {
    let now = engine.clock().now();
    let day = Timezone::UTC.day_of(now).plus(-ANNOTATED_DAYS_AGO).to_string();
    let steps = serde_json::json!([
        {"page": "/pricing", "name": "Saw the prices"},
        {"event_name": "signup", "name": "Signed up"},
        {"event_name": "purchase", "name": "Paid"}
    ]);
    let search = serde_json::json!([{"field": "acquisition_channel", "operator": "is", "value": "Organic Search"}]);
    let definitions = [
        (DefinitionKind::Goal, "Signed up", vec![("event_name", "signup".into())]),
        (DefinitionKind::Goal, "Paid", vec![("event_name", "purchase".into())]),
        (DefinitionKind::Goal, "Read the documentation", vec![("page", "/docs/**".into())]),
        (
            DefinitionKind::Funnel,
            "From the prices to a purchase",
            vec![("steps", steps), ("within", serde_json::json!({"days": 30}))],
        ),
        (DefinitionKind::Segment, "Came from a search", vec![("filters", search)]),
        (DefinitionKind::Annotation, "New prices", vec![("day", day.into())]),
    ];
    let registry = engine.registry();
    for organization in registry.organizations() {
        for (kind, name, fields) in &definitions {
            let json = |(field, value): &(&str, serde_json::Value)| ((*field).to_owned(), value.to_string());
            let fields = fields.iter().map(json).collect();
            registry.create_definition((organization.id, Some(project)), *kind, ((*name).to_owned(), fields), now)?;
        }
    }
    Ok(())
}

async fn fill(engine: &Engine, project: ProjectId) -> Result<usize, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::new("the sample events could not be recorded", error);
    let now_ms = u64::try_from(engine.clock().now().0).unwrap_or(0);
    let events = sample::history(SEED, now_ms).map_err(|error| failed(&error))?;
    for batch in events.chunks(BATCH) {
        let receipt = engine.track_batch(project, batch).await.map_err(|error| failed(&error))?;
        if let Some((_, invalid)) = receipt.errors.first() {
            return Err(failed(invalid));
        }
    }
    Ok(events.len())
}

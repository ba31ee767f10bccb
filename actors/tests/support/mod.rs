//! Helpers of several tests.

use headcount_actors::domain::ids::ProjectId;
use headcount_actors::{Engine, EngineConfig};

/// Opens an engine with its first project, created if there is none.
pub(crate) fn open(config: EngineConfig) -> (Engine, ProjectId) {
    let engine = Engine::open(config).unwrap();
    if engine.registry().is_empty() {
        let project = engine.registry().initialize(engine.clock().now()).unwrap().project_id;
        return (engine, project);
    }
    let organization = engine.registry().organizations()[0].id;
    let project = engine.registry().projects(organization).unwrap()[0].id;
    (engine, project)
}

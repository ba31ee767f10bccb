//! The engine in a program without a web server: records events, and asks questions.
//!
//! `cargo run --example embedded` prints what it counted.

use std::error::Error;

use headcount::domain::time::Window;
use headcount::queries::{self, IdentitySelector, UniqueUsersQuery};
use headcount::{Engine, EngineConfig, Field, NewEvent};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let dir = std::env::temp_dir().join(format!("headcount-example-{}", std::process::id()));
    let engine = Engine::open(EngineConfig::new(&dir))?;
    // Creates the organization, the project and its keys on the first start.
    let project = engine.registry().initialize(engine.clock().now())?.project_id;

    let order = NewEvent::new("checkout").user("ada").with(Field::Currency, "USD").value("12.50")?;
    let receipt = engine.track(project, &order).await?;
    println!("recorded at position {}", receipt.position.unwrap_or_default());

    let visits: Vec<NewEvent> = ["ada", "ben", "cleo"].map(|user| NewEvent::new("visit").user(user)).into();
    let batch = engine.track_batch(project, &visits).await?;
    println!("{} recorded, {} refused", batch.recorded, batch.errors.len());

    let timezone = engine.registry().policy(project).ok_or("no such project")?.policy.timezone;
    let week = Window::last_days(7, timezone, engine.clock().now());
    let users = engine.ask(project, UniqueUsersQuery { window: week }).await?;
    println!("{} users in seven days", users.total);

    let organization = engine.organization(engine.registry().organizations()[0].id);
    let ada = queries::profile(&organization, &IdentitySelector::User("ada".into()), week).await?;
    let ada = ada.ok_or("nobody recorded ada")?;
    println!("ada: {} events, {} earned", ada.events, ada.revenue);

    engine.close().await;
    std::fs::remove_dir_all(dir)?;
    Ok(())
}

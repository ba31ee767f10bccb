//! Projects that are made, filled and deleted under load: a deletion that was acknowledged stays,
//! whatever is killed after it.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::error::{Result, harness, violation};
use crate::http::{Connection, Credential, Request};
use crate::rig::Rig;
use crate::server::Server;
use crate::tenant::manage;

/// Percentage of cycles that delete a project.
const PERCENT: usize = 40;
/// Events of a project that is deleted.
const EVENTS: usize = 120;
/// A text in all of these events, and in no others.
const MARK: &str = "zanzibar";
/// How long the removal may take, once nothing is killed any more.
const REMOVED_WITHIN: Duration = Duration::from_secs(120);

/// The projects that were deleted.
#[derive(Debug, Default)]
pub struct Doomed {
    ids: Vec<String>,
}

impl Doomed {
    /// Now and then, makes a project, fills it, and deletes it.
    ///
    /// # Errors
    /// A violation if it is not acknowledged.
    pub async fn perhaps(&mut self, rig: &mut Rig, address: SocketAddr) -> Result<()> {
        if !rig.rng.chance(PERCENT) {
            return Ok(());
        }
        let token = &rig.shared.tenant.token;
        let made = manage(address, token, "POST", "/projects", r#"{"name":"doomed"}"#, 201).await?;
        let text = |name: &str| made.field(name).text().map(str::to_owned);
        let (id, key) =
            text("project_id").zip(text("public_key")).ok_or_else(|| harness(format!("POST /projects answered {made}")))?;
        let event = |number: usize| {
            format!(r#"{{"name":"order","user_id":"{MARK} {}","external_id":"{MARK} {number}","value":5}}"#, number % 50)
        };
        let events: Vec<String> = (0..EVENTS).map(event).collect();
        let body = format!(r#"{{"events":[{}]}}"#, events.join(","));
        let mut connection = Connection::open(address).await?;
        // A response without an acknowledgement, such as 503 under load, is one about a part of
        // what is deleted.
        let sent = connection.send(&Request::events("/i/batch", &key, &body)).await?;
        let path = format!("/projects/{id}");
        let delete = Request { method: "DELETE", path: &path, credential: Credential::Token(token), body: None };
        let deleted = Connection::open(address).await?.send(&delete).await?;
        if deleted.status != 204 {
            return Err(violation(format!(
                "DELETE {path}, after {}, answered {}: {}",
                sent.status, deleted.status, deleted.body
            )));
        }
        self.ids.push(id);
        Ok(())
    }

    /// Checks that the deleted projects are unknown. Returns how many there are.
    ///
    /// # Errors
    /// A violation if one is known.
    pub async fn check(&self, rig: &Rig, server: &Server) -> Result<usize> {
        let mut connection = Connection::open(server.address).await?;
        for id in &self.ids {
            let path = format!("/projects/{id}/revenue/metrics?start_date=2025-01-01&end_date=2025-01-02");
            let response = connection.send(&Request::get(&path, &rig.shared.tenant.token)).await?;
            if response.status != 404 {
                return Err(violation(format!("{path}, of a deleted project, answered {}: {}", response.status, response.body)));
            }
        }
        Ok(self.ids.len())
    }

    /// Waits until nothing of them is left.
    ///
    /// # Errors
    /// A violation if that takes too long.
    pub async fn wait(&self, server: &Server) -> Result<()> {
        let began = Instant::now();
        loop {
            let request = Request { method: "GET", path: "/metrics", credential: Credential::None, body: None };
            let metrics = Connection::open(server.address).await?.send(&request).await?.body;
            let pending = metrics.lines().find_map(|line| line.strip_prefix("headcount_deletions_pending "));
            if pending == Some("0") {
                return Ok(());
            }
            if began.elapsed() > REMOVED_WITHIN {
                return Err(violation(format!("deletions did not finish within {REMOVED_WITHIN:?}: {pending:?}")));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// Checks that no file below `dir` has anything of deleted projects. No process has it open.
///
/// # Errors
/// A violation that names the file.
pub fn check_files(dir: &Path) -> Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            check_files(&path)?;
        } else if std::fs::read(&path)?.windows(MARK.len()).any(|window| window == MARK.as_bytes()) {
            return Err(violation(format!("{} still has data of a deleted project", path.display())));
        }
    }
    Ok(())
}

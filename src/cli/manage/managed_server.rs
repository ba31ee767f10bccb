//! The server of a management command.

use headcount_actors::Engine;
use headcount_api::command::{
    Client, CommonFlags, Failure, InitialCredentials, ManagedServer, Rights, ServerFlags, is_held, runtime,
};
use headcount_api::open_files;
use headcount_domain::OrganizationId;
use tokio::runtime::Runtime;

use crate::cli::serve::shut_down;
use crate::config::Settings;
use crate::server::{HttpConfig, RunningServer, Server};

/// A server on a free port of the loopback address.
pub(super) struct OwnServer {
    runtime: Runtime,
    engine: Engine,
    server: RunningServer,
}

/// Finds the server. If none has the data directory open, starts one.
pub(super) fn open(
    settings: &Settings,
    CommonFlags { organization, server: flags, .. }: &CommonFlags,
    rights: Rights,
) -> Result<(ManagedServer, Option<OwnServer>), Failure> {
    if flags.url.is_some() || is_held(&settings.data_dir)? {
        if organization.is_some() {
            return Err(Failure(
                "--organization is only for stopped servers; a running server takes the organization from the token".into(),
            ));
        }
        return Ok((ManagedServer { client: client(settings, flags, rights)?, is_own: false }, None));
    }
    open_files::raise()?;
    let runtime = runtime()?;
    let engine = Engine::open(settings.engine())?;
    let token = temporary_token(&engine, *organization, rights);
    let listen = HttpConfig { listen: "127.0.0.1:0".into(), workers: 1, ..settings.http() };
    let started = token.and_then(|token| {
        let server = Server::start(engine.clone(), listen)?;
        Ok((Client::with(&server.url(), &token)?, server))
    });
    match started {
        Ok((client, server)) => Ok((ManagedServer { client, is_own: true }, Some(OwnServer { runtime, engine, server }))),
        Err(failure) => {
            runtime.block_on(engine.close());
            Err(failure)
        }
    }
}

impl OwnServer {
    /// Stops the server.
    pub(super) fn close(self) {
        self.runtime.block_on(shut_down(self.server, self.engine));
    }
}

fn client(settings: &Settings, flags: &ServerFlags, rights: Rights) -> Result<Client, Failure> {
    if rights == Rights::Organization || flags.token.is_some() {
        return Client::new(flags, &settings.server_place());
    }
    let saved = InitialCredentials::load(&settings.data_dir)?;
    let saved = saved
        .ok_or_else(|| Failure(format!("no root token: pass --token ({} has no saved token)", settings.data_dir.display())))?;
    Client::new(&ServerFlags { url: flags.url.clone(), token: Some(saved.root_token) }, &settings.server_place())
}

/// Returns a token that is valid in this process only.
fn temporary_token(engine: &Engine, organization: Option<OrganizationId>, rights: Rights) -> Result<String, Failure> {
    let registry = engine.registry();
    if rights == Rights::Root {
        return Ok(registry.temporary_root_token()?.expose().to_owned());
    }
    let organizations = registry.organizations();
    let organization = match (organization, &organizations[..]) {
        (Some(id), _) => id,
        (None, [only]) => only.id,
        (None, []) => return Err(Failure("the data directory has no organization: `headcount init` creates one".into())),
        (None, several) => {
            let list: Vec<String> =
                several.iter().map(|organization| format!("{} ({})", organization.id, organization.name)).collect();
            return Err(Failure(format!("--organization: choose one of {}", list.join(", "))));
        }
    };
    Ok(registry.temporary_token(organization, engine.clock().now())?.expose().to_owned())
}

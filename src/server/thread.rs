//! The thread of a server.

use std::io;
use std::thread::JoinHandle;

use actix_web::dev::{Server, ServerHandle};

/// A server that runs on its own thread.
#[derive(Debug)]
pub(super) struct ServerThread {
    handle: ServerHandle,
    thread: JoinHandle<io::Result<()>>,
}

impl ServerThread {
    /// Starts the server that `build` returns. Returns once connections are accepted.
    pub(super) fn start(name: &str, build: impl FnOnce() -> io::Result<Server> + Send + 'static) -> io::Result<Self> {
        let (started, wait) = std::sync::mpsc::sync_channel(1);
        let thread = std::thread::Builder::new().name(name.into()).spawn(move || {
            actix_web::rt::System::new().block_on(async move {
                match build() {
                    Ok(server) => {
                        let _ = started.send(Ok(server.handle()));
                        server.await
                    }
                    Err(error) => {
                        let _ = started.send(Err(error));
                        Ok(())
                    }
                }
            })
        })?;
        let handle = wait.recv().map_err(|_| io::Error::other("its thread ended"))??;
        Ok(Self { handle, thread })
    }

    /// Accepts no more connections, answers the requests in progress, and ends.
    pub(super) async fn stop(self) -> io::Result<()> {
        self.handle.stop(true).await;
        match tokio::task::spawn_blocking(move || self.thread.join()).await {
            Ok(Ok(result)) => result,
            _ => Err(io::Error::other("the server's thread panicked")),
        }
    }
}

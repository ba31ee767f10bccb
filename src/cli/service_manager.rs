//! Reports of `serve` to the service manager that started it, by the protocol of `sd_notify(3)`.
//!
//! Without `NOTIFY_SOCKET` in the environment, it reports nothing.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use headcount_actors::Engine;

/// The service manager, if one started this process and asked for reports.
#[derive(Debug)]
pub(crate) struct ServiceManager {
    socket: Option<UnixDatagram>,
    /// The longest allowed interval between signs of life.
    watchdog: Option<Duration>,
}

impl ServiceManager {
    /// Reads the environment of the process.
    pub(crate) fn of_process() -> Self {
        Self::of(std::process::id(), |name| std::env::var_os(name))
    }

    fn of(pid: u32, variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let socket = variable("NOTIFY_SOCKET").filter(|name| !name.is_empty()).and_then(|name| {
            let failed = |error| tracing::warn!(%error, "the service manager can't be reached: NOTIFY_SOCKET");
            connect(&name).map_err(failed).ok()
        });
        let number = |name| variable(name)?.to_str()?.parse::<u64>().ok();
        // Variables that were meant for a parent process don't apply.
        let is_meant = number("WATCHDOG_PID").is_none_or(|meant| meant == u64::from(pid));
        let interval = number("WATCHDOG_USEC").filter(|us| *us > 0 && is_meant).map(Duration::from_micros);
        let watchdog = interval.filter(|_| socket.is_some());
        Self { socket, watchdog }
    }

    /// Reports that the server answers.
    pub(crate) fn ready(&self, url: &str) {
        self.send(&format!("READY=1\nSTATUS=serving {url}"));
    }

    /// Reports that the server is stopping.
    pub(crate) fn stopping(&self) {
        self.send("STOPPING=1\nSTATUS=stopping");
    }

    /// Reports that the process is alive while every shard answers. Never ends.
    pub(crate) async fn keep_alive(&self, engine: &Engine) {
        let Some(interval) = self.watchdog else { return std::future::pending().await };
        loop {
            if engine.is_stalled().await {
                tracing::error!("a shard does not answer: no sign of life is sent to the service manager");
            } else {
                self.send("WATCHDOG=1");
            }
            // Half of it, as sd_watchdog_enabled(3) recommends.
            tokio::time::sleep(interval / 2).await;
        }
    }

    fn send(&self, message: &str) {
        if let Some(socket) = &self.socket
            && let Err(error) = socket.send(message.as_bytes())
        {
            tracing::warn!(%error, "the service manager could not be notified");
        }
    }
}

/// Connects to a socket: a path, or `@` and an abstract name.
fn connect(name: &OsStr) -> io::Result<UnixDatagram> {
    let address = match name.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(name)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.connect_addr(&address)?;
    // A service manager that does not read must not block the server.
    socket.set_nonblocking(true)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use headcount_actors::EngineConfig;

    use super::*;
    use headcount_api::command::runtime;

    const PID: u32 = 7;

    fn manager(variables: &[(&str, &str)]) -> ServiceManager {
        ServiceManager::of(PID, |name| {
            variables.iter().find(|(variable, _)| *variable == name).map(|(_, value)| OsString::from(*value))
        })
    }

    fn receive(socket: &UnixDatagram) -> Option<String> {
        let mut buffer = [0; 256];
        let read = socket.recv(&mut buffer).ok()?;
        Some(String::from_utf8_lossy(&buffer[..read]).into_owned())
    }

    #[test]
    fn it_reports_on_paths_and_abstract_names() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let abstract_name = format!("headcount-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        for (name, socket) in [
            (path.to_str().unwrap().to_owned(), UnixDatagram::bind(&path).unwrap()),
            (format!("@{abstract_name}"), UnixDatagram::bind_addr(&address).unwrap()),
        ] {
            let manager = manager(&[("NOTIFY_SOCKET", &name)]);
            manager.ready("http://127.0.0.1:1");
            manager.stopping();
            assert_eq!(receive(&socket).as_deref(), Some("READY=1\nSTATUS=serving http://127.0.0.1:1"), "{name}");
            assert_eq!(receive(&socket).as_deref(), Some("STOPPING=1\nSTATUS=stopping"), "{name}");
        }
    }

    #[test]
    fn it_reports_nothing_where_nobody_asks() {
        for variables in [&[][..], &[("NOTIFY_SOCKET", "")], &[("NOTIFY_SOCKET", "/nowhere/notify"), ("WATCHDOG_USEC", "1000")]] {
            let manager = manager(variables);
            assert!(manager.socket.is_none() && manager.watchdog.is_none(), "{variables:?}");
            manager.ready("http://127.0.0.1:1");
        }
    }

    #[test]
    fn the_watchdog_is_that_of_this_process() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let _socket = UnixDatagram::bind(&path).unwrap();
        let path = path.to_str().unwrap();
        for (pid, us, expected) in [
            (None, "2000", Some(2_000)),
            (Some("7"), "2000", Some(2_000)),
            (Some("8"), "2000", None),
            (None, "0", None),
            (None, "soon", None),
        ] {
            let mut variables = vec![("NOTIFY_SOCKET", path), ("WATCHDOG_USEC", us)];
            variables.extend(pid.map(|pid| ("WATCHDOG_PID", pid)));
            assert_eq!(manager(&variables).watchdog, expected.map(Duration::from_micros), "{variables:?}");
        }
    }

    #[test]
    fn the_watchdog_is_fed_while_the_shards_answer() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_nonblocking(true).unwrap();
        let manager = manager(&[("NOTIFY_SOCKET", path.to_str().unwrap()), ("WATCHDOG_USEC", "2000")]);
        runtime().unwrap().block_on(async {
            let mut config = EngineConfig::new(dir.path().join("data"));
            config.min_free_bytes = 0;
            let engine = Engine::open(config).unwrap();
            let fed = async {
                while receive(&socket).is_none() {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            };
            tokio::select! {
                () = manager.keep_alive(&engine) => {}
                fed = tokio::time::timeout(Duration::from_secs(30), fed) => fed.unwrap(),
            }
            // What refuses events is no reason to be killed.
            engine.admission.begin_drain();
            assert!(engine.ready().await.is_err() && !engine.is_stalled().await);
            engine.close().await;
            assert!(engine.is_stalled().await);
        });
    }
}

//! Embeds headcount in an axum program. The engine runs on its own threads, so that the program
//! needs no actix runtime.
//!
//! `cargo run --example embedded_axum` serves on 127.0.0.1:3000 until Ctrl-C: `POST /visit/{user}`
//! records a visit, and `GET /users` returns the number of users today. With `--once` the program
//! sends these requests to itself, and exits.

use std::error::Error;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use headcount::domain::ids::ProjectId;
use headcount::domain::time::Window;
use headcount::queries::UniqueUsersQuery;
use headcount::{Engine, EngineConfig, NewEvent};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

#[derive(Clone)]
struct App {
    engine: Engine,
    project: ProjectId,
}

type TextResponse = Result<String, (StatusCode, String)>;

async fn visit(State(app): State<App>, Path(user): Path<String>) -> TextResponse {
    let visit = NewEvent::new("visit").user(user);
    let receipt = app.engine.track(app.project, &visit).await;
    let receipt = receipt.map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))?;
    Ok(format!("recorded at position {}\n", receipt.position.unwrap_or_default()))
}

async fn users(State(app): State<App>) -> TextResponse {
    let unavailable = |reason: String| (StatusCode::SERVICE_UNAVAILABLE, reason);
    let config = app.engine.registry().policy(app.project).ok_or_else(|| unavailable("unknown project".into()))?;
    let today = Window::last_days(1, config.policy.timezone, app.engine.clock().now());
    let users = app.engine.ask(app.project, UniqueUsersQuery { window: today }).await;
    Ok(format!("{} users today\n", users.map_err(|error| unavailable(error.to_string()))?.total))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let once = std::env::args().any(|argument| argument == "--once");
    let dir = std::env::temp_dir().join(format!("headcount-embedded-{}", std::process::id()));
    let engine = Engine::open(EngineConfig::new(&dir))?;
    let project = engine.registry().initialize(engine.clock().now())?.project_id;
    let app = App { engine: engine.clone(), project };
    let router = axum::Router::new().route("/visit/{user}", post(visit)).route("/users", get(users)).with_state(app);
    let listener = TcpListener::bind(if once { "127.0.0.1:0" } else { "127.0.0.1:3000" }).await?;
    let address = listener.local_addr()?;
    println!("listening on http://{address}");
    if once {
        let server = tokio::spawn(async move { axum::serve(listener, router).await });
        for user in ["ada", "ben", "ada"] {
            request(address, &format!("POST /visit/{user}")).await?;
        }
        let users = request(address, "GET /users").await?;
        server.abort();
        print!("{users}");
        if users != "2 users today\n" {
            return Err(format!("expected 2 users, not {users:?}").into());
        }
    } else {
        axum::serve(listener, router).with_graceful_shutdown(async { drop(tokio::signal::ctrl_c().await) }).await?;
    }
    engine.close().await;
    std::fs::remove_dir_all(dir)?;
    Ok(())
}

async fn request(address: std::net::SocketAddr, line: &str) -> Result<String, Box<dyn Error>> {
    let mut stream = TcpStream::connect(address).await?;
    let head = format!("{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    let mut response = String::new();
    stream.read_to_string(&mut response).await?;
    let (head, body) = response.split_once("\r\n\r\n").ok_or("not an HTTP response")?;
    if head.starts_with("HTTP/1.1 200") { Ok(body.to_owned()) } else { Err(response.into()) }
}

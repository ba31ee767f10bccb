//! The reference for all HTTP benchmarks: a bare actix-web handler that reads the body and returns
//! an empty 202.
//!
//! It parses and stores nothing, and so shows what the framework itself achieves on this machine.
//!
//! Usage: `reference PORT [WORKERS]`. The server stops after ten minutes.

use std::time::Duration;

use actix_web::{App, HttpResponse, HttpServer, web};

async fn accept(body: web::Bytes) -> HttpResponse {
    std::hint::black_box(body.len());
    HttpResponse::Accepted().finish()
}

#[actix_web::main]
async fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let port = arguments.next().and_then(|port| port.parse().ok()).unwrap_or(8081u16);
    let workers = arguments.next().and_then(|workers| workers.parse().ok()).unwrap_or(1);
    let server = HttpServer::new(|| App::new().app_data(web::PayloadConfig::new(1 << 22)).route("/none", web::post().to(accept)))
        .workers(workers)
        .bind(("127.0.0.1", port))?
        .run();
    let handle = server.handle();
    actix_web::rt::spawn(async move {
        tokio::time::sleep(Duration::from_secs(600)).await;
        handle.stop(false).await;
    });
    server.await
}

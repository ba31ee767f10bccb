//! Ingestion: `POST /i`, `/track`, `/i/batch`, the pixel `GET /i`, and the same for servers.

pub(crate) mod cors;
pub(crate) mod ingest;
pub(crate) mod pixel;
pub(crate) mod rate_limit;
#[cfg(test)]
mod tests;
pub(crate) mod track;

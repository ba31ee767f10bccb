//! Work on threads that may wait for the disk.

use std::any::Any;

use actix_web::web;

use crate::respond::error::{ApiError, Result};

/// What came of work, of any type.
type Done = Box<dyn Any + Send>;

/// Does work on a thread that may wait for the disk.
///
/// # Errors
/// The work was cut short: it panicked, or the server shuts down.
pub async fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let done = run_boxed(Box::new(move || Box::new(work()))).await?;
    done.downcast().map(|done| *done).map_err(|_| ApiError::internal())
}

/// The runtime makes some 60 functions for each type of work: this is the only one.
async fn run_boxed(work: Box<dyn FnOnce() -> Done + Send>) -> Result<Done> {
    web::block(work).await.map_err(|error| {
        tracing::error!(%error, "work on another thread was cut short");
        ApiError::internal()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::respond::code::ErrorCode;

    #[actix_web::test]
    async fn work_returns_its_value_or_an_error_if_it_panics() {
        assert_eq!(run(|| vec![1, 2]).await.unwrap(), [1, 2]);
        assert_eq!(run(|| Err::<(), _>("no")).await.unwrap(), Err("no"));
        let panics = run(|| -> u32 { std::panic::resume_unwind(Box::new("a bug")) }).await;
        assert_eq!(panics.unwrap_err().code(), ErrorCode::Internal);
    }
}

//! Questions end when nobody waits for their answers.
//!
//! The framework drops a handler once writing to its connection fails, which is at its answer. So
//! the connection says here that the client has ended its side, and questions are given up. Few
//! programs end their side and read on; they get an error. Events are recorded whatever the client
//! does.

use std::cell::Cell;
use std::rc::Rc;

use tokio::sync::Notify;

use crate::request::HttpRequest;
use crate::respond::code::ErrorCode;
use crate::respond::error::{ApiError, Result};

/// Whether the client of a connection has ended its side. Its clones are of the same connection.
#[derive(Debug, Clone, Default)]
pub struct ClientEnd(Rc<(Cell<bool>, Notify)>);

impl ClientEnd {
    /// Says that the client sends no more.
    pub fn reach(&self) {
        let (is_reached, waiting) = &*self.0;
        is_reached.set(true);
        waiting.notify_waiters();
    }

    async fn reached(&self) {
        let (is_reached, waiting) = &*self.0;
        let notified = waiting.notified();
        if !is_reached.get() {
            notified.await;
        }
    }
}

/// Waits for an answer for as long as the client does.
pub async fn while_client_waits<T, E: Into<ApiError>>(
    request: &HttpRequest,
    answer: impl Future<Output = Result<T, E>>,
) -> Result<T> {
    let Some(end) = request.conn_data::<ClientEnd>() else { return answer.await.map_err(Into::into) };
    tokio::select! {
        biased;
        answer = answer => answer.map_err(Into::into),
        () = end.reached() => {
            Err(ApiError::new(ErrorCode::MalformedRequest, "the client ended its side of the connection before the answer"))
        }
    }
}

//! The server of a management command, and what such a command asks of it.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::command::client::Client;
use crate::command::failure::Failure;
use crate::command::request::{Body, Reply, items};
use crate::command::text::unexpected;

/// The server that a command sends its request to.
pub struct ManagedServer {
    /// Its client, with the rights of the command.
    pub client: Client,
    /// Whether this process runs it, so that it ends with the command.
    pub is_own: bool,
}

impl ManagedServer {
    /// Shows the object at a path.
    ///
    /// # Errors
    /// The server refuses the request, or does not answer. The same goes for the other methods.
    pub fn show(&self, path: &str) -> Result<Reply, Failure> {
        self.client.get(path).map(Reply::Object)
    }

    /// Shows the objects at a path. `list` is the field of the answer that has them; the text output shows `columns`.
    pub fn list(&self, path: &str, list: &'static str, columns: &'static [&'static str]) -> Result<Reply, Failure> {
        Ok(Reply::List { answer: self.client.get(path)?, list, columns })
    }

    /// Shows the object in the list at a path whose field `field` is `id`.
    pub fn find(&self, path: &str, list: &str, field: &str, id: &str) -> Result<Reply, Failure> {
        let answer: Box<RawValue> = self.client.get(path)?;
        for item in items(&answer, list)? {
            let object: Value = serde_json::from_str(item.get()).map_err(unexpected)?;
            if object[field] == *id {
                return Ok(Reply::Object(item));
            }
        }
        Err(Failure(format!("there is no {id}")))
    }

    /// Creates something, and shows it. The request is sent once.
    pub fn create(&self, path: &str, body: &Body) -> Result<Reply, Failure> {
        self.client.post_once(path, &body.json()?).map(Reply::Object)
    }

    /// Changes the object at a path, and shows it.
    pub fn change(&self, path: &str, body: &Body) -> Result<Reply, Failure> {
        self.client.patch(path, &body.json()?).map(Reply::Object)
    }

    /// Removes the object at a path. The text output says what is `done`.
    pub fn remove(&self, path: &str, done: String) -> Result<Reply, Failure> {
        self.client.delete(path).map(|()| Reply::Done(done))
    }
}

//! `POST /projects/{project_id}/explain`

mod cursor;
pub(crate) mod figure;
mod rows;

//! Writes a Parquet file for an export: to memory, and without the columns that only the archive
//! has.

use headcount_domain::ProjectId;

use super::buffers::Buffers;
use super::row_group::Encoder;
use super::writer::{MAX_DECIMAL, ROW_GROUP_ROWS};
use crate::error::{ArchiveError, Refusal};
use crate::row::Row;
use crate::schema::EXPORT_COLUMNS;

/// The size of values at which a row group ends. It is small, since many exports may run at a time.
const ROW_GROUP_BYTES: usize = 2 << 20;
const LEVEL: i32 = 3;

/// Writes a Parquet file piece by piece.
pub(crate) struct StreamWriter {
    project: ProjectId,
    buffers: Buffers,
    encoder: Option<Encoder>,
}

impl StreamWriter {
    pub(crate) fn new(project: ProjectId) -> Self {
        Self { project, buffers: Buffers::new(EXPORT_COLUMNS), encoder: None }
    }

    /// Adds a row. Writes a row group to `out` when it is full.
    pub(crate) fn push(&mut self, row: &Row, out: &mut Vec<u8>) -> Result<(), ArchiveError> {
        let money = row.event.money.as_ref();
        let mut amounts =
            money.into_iter().flat_map(|money| [Some(money.amount), money.in_project, money.in_organization]).flatten();
        if amounts.any(|amount| amount.0.unsigned_abs() > MAX_DECIMAL) {
            return Err(ArchiveError::Refused { position: row.position, reason: Refusal::Amount });
        }
        self.buffers.push(row);
        let is_full = self.buffers.rows() >= ROW_GROUP_ROWS || self.buffers.bytes >= ROW_GROUP_BYTES;
        if is_full { self.end_row_group(out) } else { Ok(()) }
    }

    fn end_row_group(&mut self, out: &mut Vec<u8>) -> Result<(), ArchiveError> {
        let buffers = std::mem::replace(&mut self.buffers, Buffers::new(EXPORT_COLUMNS));
        let bytes = encoder(&mut self.encoder)?.row_group(buffers).map_err(ArchiveError::encode)?;
        out.extend_from_slice(&bytes);
        Ok(())
    }

    /// Writes the end of the file to `out`.
    pub(crate) fn finish(mut self, out: &mut Vec<u8>) -> Result<(), ArchiveError> {
        if self.buffers.rows() > 0 {
            self.end_row_group(out)?;
        }
        encoder(&mut self.encoder)?;
        if let Some(encoder) = self.encoder {
            out.extend_from_slice(&encoder.finish(self.project).map_err(ArchiveError::encode)?);
        }
        Ok(())
    }
}

fn encoder(place: &mut Option<Encoder>) -> Result<&mut Encoder, ArchiveError> {
    match place {
        Some(encoder) => Ok(encoder),
        none => Ok(none.insert(Encoder::new(EXPORT_COLUMNS, Vec::new(), LEVEL).map_err(ArchiveError::encode)?)),
    }
}

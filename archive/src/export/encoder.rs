//! Encodes rows in a format of exports.

use headcount_domain::{ProjectId, named_values};

use super::json::{Nulls, json_fields};
use super::{ROW_VERSION, VERSION_FIELD, csv};
use crate::error::ArchiveError;
use crate::file::StreamWriter;
use crate::row::Row;

named_values! {
    /// The format of an export.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub enum ExportFormat by as_str {
        /// A JSON object per line, without nulls.
        #[default]
        Ndjson = "ndjson",
        /// CSV with a header (RFC 4180).
        Csv = "csv",
        /// Parquet.
        Parquet = "parquet",
    }
}

impl ExportFormat {
    /// The media type.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Ndjson => "application/x-ndjson",
            Self::Csv => "text/csv; charset=utf-8",
            Self::Parquet => "application/vnd.apache.parquet",
        }
    }
}

/// Encodes rows to memory. The caller takes the bytes.
pub struct RowEncoder {
    kind: Kind,
    out: Vec<u8>,
}

enum Kind {
    Ndjson,
    Csv,
    Parquet(Box<StreamWriter>),
}

impl RowEncoder {
    /// Begins an export of events of `project`.
    pub fn new(format: ExportFormat, project: ProjectId) -> Self {
        let mut out = Vec::new();
        let kind = match format {
            ExportFormat::Ndjson => Kind::Ndjson,
            ExportFormat::Csv => {
                csv::write_header(&mut out);
                Kind::Csv
            }
            ExportFormat::Parquet => Kind::Parquet(Box::new(StreamWriter::new(project))),
        };
        Self { kind, out }
    }

    /// Adds a row.
    ///
    /// # Errors
    /// The row can't be encoded.
    pub fn push(&mut self, row: &Row) -> Result<(), ArchiveError> {
        match &mut self.kind {
            Kind::Ndjson => {
                self.out.extend_from_slice(format!("{{\"{VERSION_FIELD}\":{ROW_VERSION},").as_bytes());
                json_fields(&mut self.out, row, Nulls::LeftOut).map_err(ArchiveError::encode)?;
                self.out.extend_from_slice(b"}\n");
            }
            Kind::Csv => csv::write_record(&mut self.out, row).map_err(ArchiveError::encode)?,
            Kind::Parquet(writer) => writer.push(row, &mut self.out)?,
        }
        Ok(())
    }

    /// Takes the encoded bytes, if there are at least `least`.
    pub fn take(&mut self, least: usize) -> Option<Vec<u8>> {
        (self.out.len() >= least).then(|| std::mem::take(&mut self.out))
    }

    /// Ends the export. Returns the last bytes.
    ///
    /// # Errors
    /// The end can't be encoded.
    pub fn finish(self) -> Result<Vec<u8>, ArchiveError> {
        let Self { kind, mut out } = self;
        if let Kind::Parquet(writer) = kind {
            writer.finish(&mut out)?;
        }
        Ok(out)
    }
}

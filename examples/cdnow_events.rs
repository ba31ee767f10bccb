//! Converts the CDNOW data set (customer, date, number of CDs, dollars) into events for `headcount
//! import`.
//!
//! ```sh
//! gunzip -c tests/data/cdnow_master.txt.gz | cargo run --release --example cdnow_events \
//!   | headcount import --data-dir ./headcount-data --project default -
//! ```
//!
//! Each row becomes an `order` of the customer at noon UTC of its date, with the line number in its
//! `external_id`.

use std::error::Error;
use std::io::{BufRead, BufWriter, Write};

/// Returns the event of a row; `None` for the header line.
pub fn event(number: usize, line: &str) -> Option<String> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [customer, date, cds, dollars] = fields[..] else { return None };
    let date: u32 = date.parse().ok()?;
    let (year, month, day) = (date / 10_000, date / 100 % 100, date % 100);
    Some(format!(
        "{{\"name\":\"order\",\"user_id\":\"{customer}\",\"timestamp\":\"{year:04}-{month:02}-{day:02}T12:00:00Z\",\
         \"value\":{dollars},\"external_id\":\"cdnow-{number}\",\"metadata\":{{\"cds\":{cds}}}}}"
    ))
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut events = BufWriter::new(std::io::stdout().lock());
    for (number, line) in std::io::stdin().lock().lines().enumerate() {
        if let Some(event) = event(number + 1, &line?) {
            writeln!(events, "{event}")?;
        }
    }
    events.flush()?;
    Ok(())
}

//! Revenue by attribution, and lifetime value by cohort.

use std::collections::HashMap;

use crate::cells::count_of;
use crate::contribution::Sign;
use crate::fault::Fault;
use crate::indexes::dictionary::TermId;
use crate::money::ratio;
use crate::project::Project;
use crate::queries::answers::{AttributedRevenue, Cohort, Dimension, EntityLevel, Listed, LtvCohorts, TouchModel, TouchRevenue};
use crate::queries::partial::{Query, Reader, candidates, rank};
use crate::records::Source;
use crate::rollups::{CohortSums, TouchSums, Under};
use crate::time::{Day, Month, Window};
use crate::versions::{Depends, FigureKind};
use serde::{Deserialize, Serialize};

/// Asks for the orders of a window by attribution.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct AttributionQuery {
    /// First or last touch.
    pub model: TouchModel,
    /// Touches of accounts or of identities.
    pub level: EntityLevel,
    /// By source, medium or campaign.
    pub dimension: Dimension,
    /// The days.
    pub window: Window,
    /// The maximum number of rows.
    pub limit: usize,
}

impl Query for AttributionQuery {
    type Partial = AttributedRevenue;

    fn depends(&self) -> Depends {
        Depends::Days(&[FigureKind::Attribution, FigureKind::Money], self.window)
    }

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<AttributedRevenue, Fault> {
        let mut sums = self.sums(reader.project);
        let nothing = self.dimension.of_direct();
        if let Some(missing) = sums.remove(&None) {
            let id = reader.project.dictionary.find(nothing, reader.hasher, reader.source)?;
            sums.entry(id).or_default().add(missing, Sign::Plus);
        }
        let mut rows: Vec<(Option<TermId>, TouchSums)> = sums.into_iter().collect();
        let total = rows.len();
        candidates(&mut rows, self.limit, |(_, sums)| sums.revenue);
        let mut touches = Vec::with_capacity(rows.len());
        for (id, sums) in rows {
            let dimension = match id {
                Some(id) => reader.project.dictionary.text(id, reader.source)?,
                None => nothing,
            };
            touches.push(TouchRevenue { dimension: dimension.to_owned(), revenue: sums.revenue, orders: sums.orders });
        }
        rank(&mut touches, |row| row.revenue, |row| row.dimension.clone());
        touches.truncate(self.limit);
        let truncated = total > self.limit;
        let unconverted = reader.project.rollups.revenue.sums(self.window.start, self.window.end).unconverted.to_map();
        Ok(AttributedRevenue { touches: Listed { rows: touches, truncated }, unconverted })
    }
}

impl AttributionQuery {
    /// Returns the sums by term of the dimension; `None` is the key of sessions without a source.
    fn sums(&self, project: &Project) -> HashMap<Option<TermId>, TouchSums> {
        let rollups = &project.rollups;
        let (first, last, deferred) = match self.level {
            EntityLevel::Identity => {
                (&rollups.first_touch_by_identity, &rollups.last_touch_by_identity, &rollups.deferred_by_identity)
            }
            EntityLevel::Account => {
                (&rollups.first_touch_by_account, &rollups.last_touch_by_account, &rollups.deferred_by_account)
            }
        };
        let cells = match self.model {
            TouchModel::FirstTouch => first,
            TouchModel::LastTouch => last,
        };
        let mut sums: HashMap<Option<TermId>, TouchSums> = HashMap::new();
        for ((_, under), row) in cells.between(self.window.start.0, self.window.end.0) {
            let touch = match under {
                Under::Touch(touch) => touch,
                Under::Deferred(key) => deferred.get(key).flatten(),
            };
            let name = touch.map(|touch| match self.dimension {
                Dimension::Source => touch.source,
                Dimension::Medium => touch.medium,
                Dimension::Campaign => touch.campaign,
            });
            sums.entry(name).or_default().add(row, Sign::Plus);
        }
        sums
    }
}

/// Asks for lifetime value by month of the first event.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct CohortsQuery {
    /// Cohorts of accounts or of identities.
    pub level: EntityLevel,
    /// The maximum number of months, newest first.
    pub limit: usize,
}

impl Query for CohortsQuery {
    type Partial = LtvCohorts;

    fn depends(&self) -> Depends {
        Depends::AllDays(&[FigureKind::Cohorts, FigureKind::Money])
    }

    fn answer<S: Source>(&self, reader: &mut Reader<'_, S>) -> Result<LtvCohorts, Fault> {
        let rollups = &reader.project.rollups;
        let cells = match self.level {
            EntityLevel::Identity => &rollups.cohorts_by_identity,
            EntityLevel::Account => &rollups.cohorts_by_account,
        };
        let cohort = |(month, sums): (i32, CohortSums)| Cohort {
            month: Month(month).to_string(),
            entities: sums.entities,
            revenue: sums.revenue,
            orders: sums.orders,
            ltv: ratio(sums.revenue, count_of(sums.entities)),
        };
        let rows = cells.iter().rev().take(self.limit).map(cohort).collect();
        let cohorts = Listed { rows, truncated: cells.len() > self.limit };
        Ok(LtvCohorts { cohorts, unconverted: rollups.revenue.sums(Day(i32::MIN), Day(i32::MAX)).unconverted.to_map() })
    }
}

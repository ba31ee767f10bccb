//! The sums of the events that fit goals.

use headcount_domain::figures::{CountedMoney, GoalFigures, WindowGoals};
use headcount_domain::queries::Unconverted;
use headcount_domain::{Amount, Currency};

/// What is summed of the events that fit goals. The users are not counted.
pub(in super::super) struct GoalSums {
    pub(super) windows: [WindowGoals; 2],
    pub(super) unconverted: Unconverted,
}

impl GoalSums {
    pub(super) fn new(goals: usize) -> Self {
        Self { windows: [WindowGoals::new(goals), WindowGoals::new(goals)], unconverted: Unconverted::new() }
    }

    /// The memory, in bytes.
    pub(in super::super) fn bytes(&self) -> usize {
        let goals: usize = self.windows.iter().map(|window| window.goals.len() * size_of::<GoalFigures>()).sum();
        goals + self.unconverted.len() * 128
    }

    /// Adds the sums of other events.
    pub(super) fn add(&mut self, sums: Self) {
        for (window, to) in sums.windows.into_iter().zip(&mut self.windows) {
            for (goal, to) in window.goals.into_iter().zip(&mut to.goals) {
                to.conversions += goal.conversions;
                to.revenue += goal.revenue;
            }
        }
        sums.unconverted.into_iter().for_each(|(currency, sum)| add_sum(&mut self.unconverted, currency, sum));
    }
}

/// Counts a conversion. Money without a rate is in no sum.
pub(super) fn count_conversion(figures: &mut GoalFigures, money: Option<CountedMoney>) {
    figures.conversions += 1;
    if let Some(CountedMoney { amount, unconverted: None, .. }) = money {
        figures.revenue += amount;
    }
}

/// Adds money in a currency without a rate, and its orders.
pub(super) fn add_sum(sums: &mut Unconverted, currency: Currency, (amount, orders): (Amount, i64)) {
    let sum = sums.entry(currency).or_default();
    sum.0 += amount;
    sum.1 += orders;
    if *sum == (Amount::ZERO, 0) {
        sums.remove(&currency);
    }
}

//! Positions of events: the sequence of the message, and the place of the event in it.

use headcount_storage::log::Position;

use super::message::MAX_EVENTS;

/// The number of bits of a place.
const PLACE_BITS: u32 = MAX_EVENTS.trailing_zeros();

/// Returns the position of the first event of a message.
pub(crate) fn first_of(sequence: u64) -> Position {
    sequence << PLACE_BITS
}

/// Returns the last position that an event of a message can have.
pub(crate) fn last_of(sequence: u64) -> Position {
    first_of(sequence) | u64::from(MAX_EVENTS - 1)
}

/// Returns the sequence of the message that holds an event.
pub(crate) fn sequence_of(position: Position) -> u64 {
    position >> PLACE_BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_rise_from_message_to_message() {
        assert_eq!((first_of(1), last_of(1), first_of(2)), (8192, 16383, 16384));
        for position in [first_of(7), first_of(7) + 5, last_of(7)] {
            assert_eq!(sequence_of(position), 7);
        }
        // For 2^40 messages of a partition, a position is exact as a JSON number.
        assert!(last_of((1 << 40) - 1) < 1 << 53);
    }
}

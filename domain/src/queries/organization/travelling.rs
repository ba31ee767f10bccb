//! The queries that travel between nodes, by tag.

use super::aliases::{AliasesQuery, LinksQuery};
use super::card::{CardQuery, CardsQuery};
use super::company_users::{CompanyMembersQuery, LastSeenAtQuery, MembersQuery, UserNamesQuery};
use super::identity::{CountsQuery, EmailOwnersQuery, LastSeenQuery, ProfileQuery};
use super::parts::{DescribeQuery, FiguresQuery};
use super::tied::{FirstByNameQuery, TiedQuery};
use super::top_identities::IdentityFiguresQuery;
use super::top_k::{EventsQuery, TopQuery};
use crate::queries::partial::Travels;

/// An operation on a query of any type that travels.
pub trait WithQuery {
    /// The result.
    type Output;

    /// Runs the operation with a query of this type.
    fn with<Q: Travels>(self) -> Self::Output;
}

macro_rules! travelling {
    ($($tag:literal => $query:ty,)*) => {
        $(
            impl Travels for $query {
                const TAG: u16 = $tag;
            }
        )*

        /// Runs an operation with the query type of this tag. Returns `None` for an unknown tag.
        pub fn with_query<W: WithQuery>(tag: u16, then: W) -> Option<W::Output> {
            match tag {
                $($tag => Some(then.with::<$query>()),)*
                _ => None,
            }
        }
    };
}

// A tag is never reused for other bytes. Tags from 1000 on don't belong to queries.
travelling! {
    1 => DescribeQuery,
    2 => FiguresQuery,
    3 => EmailOwnersQuery,
    4 => LastSeenQuery,
    5 => ProfileQuery,
    6 => CountsQuery,
    7 => LinksQuery,
    8 => AliasesQuery,
    9 => TopQuery,
    10 => EventsQuery,
    11 => CardsQuery,
    12 => CardQuery,
    13 => IdentityFiguresQuery,
    14 => MembersQuery,
    15 => CompanyMembersQuery,
    16 => UserNamesQuery,
    17 => LastSeenAtQuery,
    18 => TiedQuery,
    19 => FirstByNameQuery,
}

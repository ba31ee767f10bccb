//! Black-box tests: a real server in a process of its own, and everything it is asked goes over
//! HTTP.
//!
//! | module | asks |
//! |---|---|
//! | [`cases`] | the worked cases of `tests/cases` |
//! | [`histories`], [`erased_histories`], [`clock_histories`] | random histories, compared with the naive model |
//! | [`errors`], [`access`], [`questions`] | every refusal of the contract: status, type, code, parameter |
//! | [`bounds`], [`bodies`], [`parameters`] | every bound at both ends and one past |
//! | [`ingestion`], [`privacy`], [`geo`] | what becomes of events |
//! | [`segment`] | Segment's HTTP API |
//! | [`archive`] | sealing, and who else reads the files |
//! | [`views`] | kept answers: asked again after everything that can change them |
//! | [`slow_clients`], [`overload`] | what clients cost that send or read slowly; everything at once |
//! | [`backup`] | `backup` and `restore` of a server under load |
//! | [`raw_events`], [`export`], [`imported_histories`] | lists of events, exports, and what imports make of them |
//! | [`explain`], [`explained_histories`] | why a figure is what it is, page by page |
//! | [`intake`] | what arrived, and why some of it was not recorded |
//! | [`retention`], [`top_identities`], [`fields`] | who came back, who is most active, and what metadata has |
//! | [`live`] | the stream of what happens now |
//! | [`caching`] | `ETag` and `If-None-Match` |
//! | [`starting`] | what is answered while the engine opens |
//! | [`command_line`] | the commands beside the server, and `kill -9` of an import |
//! | [`manage`] | the management commands |
//! | [`revocation`] | credentials that are revoked while they are used |
//! | [`audit_log`] | who changed what |
//! | [`profile_builds`] | builds of company profiles, from websites on this machine |
//! | [`privacy_requests`], [`erased_addresses`] | erasures and opt-ins; who reports an erased address |
//! | [`privacy_exports`] | exports, their artifacts and downloads |
//! | [`webhooks`] | notifications, to a receiver on this machine |
//! | [`rate_limits`], [`limits`] | how much may be sent with a key, for a project, and with a token; quotas |
//! | [`cluster`], [`cluster_nodes`] | making a cluster; servers that are its nodes |
//! | [`two_versions`] | nodes of two versions, and an upgrade |
//! | [`cluster_backup`], [`cluster_restore`], [`moving_in`] | backups of a cluster, and servers that move into one |
//! | [`cluster_privacy`] | privacy requests through nodes that come and go |
//! | [`cluster_histories`], [`moving_nodes`] | random histories through nodes that come and go |
//! | [`matrix`] | every operation with every kind of credential |
//! | [`revoked_midway`] | the same, with credentials that end before the last byte of the request |
//! | [`management`], [`ops`], [`secrets`], [`canaries`] | the rest of the interface, and what must never be logged |

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is a failed test")]

mod access;
mod alerts;
mod archive;
mod audit_log;
mod backup;
mod bodies;
mod bounds;
mod broker;
mod caching;
mod canaries;
mod cases;
mod channels;
mod client;
mod clock_histories;
mod cluster;
mod cluster_backup;
mod cluster_demo;
mod cluster_erased_histories;
mod cluster_histories;
mod cluster_nodes;
mod cluster_privacy;
mod cluster_restore;
mod cluster_verify;
mod command_line;
mod company_profiles;
mod definitions;
mod erased_addresses;
mod erased_histories;
mod errors;
mod explain;
mod explained_histories;
mod export;
mod exported_histories;
mod fields;
mod figures;
mod foreign_imports;
mod geo;
mod histories;
mod imported_histories;
mod ingestion;
mod intake;
mod killed_imports;
mod leniency;
mod limits;
mod live;
mod mail;
mod manage;
mod management;
mod matrix;
mod moving_in;
mod moving_nodes;
mod not_yet;
mod ops;
mod overload;
mod parameters;
mod path_sums;
mod paths;
mod privacy;
mod privacy_export_ends;
mod privacy_exports;
mod privacy_requests;
mod profile_builds;
mod questions;
mod rate_limits;
mod raw_events;
mod reindex;
mod retention;
mod revocation;
mod revoked_midway;
mod scans;
mod secrets;
mod segment;
mod server;
mod shares;
mod sign_in;
mod slow_clients;
mod sources;
mod starting;
mod tenant;
mod top_identities;
mod two_versions;
mod verify;
mod views;
mod webhooks;
mod wrong_clock;

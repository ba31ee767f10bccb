//! `headcount privacy`.

use std::path::PathBuf;
use std::time::Duration;

use headcount_api::command::{Body, Failure, ManagedServer, ManagementCommand, Reply, SavedOutput, asking, unexpected};
use serde_json::Value;
use serde_json::value::RawValue;

/// The path of the privacy requests.
const PATH: &str = "/privacy-requests";
/// The interval at which a request is polled with `--wait`.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A command about privacy requests.
#[derive(Debug, clap::Subcommand)]
pub enum PrivacyCommand {
    /// Erase all data of a person, and record nothing more about them
    Erase(PrivacyRequestFlags),
    /// Export all data of a person
    Export(PrivacyRequestFlags),
    /// Download the file of an export
    Download(DownloadFlags),
    /// Record events of an erased person again
    OptIn(PrivacyRequestFlags),
    /// List privacy requests, newest first
    List(PrivacyListFlags),
    /// Show a privacy request
    Show {
        /// Id of the request: pr_…
        request_id: String,
    },
}

/// The flags of a request.
#[derive(Debug, clap::Args)]
pub struct PrivacyRequestFlags {
    #[command(flatten)]
    subject: SubjectFlags,
    /// The only project to search for the anonymous id, by id [default: all projects]
    #[arg(long, value_name = "PROJECT", requires = "anonymous_id")]
    project: Option<String>,
    /// Wait until the request is completed. On the data directory of a stopped server, the command
    /// always waits
    #[arg(long)]
    wait: bool,
}

/// The artifact to download.
#[derive(Debug, clap::Args)]
pub struct DownloadFlags {
    /// Id of the export: pr_…
    request_id: String,
    /// File to write; it appears when it is complete [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl DownloadFlags {
    fn download(&self, server: &ManagedServer) -> Result<Reply, Failure> {
        let mut body = server.client.download(&format!("{PATH}/{}/download", self.request_id))?;
        let mut output = SavedOutput::create(self.output.as_deref())?;
        output.fill(&mut body, "the download was cut off")?;
        output.finish()?;
        Ok(Reply::Written)
    }
}

/// The subject of a request.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct SubjectFlags {
    /// All identities that ever had this e-mail address
    #[arg(long)]
    email: Option<String>,
    /// The user id, as your events have it
    #[arg(long)]
    user_id: Option<String>,
    /// An anonymous id. If it is linked to a user, the request is about that user
    #[arg(long)]
    anonymous_id: Option<String>,
}

/// The requests to list.
#[derive(Debug, clap::Args)]
pub struct PrivacyListFlags {
    /// Only requests of this type: export, erasure or `opt_in`
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Only requests with this status: pending, processing, completed or failed
    #[arg(long)]
    status: Option<String>,
    /// Most requests to list, 1 to 100 [default: 20]
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    /// Only requests older than this one: pr_…
    #[arg(long, value_name = "ID")]
    starting_after: Option<String>,
}

impl PrivacyRequestFlags {
    fn request(&self, kind: &str, server: &ManagedServer) -> Result<Reply, Failure> {
        let body = Body::default()
            .set("type", Some(kind))
            .set("email", self.subject.email.as_deref())
            .set("user_id", self.subject.user_id.as_deref())
            .set("anonymous_id", self.subject.anonymous_id.as_deref())
            .set("project_id", self.project.as_deref());
        let mut answer: Box<RawValue> = server.client.post_once(PATH, &body.json()?)?;
        while (self.wait || server.is_own) && !is_over(&answer)? {
            std::thread::sleep(LOOK_EVERY);
            // A cluster may have no answer while another node takes the request over.
            answer = server.client.get_again(&format!("{PATH}/{}", field(&answer, "id")?))?;
        }
        Ok(Reply::Object(answer))
    }
}

fn field(answer: &RawValue, name: &str) -> Result<String, Failure> {
    let answer: Value = serde_json::from_str(answer.get()).map_err(unexpected)?;
    answer[name].as_str().map(str::to_owned).ok_or_else(|| unexpected(format!("it has no {name}")))
}

fn is_over(answer: &RawValue) -> Result<bool, Failure> {
    Ok(["completed", "failed"].contains(&&*field(answer, "status")?))
}

impl ManagementCommand for PrivacyCommand {
    fn send(&self, server: &ManagedServer) -> Result<Reply, Failure> {
        match self {
            Self::Erase(flags) => flags.request("erasure", server),
            Self::Export(flags) => flags.request("export", server),
            Self::Download(flags) => flags.download(server),
            Self::OptIn(flags) => flags.request("opt_in", server),
            Self::List(PrivacyListFlags { kind, status, limit, starting_after }) => {
                let limit = limit.map(|limit| limit.to_string());
                let parameters = [("type", kind), ("status", status), ("limit", &limit), ("starting_after", starting_after)];
                let columns = &["id", "type", "status", "subject", "created_at", "completed_at"];
                server.list(&asking(PATH, parameters), "privacy_requests", columns)
            }
            Self::Show { request_id } => server.show(&format!("{PATH}/{request_id}")),
        }
    }
}

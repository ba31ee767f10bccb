//! The projects that receive the events: the project of a key, new projects, or the projects of a
//! file.

use std::fmt::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::args::{LoadArgs, project_id};
use super::client::Client;
use super::failure::Failure;
use super::process::since_epoch;
use super::progress::ProgressLine;
use super::spread::Destination;

/// The maximum number of projects of an organization.
const MAX_OF_ORGANIZATION: u64 = 1_000;
/// The number of new projects between two progress lines.
const SAID_EVERY: u64 = 500;

/// A line of the file of projects.
#[derive(Debug, Serialize, Deserialize)]
struct ProjectLine {
    project_id: String,
    public_key: String,
    token: String,
}

#[derive(Deserialize)]
struct NewProject {
    project_id: String,
    public_keys: Vec<String>,
}

#[derive(Deserialize)]
struct NewOrganization {
    project_id: String,
    public_key: String,
    api_token: String,
}

/// Returns the projects that the flags select, and whether they are new. Creates new projects.
pub(crate) fn destinations(args: &LoadArgs, progress: &ProgressLine) -> Result<(Vec<Destination>, bool), Failure> {
    let file = args.spread.projects_file.as_deref();
    match (file.filter(|file| file.exists()), args.spread.projects) {
        (Some(file), wanted) => {
            let mut known = read(file)?;
            let wanted = wanted.map_or(known.len(), |wanted| usize::try_from(wanted).unwrap_or(usize::MAX));
            if wanted > known.len() {
                return Err(Failure(format!("{} has {} projects, not {wanted}: use another file", file.display(), known.len())));
            }
            known.truncate(wanted);
            Ok((known, false))
        }
        (None, Some(wanted)) => {
            let created = create(args, wanted, progress)?;
            if let Some(file) = file {
                write(file, &created)?;
            }
            Ok((created, true))
        }
        (None, None) => match file {
            Some(file) => Err(Failure(format!("{} does not exist: create it with --projects N", file.display()))),
            None => Ok((vec![of_key(args)?], false)),
        },
    }
}

fn of_key(args: &LoadArgs) -> Result<Destination, Failure> {
    let key = args.key.clone().unwrap_or_default();
    if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Failure("--key must be a public key".into()));
    }
    let Some(token) = args.token.clone().filter(|_| !args.raw.raw) else {
        return Ok(Destination { project: None, key, token: String::new() });
    };
    let project = match &args.project {
        Some(project) => project.clone(),
        None => project_of(&Client::new(&args.url, &token), &key)?,
    };
    Ok(Destination { project: Some(project), key, token })
}

/// Finds the project of a public key.
fn project_of(client: &Client, public_key: &str) -> Result<String, Failure> {
    let mut projects = client.projects()?.into_iter();
    let project = projects.find(|project| project.public_keys.iter().any(|key| key == public_key));
    project
        .map(|project| project.project_id)
        .ok_or_else(|| Failure("the token's organization has no project with this public key: pass --project".into()))
}

fn create(args: &LoadArgs, wanted: u64, progress: &ProgressLine) -> Result<Vec<Destination>, Failure> {
    let mut created = Vec::new();
    let run = since_epoch().as_millis();
    while (created.len() as u64) < wanted {
        let (token, most) = match &args.spread.root_token {
            Some(root) => {
                let name = serde_json::json!({"name": format!("load {run:x} {}", created.len())}).to_string();
                let made: NewOrganization = Client::new(&args.url, root).post("/organizations", &name)?;
                created.push(destination(&made.project_id, made.public_key, &made.api_token)?);
                (made.api_token, MAX_OF_ORGANIZATION - 1)
            }
            None => (args.token.clone().unwrap_or_default(), wanted),
        };
        let client = Client::new(&args.url, &token);
        for _ in 0..most.min(wanted - created.len() as u64) {
            let name = serde_json::json!({"name": format!("load {run:x} {}", created.len())}).to_string();
            let made: NewProject = client.post("/projects", &name)?;
            if (created.len() as u64).is_multiple_of(SAID_EVERY) {
                progress.say(&format!("{} of {wanted} projects created", created.len()));
            }
            created.push(destination(&made.project_id, made.public_keys.into_iter().next().unwrap_or_default(), &token)?);
        }
    }
    Ok(created)
}

fn destination(project: &str, key: String, token: &str) -> Result<Destination, Failure> {
    let id = project_id(project).map_err(|_| Failure(format!("{project:?} is not the id of a project")))?;
    Ok(Destination { project: Some(id), key, token: token.to_owned() })
}

fn read(file: &Path) -> Result<Vec<Destination>, Failure> {
    let text = std::fs::read_to_string(file).map_err(|error| Failure::new(file.display(), error))?;
    let mut known = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |error: String| Failure(format!("{}:{}: {error}", file.display(), number + 1));
        let line: ProjectLine = serde_json::from_str(line).map_err(|error| wrong(error.to_string()))?;
        let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_plain(&line.public_key) || !is_plain(&line.token) {
            return Err(wrong("keys and tokens must not contain spaces or control characters".into()));
        }
        known.push(destination(&line.project_id, line.public_key, &line.token).map_err(|failure| wrong(failure.0))?);
    }
    if known.is_empty() { Err(Failure(format!("{} has no projects", file.display()))) } else { Ok(known) }
}

fn write(file: &Path, created: &[Destination]) -> Result<(), Failure> {
    let mut text = String::new();
    for Destination { project, key, token } in created {
        let project_id = project.clone().unwrap_or_default();
        let line = ProjectLine { project_id, public_key: key.clone(), token: token.clone() };
        writeln!(text, "{}", serde_json::to_string(&line)?)?;
    }
    std::fs::write(file, text).map_err(|error| Failure::new(file.display(), error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_projects_is_read_as_it_was_written() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("projects");
        let all: Vec<Destination> = (1..4)
            .map(|id| Destination { project: Some(format!("prj_{id}")), key: format!("pk_{id}"), token: "sk_x".into() })
            .collect();
        write(&file, &all).unwrap();
        assert_eq!(read(&file).unwrap(), all);
        std::fs::write(&file, "\n{\"project_id\":\"p\"}\n").unwrap();
        assert!(read(&file).unwrap_err().0.contains("projects:2: missing field"));
        std::fs::write(&file, "{\"project_id\":\"x\",\"public_key\":\"a b\",\"token\":\"t\"}").unwrap();
        assert!(read(&file).unwrap_err().0.contains("spaces"));
        std::fs::write(&file, "\n").unwrap();
        assert!(read(&file).unwrap_err().0.contains("has no projects"));
    }
}

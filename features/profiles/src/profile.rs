//! A company profile, as stored and as shown, and the limits of its fields.

use std::collections::BTreeMap;

use headcount_api::endpoint::json_body;
use headcount_common::DocumentItem;
use headcount_control::{CompanyProfileId, FieldChange, RegistryError, Result, Website, field_changes};
use headcount_domain::{Instant, OrganizationId, named_values};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::research::{
    MAX_DESCRIPTION, MAX_EMAIL_BYTES, MAX_PROFILE_ENTRIES, MAX_SHORT, MAX_URL_BYTES, ProfileFields, ProfileSource,
};

/// The kind of documents that profiles are.
pub(crate) const KIND: &str = "profiles";
/// The maximum size of a value in the audit log, in bytes.
const MAX_AUDITED_BYTES: usize = 1_000;

named_values! {
    /// The subject of a profile.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum ProfileKind by as_str {
        /// The organization itself.
        #[serde(rename = "self")]
        Own = "self",
        /// A target account.
        Account = "account",
    }
}

/// A company profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompanyProfile {
    /// Its id.
    pub id: CompanyProfileId,
    /// The organization whose profile it is.
    pub organization: OrganizationId,
    /// The subject of the profile.
    pub kind: ProfileKind,
    /// The organization's name for the company.
    pub label: String,
    /// The website.
    pub website: Option<Website>,
    /// The facts about the company.
    pub fields: ProfileFields,
    /// The pages that the last build fetched.
    pub sources: Vec<ProfileSource>,
    /// The time of creation.
    pub created_at: Instant,
    /// The time of the last change.
    pub updated_at: Instant,
}

impl DocumentItem for CompanyProfile {
    type Id = CompanyProfileId;
    const WHAT: &'static str = "company profile";

    fn is_of(&self, id: &CompanyProfileId) -> bool {
        self.id == *id
    }
}

json_body! {
    /// The fields of a company profile: absent fields stay unchanged, empty ones are removed.
    #[derive(Clone, Default, PartialEq, Eq)]
    #[schema(as = CompanyProfileShape, example = json!({"label": "Acme", "website": "acme.com", "industry": "Anvils"}))]
    pub struct ProfilePatch {
        /// What the organization calls the company. Of a new profile the default is the host of `website`.
        #[schema(max_length = 200)]
        label: Option<String> = optional("a string"),
        /// The website: a URL, or a host. Its origin is kept. No two profiles have the same host and port; `www.` makes no difference.
        #[schema(max_length = 2048)]
        website: Option<String> = optional("a string"),
        /// The company's name.
        #[schema(max_length = 200)]
        name: Option<String> = optional("a string"),
        /// What it does.
        #[schema(max_length = 5000)]
        description: Option<String> = optional("a string"),
        /// Its industry.
        #[schema(max_length = 200)]
        industry: Option<String> = optional("a string"),
        /// The URL of its logo.
        #[schema(max_length = 2048)]
        logo_url: Option<String> = optional("a string"),
        /// Its pages elsewhere, by the name of the site. Replaces all.
        social: Option<BTreeMap<String, String>> = optional("an object of strings"),
        /// Its e-mail addresses. Replaces all.
        #[schema(max_items = 50)]
        emails: Option<Vec<String>> = optional("a list of strings"),
        /// The technologies of its website. Replaces all.
        #[schema(max_items = 50)]
        technologies: Option<Vec<String>> = optional("a list of strings"),
    }
}

/// A new profile of a target account.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewCompanyProfile(pub ProfilePatch);

fn invalid(param: impl Into<String>, message: impl Into<String>) -> RegistryError {
    RegistryError::Invalid { param: param.into(), message: message.into() }
}

/// Trims a text; `None` if it is empty.
fn text(param: &str, text: &str, most: usize) -> Result<Option<String>> {
    let text = text.trim();
    if text.chars().count() > most {
        return Err(invalid(param, format!("`{param}` must have at most {most} characters")));
    }
    if text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t' | '\r')) {
        return Err(invalid(param, format!("`{param}` must have no control characters")));
    }
    Ok((!text.is_empty()).then(|| text.to_owned()))
}

/// Parses the URL of a page or an image; `None` if it is empty.
fn url(param: &str, text: &str) -> Result<Option<String>> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    match url::Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.as_str().len() <= MAX_URL_BYTES => Ok(Some(url.into())),
        _ => Err(invalid(param, format!("`{param}` must be a URL of http or https with at most {MAX_URL_BYTES} bytes"))),
    }
}

fn check_entries(param: &str, entries: usize) -> Result<()> {
    if entries > MAX_PROFILE_ENTRIES {
        return Err(invalid(param, format!("`{param}` must have at most {MAX_PROFILE_ENTRIES} entries")));
    }
    Ok(())
}

fn social(links: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>> {
    check_entries("social", links.len())?;
    let mut checked = BTreeMap::new();
    for (name, link) in links {
        let Some(name) = text("social", name, MAX_SHORT)? else {
            return Err(invalid("social", "`social` must have no empty key"));
        };
        let param = format!("social.{name}");
        let link = url(&param, link)?.ok_or_else(|| invalid(param, "a link must not be empty"))?;
        checked.insert(name, link);
    }
    Ok(checked)
}

/// Returns a list without repetitions, in order.
fn entries(param: &str, list: &[String], read: impl Fn(&str, &str) -> Result<Option<String>>) -> Result<Vec<String>> {
    check_entries(param, list.len())?;
    let mut checked = Vec::new();
    for (entry, i) in list.iter().zip(0..) {
        let param = format!("{param}[{i}]");
        let entry = read(&param, entry)?.ok_or_else(|| invalid(param, "an entry must not be empty"))?;
        if !checked.contains(&entry) {
            checked.push(entry);
        }
    }
    Ok(checked)
}

fn email(param: &str, text: &str) -> Result<Option<String>> {
    let email = headcount_domain::company::normalise_email(text).filter(|email| email.len() <= MAX_EMAIL_BYTES);
    email.map(Some).ok_or_else(|| invalid(param, "must be an e-mail address"))
}

/// Returns the valid entries without repetitions, up to the limit.
fn valid(found: &[String], read: impl Fn(&str) -> Result<Option<String>>) -> Vec<String> {
    let mut kept = Vec::new();
    for entry in found.iter().filter_map(|entry| read(entry).ok().flatten()) {
        if kept.len() < MAX_PROFILE_ENTRIES && !kept.contains(&entry) {
            kept.push(entry);
        }
    }
    kept
}

/// Returns the value for the audit log, where entries are kept for long. A long value is replaced
/// by its size.
fn short(value: &Value) -> Value {
    let bytes = value.to_string().len();
    if bytes > MAX_AUDITED_BYTES { json!(format!("{bytes} bytes")) } else { value.clone() }
}

impl CompanyProfile {
    /// A new profile of a target account.
    pub(crate) fn account(
        id: CompanyProfileId,
        organization: OrganizationId,
        at: Instant,
        new: NewCompanyProfile,
    ) -> Result<Self> {
        let NewCompanyProfile(mut fields) = new;
        let mut profile = Self::empty(id, organization, ProfileKind::Account, at);
        let label = fields.label.take().filter(|label| !label.trim().is_empty());
        profile.change(fields)?;
        profile.label = match (label, &profile.website) {
            (Some(label), _) => label,
            (None, Some(website)) => website.label().to_owned(),
            (None, None) => return Err(invalid("label", "`label` or `website` is required")),
        };
        let label = Some(profile.label.clone());
        profile.change(ProfilePatch { label, ..ProfilePatch::default() })?;
        Ok(profile)
    }

    /// Returns the organization's own profile, without any facts.
    pub(crate) fn own(id: CompanyProfileId, organization: OrganizationId, at: Instant, website: &Website) -> Self {
        Self { label: website.label().to_owned(), ..Self::empty(id, organization, ProfileKind::Own, at) }
    }

    fn empty(id: CompanyProfileId, organization: OrganizationId, kind: ProfileKind, at: Instant) -> Self {
        Self {
            id,
            organization,
            kind,
            label: String::new(),
            website: None,
            fields: ProfileFields::default(),
            sources: Vec::new(),
            created_at: at,
            updated_at: at,
        }
    }

    /// Fills the empty fields. Invalid values are left out.
    pub(crate) fn fill(&mut self, found: ProfileFields) {
        let ProfileFields { name, description, industry, logo_url, social: links, emails, technologies } = found;
        let fields = &mut self.fields;
        let texts = [
            (name, MAX_SHORT, &mut fields.name),
            (description, MAX_DESCRIPTION, &mut fields.description),
            (industry, MAX_SHORT, &mut fields.industry),
        ];
        for (found, most, field) in texts {
            if field.is_none() {
                *field = found.and_then(|found| text("", &found, most).ok().flatten());
            }
        }
        if fields.logo_url.is_none() {
            fields.logo_url = logo_url.and_then(|found| url("", &found).ok().flatten());
        }
        if fields.social.is_empty() {
            let link = |(name, link): (String, String)| Some((text("", &name, MAX_SHORT).ok()??, url("", &link).ok()??));
            fields.social = links.into_iter().filter_map(link).take(MAX_PROFILE_ENTRIES).collect();
        }
        if fields.emails.is_empty() {
            fields.emails = valid(&emails, |found| email("", found));
        }
        if fields.technologies.is_empty() {
            fields.technologies = valid(&technologies, |found| text("", found, MAX_SHORT));
        }
    }

    /// Changes the fields.
    pub(crate) fn change(&mut self, patch: ProfilePatch) -> Result<()> {
        let ProfilePatch { label, website, name, description, industry, logo_url, social: links, emails, technologies } = patch;
        if let Some(label) = label {
            self.label = text("label", &label, MAX_SHORT)?.ok_or_else(|| invalid("label", "`label` must not be empty"))?;
        }
        if let Some(website) = website {
            let read = |text: &str| Website::parse(text).map_err(|why| invalid("website", format!("`website` {why}")));
            self.website = if website.trim().is_empty() { None } else { Some(read(&website)?) };
        }
        let fields = &mut self.fields;
        let texts = [
            ("name", name, MAX_SHORT, &mut fields.name),
            ("description", description, MAX_DESCRIPTION, &mut fields.description),
            ("industry", industry, MAX_SHORT, &mut fields.industry),
        ];
        for (param, given, most, field) in texts {
            if let Some(given) = given {
                *field = text(param, &given, most)?;
            }
        }
        if let Some(logo) = logo_url {
            fields.logo_url = url("logo_url", &logo)?;
        }
        if let Some(links) = links {
            fields.social = social(&links)?;
        }
        if let Some(emails) = emails {
            fields.emails = entries("emails", &emails, email)?;
        }
        if let Some(technologies) = technologies {
            fields.technologies = entries("technologies", &technologies, |param, entry| text(param, entry, MAX_SHORT))?;
        }
        Ok(())
    }

    /// Returns the fields that differ, for the audit log.
    pub(crate) fn differences(before: Option<&Self>, after: Option<&Self>) -> BTreeMap<String, FieldChange> {
        let mut changes = field_changes(before.map(Self::shown), after.map(Self::shown));
        for FieldChange { from, to } in changes.values_mut() {
            (*from, *to) = (short(from), short(to));
        }
        changes
    }

    fn shown(&self) -> BTreeMap<&'static str, Value> {
        let ProfileFields { name, description, industry, logo_url, social, emails, technologies } = &self.fields;
        BTreeMap::from([
            ("kind", json!(self.kind.as_str())),
            ("label", json!(self.label)),
            ("website", json!(self.website)),
            ("name", json!(name)),
            ("description", json!(description)),
            ("industry", json!(industry)),
            ("logo_url", json!(logo_url)),
            ("social", json!(social)),
            ("emails", json!(emails)),
            ("technologies", json!(technologies)),
        ])
    }
}

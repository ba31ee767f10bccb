//! Operations on members.

use std::sync::Arc;

use headcount_domain::{Instant, OrganizationId};

use super::record::ControlRecord;
use super::state::Tenant;
use super::{ApiToken, Author, Member, MemberId, MemberPatch, NewMember, Registry, RegistryError, Result, validate};

const MEMBER_NOT_FOUND: RegistryError = RegistryError::NotFound { what: "member" };

impl Registry {
    /// Returns the members of an organization, oldest first.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`] if there is no such organization.
    pub fn members(&self, organization: OrganizationId) -> Result<Vec<Arc<Member>>> {
        let tenant = self.tenant(organization)?;
        let mut members: Vec<_> = tenant.members.values().cloned().collect();
        members.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        Ok(members)
    }

    /// Returns a member.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`] if the organization doesn't have the member.
    pub fn member(&self, organization: OrganizationId, id: &MemberId) -> Result<Arc<Member>> {
        let state = self.state();
        let member = state.tenants.get(&organization).and_then(|tenant| tenant.members.get(id));
        member.cloned().ok_or(MEMBER_NOT_FOUND)
    }

    /// Creates a member without tokens.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`] if the organization doesn't exist,
    /// [`RegistryError::Invalid`], [`RegistryError::Storage`], or [`RegistryError::Conflict`]
    /// `email_taken`, or `limit_reached` at [`super::MAX_MEMBERS`].
    pub fn create_member(&self, organization: OrganizationId, new: NewMember, by: impl Into<Author>) -> Result<Arc<Member>> {
        let author = by.into();
        self.change(Some(&author), |change| {
            let member = Member {
                id: MemberId::random()?,
                organization,
                email: validate::email(&new.email)?,
                name: name(new.name.as_deref())?,
                role: new.role,
                created_at: author.at,
            };
            {
                let tenant = self.tenant(organization)?;
                validate::room(tenant.members.len(), validate::MAX_MEMBERS, "members")?;
                check_email(&tenant, &member)?;
            }
            let id = member.id.clone();
            change.commit(ControlRecord::MemberCreated(member), &author)?;
            self.member(organization, &id)
        })
    }

    /// Changes a member, and returns its new state. A new role applies to its tokens from the next
    /// request on.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`], [`RegistryError::Invalid`], [`RegistryError::Storage`],
    /// or [`RegistryError::Conflict`] `email_taken`, or `last_owner` if no valid token could manage
    /// the organization.
    pub fn update_member(
        &self,
        organization: OrganizationId,
        id: &MemberId,
        patch: MemberPatch,
        by: impl Into<Author>,
    ) -> Result<Arc<Member>> {
        let author = by.into();
        self.change(Some(&author), |change| {
            let current = self.member(organization, id)?;
            let mut changed = Member::clone(&current);
            if let Some(email) = &patch.email {
                changed.email = validate::email(email)?;
            }
            if patch.name.is_some() {
                changed.name = name(patch.name.as_deref())?;
            }
            changed.role = patch.role.unwrap_or(changed.role);
            if *current == changed {
                return Ok(current);
            }
            {
                let tenant = self.tenant(organization)?;
                check_email(&tenant, &changed)?;
                let is_lowered = |token: &ApiToken| token.member.as_ref() == Some(id) && changed.role > token.role;
                check_owner_is_left(&tenant, author.at, is_lowered)?;
            }
            change.commit(ControlRecord::MemberChanged(changed), &author)?;
            self.member(organization, id)
        })
    }

    /// Removes a member, and revokes the member's tokens from the next request on.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`], [`RegistryError::Storage`], or
    /// [`RegistryError::Conflict`] `last_owner` if no valid token could manage the organization.
    pub fn remove_member(&self, organization: OrganizationId, id: &MemberId, by: impl Into<Author>) -> Result<()> {
        let author = by.into();
        self.change(Some(&author), |change| {
            self.member(organization, id)?;
            {
                let tenant = self.tenant(organization)?;
                check_owner_is_left(&tenant, author.at, |token| token.member.as_ref() == Some(id))?;
            }
            change.commit(ControlRecord::MemberRemoved { organization, member: id.clone() }, &author)
        })
    }
}

/// Checks that a change leaves a token that can manage the organization, if there is one now. The
/// change takes the owner's rights from the tokens that `is_lost` selects.
pub(super) fn check_owner_is_left(tenant: &Tenant, now: Instant, is_lost: impl Fn(&ApiToken) -> bool) -> Result<()> {
    let mut managers = tenant.tokens.values().filter(|(token, _)| tenant.effective(token).manages(now)).peekable();
    if managers.peek().is_none() || managers.any(|(token, _)| !is_lost(token)) {
        return Ok(());
    }
    let message = "no other valid token of role owner has the scope admin for the whole organization; make one first";
    Err(RegistryError::conflict("last_owner", message))
}

/// Checks that no other member has the e-mail address.
fn check_email(tenant: &Tenant, member: &Member) -> Result<()> {
    if tenant.members.values().any(|other| other.email == member.email && other.id != member.id) {
        return Err(RegistryError::conflict("email_taken", "another member has this e-mail address"));
    }
    Ok(())
}

/// Validates a name. An empty name stands for none.
fn name(text: Option<&str>) -> Result<Option<String>> {
    text.filter(|text| !text.is_empty()).map(validate::name).transpose()
}

//! Operations on sessions of the page, and on the codes that begin them.

use std::sync::Arc;

use headcount_domain::ids::OrganizationId;
use headcount_domain::time::Instant;

use super::record::{ControlRecord, StoredSession};
use super::secret::{self, SecretHash};
use super::sign_in_codes::{CodeTarget, SharedSignIns};
use super::{
    ActorKind, ApiToken, AuthError, BrowserSession, ORGANIZATION_NOT_FOUND, Principal, Registry, RegistryError, SESSION_PREFIX,
    SHARE_PREFIX, SIGN_IN_CODE_PREFIX, Secret, SessionId, ShareHolder, SharedCodes, SignInError, TokenId,
};

impl Registry {
    /// Returns the principal of a cookie: the secret of a session, which is as good as its token, or of a share.
    ///
    /// # Errors
    /// [`AuthError::Unknown`], whether it is malformed, was never issued, has ended or has expired.
    pub fn authenticate_cookie(&self, cookie: &str, now: Instant) -> Result<Principal, AuthError> {
        if !secret::is_key(cookie, SESSION_PREFIX) && !secret::is_key(cookie, SHARE_PREFIX) {
            return Err(AuthError::Unknown);
        }
        self.cache.principal(&SecretHash::of(cookie), now).ok_or(AuthError::Unknown)
    }

    /// Returns the session of a cookie, if it is that of a session that has not ended.
    #[must_use]
    pub fn session(&self, cookie: &str, now: Instant) -> Option<Arc<BrowserSession>> {
        if !secret::is_key(cookie, SESSION_PREFIX) {
            return None;
        }
        self.cache.session(&SecretHash::of(cookie), now)
    }

    /// Returns the share of this secret.
    ///
    /// # Errors
    /// [`AuthError::Unknown`], whether it is malformed, was never issued, was revoked or has expired.
    pub fn share_of(&self, secret: &str, now: Instant) -> Result<ShareHolder, AuthError> {
        if !secret::is_key(secret, SHARE_PREFIX) {
            return Err(AuthError::Unknown);
        }
        match self.cache.principal(&SecretHash::of(secret), now) {
            Some(Principal::Share(holder)) => Ok(holder),
            _ => Err(AuthError::Unknown),
        }
    }

    /// Begins a session with an API token. Its secret is in the return value, and can't be retrieved again.
    ///
    /// # Errors
    /// [`SignInError::Refused`] for anything but a valid token; [`SignInError::Registry`] if it can't be made durable.
    pub fn begin_session(&self, token: &str, now: Instant) -> Result<(BrowserSession, Secret), SignInError> {
        match self.authenticate(token, now) {
            // A command's own token ends with its process.
            Ok(Principal::Token(holder)) if holder.kind == ActorKind::Token => {
                self.begin_session_of(holder.token.organization, holder.token.token_id.clone(), now)
            }
            _ => Err(SignInError::Refused),
        }
    }

    /// Begins a session with a code, which is used up.
    ///
    /// # Errors
    /// [`SignInError::Refused`] for an unknown, used or expired code, and if its token is no longer valid; [`SignInError::Registry`].
    pub fn begin_session_by_code(&self, code: &str, now: Instant) -> Result<(BrowserSession, Secret), SignInError> {
        if !secret::is_key(code, SIGN_IN_CODE_PREFIX) {
            return Err(SignInError::Refused);
        }
        let hash = SecretHash::of(code);
        let own = self.codes.lock().take(&hash, now);
        let target = match self.shared_codes.get() {
            // Another machine may have used it up.
            Some(shared) => shared.take(&hash, now)?,
            None => own,
        };
        let CodeTarget { organization, token } = target.ok_or(SignInError::Refused)?;
        self.begin_session_of(organization, token, now)
    }

    /// Returns the token that a session would stand for that begins with this code, which stays as it is. `None` if it would be refused. Blocks if machines share
    /// their codes.
    ///
    /// # Errors
    /// [`RegistryError::Storage`] if these can't be asked.
    pub fn token_of_code(&self, code: &str, now: Instant) -> Result<Option<Arc<ApiToken>>, RegistryError> {
        let hash = SecretHash::of(code);
        let target = match self.shared_codes.get() {
            Some(shared) => shared.look(&hash, now)?,
            None => self.codes.lock().look(&hash, now),
        };
        let Some(CodeTarget { organization, token }) = target else { return Ok(None) };
        let state = self.state();
        let tenant = state.tenants.get(&organization);
        let found = tenant.and_then(|tenant| Some(tenant.effective(&tenant.tokens.get(&token)?.0)));
        Ok(found.filter(|token| !token.is_expired(now)))
    }

    fn begin_session_of(
        &self,
        organization: OrganizationId,
        token: TokenId,
        now: Instant,
    ) -> Result<(BrowserSession, Secret), SignInError> {
        self.change(None, |change| {
            {
                let state = change.state();
                let found = state.tenants.get(&organization).and_then(|tenant| tenant.tokens.get(&token));
                if found.is_none_or(|(token, _)| token.is_expired(now)) {
                    return Err(SignInError::Refused);
                }
            }
            let secret = Secret::random(SESSION_PREFIX).map_err(RegistryError::from)?;
            let id = SessionId::random().map_err(RegistryError::from)?;
            let session = BrowserSession { id, organization, token: token.clone(), created_at: now };
            let stored = StoredSession { session: session.clone(), hash: SecretHash::of(secret.expose()) };
            change.commit_unaudited(ControlRecord::SessionBegun(stored))?;
            Ok((session, secret))
        })
    }

    /// Ends a session. Its requests are refused from the next one on, and its streams end. Nothing happens if it has ended.
    ///
    /// # Errors
    /// [`RegistryError::Storage`].
    pub fn end_session(&self, session: &BrowserSession) -> Result<(), RegistryError> {
        self.change(None, |change| {
            let organization = session.organization;
            let is_there =
                change.state().tenants.get(&organization).is_some_and(|tenant| tenant.sessions.contains_key(&session.id));
            if is_there {
                change.commit_unaudited(ControlRecord::SessionEnded { organization, session: session.id.clone() })?;
            }
            Ok(())
        })
    }

    /// Keeps sign-in codes where other machines find them, from now on. Only the first call counts.
    pub fn share_codes_with(&self, codes: impl SharedCodes + 'static) {
        let _is_first = self.shared_codes.set(SharedSignIns(Box::new(codes))).is_ok();
    }

    /// Makes a code that begins one session of a token, within [`super::SIGN_IN_CODE_SECONDS`] and before a restart. Returns the code, and when it
    /// expires. An organization has [`super::MAX_SIGN_IN_CODES`] at each machine, and a token
    /// [`super::MAX_SIGN_IN_CODES_OF_TOKEN`]; one more ends the oldest. Blocks if machines share their codes.
    ///
    /// # Errors
    /// [`RegistryError::NotFound`] if the organization has no such token; [`RegistryError::Storage`] if there is no randomness, or the code can't be shared.
    pub fn create_sign_in_code(
        &self,
        organization: OrganizationId,
        token: &TokenId,
        now: Instant,
    ) -> Result<(Secret, Instant), RegistryError> {
        {
            let state = self.state();
            let tenant = state.tenants.get(&organization).ok_or(ORGANIZATION_NOT_FOUND)?;
            tenant.tokens.get(token).ok_or(RegistryError::NotFound { what: "API token" })?;
        }
        let code = Secret::random(SIGN_IN_CODE_PREFIX)?;
        let target = CodeTarget { organization, token: token.clone() };
        let hash = SecretHash::of(code.expose());
        let added = self.codes.lock().add(hash, target.clone(), now);
        if let Some(shared) = self.shared_codes.get() {
            shared.add(&hash, target, &added)?;
        }
        Ok((code, added.expires_at))
    }
}

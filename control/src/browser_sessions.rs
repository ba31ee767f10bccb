//! Operations on browser sessions, and on the codes that begin them.

use std::sync::Arc;
use std::time::Duration;

use headcount_common::SharedValues;
use headcount_common::local::MemoryValues;
use headcount_domain::{Instant, OrganizationId};

use super::record::{ControlRecord, StoredSession};
use super::secret::{self, SecretHash};
use super::sign_in_codes::{CodeTarget, SIGN_IN_CODE_SECONDS, SignInCodes};
use super::{
    ActorKind, ApiToken, AuthError, BrowserSession, Principal, Registry, RegistryError, Result, SESSION_PREFIX, SHARE_PREFIX,
    SIGN_IN_CODE_PREFIX, Secret, SessionId, ShareHolder, SignInError, TokenId,
};

impl Registry {
    /// Returns the principal of a cookie, which has the secret of a session or of a share. A
    /// session has the rights of its token.
    ///
    /// # Errors
    /// Returns [`AuthError::Unknown`] if the secret is malformed, was never issued, has ended or
    /// has expired.
    pub fn authenticate_cookie(&self, cookie: &str, now: Instant) -> Result<Principal, AuthError> {
        if !secret::is_key(cookie, SESSION_PREFIX) && !secret::is_key(cookie, SHARE_PREFIX) {
            return Err(AuthError::Unknown);
        }
        self.cache.principal(&SecretHash::of(cookie), now).ok_or(AuthError::Unknown)
    }

    /// Returns the session of a cookie; `None` if the cookie has no session, or the session has
    /// ended.
    pub fn session(&self, cookie: &str, now: Instant) -> Option<Arc<BrowserSession>> {
        if !secret::is_key(cookie, SESSION_PREFIX) {
            return None;
        }
        self.cache.session(&SecretHash::of(cookie), now)
    }

    /// Returns the share with this secret.
    ///
    /// # Errors
    /// Returns [`AuthError::Unknown`] if the secret is malformed, was never issued, was revoked or
    /// has expired.
    pub fn share_of(&self, secret: &str, now: Instant) -> Result<ShareHolder, AuthError> {
        if !secret::is_key(secret, SHARE_PREFIX) {
            return Err(AuthError::Unknown);
        }
        match self.cache.principal(&SecretHash::of(secret), now) {
            Some(Principal::Share(holder)) => Ok(holder),
            _ => Err(AuthError::Unknown),
        }
    }

    /// Begins a session with an API token. Its secret is in the return value, and can't be
    /// retrieved again.
    ///
    /// # Errors
    /// Returns [`SignInError::Refused`] without a valid token; [`SignInError::Registry`] if the
    /// session can't be made durable.
    pub fn begin_session(&self, token: &str, now: Instant) -> Result<(BrowserSession, Secret), SignInError> {
        match self.authenticate(token, now) {
            // The temporary token of a command ends with its process.
            Ok(Principal::Token(holder)) if holder.kind == ActorKind::Token => {
                self.begin_session_of(holder.token.organization, holder.token.token_id.clone(), now)
            }
            _ => Err(SignInError::Refused),
        }
    }

    /// Begins a session with a code. A code works once.
    ///
    /// # Errors
    /// Returns [`SignInError::Refused`] if the code is unknown, used or expired, or its token is no
    /// longer valid; [`SignInError::Registry`].
    pub fn begin_session_by_code(&self, code: &str, now: Instant) -> Result<(BrowserSession, Secret), SignInError> {
        if !secret::is_key(code, SIGN_IN_CODE_PREFIX) {
            return Err(SignInError::Refused);
        }
        let target = self.codes.take(&SecretHash::of(code), now)?;
        let CodeTarget { organization, token } = target.ok_or(SignInError::Refused)?;
        self.begin_session_of(organization, token, now)
    }

    /// Returns the token of the session that this code would begin, without using the code. Returns
    /// `None` if the code would be refused. Blocks if the machines of a cluster share their codes.
    ///
    /// # Errors
    /// Returns [`RegistryError::Storage`] if the shared codes can't be read.
    pub fn token_of_code(&self, code: &str, now: Instant) -> Result<Option<Arc<ApiToken>>> {
        let target = self.codes.look(&SecretHash::of(code), now)?;
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

    /// Ends a session. Its next request is refused, and its streams end. Does nothing if the
    /// session has ended.
    ///
    /// # Errors
    /// Returns [`RegistryError::Storage`].
    pub fn end_session(&self, session: &BrowserSession) -> Result<()> {
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

    /// Returns the place of the codes of one machine.
    pub fn codes_in_memory() -> Arc<dyn SharedValues> {
        Arc::new(MemoryValues::new(Duration::from_secs(SIGN_IN_CODE_SECONDS.unsigned_abs())))
    }

    /// Keeps sign-in codes in these values, which vanish by themselves.
    #[must_use]
    pub fn with_codes_in(self, values: Arc<dyn SharedValues>) -> Self {
        Self { codes: SignInCodes::new(values), ..self }
    }

    /// Makes a code that begins one session of a token, within [`super::SIGN_IN_CODE_SECONDS`] and
    /// before a restart. Returns the code and its expiry. Each machine keeps
    /// [`super::MAX_SIGN_IN_CODES`] for an organization, and [`super::MAX_SIGN_IN_CODES_OF_TOKEN`]
    /// for a token; one more ends the oldest. Blocks if the machines of a cluster share their
    /// codes.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`] if the organization doesn't have the token;
    /// [`RegistryError::Storage`] if there is no randomness, or the code can't be shared.
    pub fn create_sign_in_code(&self, organization: OrganizationId, token: &TokenId, now: Instant) -> Result<(Secret, Instant)> {
        {
            let tenant = self.tenant(organization)?;
            tenant.tokens.get(token).ok_or(RegistryError::NotFound { what: "API token" })?;
        }
        let code = Secret::random(SIGN_IN_CODE_PREFIX)?;
        let target = CodeTarget { organization, token: token.clone() };
        let expires_at = self.codes.add(SecretHash::of(code.expose()), target, now)?;
        Ok((code, expires_at))
    }
}

//! Browser sessions, sign-in codes and shares.

use super::*;

/// A registry with an organization, and the secret of its first token.
fn started() -> (tempfile::TempDir, Registry, Initial) {
    let dir = tempfile::tempdir().unwrap();
    let registry = open(dir.path()).unwrap();
    let initial = registry.initialize(NOW).unwrap();
    (dir, registry, initial)
}

/// The token that a cookie stands for.
fn token_of(registry: &Registry, cookie: &str, now: Instant) -> Option<TokenId> {
    match registry.authenticate_cookie(cookie, now) {
        Ok(Principal::Token(TokenHolder { token, .. })) => Some(token.token_id.clone()),
        Ok(other) => panic!("{other:?}"),
        Err(_) => None,
    }
}

fn after(seconds: i64) -> Instant {
    NOW.plus_ms(seconds * 1_000)
}

fn share(registry: &Registry, project: ProjectId, new: NewShare) -> Result<(Share, Secret), RegistryError> {
    registry.create_share(first_organization(registry), project, new, NOW)
}

fn named(name: &str) -> NewShare {
    NewShare { name: name.into(), ..NewShare::default() }
}

#[test]
fn a_session_is_as_good_as_its_token_for_14_days_and_over_restarts() {
    let (dir, registry, initial) = started();
    let (session, cookie) = registry.begin_session(initial.api_token.expose(), NOW).unwrap();
    let cookie = cookie.expose();
    assert_eq!(session.expires_at(), after(14 * 24 * 60 * 60));
    drop(registry);
    let registry = open(dir.path()).unwrap();
    let end = SESSION_SECONDS;
    assert_eq!(token_of(&registry, cookie, after(end - 1)), Some(session.token.clone()));
    assert_eq!(registry.session(cookie, NOW).as_deref(), Some(&session));
    assert_eq!((token_of(&registry, cookie, after(end)), registry.session(cookie, after(end))), (None, None));
    // A session is not a bearer credential, and a token is not a cookie.
    assert_eq!(registry.authenticate(cookie, NOW), Err(AuthError::Unknown));
    assert_eq!(registry.authenticate_cookie(initial.api_token.expose(), NOW), Err(AuthError::Unknown));
    registry.end_session(&session).unwrap();
    assert_eq!(token_of(&registry, cookie, NOW), None);
    registry.end_session(&session).unwrap();
}

#[test]
fn a_session_ends_with_its_token() {
    let (_dir, registry, initial) = started();
    let organization = initial.organization_id;
    let project = registry.projects(organization).unwrap()[0].id;
    let expires_at = Some(after(60));
    let brief = NewToken { expires_at, ..token("brief", &[Scope::AnalyticsRead]) };
    let member = registry.create_member(organization, member("ada@acme.com", Role::Admin), NOW).unwrap();
    let of_member = NewToken { member: Some(member.id.clone()), ..token("held", &[Scope::AnalyticsRead]) };
    let other = NewProject { name: "other".into(), ..NewProject::default() };
    let other = registry.create_project(organization, other, NOW).unwrap().id;
    let of_project = NewToken { project: Some(other), ..token("of project", &[Scope::AnalyticsRead]) };
    let [revoked, brief, held, of_project] =
        [token("revoked", &[Scope::AnalyticsRead]), brief, of_member, of_project].map(|new| {
            let (token, secret) = registry.create_token(organization, new, NOW).unwrap();
            (token.token_id, registry.begin_session(secret.expose(), NOW).unwrap().1)
        });
    let is_alive = |session: &(TokenId, Secret), at| token_of(&registry, session.1.expose(), at) == Some(session.0.clone());
    for session in [&revoked, &brief, &held, &of_project] {
        assert!(is_alive(session, NOW));
    }
    assert!(is_alive(&brief, after(59)) && !is_alive(&brief, after(60)));
    registry.revoke_token(organization, &revoked.0, NOW).unwrap();
    assert!(!is_alive(&revoked, NOW) && is_alive(&held, NOW));
    // A lower role applies at once.
    let lowered = MemberPatch { role: Some(Role::Member), ..MemberPatch::default() };
    registry.update_member(organization, &member.id, lowered, NOW).unwrap();
    let Ok(Principal::Token(holder)) = registry.authenticate_cookie(held.1.expose(), NOW) else { panic!("it is valid") };
    assert_eq!(holder.token.role, Role::Member);
    registry.remove_member(organization, &member.id, NOW).unwrap();
    assert!(!is_alive(&held, NOW) && is_alive(&of_project, NOW));
    registry.delete_project(organization, other, NOW).unwrap();
    assert!(!is_alive(&of_project, NOW));
    let left = |registry: &Registry| registry.state().tenants[&organization].sessions.len();
    assert_eq!(left(&registry), 1, "that of the expired token");
    assert!(registry.policy(project).is_some());
}

#[test]
fn only_tokens_begin_sessions() {
    let (_dir, registry, initial) = started();
    let command = registry.temporary_token(initial.organization_id, NOW).unwrap();
    let project = registry.projects(initial.organization_id).unwrap()[0].id;
    let (_, shared) = share(&registry, project, named("s")).unwrap();
    let (_, cookie) = registry.begin_session(initial.api_token.expose(), NOW).unwrap();
    for secret in
        ["", "sk_", initial.root_token.expose(), command.expose(), shared.expose(), cookie.expose(), &initial.public_key]
    {
        assert!(matches!(registry.begin_session(secret, NOW), Err(SignInError::Refused)), "{secret:?}");
        assert!(matches!(registry.begin_session_by_code(secret, NOW), Err(SignInError::Refused)), "{secret:?}");
    }
}

#[test]
fn a_code_begins_one_session_while_its_token_is_valid() {
    let (_dir, registry, initial) = started();
    let organization = initial.organization_id;
    let (made, _) = registry.create_token(organization, token("t", &[Scope::AnalyticsRead]), NOW).unwrap();
    let code = || registry.create_sign_in_code(organization, &made.token_id, NOW).unwrap().0;
    let (first, second, late) = (code(), code(), code());
    let (session, cookie) = registry.begin_session_by_code(first.expose(), NOW).unwrap();
    assert_eq!((session.token, token_of(&registry, cookie.expose(), NOW)), (made.token_id.clone(), Some(made.token_id.clone())));
    let refused = |code: &Secret, at| matches!(registry.begin_session_by_code(code.expose(), at), Err(SignInError::Refused));
    assert!(refused(&first, NOW), "it was used");
    assert!(refused(&late, after(SIGN_IN_CODE_SECONDS)), "it has expired");
    registry.revoke_token(organization, &made.token_id, NOW).unwrap();
    assert!(refused(&second, NOW), "its token was revoked");
    assert!(matches!(registry.create_sign_in_code(organization, &made.token_id, NOW), Err(RegistryError::NotFound { .. })));
}

#[test]
fn sessions_are_bounded_and_the_oldest_end() {
    let (_dir, registry, initial) = started();
    let begin = |token: &str, at| registry.begin_session(token, at).unwrap().1;
    let first = begin(initial.api_token.expose(), NOW);
    let second = begin(initial.api_token.expose(), NOW.plus_ms(1));
    for i in 2..MAX_SESSIONS_OF_TOKEN as i64 {
        begin(initial.api_token.expose(), NOW.plus_ms(i));
    }
    let is_alive = |cookie: &Secret, at| token_of(&registry, cookie.expose(), at).is_some();
    assert!(is_alive(&first, NOW));
    begin(initial.api_token.expose(), NOW.plus_ms(1_000));
    assert!(!is_alive(&first, NOW) && is_alive(&second, NOW));
    // A sign-in with a wrong clock ends one session at most.
    let sessions = || registry.state().tenants[&initial.organization_id].sessions.len();
    assert_eq!(sessions(), MAX_SESSIONS_OF_TOKEN);
    begin(initial.api_token.expose(), after(SESSION_SECONDS + 60));
    assert_eq!(sessions(), MAX_SESSIONS_OF_TOKEN);
    assert!(!is_alive(&second, NOW));
}

#[test]
fn a_share_shows_one_project_and_ends_when_it_is_revoked() {
    let (dir, registry, initial) = started();
    let (organization, project) = (initial.organization_id, initial.project_id);
    let new = NewShare {
        revenue: true,
        embed_origins: vec!["https://ACME.com:443".into(), "https://acme.com".into()],
        expires_at: Some(after(60)),
        ..named(" Board ")
    };
    let (made, secret) = share(&registry, project, new).unwrap();
    assert_eq!((&*made.name, &made.embed_origins), ("Board", &vec!["https://acme.com".to_owned()]));
    let (plain, plain_secret) = share(&registry, project, named("plain")).unwrap();
    drop(registry);
    let registry = open(dir.path()).unwrap();
    let holder = registry.share_of(secret.expose(), NOW).unwrap();
    let rights = &holder.rights;
    assert_eq!((rights.project, rights.role), (Some(project), Role::Admin));
    assert_eq!(rights.scopes, [Scope::AnalyticsRead, Scope::RevenueRead]);
    for found in [registry.authenticate(secret.expose(), NOW), registry.authenticate_cookie(secret.expose(), NOW)] {
        assert_eq!(found, Ok(Principal::Share(holder.clone())));
    }
    assert!(registry.share_of(secret.expose(), after(59)).is_ok() && registry.share_of(secret.expose(), after(60)).is_err());
    let other = registry.share_of(plain_secret.expose(), NOW).unwrap();
    assert_eq!((other.rights.role, &*other.rights.scopes), (Role::Member, &[Scope::AnalyticsRead][..]));
    assert_eq!(registry.shares(organization, project).unwrap().len(), 2);
    assert_eq!(registry.share(&made.id).as_deref(), Some(&made));
    registry.revoke_share(organization, project, &made.id, NOW).unwrap();
    assert!(registry.share_of(secret.expose(), NOW).is_err() && registry.share(&made.id).is_none());
    assert!(matches!(
        registry.revoke_share(organization, project, &made.id, NOW),
        Err(RegistryError::NotFound { what: "share" })
    ));
    let third = registry.create_project(organization, NewProject { name: "third".into(), ..Default::default() }, NOW).unwrap().id;
    assert!(registry.revoke_share(organization, third, &plain.id, NOW).is_err(), "another project's");
    registry.delete_project(organization, project, NOW).unwrap();
    assert!(registry.share_of(plain_secret.expose(), NOW).is_err(), "it ends with its project");
}

#[test]
fn shares_are_checked_and_bounded() {
    let (_dir, registry, initial) = started();
    let project = initial.project_id;
    let origins = |list: &[&str]| NewShare { embed_origins: list.iter().map(ToString::to_string).collect(), ..named("s") };
    let many: Vec<String> = (0..=MAX_EMBED_ORIGINS).map(|i| format!("https://a{i}.example")).collect();
    let table = [
        (named(" "), "name"),
        (NewShare { expires_at: Some(NOW), ..named("s") }, "expires_at"),
        (origins(&["https://acme.com/path"]), "embed_origins[0]"),
        (origins(&["https://a.example; script-src *"]), "embed_origins[0]"),
        (origins(&["chrome-extension://abc"]), "embed_origins"),
        (NewShare { embed_origins: many, ..named("s") }, "embed_origins"),
    ];
    for (new, expected) in table {
        let Err(RegistryError::Invalid { param, .. }) = share(&registry, project, new.clone()) else { panic!("{new:?}") };
        assert_eq!(param, expected, "{new:?}");
    }
    for _ in 0..MAX_SHARES_OF_PROJECT {
        share(&registry, project, named("s")).unwrap();
    }
    assert!(matches!(share(&registry, project, named("s")), Err(RegistryError::Conflict { code: "limit_reached", .. })));
    assert!(matches!(share(&registry, ProjectId(1), named("s")), Err(RegistryError::NotFound { what: "project" })));
}

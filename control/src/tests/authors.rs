//! Authors whose credential ends, or loses rights, after their request was admitted.

use std::collections::BTreeMap;

use super::*;

/// The items that can be changed.
struct Things {
    organization: OrganizationId,
    project: ProjectId,
    deletable: ProjectId,
    key: String,
    token: TokenId,
    member: MemberId,
    share: ShareId,
}

impl Things {
    fn make(registry: &Registry, organization: OrganizationId) -> Self {
        let create_project = || {
            let new = NewProject { name: "p".into(), ..NewProject::default() };
            registry.create_project(organization, new, NOW).unwrap().id
        };
        let (project, deletable) = (create_project(), create_project());
        let key = registry.add_public_key(organization, project, NOW).unwrap();
        let (token, _) = registry.create_token(organization, token("t", &[Scope::Admin]), NOW).unwrap();
        let member = registry.create_member(organization, member("third@acme.com", Role::Admin), NOW).unwrap();
        let new = NewShare { name: "s".into(), ..NewShare::default() };
        let (share, _) = registry.create_share(organization, project, new, NOW).unwrap();
        Self { organization, project, deletable, key, token: token.token_id, member: member.id.clone(), share: share.id }
    }
}

type ChangeBy = fn(&Registry, &Things, Author) -> Result<(), RegistryError>;

/// The changes of one author, one for each operation.
const CHANGES: [(&str, ChangeBy); 18] = [
    ("create_token", |r, t, by| r.create_token(t.organization, token("t", &[Scope::Admin]), by).map(drop)),
    ("update_token", |r, t, by| {
        let patch = TokenPatch { name: Some("renamed".into()), rate_limit: RateLimitPatch::default() };
        r.update_token(t.organization, &t.token, patch, by).map(drop)
    }),
    ("revoke_token", |r, t, by| r.revoke_token(t.organization, &t.token, by)),
    ("create_member", |r, t, by| r.create_member(t.organization, member("new@acme.com", Role::Owner), by).map(drop)),
    ("update_member", |r, t, by| {
        let patch = MemberPatch { name: Some("Ada".into()), ..MemberPatch::default() };
        r.update_member(t.organization, &t.member, patch, by).map(drop)
    }),
    ("remove_member", |r, t, by| r.remove_member(t.organization, &t.member, by)),
    ("create_share", |r, t, by| {
        let new = NewShare { name: "s".into(), ..NewShare::default() };
        r.create_share(t.organization, t.project, new, by).map(drop)
    }),
    ("revoke_share", |r, t, by| r.revoke_share(t.organization, t.project, &t.share, by)),
    ("update_organization", |r, t, by| {
        let patch = OrganizationPatch { name: Some("Acme".into()), ..OrganizationPatch::default() };
        r.update_organization(t.organization, patch, by).map(drop)
    }),
    ("create_project", |r, t, by| {
        r.create_project(t.organization, NewProject { name: "p".into(), ..NewProject::default() }, by).map(drop)
    }),
    ("update_project", |r, t, by| {
        let patch = ProjectPatch { name: Some("renamed".into()), ..ProjectPatch::default() };
        r.update_project(t.organization, t.project, patch, by).map(drop)
    }),
    ("delete_project", |r, t, by| r.delete_project(t.organization, t.deletable, by)),
    ("add_public_key", |r, t, by| r.add_public_key(t.organization, t.project, by).map(drop)),
    ("limit_public_key", |r, t, by| {
        let patch = RateLimitPatch { per_second: Some(5), burst: None };
        r.limit_public_key(t.organization, t.project, &t.key, patch, by).map(drop)
    }),
    ("remove_public_key", |r, t, by| r.remove_public_key(t.organization, t.project, &t.key, by)),
    ("start_build", |r, t, by| {
        let (organization, website) = (t.organization, Website::parse("acme.com").unwrap());
        r.start_build(NewBuild { organization, website, profile: None, price: 0 }, &by).map(drop)
    }),
    ("note_document_change", |r, t, by| {
        let target = AuditTarget { kind: TargetType::Webhook, id: WebhookId::random()?.to_string() };
        r.note_document_change(t.organization, target, AuditAction::WebhookCreated, BTreeMap::new(), &by)
    }),
    ("note_privacy_request", |r, t, by| {
        r.note_privacy_request(t.organization, &MadeFor { id: PrivacyRequestId::random()?, kind: "export", author: by })
    }),
];

/// The author of a request that is admitted now with this secret.
fn let_in(registry: &Registry, secret: &str, at: Instant) -> Author {
    let found = registry.authenticate(secret, NOW).or_else(|_| registry.authenticate_cookie(secret, NOW));
    let Ok(Principal::Token(holder)) = found else { panic!("{secret} is unknown") };
    let (token, authority) = (&holder.token, Some(holder.authority()));
    let actor = Actor { kind: ActorKind::Token, token_id: Some(token.token_id.clone()), member_id: token.member.clone() };
    Author { at, actor, request_id: None, authority }
}

/// The ways in which a credential can end while its request is in progress: its author, its end,
/// and the error.
fn endings(registry: &Registry, organization: OrganizationId) -> Vec<(&'static str, Author, AuthError)> {
    let at = NOW.plus_ms(10);
    let admin = |member: Option<MemberId>| NewToken { member, ..token("t", &[Scope::Admin]) };
    let make = |new: NewToken| registry.create_token(organization, new, NOW).unwrap();
    let (revoked, secret) = make(admin(None));
    let by_revoked = let_in(registry, secret.expose(), at);
    let (_, cookie) = registry.begin_session(secret.expose(), NOW).unwrap();
    let by_session_of_revoked = let_in(registry, cookie.expose(), at);
    registry.revoke_token(organization, &revoked.token_id, NOW).unwrap();

    let (_, secret) = make(NewToken { expires_at: Some(at), ..admin(None) });
    let by_expired = let_in(registry, secret.expose(), at);

    let (_, secret) = make(admin(None));
    let (session, cookie) = registry.begin_session(secret.expose(), NOW).unwrap();
    let by_ended = let_in(registry, cookie.expose(), at);
    registry.end_session(&session).unwrap();

    let held = |email: &str| {
        let member = registry.create_member(organization, member(email, Role::Admin), NOW).unwrap();
        let (_, secret) = make(admin(Some(member.id.clone())));
        (member.id.clone(), let_in(registry, secret.expose(), at))
    };
    let (removed, by_removed) = held("removed@acme.com");
    registry.remove_member(organization, &removed, NOW).unwrap();
    let (lowered, by_lowered) = held("lowered@acme.com");
    let patch = MemberPatch { role: Some(Role::Member), ..MemberPatch::default() };
    registry.update_member(organization, &lowered, patch, NOW).unwrap();
    vec![
        ("a revoked token", by_revoked, AuthError::Unknown),
        ("a session of a revoked token", by_session_of_revoked, AuthError::Unknown),
        ("an expired token", by_expired, AuthError::Unknown),
        ("an ended session", by_ended, AuthError::Unknown),
        ("the token of a removed member", by_removed, AuthError::Unknown),
        ("the token of a member whose role was lowered", by_lowered, AuthError::Lowered),
    ]
}

#[test]
fn nobody_changes_anything_with_a_credential_that_has_ended() {
    let dir = tempfile::tempdir().unwrap();
    let registry = open(dir.path()).unwrap();
    let initial = registry.initialize(NOW).unwrap();
    let things = Things::make(&registry, initial.organization_id);
    let endings = endings(&registry, initial.organization_id);
    let (before, applied) = (everything(&registry), registry.applied().unwrap());
    for (what, change) in CHANGES {
        for (ending, author, expected) in &endings {
            let refused = change(&registry, &things, author.clone()).unwrap_err();
            assert!(matches!(refused, RegistryError::Refused(why) if why == *expected), "{what} by {ending}: {refused}");
        }
    }
    assert_eq!((everything(&registry), registry.applied().unwrap()), (before, applied));
    let by = let_in(&registry, initial.api_token.expose(), NOW);
    for (what, change) in CHANGES {
        change(&registry, &things, by.clone()).unwrap_or_else(|error| panic!("{what} by somebody who may: {error}"));
    }
    assert!(registry.applied().unwrap() >= applied + CHANGES.len() as u64);
}

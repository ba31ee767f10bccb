//! The behaviour of the operations.

use headcount_domain::ProjectId;
use headcount_domain::intake::policy::{BotPolicy, Rates, SignalsPolicy};

use super::*;

fn registry() -> (tempfile::TempDir, Registry, Initial) {
    let dir = tempfile::tempdir().unwrap();
    let registry = open(dir.path()).unwrap();
    assert!(registry.is_empty());
    let initial = registry.initialize(NOW).unwrap();
    (dir, registry, initial)
}

fn conflict<T: std::fmt::Debug>(result: Result<T, RegistryError>) -> &'static str {
    match result {
        Err(RegistryError::Conflict { code, .. }) => code,
        other => panic!("not a conflict: {other:?}"),
    }
}

fn invalid<T: std::fmt::Debug>(result: Result<T, RegistryError>) -> String {
    match result {
        Err(RegistryError::Invalid { param, .. }) => param,
        other => panic!("not invalid: {other:?}"),
    }
}

fn not_found<T: std::fmt::Debug>(result: Result<T, RegistryError>) -> &'static str {
    match result {
        Err(RegistryError::NotFound { what }) => what,
        other => panic!("found: {other:?}"),
    }
}

#[test]
fn the_first_start_makes_the_defaults_once() {
    let (_dir, registry, initial) = registry();
    assert!(!registry.is_empty());
    let organization = registry.organization(initial.organization_id).unwrap();
    assert_eq!((organization.name.as_str(), organization.timezone), ("default", Timezone::UTC));
    assert_eq!((organization.currency, organization.events_recorded), (Currency::USD, false));
    let project = registry.project(initial.organization_id, initial.project_id).unwrap();
    assert_eq!((project.name.as_str(), project.cookieless, project.server_only_revenue), ("default", true, false));
    assert_eq!((project.bots, project.signals_policy), (BotPolicy::Drop, SignalsPolicy::Record));
    assert_eq!(project.public_keys, std::slice::from_ref(&initial.public_key));

    let config = registry.public_key(&initial.public_key).map(|key| key.project).unwrap();
    assert_eq!((config.policy.project, config.policy.organization), (initial.project_id, initial.organization_id));
    assert!(config.allows_origin("https://any.example"));
    let Principal::Token(TokenHolder { token, .. }) = registry.authenticate(initial.api_token.expose(), NOW).unwrap() else {
        panic!()
    };
    assert_eq!((token.role, token.scopes.as_slice(), token.project), (Role::Owner, Scope::ALL, None));
    assert_eq!(registry.authenticate(initial.root_token.expose(), NOW), Ok(Principal::Root(ActorKind::Root)));
    assert_eq!(conflict(registry.initialize(NOW)), "already_initialized");
}

#[test]
fn whatever_is_no_valid_credential_is_unknown() {
    let (_dir, registry, initial) = registry();
    let id = initial.organization_id;
    let expires_at = Some(NOW.plus_ms(10));
    let (_, expiring) = registry.create_token(id, NewToken { expires_at, ..token("t", &[Scope::Admin]) }, NOW).unwrap();
    assert!(registry.authenticate(expiring.expose(), NOW.plus_ms(9)).is_ok());
    assert_eq!(registry.authenticate(expiring.expose(), NOW.plus_ms(10)), Err(AuthError::Unknown));

    let (revoked, secret) = registry.create_token(id, token("t", &[Scope::Admin]), NOW).unwrap();
    assert!(registry.authenticate(secret.expose(), NOW).is_ok());
    registry.revoke_token(id, &revoked.token_id, NOW).unwrap();
    assert_eq!(registry.authenticate(secret.expose(), NOW), Err(AuthError::Unknown));
    assert_eq!(not_found(registry.revoke_token(id, &revoked.token_id, NOW)), "API token");

    let never_issued = Secret::random(TOKEN_PREFIX).unwrap();
    let swapped = initial.api_token.expose().replace("sk_", "rk_");
    let padded = format!("{} ", initial.api_token.expose());
    for bad in ["", "sk_", never_issued.expose(), &initial.public_key, &swapped, &padded] {
        assert_eq!(registry.authenticate(bad, NOW), Err(AuthError::Unknown), "{bad}");
    }
}

#[test]
fn another_organizations_things_are_not_found() {
    let (_dir, registry, initial) = registry();
    let other = registry.create_organization("Other", NOW).unwrap();
    let (mine, theirs) = (initial.organization_id, other.organization_id);
    assert_eq!(not_found(registry.project(mine, other.project_id)), "project");
    assert_eq!(not_found(registry.update_project(mine, other.project_id, ProjectPatch::default(), NOW)), "project");
    assert_eq!(not_found(registry.add_public_key(mine, other.project_id, NOW)), "project");
    assert_eq!(not_found(registry.remove_public_key(mine, other.project_id, &other.public_key, NOW)), "project");
    let key_of_other = registry.remove_public_key(mine, initial.project_id, &other.public_key, NOW);
    assert_eq!(not_found(key_of_other), "public key");
    let their_token = registry.tokens(theirs).unwrap()[0].token_id.clone();
    assert_eq!(not_found(registry.revoke_token(mine, &their_token, NOW)), "API token");
    let scoped = NewToken { project: Some(other.project_id), ..token("t", &[Scope::Admin]) };
    assert_eq!(invalid(registry.create_token(mine, scoped, NOW)), "project_id");
    assert_eq!(registry.projects(mine).unwrap().len(), 1);
    assert_eq!(registry.tokens(mine).unwrap().len(), 1);

    let nobody = OrganizationId(1);
    assert_eq!(not_found(registry.organization(nobody)), "organization");
    assert_eq!(not_found(registry.projects(nobody)), "organization");
    assert_eq!(not_found(registry.tokens(nobody)), "organization");
    assert_eq!(not_found(registry.create_project(nobody, NewProject::default(), NOW)), "organization");
    assert_eq!(not_found(registry.create_token(nobody, token("t", &[Scope::Admin]), NOW)), "organization");
    assert!(registry.policy(ProjectId(1)).is_none());
}

#[test]
fn a_changed_organization_shows_in_every_project() {
    let (_dir, registry, initial) = registry();
    let id = initial.organization_id;
    let project = registry.create_project(id, NewProject { name: "b".into(), ..Default::default() }, NOW).unwrap();
    let rate = Rate::parse("1.08").unwrap();
    let patch = OrganizationPatch {
        name: Some(" Ada ".into()),
        timezone: Some(berlin()),
        currency: Some(euro()),
        fx_rates: Some([(euro(), rate), (Currency::USD, Rate::ONE)].into()),
        capabilities: Some(vec![Capability::TargetAccounts, Capability::TargetAccounts]),
        actions_balance: Some(7),
    };
    let organization = registry.update_organization(id, patch, NOW).unwrap();
    assert_eq!((organization.name.as_str(), organization.actions_balance), ("Ada", 7));
    assert_eq!(organization.capabilities, [Capability::TargetAccounts]);
    for config in [registry.policy(initial.project_id), registry.public_key(&project.public_keys[0]).map(|key| key.project)] {
        let policy = config.unwrap().policy.clone();
        assert_eq!((policy.timezone, policy.organization_currency), (berlin(), euro()));
        assert_eq!(*policy.rates, Rates::from([(euro(), rate)]));
    }
    let empty = OrganizationPatch { fx_rates: Some(Rates::new()), ..Default::default() };
    assert!(registry.update_organization(id, empty, NOW).unwrap().fx_rates.is_empty());

    let bad_rate = OrganizationPatch { fx_rates: Some([(Currency::USD, rate)].into()), ..Default::default() };
    assert_eq!(invalid(registry.update_organization(id, bad_rate, NOW)), "fx_rates.USD");
    let bad_name = OrganizationPatch { name: Some(" ".into()), actions_balance: Some(9), ..Default::default() };
    assert_eq!(invalid(registry.update_organization(id, bad_name, NOW)), "name");
    assert_eq!(registry.organization(id).unwrap().actions_balance, 7, "a refused patch changes nothing");
}

#[test]
fn actions_are_spent_as_long_as_there_are_some() {
    let (_dir, registry, initial) = registry();
    let id = initial.organization_id;
    let patch = OrganizationPatch { actions_balance: Some(3), ..Default::default() };
    registry.update_organization(id, patch, NOW).unwrap();
    let run = start(&registry, id, 2).unwrap();
    let balance = || registry.organization(id).unwrap().actions_balance;
    assert_eq!((balance(), run.spent()), (1, 2));
    let refused = start(&registry, id, 2);
    assert!(matches!(refused, Err(RegistryError::Exhausted { code: "actions_exhausted", .. })), "{refused:?}");
    start(&registry, id, 1).unwrap();
    start(&registry, id, 0).unwrap();
    assert_eq!(balance(), 0);
    let failed = || Err(BuildError { code: "timeout".into(), message: "too slow".into(), url: None });
    for _ in 0..2 {
        // The second call finds nothing to refund.
        assert_eq!(registry.end_build(id, &run.id, failed(), NOW).unwrap().spent(), 0);
        assert_eq!(balance(), 2);
    }
    assert_eq!(not_found(start(&registry, OrganizationId(1), 0)), "organization");
}

#[test]
fn several_public_keys_are_valid_at_once_and_the_last_one_stays() {
    let (_dir, registry, initial) = registry();
    let (id, project) = (initial.organization_id, initial.project_id);
    let second = registry.add_public_key(id, project, NOW).unwrap();
    assert_eq!(
        registry.public_key(&second).map(|key| key.project),
        registry.public_key(&initial.public_key).map(|key| key.project)
    );
    registry.remove_public_key(id, project, &initial.public_key, NOW).unwrap();
    assert!(registry.public_key(&initial.public_key).is_none());
    assert!(registry.public_key(&second).is_some());
    assert_eq!(not_found(registry.remove_public_key(id, project, &initial.public_key, NOW)), "public key");
    assert_eq!(conflict(registry.remove_public_key(id, project, &second, NOW)), "last_public_key");
    for _ in 1..MAX_PUBLIC_KEYS {
        registry.add_public_key(id, project, NOW).unwrap();
    }
    assert_eq!(conflict(registry.add_public_key(id, project, NOW)), "limit_reached");
}

#[test]
fn a_limit_is_of_one_key_and_lasts_as_long_as_it_is_the_same() {
    let (_dir, registry, initial) = registry();
    let (id, project, first) = (initial.organization_id, initial.project_id, initial.public_key);
    let second = registry.add_public_key(id, project, NOW).unwrap();
    let limit = |key: &str, per_second| {
        registry.limit_public_key(id, project, key, RateLimitPatch { per_second: Some(per_second), burst: None }, NOW)
    };
    let limiter = |key: &str| registry.public_key(key).unwrap().limiter;
    let now = std::time::Duration::ZERO;
    let is_used_up = |key: &str| limiter(key).unwrap().check(now).is_err();
    assert!(limiter(&first).is_none());
    assert_eq!(limit(&first, 1).unwrap().key_limits.len(), 1);
    assert!(limiter(&second).is_none(), "the other key has none");
    limit(&second, 1).unwrap();
    limiter(&first).unwrap().take(now, 1).unwrap();
    assert!(is_used_up(&first) && !is_used_up(&second));

    // Changing another field preserves it.
    registry.update_project(id, project, ProjectPatch { bots: Some(BotPolicy::Record), ..Default::default() }, NOW).unwrap();
    registry.update_organization(id, OrganizationPatch { name: Some("new".into()), ..Default::default() }, NOW).unwrap();
    registry.pin_calendar(&registry.policy(project).unwrap()).unwrap();
    limit(&first, 1).unwrap();
    limit(&second, 9).unwrap();
    assert!(is_used_up(&first));
    assert_eq!(limiter(&second).unwrap().limit, RateLimit { per_second: 9, burst: None });
    limit(&first, 2).unwrap();
    assert!(!is_used_up(&first), "another limit begins full");
    limit(&first, 0).unwrap();
    assert!(limiter(&first).is_none());

    registry.remove_public_key(id, project, &second, NOW).unwrap();
    assert_eq!(registry.project(id, project).unwrap().key_limits, [].into());
    assert_eq!(not_found(limit(&second, 1)), "public key");
    let other = registry.create_organization("other", NOW).unwrap();
    assert_eq!(not_found(limit(&other.public_key, 1)), "public key");
    let patch = RateLimitPatch { per_second: Some(1), burst: None };
    assert_eq!(not_found(registry.limit_public_key(other.organization_id, project, &first, patch, NOW)), "project");
    assert_eq!(invalid(limit(&first, MAX_RATE_LIMIT + 1)), "rate_limit");
}

#[test]
fn a_changed_project_shows_in_its_policy() {
    let (_dir, registry, initial) = registry();
    let (id, project) = (initial.organization_id, initial.project_id);
    let patch = ProjectPatch {
        name: Some("Shop".into()),
        currency: Some(euro()),
        allowed_origins: Some(vec!["https://Shop.example".into()]),
        cookieless: Some(false),
        bots: Some(BotPolicy::Record),
        signals_policy: Some(SignalsPolicy::Anonymize),
        server_only_revenue: Some(true),
        retention_days: Some(Some(90)),
        own_domains: Some(vec!["Blog.example".into()]),
        ignored_referrers: Some(vec!["pay.example".into()]),
        ..Default::default()
    };
    let changed = registry.update_project(id, project, patch, NOW).unwrap();
    assert_eq!((changed.name.as_str(), changed.created_at), ("Shop", NOW));
    let config = registry.public_key(&initial.public_key).map(|key| key.project).unwrap();
    assert!(config.allows_origin("https://shop.example") && config.allows_origin("https://SHOP.example"));
    assert!(!config.allows_origin("http://shop.example") && !config.allows_origin("https://other.example"));
    let policy = &config.policy;
    assert_eq!((policy.currency, policy.organization_currency), (euro(), Currency::USD));
    assert_eq!((policy.cookieless, policy.server_only_revenue), (false, true));
    assert_eq!((policy.bots, policy.signals), (BotPolicy::Record, SignalsPolicy::Anonymize));
    let hosts = ["blog.example", "a.pay.example", "shop.example"].map(|host| policy.no_referrers.covers(host));
    assert_eq!(hosts, [true, true, false]);

    let bad = ProjectPatch { allowed_origins: Some(vec!["*".into()]), ..Default::default() };
    assert_eq!(invalid(registry.update_project(id, project, bad, NOW)), "allowed_origins[0]");
    let too_many = (0..=MAX_ALLOWED_ORIGINS).map(|i| format!("https://{i}.example")).collect();
    let too_many = NewProject { name: "x".into(), allowed_origins: Some(too_many), ..Default::default() };
    assert_eq!(invalid(registry.create_project(id, too_many, NOW)), "allowed_origins");
    assert_eq!(invalid(registry.create_project(id, NewProject::default(), NOW)), "name");
}

#[test]
fn tokens_are_listed_and_checked() {
    let (_dir, registry, initial) = registry();
    let id = initial.organization_id;
    let scopes = [Scope::RevenueRead, Scope::AnalyticsRead, Scope::RevenueRead];
    let new = NewToken { project: Some(initial.project_id), ..token("reports", &scopes) };
    let (made, secret) = registry.create_token(id, new, NOW.plus_ms(1)).unwrap();
    assert_eq!(made.scopes, [Scope::AnalyticsRead, Scope::RevenueRead]);
    assert!(made.has(Scope::RevenueRead) && !made.has(Scope::Admin), "no scope implies another");
    assert_eq!(
        registry.authenticate(secret.expose(), NOW),
        Ok(Principal::Token(TokenHolder {
            token: Arc::new(made.clone()),
            kind: ActorKind::Token,
            limiter: None,
            secret: SecretHash::of(secret.expose()),
        }))
    );
    assert_eq!(made.token_id.as_str().parse(), Ok(made.token_id.clone()));
    let listed = registry.tokens(id).unwrap();
    assert_eq!(listed.iter().map(|token| token.name.as_str()).collect::<Vec<_>>(), ["default", "reports"]);

    assert_eq!(invalid(registry.create_token(id, token("t", &[]), NOW)), "scopes");
    assert_eq!(invalid(registry.create_token(id, token("", &[Scope::Admin]), NOW)), "name");
    let expired = NewToken { expires_at: Some(NOW), ..token("t", &[Scope::Admin]) };
    assert_eq!(invalid(registry.create_token(id, expired, NOW)), "expires_at");
}

#[test]
fn a_member_lowers_and_ends_the_rights_of_its_tokens() {
    let (_dir, registry, initial) = registry();
    let id = initial.organization_id;
    let ada = registry.create_member(id, member(" Ada@Acme.com ", Role::Owner), NOW).unwrap();
    assert_eq!((ada.email.as_str(), &ada.name), ("ada@acme.com", &None));
    assert_eq!(conflict(registry.create_member(id, member("ADA@acme.com", Role::Member), NOW)), "email_taken");
    let held = NewToken { role: Role::Owner, member: Some(ada.id.clone()), ..token("held", &[Scope::Admin]) };
    let (made, secret) = registry.create_token(id, held, NOW).unwrap();
    let role = |registry: &Registry| match registry.authenticate(secret.expose(), NOW) {
        Ok(Principal::Token(TokenHolder { token, .. })) => Some(token.role),
        _ => None,
    };
    assert_eq!(role(&registry), Some(Role::Owner));
    // The first token is the only other one. After this, the member's token is the last of an
    // owner.
    let first = registry.tokens(id).unwrap().into_iter().find(|token| token.member.is_none()).unwrap();
    registry.revoke_token(id, &first.token_id, NOW).unwrap();
    let lower = |role| MemberPatch { role: Some(role), ..MemberPatch::default() };
    assert_eq!(conflict(registry.update_member(id, &ada.id, lower(Role::Admin), NOW)), "last_owner");
    assert_eq!(conflict(registry.remove_member(id, &ada.id, NOW)), "last_owner");
    assert_eq!(conflict(registry.revoke_token(id, &made.token_id, NOW)), "last_owner");
    let other = NewToken { role: Role::Owner, ..token("other", &[Scope::Admin]) };
    registry.create_token(id, other, NOW).unwrap();
    registry.update_member(id, &ada.id, lower(Role::Member), NOW).unwrap();
    assert_eq!(role(&registry), Some(Role::Member));
    assert_eq!(registry.tokens(id).unwrap().iter().find(|token| token.member.is_some()).unwrap().role, Role::Owner, "its own");
    registry.update_member(id, &ada.id, lower(Role::Admin), NOW).unwrap();
    assert_eq!(role(&registry), Some(Role::Admin));
    let named = MemberPatch { name: Some("Ada".into()), ..MemberPatch::default() };
    assert_eq!(registry.update_member(id, &ada.id, named, NOW).unwrap().name.as_deref(), Some("Ada"));
    let unnamed = MemberPatch { name: Some(String::new()), ..MemberPatch::default() };
    assert_eq!(registry.update_member(id, &ada.id, unnamed, NOW).unwrap().name, None);

    let second = registry.create_organization("second", NOW).unwrap().organization_id;
    assert_eq!(not_found(registry.member(second, &ada.id)), "member");
    assert_eq!(not_found(registry.remove_member(second, &ada.id, NOW)), "member");
    assert_eq!(not_found(registry.update_member(second, &ada.id, MemberPatch::default(), NOW)), "member");
    let foreign = NewToken { member: Some(ada.id.clone()), ..token("t", &[Scope::Admin]) };
    assert_eq!(invalid(registry.create_token(second, foreign, NOW)), "member_id");
    registry.remove_member(id, &ada.id, NOW).unwrap();
    assert_eq!((role(&registry), registry.members(id).unwrap()), (None, vec![]));
    assert!(registry.tokens(id).unwrap().iter().all(|token| token.member.is_none()));
    for bad in
        ["", "ada", "ada@", "@acme.com", "ada@acme", "a b@acme.com", "a@b@acme.com", &format!("{}@acme.com", "a".repeat(254))]
    {
        assert_eq!(invalid(registry.create_member(id, member(bad, Role::Member), NOW)), "email", "{bad}");
    }
}

#[test]
fn timezone_and_currencies_stay_once_an_event_was_recorded() {
    let (_dir, registry, initial) = registry();
    let (id, project) = (initial.organization_id, initial.project_id);
    let quiet = registry.create_project(id, NewProject { name: "q".into(), ..Default::default() }, NOW).unwrap();
    let before = registry.policy(project).unwrap();
    assert!(!before.is_calendar_pinned());
    let pinned = registry.pin_calendar(&before).unwrap();
    assert!(pinned.is_calendar_pinned());
    assert_eq!(pinned.policy, before.policy);
    assert!(Arc::ptr_eq(&registry.pin_calendar(&pinned).unwrap(), &pinned));
    assert!(Arc::ptr_eq(&registry.pin_calendar(&before).unwrap(), &pinned));

    let zone = |timezone| OrganizationPatch { timezone: Some(timezone), ..Default::default() };
    let money = |currency| OrganizationPatch { currency: Some(currency), ..Default::default() };
    assert_eq!(conflict(registry.update_organization(id, zone(berlin()), NOW)), "timezone_fixed");
    assert_eq!(conflict(registry.update_organization(id, money(euro()), NOW)), "currency_fixed");
    assert!(registry.update_organization(id, zone(Timezone::UTC), NOW).is_ok(), "the current one changes nothing");
    assert!(registry.update_organization(id, money(Currency::USD), NOW).is_ok());
    let money = |currency| ProjectPatch { currency: Some(currency), ..Default::default() };
    assert_eq!(conflict(registry.update_project(id, project, money(euro()), NOW)), "currency_fixed");
    assert!(registry.update_project(id, project, money(Currency::USD), NOW).is_ok());
    assert!(registry.update_project(id, quiet.id, money(euro()), NOW).is_ok(), "this one has no event yet");
}

#[test]
fn a_patch_that_changes_nothing_is_not_recorded() {
    let (_dir, registry, initial) = registry();
    let position = || registry.begin_change().unwrap().journal.next_position();
    let before = position();
    let patch = OrganizationPatch { name: Some("default".into()), timezone: Some(Timezone::UTC), ..Default::default() };
    registry.update_organization(initial.organization_id, patch, NOW).unwrap();
    registry.update_project(initial.organization_id, initial.project_id, ProjectPatch::default(), NOW).unwrap();
    let unlimited = RateLimitPatch { per_second: Some(0), burst: None };
    registry.limit_public_key(initial.organization_id, initial.project_id, &initial.public_key, unlimited, NOW).unwrap();
    assert_eq!(position(), before);
}

#[test]
fn a_deleted_project_is_gone_with_its_keys_and_tokens() {
    let (dir, registry, initial) = registry();
    let organization = initial.organization_id;
    let new = NewProject { name: "brief".into(), ..Default::default() };
    let project = registry.create_project(organization, new, NOW).unwrap();
    let key = &project.public_keys[0];
    let of_project = NewToken { project: Some(project.id), ..token("of project", &[Scope::AnalyticsRead]) };
    let (listed, secret) = registry.create_token(organization, of_project, NOW).unwrap();
    let held = registry.policy(project.id).unwrap();
    registry.pin_calendar(&held).unwrap();
    let other = registry.create_organization("other", NOW).unwrap();
    assert_eq!(not_found(registry.delete_project(other.organization_id, project.id, NOW)), "project");
    registry.delete_project(organization, project.id, NOW).unwrap();
    assert_eq!(not_found(registry.delete_project(organization, project.id, NOW)), "project");
    let is_gone = |registry: &Registry| {
        assert_eq!(not_found(registry.project(organization, project.id)), "project");
        assert!(registry.policy(project.id).is_none() && registry.public_key(key).is_none());
        assert_eq!(registry.authenticate(secret.expose(), NOW), Err(AuthError::Unknown));
        assert!(registry.tokens(organization).unwrap().iter().all(|token| token.token_id != listed.token_id));
        assert_eq!(registry.projects(organization).unwrap().len(), 1);
        assert!(registry.policy(initial.project_id).is_some() && registry.public_key(&initial.public_key).is_some());
    };
    is_gone(&registry);
    assert_eq!(registry.deletions(), [project.id]);
    // An event that was parsed before the deletion can't be the first.
    assert_eq!(not_found(registry.pin_calendar(&held)), "project");
    let never_used = registry.create_project(organization, NewProject { name: "new".into(), ..Default::default() }, NOW).unwrap();
    registry.delete_project(organization, never_used.id, NOW).unwrap();
    assert_eq!(registry.deletions(), [project.id], "nothing was recorded of the other");
    drop(registry);
    let registry = open(dir.path()).unwrap();
    is_gone(&registry);
    assert_eq!(registry.deletions(), [project.id]);
    registry.finish_deletion(project.id).unwrap();
    registry.finish_deletion(project.id).unwrap();
    assert!(registry.deletions().is_empty());
    drop(registry);
    assert!(open(dir.path()).unwrap().deletions().is_empty());
}

//! Segments, goals, funnels and annotations of projects.

use std::collections::BTreeMap;

use super::super::definitions::MAX_BYTES_OF_ORGANIZATION;
use super::*;

#[test]
fn definitions_belong_to_their_project_and_go_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let registry = open(dir.path()).unwrap();
    let organization = registry.create_organization("shop", NOW).unwrap().organization_id;
    let project = registry.projects(organization).unwrap()[0].id;
    let other =
        registry.create_project(organization, NewProject { name: "Other".into(), ..NewProject::default() }, NOW).unwrap().id;
    let of = |project| (organization, Some(project));
    let create = |project, kind, name: &str| {
        registry.create_definition(of(project), kind, (name.into(), [("filters".into(), "[]".into())].into()), NOW)
    };
    let goal = create(project, DefinitionKind::Goal, " Sold ").unwrap();
    let funnel = create(project, DefinitionKind::Funnel, "Checkout").unwrap();
    let elsewhere = create(other, DefinitionKind::Goal, "Sold").unwrap();
    assert_eq!(
        (goal.name.as_str(), goal.id.kind(), goal.id.to_string().parse()),
        ("Sold", DefinitionKind::Goal, Ok(goal.id.clone()))
    );
    let names = |project, kind| {
        let found = registry.definitions(of(project), kind).unwrap();
        found.iter().map(|definition| definition.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(project, DefinitionKind::Goal), ["Sold"]);
    assert_eq!(names(project, DefinitionKind::Segment), Vec::<String>::new());

    let fields = [("event_name".to_owned(), "\"order\"".to_owned())].into();
    let patch = DefinitionPatch { name: Some("Bought".into()), fields };
    let changed = registry.change_definition(of(project), &goal.id, &patch, NOW).unwrap();
    let fields: Vec<_> = changed.fields.keys().map(String::as_str).collect();
    assert_eq!((changed.name.as_str(), fields), ("Bought", vec!["event_name", "filters"]));
    for refused in [
        registry.change_definition(of(other), &goal.id, &patch, NOW).map(drop),
        registry.remove_definition(of(other), &goal.id, NOW),
        registry.definition(of(other), &goal.id).map(drop),
        registry.create_definition(of(ProjectId(99)), DefinitionKind::Goal, ("a".into(), BTreeMap::new()), NOW).map(drop),
    ] {
        assert!(matches!(refused, Err(RegistryError::NotFound { .. })), "{refused:?}");
    }
    registry.remove_definition(of(project), &funnel.id, NOW).unwrap();
    registry.delete_project(organization, other, NOW).unwrap();
    drop(registry);
    let registry = open(dir.path()).unwrap();
    assert_eq!(registry.definition(of(project), &goal.id).unwrap(), changed);
    assert!(registry.definition(of(project), &funnel.id).is_err());
    assert!(registry.definition(of(other), &elsewhere.id).is_err());
    assert_eq!(registry.tenant(organization).unwrap().definitions.len(), 1);
}

/// They stay when a project goes, and are found in no project.
#[test]
fn channels_belong_to_their_organization() {
    let dir = tempfile::tempdir().unwrap();
    let registry = open(dir.path()).unwrap();
    let organization = registry.create_organization("shop", NOW).unwrap().organization_id;
    let other = registry.create_organization("other", NOW).unwrap().organization_id;
    let project = registry.projects(organization).unwrap()[0].id;
    let fields = [("secret".to_owned(), r#""a1b2c3""#.to_owned())].into();
    let channel =
        registry.create_definition((organization, None), DefinitionKind::Channel, ("Team".into(), fields), NOW).unwrap();
    registry.delete_project(organization, project, NOW).unwrap();
    for place in [(other, None), (organization, Some(project))] {
        assert!(registry.definition(place, &channel.id).is_err());
    }
    let audit =
        format!("{:?}", registry.audit_log(organization, &AuditQuery { limit: 9, ..AuditQuery::default() }, NOW).unwrap());
    assert!(audit.contains("Team") && !audit.contains("a1b2c3"), "{audit}");
    drop(registry);
    let registry = open(dir.path()).unwrap();
    assert_eq!(registry.definitions((organization, None), DefinitionKind::Channel).unwrap(), [channel]);
}

#[test]
fn definitions_have_bounds() {
    let dir = tempfile::tempdir().unwrap();
    let registry = Registry::open_with(dir.path(), JournalOptions::default()).unwrap();
    let organization = registry.create_organization("shop", NOW).unwrap().organization_id;
    let project = registry.projects(organization).unwrap()[0].id;
    let create = |kind, bytes: usize| {
        registry.create_definition(
            (organization, Some(project)),
            kind,
            ("a".into(), [("f".into(), "x".repeat(bytes - 2))].into()),
            NOW,
        )
    };
    assert!(matches!(create(DefinitionKind::Goal, MAX_DEFINITION_BYTES + 1), Err(RegistryError::Invalid { .. })));
    for _ in 0..4 {
        create(DefinitionKind::Goal, MAX_DEFINITION_BYTES).unwrap();
    }
    assert!(matches!(create(DefinitionKind::Goal, 2), Err(RegistryError::Conflict { .. })), "64 KiB of goals");
    for _ in 0..MAX_DEFINITIONS {
        create(DefinitionKind::Annotation, MAX_DEFINITION_BYTES).unwrap();
    }
    assert!(matches!(create(DefinitionKind::Annotation, 2), Err(RegistryError::Conflict { .. })));
    let created = (0..MAX_DEFINITIONS).take_while(|_| create(DefinitionKind::Funnel, MAX_DEFINITION_BYTES).is_ok()).count();
    assert_eq!(created, MAX_DEFINITIONS);
    let created = (0..MAX_DEFINITIONS).take_while(|_| create(DefinitionKind::Segment, MAX_DEFINITION_BYTES).is_ok()).count();
    assert_eq!(created, MAX_BYTES_OF_ORGANIZATION / MAX_DEFINITION_BYTES - 2 * MAX_DEFINITIONS - 4);
}

#[test]
fn an_id_has_a_kind_and_characters() {
    for bad in
        ["", "goal", "goal_", "goal_000000000000000", "goal_00000000000000/0", "shr_0000000000000001", "Goal_0000000000000001"]
    {
        assert_eq!(bad.parse::<DefinitionId>(), Err(BadDefinitionId), "{bad}");
    }
}

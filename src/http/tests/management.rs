use actix_web::http::{Method, header};
use actix_web::test::TestRequest;
use headcount_control::{Role, Scope};
use headcount_domain::ProjectId;
use serde_json::{Value, json};

use crate::http::tests::server::TestServer;

const GET: Method = Method::GET;
const POST: Method = Method::POST;
const PATCH: Method = Method::PATCH;
const DELETE: Method = Method::DELETE;

fn refused(status: u16, code: &str, param: Option<&str>) -> (u16, String, Option<String>) {
    (status, code.to_owned(), param.map(str::to_owned))
}

#[actix_web::test]
async fn a_project_is_made_shown_changed_and_listed() {
    let server = TestServer::start();
    let body =
        r#"{"name":" Shop ","currency":"eur","allowed_origins":["HTTPS://Shop.example"],"bots":"record","cookieless":null}"#;
    let made = server.owner(POST, "/projects", body).await;
    assert_eq!(made.status, 201);
    let project = made.json();
    assert_eq!(project["name"], "Shop");
    assert_eq!(project["currency"], "EUR");
    assert_eq!(project["allowed_origins"], json!(["https://shop.example"]));
    assert_eq!(
        (&project["cookieless"], &project["bots"], &project["signals_policy"]),
        (&json!(true), &json!("record"), &json!("record"))
    );
    assert_eq!(project["public_keys"], json!([project["public_key"]]));
    assert!(project["created_at"].as_str().unwrap().ends_with('Z'));

    let path = format!("/projects/{}", project["project_id"].as_str().unwrap());
    assert_eq!(server.owner(GET, &path, "").await.json(), project);
    let changed = server.owner(PATCH, &path, r#"{"signals_policy":"drop","server_only_revenue":true}"#).await;
    assert_eq!(changed.status, 200);
    assert_eq!(changed.json()["signals_policy"], "drop");
    assert_eq!(changed.json()["name"], "Shop");

    let list = server.owner(GET, "/projects", "").await.json();
    assert_eq!(list["truncated"], false);
    let names: Vec<_> = list["projects"].as_array().unwrap().iter().map(|project| &project["name"]).collect();
    assert_eq!(names, ["default", "Shop"]);
}

#[actix_web::test]
async fn bodies_are_read_strictly() {
    let server = TestServer::start();
    let table = [
        // path, body, code, param
        ("/projects", r#"{"name":"a","nmae":"b"}"#, "unknown_parameter", Some("nmae")),
        ("/projects", "{}", "missing_parameter", Some("name")),
        ("/projects", r#"{"name":7}"#, "invalid_parameter", Some("name")),
        ("/projects", r#"{"name":"  "}"#, "invalid_parameter", Some("name")),
        ("/projects", r#"{"name":"a","currency":"ABC"}"#, "invalid_parameter", Some("currency")),
        ("/projects", r#"{"name":"a","cookieless":"yes"}"#, "invalid_parameter", Some("cookieless")),
        ("/projects", r#"{"name":"a","bots":"allow"}"#, "invalid_parameter", Some("bots")),
        ("/projects", r#"{"name":"a","allowed_origins":["example.com"]}"#, "invalid_parameter", Some("allowed_origins[0]")),
        ("/projects", "[]", "invalid_json", None),
        ("/projects?dry_run=1", r#"{"name":"a"}"#, "unknown_parameter", Some("dry_run")),
        ("/api-tokens", r#"{"name":"a","role":"owner"}"#, "missing_parameter", Some("scopes")),
        ("/api-tokens", r#"{"name":"a","role":"root","scopes":["admin"]}"#, "invalid_parameter", Some("role")),
        ("/api-tokens", r#"{"name":"a","role":"owner","scopes":["admin","all"]}"#, "invalid_parameter", Some("scopes[1]")),
        ("/api-tokens", r#"{"name":"a","role":"owner","scopes":[]}"#, "invalid_parameter", Some("scopes")),
        (
            "/api-tokens",
            r#"{"name":"a","role":"owner","scopes":["admin"],"expires_at":"2020-01-01T00:00:00Z"}"#,
            "invalid_parameter",
            Some("expires_at"),
        ),
        (
            "/api-tokens",
            r#"{"name":"a","role":"owner","scopes":["admin"],"expires_at":"tomorrow"}"#,
            "invalid_parameter",
            Some("expires_at"),
        ),
        (
            "/api-tokens",
            r#"{"name":"a","role":"owner","scopes":["admin"],"project_id":"prj_00000000000"}"#,
            "invalid_parameter",
            Some("project_id"),
        ),
    ];
    for (path, body, code, param) in table {
        assert_eq!(server.owner(POST, path, body).await.refusal(), refused(400, code, param), "{body}");
    }
    let xml = TestRequest::post().uri("/projects").insert_header((header::CONTENT_TYPE, "text/xml"));
    let xml = xml.insert_header((header::AUTHORIZATION, format!("Bearer {}", server.keys.api_token.expose())));
    assert_eq!(server.send(xml).await.refusal(), refused(415, "unsupported_media_type", None));
}

#[actix_web::test]
async fn rates_are_exact_and_their_errors_name_the_currency() {
    let server = TestServer::start();
    let body = r#"{"fx_rates":{"eur":1.080000000001,"JPY":67e-4,"USD":1},"name":"Ada & Co","timezone":"Europe/Berlin",
        "capabilities":["target_accounts"],"actions_balance":3}"#;
    let changed = server.owner(PATCH, "/organization", body).await;
    assert_eq!(changed.status, 200);
    let text = String::from_utf8(changed.body.to_vec()).unwrap();
    let expected = r#""fx_rates":{"EUR":1.080000000001,"JPY":0.0067},"capabilities":["target_accounts"],"actions_balance":3"#;
    assert!(text.contains(expected), "{text}");
    assert_eq!(changed.json()["timezone"], "Europe/Berlin");
    assert_eq!(server.owner(GET, "/organization", "").await.body, changed.body);
    // The table is replaced as a whole.
    let replaced = server.owner(PATCH, "/organization", r#"{"fx_rates":{"CHF":1.1}}"#).await.json();
    assert_eq!(replaced["fx_rates"], json!({"CHF": 1.1}));
    assert_eq!(replaced["name"], "Ada & Co");

    let table = [
        // body, param
        (r#"{"fx_rates":{"XYZ":1}}"#, "fx_rates.XYZ"),
        (r#"{"fx_rates":{"EUR":"1"}}"#, "fx_rates.EUR"),
        (r#"{"fx_rates":{"EUR":0}}"#, "fx_rates.EUR"),
        (r#"{"fx_rates":{"EUR":1.0000000000001}}"#, "fx_rates.EUR"),
        (r#"{"fx_rates":{"USD":1.1}}"#, "fx_rates.USD"),
        (r#"{"fx_rates":{"EUR":1,"eur":2}}"#, "fx_rates.eur"),
        (r#"{"fx_rates":[1]}"#, "fx_rates"),
        (r#"{"timezone":"Mars/Olympus"}"#, "timezone"),
        (r#"{"capabilities":["fly"]}"#, "capabilities"),
        (r#"{"actions_balance":-1}"#, "actions_balance"),
    ];
    for (body, param) in table {
        assert_eq!(
            server.owner(PATCH, "/organization", body).await.refusal(),
            refused(400, "invalid_parameter", Some(param)),
            "{body}"
        );
    }
}

#[actix_web::test]
async fn timezone_and_currencies_stay_once_an_event_was_recorded() {
    let server = TestServer::start();
    let registry = server.engine().registry();
    registry.pin_calendar(&registry.policy(server.keys.project_id).unwrap()).unwrap();
    let refusal = server.owner(PATCH, "/organization", r#"{"timezone":"Asia/Tokyo"}"#).await.refusal();
    assert_eq!(refusal, refused(409, "timezone_fixed", None));
    let path = format!("/projects/{}", server.keys.project_id);
    assert_eq!(server.owner(PATCH, &path, r#"{"currency":"EUR"}"#).await.refusal(), refused(409, "currency_fixed", None));
    assert_eq!(server.owner(PATCH, &path, r#"{"currency":"usd"}"#).await.status, 200);
}

#[actix_web::test]
async fn keys_are_rotated_and_the_last_one_stays() {
    let server = TestServer::start();
    let project = format!("/projects/{}", server.keys.project_id);
    let keys = format!("{project}/keys");
    let added = server.owner(POST, &keys, "").await;
    assert_eq!(added.status, 201);
    let (old, new) = (server.keys.public_key.clone(), added.json()["public_key"].as_str().unwrap().to_owned());
    assert_eq!(added.json()["public_keys"], json!([old, new]));
    assert_eq!(server.owner(GET, &project, "").await.json()["public_key"], new);
    assert_eq!(server.owner(POST, &keys, r#"{"name":"a"}"#).await.refusal(), refused(400, "unknown_parameter", Some("name")));

    let removed = server.owner(DELETE, &format!("{keys}/{old}"), "").await;
    assert_eq!((removed.status.as_u16(), removed.body.len()), (204, 0));
    assert!(server.engine().registry().public_key(&old).is_none());
    assert_eq!(server.owner(DELETE, &format!("{keys}/{old}"), "").await.refusal(), refused(404, "not_found", None));
    assert_eq!(server.owner(DELETE, &format!("{keys}/{new}"), "").await.refusal(), refused(409, "last_public_key", None));
}

#[actix_web::test]
async fn a_token_shows_its_secret_once_and_is_revoked_at_once() {
    let server = TestServer::start();
    let body =
        r#"{"name":"ci","role":"admin","scopes":["admin","revenue:read","admin"],"expires_at":"2999-01-01T00:00:00+01:00"}"#;
    let made = server.owner(POST, "/api-tokens", body).await;
    assert_eq!(made.status, 201);
    assert_eq!(made.headers.get(header::CACHE_CONTROL).unwrap(), "no-store");
    let mut token = made.json();
    let secret = token.as_object_mut().unwrap().remove("token").unwrap().as_str().unwrap().to_owned();
    assert!(secret.starts_with("sk_"));
    assert_eq!(token["scopes"], json!(["revenue:read", "admin"]));
    assert_eq!((&token["expires_at"], &token["project_id"]), (&json!("2998-12-31T23:00:00.000Z"), &Value::Null));

    let list = server.owner(GET, "/api-tokens", "").await;
    assert!(!String::from_utf8_lossy(&list.body).contains("sk_"));
    assert_eq!(list.json()["truncated"], false);
    assert!(list.json()["api_tokens"].as_array().unwrap().contains(&token));

    assert_eq!(server.ask(GET, "/projects", &secret, "").await.status, 200);
    let path = format!("/api-tokens/{}", token["token_id"].as_str().unwrap());
    assert_eq!(server.owner(DELETE, &path, "").await.status, 204);
    let after = server.ask(GET, "/projects", &secret, "").await;
    assert_eq!(after.refusal(), refused(401, "invalid_credential", None));
    assert_eq!(after.headers.get(header::WWW_AUTHENTICATE).unwrap(), "Bearer");
    for path in [path.as_str(), "/api-tokens/tok_0", "/api-tokens/tok_0000000000000000"] {
        assert_eq!(server.owner(DELETE, path, "").await.refusal(), refused(404, "not_found", None), "{path}");
    }
}

#[actix_web::test]
async fn an_admin_can_not_raise_itself() {
    let server = TestServer::start();
    let admin = server.token(Role::Admin, &[Scope::Admin, Scope::RevenueRead]);
    let table = [
        // role, scopes, refusal
        ("owner", r#"["admin"]"#, Some("insufficient_role")),
        ("admin", r#"["admin","identities:read"]"#, Some("insufficient_scope")),
        ("member", r#"["analytics:read"]"#, Some("insufficient_scope")),
        ("admin", r#"["admin"]"#, None),
        ("member", r#"["revenue:read"]"#, None),
    ];
    for (role, scopes, code) in table {
        let body = format!(r#"{{"name":"x","role":"{role}","scopes":{scopes}}}"#);
        let answer = server.ask(POST, "/api-tokens", &admin, &body).await;
        match code {
            Some(code) => assert_eq!(answer.refusal(), refused(403, code, None), "{body}"),
            None => assert_eq!(answer.status, 201, "{body}"),
        }
    }
    let tokens = server.owner(GET, "/api-tokens", "").await.json();
    let id = |role: &str| {
        let tokens = tokens["api_tokens"].as_array().unwrap();
        tokens.iter().find(|token| token["role"] == role).unwrap()["token_id"].as_str().unwrap().to_owned()
    };
    let refusal = server.ask(DELETE, &format!("/api-tokens/{}", id("owner")), &admin, "").await.refusal();
    assert_eq!(refusal, refused(403, "insufficient_role", None));
    assert_eq!(server.ask(DELETE, &format!("/api-tokens/{}", id("member")), &admin, "").await.status, 204);
}

#[actix_web::test]
async fn management_is_for_organization_wide_admins() {
    let server = TestServer::start();
    let member = server.token(Role::Member, &[Scope::Admin]);
    let reader = server.token(Role::Owner, &[Scope::RevenueRead]);
    let body = format!(r#"{{"name":"p","role":"owner","scopes":["admin"],"project_id":"{}"}}"#, server.keys.project_id);
    let scoped = server.owner(POST, "/api-tokens", &body).await.json()["token"].as_str().unwrap().to_owned();
    let root = server.keys.root_token.expose().to_owned();
    let own = format!("/projects/{}", server.keys.project_id);
    for path in ["/projects", "/organization", "/api-tokens", own.as_str()] {
        assert_eq!(server.ask(GET, path, &member, "").await.refusal(), refused(403, "insufficient_role", None), "{path}");
        assert_eq!(server.ask(GET, path, &reader, "").await.refusal(), refused(403, "insufficient_scope", None), "{path}");
        match server.ask(GET, path, &scoped, "").await {
            answer if path == own => assert_eq!(answer.status, 200, "a token of the project shows it"),
            answer => assert_eq!(answer.refusal(), refused(403, "project_forbidden", None), "{path}"),
        }
        assert_eq!(server.ask(GET, path, &root, "").await.refusal(), refused(401, "invalid_credential", None), "{path}");
    }
}

#[actix_web::test]
async fn another_organizations_project_is_not_found_in_the_same_words() {
    let server = TestServer::start();
    let root = server.keys.root_token.expose().to_owned();
    let made = server.ask(POST, "/organizations", &root, r#"{"name":"Other"}"#).await;
    assert_eq!(made.status, 201);
    let other = made.json();
    assert_eq!(server.ask(GET, "/organization", other["api_token"].as_str().unwrap(), "").await.json()["name"], "Other");
    assert_eq!(server.owner(POST, "/organizations", r#"{"name":"x"}"#).await.refusal(), refused(403, "insufficient_role", None));
    assert_eq!(server.ask(POST, "/organizations", &root, "{}").await.refusal(), refused(400, "missing_parameter", Some("name")));

    let answer = async |path: String| {
        let mut json = server.owner(GET, &path, "").await.json();
        json["error"]["request_id"] = Value::Null;
        json
    };
    let foreign = answer(format!("/projects/{}", other["project_id"].as_str().unwrap())).await;
    assert_eq!(foreign["error"]["code"], "not_found");
    assert_eq!(foreign, answer(format!("/projects/{}", ProjectId(7))).await);
    assert_eq!(foreign, answer("/projects/nonsense".to_owned()).await);
}

#[actix_web::test]
async fn answers_are_tagged() {
    let server = TestServer::start();
    let first = server.owner(GET, "/organization", "").await;
    let tag = first.headers.get(header::ETAG).unwrap().clone();
    let again = || {
        let request = TestRequest::get().uri("/organization").insert_header((header::IF_NONE_MATCH, tag.clone()));
        request.insert_header((header::AUTHORIZATION, format!("Bearer {}", server.keys.api_token.expose())))
    };
    let same = server.send(again()).await;
    assert_eq!((same.status.as_u16(), same.headers.get(header::ETAG)), (304, Some(&tag)));
    server.owner(PATCH, "/organization", r#"{"name":"New"}"#).await;
    assert_eq!(server.send(again()).await.status, 200);
}

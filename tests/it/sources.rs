//! Where visits came from: what is a source, and what a project says is none.

use serde_json::json;

use crate::client::Call;
use crate::tenant::Tenant;

/// A day's sessions by source, of a user each.
fn sources(tenant: &Tenant, project: &str, day: &str) -> Vec<(String, u64)> {
    let traffic = tenant.get(&format!("/projects/{project}/analytics/traffic?start_date={day}&end_date={day}")).ok(200);
    let rows = traffic["by_source"].as_array().unwrap().iter();
    rows.map(|row| (row["value"].as_str().unwrap().to_owned(), row["sessions"].as_u64().unwrap())).collect()
}

#[test]
fn a_project_says_which_hosts_are_no_sources() {
    let tenant = Tenant::new();
    let project = tenant.project(&json!({"own_domains": ["Docs.example"]}));
    let visit = |user: &str, day: u8, referrer: &str| {
        let event = json!({"name": "pageview", "user_id": user, "timestamp": format!("2024-05-0{day}T10:00:00Z"),
            "url": "https://shop.example/", "referrer": referrer});
        assert_eq!(tenant.send(Call::post("/track").key(&project.key).json(&event)).ok(202)["status"], "recorded");
    };
    let referrers =
        ["https://a.docs.example/", "https://pay.bank.example/x", "https://blog.shop.example/", "https://www.paypal.com/"];
    let all = |day: u8| referrers.iter().enumerate().for_each(|(user, referrer)| visit(&format!("{day}-{user}"), day, referrer));
    all(1);
    let patch = json!({"own_domains": [], "ignored_referrers": ["bank.example"]});
    assert_eq!(tenant.patch(&format!("/projects/{}", project.id), &patch).status, 200);
    all(2);
    let expected = |referrer: &str| vec![("(direct)".to_owned(), 3), (referrer.to_owned(), 1)];
    assert_eq!(sources(&tenant, &project.id, "2024-05-01"), expected("pay.bank.example"), "as it was then");
    assert_eq!(sources(&tenant, &project.id, "2024-05-02"), expected("a.docs.example"));
    let body = json!({"start_date": "2024-05-01", "end_date": "2024-05-02", "group_by": "referrer"});
    let rows = tenant.post(&format!("/projects/{}/analytics/aggregate", project.id), &body).ok(200)["rows"].clone();
    let values: Vec<_> = rows.as_array().unwrap().iter().map(|row| (row["value"].as_str(), row["count"].as_u64())).collect();
    assert_eq!(values, [(None, Some(6)), (Some("a.docs.example"), Some(1)), (Some("pay.bank.example"), Some(1))]);
}

/// Reports of users of other products: umami#4297, posthog#10860, shynet#26, snowplow
/// referer-parser#257, and what is like them.
#[test]
fn sources_are_those_that_brought_a_visit() {
    let tenant = Tenant::new();
    let table = [
        ("https://shop.example/?fbclid=f", "", "facebook", "Organic Social"),
        ("https://shop.example/?fbclid=f", "https://l.instagram.com/", "instagram", "Organic Social"),
        ("https://shop.example/?wbraid=w&gad_source=1", "https://www.google.com/", "google", "Paid Search"),
        ("https://shop.example/?GBRAID=w", "", "google", "Paid Search"),
        ("https://shop.example/", "https://blog.shop.example/post", "(direct)", "Direct"),
        ("https://shop.example/?utm_source=chatgpt.com", "", "chatgpt", "AI Assistants"),
        ("https://shop.example/?UTM_Source=Perplexity.ai", "", "perplexity", "AI Assistants"),
        ("https://shop.example/", "https://accounts.google.com/", "(direct)", "Direct"),
        ("https://shop.example/", "android-app://com.google.android.gm/", "com.google.android.gm", "Referral"),
        ("https://one.myshopify.com/", "https://two.myshopify.com/", "two.myshopify.com", "Referral"),
    ];
    for (number, (url, referrer, source, channel)) in table.into_iter().enumerate() {
        let project = tenant.project(&json!({}));
        let event =
            json!({"name": "pageview", "user_id": "ada", "timestamp": "2024-05-01T10:00:00Z", "url": url, "referrer": referrer});
        assert_eq!(tenant.send(Call::post("/track").key(&project.key).json(&event)).status, 202, "{number}");
        let path = format!("/projects/{}/analytics/traffic?start_date=2024-05-01&end_date=2024-05-01", project.id);
        let traffic = tenant.get(&path).ok(200);
        let found = [&traffic["by_source"][0]["value"], &traffic["by_channel"][0]["value"]];
        assert_eq!(found, [source, channel], "{url} from {referrer}");
    }
}

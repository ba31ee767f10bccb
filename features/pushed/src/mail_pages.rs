//! `/mail/{mail_token}`: the links in mails, with which the owner of an address confirms it, or
//! wants no more messages. A scanner of mails, which follows a link with GET, changes nothing.

use std::sync::Arc;

use actix_web::HttpResponseBuilder;
use actix_web::http::header;
use headcount_api::endpoint::*;
use headcount_api::management;
use headcount_control::{Author, Definition, DefinitionPatch};
use headcount_domain::time::Timezone;

use crate::pushed::Pushed;
use crate::recipients::{self, AddressState, Recipients};

/// What these pages may do: send the form to this server. They load nothing.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
const STYLE: &str = "body{font:1.05rem/1.5 system-ui,sans-serif;max-width:32rem;margin:15vh auto 0;padding:0 1.25rem}\
                     form{display:inline-block;margin:0 .5rem .5rem 0}button{font:inherit;padding:.5rem 1rem;cursor:pointer}";

path_parameters! {
    MailTokenPath "mail_token" "^[0-9A-Za-z_-]{86}$" "The end of a link in a mail.";
}

query_parameters! {
    /// What the owner of the address wants.
    pub(crate) struct AnswerParameters {
        /// Whether messages are wanted.
        wanted: Flag,
    }
}

fn not_found() -> HttpResponse {
    let text =
        "Perhaps the channel was removed, or the link was cut off. If you still get messages, use the link in the last one.";
    page(HttpResponse::NotFound(), "This link leads nowhere", text, &[])
}

/// The page of an address; `None` if it is not in the channel any more.
fn of_address(organization: &str, channel: &str, state: Option<AddressState>) -> HttpResponse {
    let (name, channel) = (escaped(organization), escaped(channel));
    let (title, text, buttons): (_, _, &[(&str, bool)]) = match state {
        Some(AddressState::Confirmed) => (
            "You get messages",
            format!("{name} sends messages about figures to your address, by its channel \u{201c}{channel}\u{201d}."),
            &[("Stop them", false)],
        ),
        Some(AddressState::Unconfirmed) => (
            "Do you want messages?",
            format!("{name} wants to send messages about figures to your address. Unless you agree, you get none."),
            &[("Yes, send me messages", true), ("No, never", false)],
        ),
        None => (
            "You get no messages",
            format!("Your address is not in the channel \u{201c}{channel}\u{201d} of {name}."),
            &[("Never send me any", false)],
        ),
        Some(AddressState::Unsubscribed) => (
            "You get no messages",
            format!("{name} sends you nothing by its channel \u{201c}{channel}\u{201d}."),
            &[("Send me messages", true)],
        ),
    };
    page(HttpResponse::Ok(), title, &text, buttons)
}

/// Escapes text for HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Shows whether an address gets messages, with a button that changes it.
#[utoipa::path(
    get, path = "/mail/{mail_token}", tag = "channels", operation_id = "show_mail_address",
    params(MailTokenPath), security(()),
    responses(
        (status = 200, description = "The page.", body = String, content_type = "text/html"),
        (status = 404, description = "A page that says so: the channel was removed, or the link is not whole.", body = String, content_type = "text/html"),
    ),
)]
pub(crate) async fn show(ApiCall { state, request, .. }: ApiCall) -> Result<HttpResponse> {
    // Some mail programs add parameters.
    match find(&state, &request) {
        Some((channel, mark)) => shown(&state, &channel, mark),
        None => Ok(not_found()),
    }
}

fn find(state: &AppState, request: &HttpRequest) -> Option<(Arc<Definition>, u64)> {
    recipients::find(request.parameter("mail_token"), state.engine.secrets().signer(), state.engine.registry())
}

fn shown(state: &AppState, channel: &Definition, mark: u64) -> Result<HttpResponse> {
    let registry = state.engine.registry();
    let recipients = Recipients::of(channel).ok_or_else(ApiError::internal)?;
    let members = recipients::members(registry, channel.organization);
    let organization = registry.organization(channel.organization)?;
    let address = recipients.with_mark(mark);
    Ok(of_address(&organization.name, &channel.name, address.map(|address| recipients.state(address, &members))))
}

/// Ends messages to an address, as mail programs ask for with one click (RFC 8058), or confirms it. The body doesn't matter.
#[utoipa::path(
    post, path = "/mail/{mail_token}", tag = "channels", operation_id = "answer_mail",
    params(MailTokenPath, AnswerParameters), security(()),
    responses(
        (status = 200, description = "The page, as it is now.", body = String, content_type = "text/html"),
        (status = 404, description = "A page that says so: the channel was removed, or the link is not whole.", body = String, content_type = "text/html"),
        (status = 429, description = "A page that says so: the address has confirmed 20 times today, or those of its organization 1,000 times.", body = String, content_type = "text/html"),
    ),
)]
pub(crate) async fn answer(ApiCall { state, request, .. }: ApiCall) -> Result<HttpResponse> {
    let AnswerParameters { wanted: Flag(wanted) } = AnswerParameters::read(&request, &Calendar::new(&state, Timezone::UTC))?;
    let Some((channel, mark)) = find(&state, &request) else { return Ok(not_found()) };
    let pushed = management::feature::<Pushed>(&state)?;
    let (now, organization) = (state.engine.clock().now(), channel.organization);
    let today = Timezone::UTC.day_of(now);
    // To unsubscribe is never refused.
    if wanted && !pushed.confirmed.take(organization, mark, today) {
        let text = "You have changed your mind too often today. Try again tomorrow.";
        return Ok(page(HttpResponse::TooManyRequests(), "Not today", text, &[]));
    }
    let id = channel.id.clone();
    let changed = management::change(&state, Author::from(now), move |registry, by| {
        let edit = |channel: &Definition| DefinitionPatch {
            name: None,
            fields: Recipients::of(channel).map_or_else(Default::default, |recipients| recipients.wanted(mark, wanted)),
        };
        registry.edit_definition((organization, None), &id, edit, by)
    });
    shown(&state, &*changed.await?, mark)
}

/// A page with buttons.
fn page(mut answer: HttpResponseBuilder, title: &str, text: &str, buttons: &[(&str, bool)]) -> HttpResponse {
    let button = |(label, wanted): &(&str, bool)| {
        format!("<form method=\"post\" action=\"?wanted={wanted}\"><button>{label}</button></form>")
    };
    let forms: String = buttons.iter().map(button).collect();
    let body = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <meta name=\"color-scheme\" content=\"light dark\"><meta name=\"robots\" content=\"noindex\">\
         <title>{title}</title><style>{STYLE}</style></head><body><main><h1>{title}</h1><p>{text}</p>{forms}</main></body></html>"
    );
    answer
        .insert_header((header::CONTENT_TYPE, "text/html; charset=utf-8"))
        .insert_header((header::CONTENT_SECURITY_POLICY, POLICY))
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((header::REFERRER_POLICY, "no-referrer"))
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .body(body)
}

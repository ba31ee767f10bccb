//! E-mail: the operator's server that takes it, and how messages are handed over to it.

use std::error::Error as _;
use std::fmt;
use std::io;
use std::time::{Duration, Instant as Stopwatch};

use headcount_outbound::url::{Host, Url};
use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, Message as Letter, SinglePart};
use lettre::transport::smtp::Error;
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::{Certificate, CertificateStore, SmtpConnection, TlsParameters, TlsParametersBuilder};
use lettre::transport::smtp::commands::{Data, Mail, Rcpt, Rset};
use lettre::transport::smtp::extension::ClientId;
use lettre::transport::smtp::response::Severity;
use percent_encoding::percent_decode_str;

use crate::message::Message;

/// How long the server may take for each of its answers.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The same after a letter, which it may look through.
const TAKING: Duration = Duration::from_secs(120);
/// After this time, no other letter of a message is handed over until the next try.
const MAX_TIME: Duration = Duration::from_secs(60);

/// How the connection is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encryption {
    /// From its beginning.
    Tls,
    /// By the command STARTTLS, before anything else is said.
    StartTls,
    Plain,
}

/// The server that takes mail, and the sender's address.
#[derive(Clone)]
pub struct MailSettings {
    host: String,
    port: u16,
    encryption: Encryption,
    credentials: Option<Credentials>,
    tls: TlsParameters,
    /// The name that this server gives itself.
    hello: ClientId,
    from: Mailbox,
    /// The address of this server, for links.
    pub(crate) public_url: String,
}

impl MailSettings {
    /// Reads settings. `smtp_url` is `smtps://USER@HOST:PORT`, or `smtp://…` for STARTTLS, which
    /// the server must offer; `smtp://HOST:PORT?tls=none` does without, and without a password.
    /// `ca` has certificates in PEM that are trusted, too.
    ///
    /// # Errors
    /// The setting that can't be used, and why. The reason does not repeat the URL, which may have a
    /// password by mistake.
    pub fn new(
        (smtp_url, password): (&str, Option<String>),
        from: &str,
        public_url: &str,
        ca: Option<&str>,
    ) -> Result<Self, (&'static str, &'static str)> {
        let bad = |reason| ("smtp_url", reason);
        let expected = || bad("must be like smtps://USER@smtp.example or smtp://USER@smtp.example:587");
        let url = Url::parse(smtp_url).map_err(|_| expected())?;
        let (encryption, port) = match (url.scheme(), url.query()) {
            ("smtps", None) => (Encryption::Tls, 465),
            ("smtp", None) => (Encryption::StartTls, 587),
            ("smtp", Some("tls=none")) => (Encryption::Plain, 25),
            _ => return Err(expected()),
        };
        let host = url.host_str().filter(|host| !host.is_empty() && matches!(url.path(), "" | "/")).ok_or_else(expected)?;
        let host = host.trim_matches(['[', ']']).to_owned();
        if url.password().is_some() {
            return Err(bad("must have no password: put it into the file smtp_password_file"));
        }
        let user = percent_decode_str(url.username()).decode_utf8().map_err(|_| expected())?.into_owned();
        let credentials = match (user, password) {
            (user, None) if user.is_empty() => None,
            (user, Some(_)) if user.is_empty() => return Err(bad("must have a user, since smtp_password_file is set")),
            (_, None) => return Err(bad("has a user: put the password into a file, and set smtp_password_file")),
            (_, Some(_)) if encryption == Encryption::Plain => return Err(bad("must have no user with tls=none")),
            (user, Some(password)) => Some(Credentials::new(user, password.trim_end_matches(['\r', '\n']).to_owned())),
        };
        let tls = TlsParameters::builder(host.clone()).certificate_store(CertificateStore::WebpkiRoots);
        let ca = ca.map(|pem| Certificate::from_pem(pem.as_bytes()).ok().filter(|_| pem.contains("BEGIN CERTIFICATE")));
        let ca = ca.map(|ca| ca.ok_or(("smtp_ca", "must be a file of certificates in PEM"))).transpose()?;
        let tls = ca.into_iter().fold(tls, TlsParametersBuilder::add_root_certificate).build();
        let tls = tls.map_err(|_| ("smtp_ca", "must be a file of certificates that can be used"))?;
        let expected = ("mail_from", "must be like Figures <figures@stats.example>");
        let from = from.parse().map_err(|_| expected)?;
        let (port, hello, public_url) = (url.port().unwrap_or(port), name_of(public_url), public_url.to_owned());
        Ok(Self { host, port, encryption, credentials, tls, hello, from, public_url })
    }

    /// Connects, with TLS and as the user if there is one. The error is a stable code.
    fn connect(&self) -> Result<SmtpConnection, &'static str> {
        let Self { tls, hello, .. } = self;
        let wrapped = Some(tls).filter(|_| self.encryption == Encryption::Tls);
        let connected = SmtpConnection::connect((self.host.as_str(), self.port), Some(TIMEOUT), hello, wrapped, None);
        let mut connection = connected.map_err(|error| code(&error, "connect_failed"))?;
        if self.encryption == Encryption::StartTls {
            // An attacker in between could remove the offer.
            if !connection.can_starttls() {
                return Err("no_starttls");
            }
            connection.starttls(tls, hello).map_err(|error| code(&error, "tls_failed"))?;
        }
        if let Some(credentials) = &self.credentials {
            let mechanisms = [Mechanism::Plain, Mechanism::Login];
            connection.auth(&mechanisms, credentials).map_err(|error| code(&error, "sign_in_failed"))?;
        }
        Ok(connection)
    }

    /// Hands letters over, each with its mark, in one connection. Blocks for some minutes at most, if
    /// the server does not answer byte by byte.
    pub(crate) fn hand_over(&self, letters: Vec<(u64, Letter)>) -> HandedOver {
        let (began, mut handed) = (Stopwatch::now(), HandedOver::default());
        if letters.is_empty() {
            return handed;
        }
        let mut connection = match self.connect() {
            Ok(connection) => connection,
            Err(code) => return HandedOver { failure: Some(Err(code)), ..handed },
        };
        handed.is_connected = true;
        for (mark, letter) in letters {
            if began.elapsed() > MAX_TIME {
                handed.failure = Some(Err("timeout"));
                break;
            }
            match hand_over(&mut connection, &letter) {
                Ok(Taken::Yes) => handed.mailed.accepted.push(mark),
                Ok(Taken::Never(status)) => {
                    handed.mailed.refused.push(mark);
                    handed.refusal = Some(status);
                }
                Ok(Taken::Later(status)) => handed.failure = Some(Ok(status)),
                Err(error) => {
                    let status = error.status().map(u16::from);
                    handed.failure = Some(status.ok_or_else(|| code(&error, "connection_lost")));
                    return handed;
                }
            }
        }
        // The letters are accepted, whatever the answer is.
        let _ = connection.quit();
        handed
    }

    /// Makes the letter of a message to an address. Its `id` is the same in each try. Mail programs
    /// offer to end messages with one click at `link`. `None` if the address is none.
    pub(crate) fn letter(&self, to: &str, id: &str, message: &Message, link: &str) -> Option<Letter> {
        let header = |name, value: String| HeaderValue::new(HeaderName::new_from_ascii_str(name), value);
        Letter::builder()
            .from(self.from.clone())
            .to(to.parse().ok()?)
            .subject(message.title.replace(char::is_control, " "))
            .message_id(Some(format!("<{id}@{}>", self.from.email.domain())))
            .raw_header(header("Auto-Submitted", "auto-generated".to_owned()))
            .raw_header(header("List-Unsubscribe", format!("<{link}>")))
            .raw_header(header("List-Unsubscribe-Post", "List-Unsubscribe=One-Click".to_owned()))
            .singlepart(SinglePart::plain(message.lines.join("\r\n")))
            .ok()
    }
}

impl fmt::Debug for MailSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MailSettings").field("host", &self.host).field("from", &self.from).finish_non_exhaustive()
    }
}

/// The marks of the addresses of letters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Mailed {
    /// The letters that the server took.
    pub(crate) accepted: Vec<u64>,
    /// The letters that it refused for good.
    pub(crate) refused: Vec<u64>,
}

/// What became of letters.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct HandedOver {
    pub(crate) mailed: Mailed,
    /// Whether the server was reached. If not, nobody has a letter.
    pub(crate) is_connected: bool,
    /// The status of the last refusal.
    pub(crate) refusal: Option<u16>,
    /// The status of the server's answer, or the code of the error, if letters are left.
    pub(crate) failure: Option<Result<u16, &'static str>>,
}

/// Whether the server took a letter.
enum Taken {
    Yes,
    Later(u16),
    Never(u16),
}

/// Hands a letter over. An error concerns the connection or the sender, and so all letters.
fn hand_over(connection: &mut SmtpConnection, letter: &Letter) -> Result<Taken, Error> {
    let envelope = letter.envelope();
    let taken = |error: Error| match error.status() {
        Some(status) if error.is_permanent() => Ok(Taken::Never(status.into())),
        Some(status) => Ok(Taken::Later(status.into())),
        None => Err(error),
    };
    connection.command(Mail::new(envelope.from().cloned(), Vec::new()))?;
    let mut receivers = envelope.to().iter().map(|to| Rcpt::new(to.clone(), Vec::new()));
    let named = receivers.try_for_each(|receiver| connection.command(receiver).map(drop));
    if let Err(error) = named.and_then(|()| connection.command(Data).map(drop)) {
        let taken = taken(error)?;
        connection.command(Rset)?;
        return Ok(taken);
    }
    // A connection whose time can't be set is used as it is.
    let _ = connection.set_timeout(Some(TAKING));
    let answer = connection.message(&letter.formatted());
    let _ = connection.set_timeout(Some(TIMEOUT));
    match answer.map(|answer| answer.code()) {
        Ok(code) if code.severity == Severity::PositiveCompletion => Ok(Taken::Yes),
        Ok(code) => Ok(Taken::Later(code.into())),
        Err(error) => taken(error),
    }
}

/// The name of the server at a URL, as SMTP writes it.
fn name_of(url: &str) -> ClientId {
    let host = Url::parse(url).ok().and_then(|url| url.host().map(|host| host.to_owned()));
    match host {
        Some(Host::Ipv4(address)) => ClientId::Ipv4(address),
        Some(Host::Ipv6(address)) => ClientId::Ipv6(address),
        Some(Host::Domain(name)) => ClientId::Domain(name),
        None => ClientId::Domain("localhost".to_owned()),
    }
}

/// A stable code for an error without an answer.
fn code(error: &Error, otherwise: &'static str) -> &'static str {
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(cause) = cause.downcast_ref::<io::Error>() {
            return match cause.kind() {
                io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => "timeout",
                // The certificate, as rustls reports it.
                io::ErrorKind::InvalidData => "tls_failed",
                _ => otherwise,
            };
        }
        source = cause.source();
    }
    otherwise
}

#[cfg(test)]
mod tests;

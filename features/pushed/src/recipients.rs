//! The addresses of a channel for e-mail: who has confirmed, who has unsubscribed, and the link
//! that each of them gets.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use headcount_api::definitions::{JsonFields, list_field, quoted};
use headcount_api::endpoint::{ApiError, Result};
use headcount_common::secrets::Signer;
use headcount_control::{Definition, DefinitionId, DefinitionKind, Registry};
use headcount_domain::{Day, OrganizationId, named_values};
use lettre::message::Mailbox;
use parking_lot::Mutex;
use ring::digest;
use serde::Serialize;
use subtle::ConstantTimeEq;

/// The maximum number of addresses of a channel.
pub(crate) const MAX_ADDRESSES: usize = 100;
/// The maximum length of all of them, in bytes. It leaves room for the marks in a definition.
const MAX_BYTES: usize = 5_000;
/// The maximum number of marks of addresses that confirmed or unsubscribed. The latest stay.
const MAX_MARKS: usize = 250;
/// The maximum length of an address, in bytes.
const MAX_ADDRESS_BYTES: usize = 254;
/// What the installation's key signs to make a link.
const LABEL: &[u8] = b"headcount mail link 1";
/// The length of a signature, in bytes.
const SIGNATURE: usize = 32;

named_values! {
    /// Whether an address gets messages.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum AddressState by as_str {
        /// It does: a member's, or its owner has confirmed it.
        Confirmed = "confirmed",
        /// It gets no message, only the question whether it wants some.
        Unconfirmed = "unconfirmed",
        /// Its owner wants no messages.
        Unsubscribed = "unsubscribed",
    }
}

/// The addresses of a channel. Their owners are known by marks, which take little room.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Recipients {
    pub(crate) addresses: Vec<String>,
    confirmed: Vec<u64>,
    unsubscribed: Vec<u64>,
}

impl Recipients {
    /// Reads a definition; `None` if it is damaged.
    pub(crate) fn of(definition: &Definition) -> Option<Self> {
        let json = |name| list_field(definition, name);
        let marks = |name| serde_json::from_str(json(name).get()).ok();
        let addresses = serde_json::from_str(json("addresses").get()).ok()?;
        Some(Self { addresses, confirmed: marks("confirmed")?, unsubscribed: marks("unsubscribed")? })
    }

    /// Whether an address gets messages.
    pub(crate) fn state(&self, address: &str, members: &BTreeSet<String>) -> AddressState {
        let mark = mark(address);
        if self.unsubscribed.contains(&mark) {
            AddressState::Unsubscribed
        } else if self.confirmed.contains(&mark) || members.contains(address) {
            AddressState::Confirmed
        } else {
            AddressState::Unconfirmed
        }
    }

    /// The address with a mark, if it is still there.
    pub(crate) fn with_mark(&self, wanted: u64) -> Option<&str> {
        self.addresses.iter().map(String::as_str).find(|address| mark(address) == wanted)
    }

    /// The addresses in a state.
    pub(crate) fn in_state(&self, state: AddressState, members: &BTreeSet<String>) -> Vec<&str> {
        let addresses = self.addresses.iter().map(String::as_str);
        addresses.filter(|address| self.state(address, members) == state).collect()
    }

    /// The fields of the definition once the owner of an address wants messages, or none.
    pub(crate) fn wanted(mut self, mark: u64, is_wanted: bool) -> BTreeMap<String, String> {
        let (list, other) = if is_wanted { (&self.confirmed, &self.unsubscribed) } else { (&self.unsubscribed, &self.confirmed) };
        // An answer that was given already changes nothing, so that nobody fills the control log.
        if list.contains(&mark) && !other.contains(&mark) {
            return BTreeMap::new();
        }
        for list in [&mut self.confirmed, &mut self.unsubscribed] {
            list.retain(|other| *other != mark);
        }
        let list = if is_wanted { &mut self.confirmed } else { &mut self.unsubscribed };
        list.push(mark);
        for list in [&mut self.confirmed, &mut self.unsubscribed] {
            list.drain(..list.len().saturating_sub(MAX_MARKS));
        }
        [("confirmed", self.confirmed), ("unsubscribed", self.unsubscribed)]
            .map(|(name, list)| (name.to_owned(), serde_json::Value::from(list).to_string()))
            .into()
    }
}

/// The addresses of the members of an organization.
pub(crate) fn members(registry: &Registry, organization: OrganizationId) -> BTreeSet<String> {
    registry.members(organization).unwrap_or_default().iter().map(|member| member.email.clone()).collect()
}

/// Whether text is an address of ASCII as everybody has: no quotes, and a domain with a dot.
fn is_address(text: &str) -> bool {
    let is_plain = text.is_ascii() && !text.contains(['"', '[', ' ', '<', '>', ',']) && text.len() <= MAX_ADDRESS_BYTES;
    is_plain && text.split_once('@').is_some_and(|(_, domain)| domain.contains('.')) && text.parse::<Mailbox>().is_ok()
}

/// Checks the addresses of a body. Returns the fields of the definition.
pub(crate) fn checked(addresses: Vec<String>) -> Result<JsonFields> {
    let refused = |message: String| ApiError::parameter("addresses", message);
    let mut checked = Vec::with_capacity(addresses.len().min(MAX_ADDRESSES));
    for address in addresses {
        let address = address.trim().to_lowercase();
        if !is_address(&address) {
            return Err(refused("`addresses` must be e-mail addresses, such as ada@acme.com".to_owned()));
        }
        if !checked.contains(&address) {
            checked.push(address);
        }
    }
    let (count, bytes) = (checked.len(), checked.iter().map(String::len).sum::<usize>());
    if count == 0 || count > MAX_ADDRESSES || bytes > MAX_BYTES {
        let message = format!("`addresses` must have 1 to {MAX_ADDRESSES} addresses, and at most {MAX_BYTES} bytes");
        return Err(refused(message));
    }
    let target = if count == 1 { "1 address".to_owned() } else { format!("{count} addresses") };
    let addresses = serde_json::Value::from(checked).to_string();
    Ok(JsonFields::default().set("addresses", Some(addresses)).set("target", Some(quoted(&target))))
}

/// A number for an address, by which a try knows who has the message already.
pub(crate) fn mark(address: &str) -> u64 {
    let hash = digest::digest(&digest::SHA256, address.as_bytes());
    // What every reader of JSON takes for a whole number.
    hash.as_ref().iter().take(6).fold(0, |mark, byte| mark << 8 | u64::from(*byte))
}

fn signature(signer: &Signer, (organization, channel): (OrganizationId, &DefinitionId), mark: u64) -> Vec<u8> {
    signer.sign(&[LABEL, &organization.0.to_be_bytes(), channel.to_string().as_bytes(), &mark.to_be_bytes()])
}

/// The end of the link with which the owner of an address confirms it, or unsubscribes. It does not
/// tell the address.
pub(crate) fn link(signer: &Signer, place: (OrganizationId, &DefinitionId), mark: u64) -> String {
    let channel = place.1.to_string();
    let characters = channel.rsplit('_').next().unwrap_or_default();
    let parts = [&place.0.0.to_be_bytes()[..], characters.as_bytes(), &mark.to_be_bytes(), &signature(signer, place, mark)];
    URL_SAFE_NO_PAD.encode(parts.concat())
}

/// The channel of a link, and the mark of its address; `None` if it is no link, or the channel was
/// removed.
pub(crate) fn find(link: &str, signer: &Signer, registry: &Registry) -> Option<(Arc<Definition>, u64)> {
    let bytes = URL_SAFE_NO_PAD.decode(link).ok()?;
    let (organization, rest) = bytes.split_first_chunk::<8>()?;
    let (rest, signed) = rest.split_last_chunk::<SIGNATURE>()?;
    let (characters, mark) = rest.split_last_chunk::<8>()?;
    let (organization, mark) = (OrganizationId(u64::from_be_bytes(*organization)), u64::from_be_bytes(*mark));
    let channel: DefinitionId = format!("{}_{}", DefinitionKind::Channel, std::str::from_utf8(characters).ok()?).parse().ok()?;
    let is_signed = bool::from(signature(signer, (organization, &channel), mark)[..].ct_eq(&signed[..]));
    let definition = registry.definition((organization, None), &channel).ok().filter(|_| is_signed)?;
    Some((definition, mark))
}

/// What happened to the addresses of each organization, by their marks.
type CountsOfAddresses = HashMap<OrganizationId, HashMap<u64, usize>>;

/// A limit on what happens to addresses in a day, in all of an organization and for one address.
#[derive(Debug)]
pub(crate) struct DailyLimit {
    of_organization: usize,
    of_address: usize,
    counts: Mutex<(Day, CountsOfAddresses)>,
}

impl DailyLimit {
    pub(crate) fn new(of_organization: usize, of_address: usize) -> Self {
        Self { of_organization, of_address, counts: Mutex::new((Day(0), HashMap::new())) }
    }

    /// Counts one more, unless it is too many.
    pub(crate) fn take(&self, organization: OrganizationId, mark: u64, today: Day) -> bool {
        let (day, counts) = &mut *self.counts.lock();
        if *day != today {
            (*day, *counts) = (today, HashMap::new());
        }
        let of_one = counts.entry(organization).or_default();
        let count = of_one.get(&mark).copied().unwrap_or_default();
        let is_allowed = of_one.values().sum::<usize>() < self.of_organization && count < self.of_address;
        // Refused ones take no memory.
        if is_allowed {
            of_one.insert(mark, count + 1);
        }
        is_allowed
    }

    /// Takes one back that did not happen.
    pub(crate) fn give_back(&self, organization: OrganizationId, mark: u64) {
        let (_, counts) = &mut *self.counts.lock();
        if let Some(count) = counts.get_mut(&organization).and_then(|of_one| of_one.get_mut(&mark)) {
            *count = count.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_was_given_already_changes_nothing() {
        let recipients = Recipients { addresses: Vec::new(), confirmed: vec![3], unsubscribed: vec![1, 2] };
        for (mark, is_wanted) in [(1, false), (2, false), (3, true)] {
            assert_eq!(recipients.clone().wanted(mark, is_wanted), BTreeMap::new());
        }
        let changed = recipients.wanted(1, true);
        assert_eq!((changed["confirmed"].as_str(), changed["unsubscribed"].as_str()), ("[3,1]", "[2]"));
    }

    #[test]
    fn what_a_limit_refuses_takes_no_memory() {
        let limit = DailyLimit::new(2, 1);
        let taken: Vec<_> = [1, 1, 2, 3, 4].map(|mark| limit.take(OrganizationId(1), mark, Day(1))).into();
        assert_eq!(taken, [true, false, true, false, false]);
        assert_eq!(limit.counts.lock().1[&OrganizationId(1)].len(), 2);
        assert!(limit.take(OrganizationId(2), 1, Day(1)) && limit.take(OrganizationId(1), 1, Day(2)));
    }
}

//! A cache of parsed user agents.

use std::cell::RefCell;
use std::collections::HashMap;

use headcount_domain::agent::{self, Agent, Hints, MAX_HINT_BYTES};

/// The bytes of user agents with their hints and parsed values that each thread caches.
const AGENTS_BYTES: usize = 1 << 20;

/// Calls `use_it` with the parsed `user_agent`. Parsing costs microseconds, and few different
/// agents are frequent.
pub(crate) fn with_agent<R>(user_agent: &str, hints: &Hints<'_>, use_it: impl FnOnce(&Agent) -> R) -> R {
    thread_local! {
        static KNOWN: RefCell<KnownAgents> = RefCell::default();
    }
    KNOWN.with_borrow_mut(|known| known.with(user_agent, hints, use_it))
}

/// Parsed user agents.
#[derive(Debug, Default)]
struct KnownAgents {
    agents: HashMap<Box<str>, Agent>,
    bytes: usize,
    /// The key of the last agent.
    key: String,
}

impl KnownAgents {
    fn with<R>(&mut self, user_agent: &str, hints: &Hints<'_>, use_it: impl FnOnce(&Agent) -> R) -> R {
        write_key(&mut self.key, user_agent, hints);
        if let Some(agent) = self.agents.get(self.key.as_str()) {
            return use_it(agent);
        }
        let agent = agent::parse_with(user_agent, hints);
        let result = use_it(&agent);
        self.learn(agent);
        result
    }

    /// Caches a parsed agent.
    fn learn(&mut self, agent: Agent) {
        let texts = [&agent.browser, &agent.browser_version, &agent.os].into_iter().flatten();
        let bytes = size_of::<(Box<str>, Agent)>() + self.key.len() + texts.map(|text| text.len()).sum::<usize>();
        if self.bytes + bytes > AGENTS_BYTES {
            self.agents = HashMap::new();
            self.bytes = 0;
        }
        self.bytes += bytes;
        self.agents.insert(self.key.as_str().into(), agent);
    }
}

/// Writes the key of an agent with its hints. Different agents have different keys, since header
/// fields have no control characters.
fn write_key(key: &mut String, user_agent: &str, hints: &Hints<'_>) {
    key.clear();
    key.push(if *hints == Hints::NONE { 'a' } else { 'h' });
    key.push_str(user_agent);
    for (number, hint) in hints.each().filter(|(_, hint)| hint.len() <= MAX_HINT_BYTES) {
        key.push(char::from(number + 1));
        key.push_str(hint);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_agents_are_bounded_in_bytes() {
        let mut known = KnownAgents::default();
        let agent = |i: usize| format!("Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/{i}.0 {}", "x".repeat(400));
        for i in 0..20_000 {
            known.with(&agent(i), &Hints::NONE, |agent| assert_eq!(agent.browser.as_deref(), Some("Firefox")));
            assert!(known.bytes <= AGENTS_BYTES && known.agents.len() < 3_000);
        }
        assert!(known.agents.len() > 1, "some are remembered");
    }

    #[test]
    fn an_agent_with_hints_is_another() {
        let mut known = KnownAgents::default();
        let chrome = "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0.0.0 Safari/537.36";
        let brave = Hints { brands: Some(r#""Brave";v="124""#), ..Hints::NONE };
        let platform = Hints { platform: brave.brands, ..Hints::NONE };
        for (hints, browser) in
            [(Hints::NONE, "Chrome"), (brave, "Brave"), (platform, "Chrome"), (brave, "Brave"), (Hints::NONE, "Chrome")]
        {
            known.with(chrome, &hints, |agent| assert_eq!(agent.browser.as_deref(), Some(browser)));
        }
        assert_eq!(known.agents.len(), 3);
    }
}

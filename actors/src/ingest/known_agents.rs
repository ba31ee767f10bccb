//! User agents that were parsed before.

use std::cell::RefCell;
use std::collections::HashMap;

use headcount_domain::agent::Agent;

/// How many bytes of user agents, and of their parsed values, each thread remembers.
const AGENTS_BYTES: usize = 1 << 20;

/// Calls `use_it` with the parsed `user_agent`. Parsing costs microseconds, and few different agents are frequent.
pub(crate) fn with_agent<R>(user_agent: &str, use_it: impl FnOnce(&Agent) -> R) -> R {
    thread_local! {
        static KNOWN: RefCell<KnownAgents> = RefCell::default();
    }
    KNOWN.with_borrow_mut(|known| {
        if let Some(agent) = known.agents.get(user_agent) {
            return use_it(agent);
        }
        use_it(known.learn(user_agent))
    })
}

/// Parsed user agents.
#[derive(Debug, Default)]
struct KnownAgents {
    agents: HashMap<Box<str>, Agent>,
    bytes: usize,
}

impl KnownAgents {
    /// Parses an agent and remembers it.
    fn learn(&mut self, user_agent: &str) -> &Agent {
        let agent = headcount_domain::agent::parse(user_agent);
        let texts = [&agent.browser, &agent.browser_version, &agent.os].into_iter().flatten();
        let bytes = size_of::<(Box<str>, Agent)>() + user_agent.len() + texts.map(|text| text.len()).sum::<usize>();
        if self.bytes + bytes > AGENTS_BYTES {
            *self = Self::default();
        }
        self.bytes += bytes;
        self.agents.entry(user_agent.into()).or_insert(agent)
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
            assert_eq!(known.learn(&agent(i)).browser.as_deref(), Some("Firefox"));
            assert!(known.bytes <= AGENTS_BYTES && known.agents.len() < 3_000);
        }
        assert!(known.agents.len() > 1, "some are remembered");
    }
}

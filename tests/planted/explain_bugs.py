"""The bugs that `run.py` plants in explanations, as `bugs.py` has those of the domain: of the engine, and of the domain's rules for money. The tests in
`actors/tests/explain` catch them."""

BUGS = [
    # What contributes.
    ("an explanation counts a user in each session", "self.meet(FirstEvent { number, at,", "self.meet(FirstEvent { number: session.map_or(number, |session| session.number), at,"),
    ("an explanation's first event is the last one of its instant", "first.at = first.at.min(event.at);", "first.at = first.at.max(event.at);"),
    ("an explanation is silent about events of no session", "None => self.found.leave_out(at, Some(identity), Reason::NoSession),", "None => {}"),
    ("an event is attached only while its session goes on", "place = if is_interactive || earlier.is_some() { SessionPlace::Begins } else { SessionPlace::Alone };", "place = if is_interactive || earlier.is_some() { SessionPlace::Begins } else { SessionPlace::Alone };\n            } else if !is_interactive {\n                place = SessionPlace::Alone;"),
    ("what is attached lengthens a session", "_ if is_interactive => last = Some((identity, time)),", "_ if is_interactive || place == SessionPlace::GoesOn => last = Some((identity, time)),"),
    ("an explanation counts a session that began before", "if session.began[0].is_some() { Reason::FirstOfSession } else { Reason::BeganBefore }", "{ let _ = session.began; Reason::FirstOfSession }"),
    ("an explanation leaves out who gave no consent in silence", "None if !detail.has_consent => self.found.leave_out(at, None, Reason::NoConsent),", "None if !detail.has_consent => {}"),
    ("an explanation takes an event without ids for one without consent", "None if !detail.has_consent => self", "None if detail.at.is_some() => self"),
    ("an explanation shows the id that an event named", "identity.filter(|identity| named == Some(*identity)).map(|_| event.who.id())", "identity.filter(|identity| named.is_some() || named == Some(*identity)).map(|_| event.who.id())"),
    # Touches.
    ("an explanation's last touch is the first one", "if touch.is_none() || attributed.model == TouchModel::LastTouch {", "if touch.is_none() {"),
    ("an explanation's first touch must come before the order", "u8::from(self.attributed.model == TouchModel::LastTouch)", "u8::from(self.attributed.model == TouchModel::LastTouch).max(1)"),
    ("an explanation's touch is that of the entity before", "if entity.replace(key) != Some(key) {\n            touch = None;\n        }", "entity.replace(key);"),
    ("an explanation counts direct money under any touch", "None => attributed.selects(None).then_some(Reason::Direct),", "None => Some(Reason::Direct),"),
    ("an explanation counts money of nobody under any touch", "count(self.attributed.selects(None).then_some(Reason::Direct), (at, None)", "count(Some(Reason::Direct), (at, None)"),
    # Accounts.
    ("an explanation prefers the company of the identity", "let Some(company) = named.or(own) else", "let Some(company) = own.or(named) else"),
    ("an explanation's company is the last recorded one", "pin[KEY..KEY + 8].copy_from_slice(&position.to_be_bytes());", "pin[KEY..KEY + 8].copy_from_slice(&(!position).to_be_bytes());"),
    ("an explanation's company is that of the id", "Pin { key: identities.resolve(pin.key)?, ..pin }", "Pin { key: { identities.resolve(pin.key)?; pin.key }, ..pin }"),
    ("an explanation knows no domains of companies", "self.0.of(entity.key)?.unwrap_or(entity.key)", "{ self.0.of(entity.key)?; entity.key }"),
    # Pages.
    ("an explanation repeats the last event of a page", "if self.before.is_some_and(|before| at >= before) {", "if self.before.is_some_and(|before| at > before) {"),
    ("an explanation's pages have later events", "place.until.min(scan.until)", "place.until.max(scan.until)"),
    ("an explanation's cursor lives for ever", "(0..LIFE_MS).contains(&age_ms)", "(0..LIFE_MS).contains(&age_ms.min(0))"),
    ("an explanation's cursor outlives a start", "let is_known = place.state == state &&", "let is_known = place.state != state + 1 &&"),
    # Floors and the clock, which jumps in some of the histories.
    ("a floor follows a clock that is years ahead", "let now = self.clock_guard.now_for(days);", "let now = self.clock().now();"),
    ("a floor rises past a jump of days", "state.known.jump.filter(|jump| jump.holds(days)).map_or(now, |jump| jump.from.min(now))", "{ let _ = days; now }"),
]

DOMAIN_BUGS = [
    ("an explanation is silent about money that only servers may send", "if is_server_only {\n            return Some(Err(Reason::ServerOnly));\n        }", "if is_server_only {\n            return None;\n        }"),
    ("an explanation is silent about money without a rate", "return Some(Err(Reason::NoRate));", "return None;"),
    ("an explanation counts a refund as an order", "(Self::Orders, false) => Some(Err(Reason::Refund)),", "(Self::Orders, false) => Some(Ok((Amount::from_micros(1_000_000), Reason::Order))),"),
    ("an explanation is silent about refunds", "(Self::Orders, false) => Some(Err(Reason::Refund)),", "(Self::Orders, false) => None,"),
]

"""The bugs that `run.py` plants in the engine, as `bugs.py` has those of the domain. Its own tests and those of its features catch them."""

WEBHOOK_BUGS = [
    # Webhooks: order, and what counts as sent.
    ("notifications overtake one that failed", "DeliveryAttempt::Again(wait) => return Ok(NextTurn::After(wait)),", "DeliveryAttempt::Again(_) => {}"),
    ("a try is enough", "if attempt == DeliveryAttempt::Done {\n            held.progress.done", "if true {\n            held.progress.done"),
    ("a redirect is a delivery", "(200..300).contains(&status)", "(200..400).contains(&status)"),
    ("no notification is given up", "Duration::from_millis(tried_ms) >= self.settings.give_up_after", "Duration::from_millis(tried_ms) > self.settings.give_up_after.saturating_mul(1_000_000)"),
    ("a notification that is given up stops the webhook", "delivery.status = DeliveryStatus::Dead;", "delivery.status = DeliveryStatus::Pending;\n            return DeliveryAttempt::Again(Duration::from_secs(1));"),
    ("old events notify", "<= MAX_AGE_MS).then_some(Self { shown, received: event.received })", "< i64::MAX).then_some(Self { shown, received: event.received })"),
    ("a webhook sends what was before it", "Self { done: webhook.created_after, ..Self::default() }", "{ let _ = webhook; Self::default() }"),
    ("a replay sends what was before the webhook", "from.max(webhook.created_after.saturating_add(1))", "from.max(1)"),
    ("a replay repeats nothing", "held.progress.done.min(from.saturating_sub(1))", "held.progress.done.max(from.saturating_sub(1))"),
    ("progress is not read at a start", "held.progress = decoded.flatten().unwrap_or_else(|| DeliveryProgress::of(&held.webhook));", "held.progress = DeliveryProgress::of(&held.webhook);"),
    ("progress that could not be written is forgotten", "Err(DocumentsError::Unavailable(_)) => {}", "Err(DocumentsError::Unavailable(_)) => forget(held),"),
    ("a change of a webhook that fails is not taken back", "self.try_put(key, former.as_deref())", "Ok::<(), io::Error>(())"),
    ("webhooks wait for one another", "const MAX_SENDING: usize = 16;", "const MAX_SENDING: usize = 1;"),
    # Webhooks: what is sent.
    ("a signature is of the body only", 'mac.update(format!("{seconds}.").as_bytes());', ""),
    ("the time of a signature is in milliseconds", "now.0.div_euclid(1_000)", "now.0"),
    ("the key of a signature lacks its prefix", "self.0.as_bytes()", 'self.0.trim_start_matches("whsec_").as_bytes()'),
    ("a former secret no longer signs", "former.valid_until > now", "former.valid_until > now && false"),
    ("a former secret signs for ever", "former.valid_until > now", "former.valid_until > now || true"),
    ("each try has another id", "id: delivery_id(&webhook.id, *position),", "id: delivery_id(&webhook.id, std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_nanos() as u64)),"),
    ("each try has other bytes", "created_at: self.received.to_string(),", 'created_at: format!("{:?}", std::time::SystemTime::now()),'),
]

BUILD_BUGS = [
    # Builds: what they cost.
    ("a refund is lost", "if is_failed { change.payment(&run, ActionReason::Refund, &author)? } else { None }", "if is_failed { None } else { None }"),
    ("what succeeds is refunded", "let is_failed = run.spent() < run.price;", "let is_failed = run.price > 0;"),
    ("the first profile costs", "if self.count(organization) == 0 { 0 } else { PRICE }", "{ let _ = organization; PRICE }"),
    ("builds are free", "if self.count(organization) == 0 { 0 } else { PRICE }", "if self.count(organization) == 0 { PRICE } else { 0 }"),
    ("an empty balance pays", "balance.checked_sub(price)", "Some(balance.saturating_sub(price))"),
    ("each request begins a run", "run.outcome.is_none() && run.profile == profile", "run.outcome.is_none() && run.profile == profile && run.price > 1_000"),
    ("a run of one website serves another", "if run.website.place() == website.place() {", "if run.website.place() == website.place() || true {"),
    # Builds: what they change.
    ("a refresh overwrites texts", "if field.is_none() {", "if found.is_some() || field.is_none() {"),
    ("a refresh overwrites the logo", "if fields.logo_url.is_none() {", "if logo_url.is_some() {"),
    ("a refresh overwrites links", "if fields.social.is_empty() {", "if !links.is_empty() {"),
    ("a refresh overwrites addresses", "if fields.emails.is_empty() {\n            fields.emails = valid", "if !emails.is_empty() {\n            fields.emails = valid"),
    ("a refresh overwrites technologies", "if fields.technologies.is_empty() {\n            fields.technologies = valid", "if !technologies.is_empty() {\n            fields.technologies = valid"),
    ("a refresh fills nothing", "profile.fill(findings.fields.clone());", "let _ = &findings.fields;"),
    ("a build takes a website that another profile has", "profile.website = Some(website.clone());\n                self.check_website(profile)", "profile.website = Some(website.clone());\n                Ok(())"),
    ("a build takes the website of its profile away", "Some(own) if own.place() == website.place() => Ok(()),", "Some(own) if own.place() == website.place() || true => Ok(()),"),
    ("a profile that was deleted comes back", 'Err(RegistryError::NotFound { .. }) => Err(failed("profile_deleted", "the profile was deleted meanwhile")),', "Err(RegistryError::NotFound { .. }) => Ok(run.profile.clone().unwrap_or(CompanyProfileId::random()?)),"),
    ("one organization takes all places", "const MAX_RUNNING_OF_ONE: usize = 2;", "const MAX_RUNNING_OF_ONE: usize = 8;"),
    ("runs are forgotten at their end", "is_none_or(|outcome| now.0.saturating_sub(outcome.at.0) < KEPT_MS)", "is_none_or(|outcome| now.0 < outcome.at.0)"),
]

# In checkpoints, and in what the thread of the archive does; tests of the shard and of erasures catch them.
STATE_BUGS = [
    ("a base that lacks a rollup has no rows of it", "project.fill_rollups(lacking, &source)?;", ""),
    ("a base may lack any types", "(types == listed).then(|| lacking.iter().map(|rows| rows.tag).collect())", "Some(lacking.iter().map(|rows| rows.tag).collect())"),
    ("rows lie in any room", "rows.tag == tag && room_of(rows) != room", "rows.tag == tag && room_of(rows) != room && tag > 64"),
    ("a checkpoint has the mark of its position alone", "self.history.mark(number, reflected.max(self.all_up_to(number)))", "self.history.mark(number, reflected.min(self.all_up_to(number)))"),
    ("an erasure looks for linked ids once", "const LOOKS: usize = 4;", "const LOOKS: usize = 1;"),
    ("a wait for events in flight counts that began before", "if *waited > called {", "if *waited >= called {"),
    ("sealing waits until somebody is erased from all files", "if number > 0 && began.elapsed() >= SLICE {", "if number > 0 && began.elapsed() >= SLICE * 1_000 {"),
    ("a raised floor is met with the next look at all projects", "        self.check_raised(sources);\n", ""),
    ("a change that was made already is answered before all know it", "&& self.propagated.load(Ordering::Acquire) < applied", "&& self.propagated.load(Ordering::Acquire) > applied"),
    ("a floor that is not saved is taken for none", "if sources.floors.get(project) > floor &&", "if false &&"),
    ("idle partitions stop sealing", "true => self.shards.durable_until(self.delivered.load(Ordering::Acquire)),", "true => self.partitions.clone().map(|partition| self.shards.durable_until_of(partition)).min().flatten(),"),
]

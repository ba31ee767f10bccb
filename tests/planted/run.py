#!/usr/bin/env python3
"""Plants bugs in a copy of the domain, one at a time, and shows that the naive model catches each.

usage: run.py [NAME ...]      all bugs, or those whose names contain one of the words
Each bug is a replacement of text that must occur exactly once. A bug is caught when the comparison of random histories with
the model fails, survives when it passes. The tree itself is never touched: the domain is copied to target/planted.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "target" / "planted"
# What the comparison is built from.
PARTS = ["domain", "storage", "tests/model", "tests/histories"]
TRIALS = os.environ.get("HEADCOUNT_TRIALS", "250")

# (name, file in domain/src, what stands there, what the bug makes of it, and again for a bug in several places)
BUGS = [
    # Money.
    ("a refund is an order", "event.rs", "i64::from(money.amount.is_positive())", "i64::from(!money.amount.is_zero())"),
    ("a refund adds no money", "event.rs", "if !money.counted || money.amount.is_zero() {", "if !money.counted || !money.amount.is_positive() {"),
    ("uncounted money counts", "event.rs", "if !money.counted || money.amount.is_zero() {", "if money.amount.is_zero() {"),
    ("money without a rate is added as if equal", "event.rs", "match money.in_project {", "match money.in_project.or(Some(money.amount)) {"),
    ("rates of another currency", "policy.rs", "Some(convert(amount, rate(from)?, rate(to)?))", "Some(convert(amount, rate(to)?, rate(from)?))"),
    ("conversion is rounded to cents", "policy.rs", "Some(convert(amount, rate(from)?, rate(to)?))", "Some(Amount::from_micros(convert(amount, rate(from)?, rate(to)?).micros() / 10_000 * 10_000))"),
    ("nobody's money is lost", "rollups/revenue.rs", "level != Level::Account && change.money", "level == Level::Identity && change.money"),
    ("averages divide by days", "answers/mod.rs", "arpu: ratio(total_revenue, distinct::total(&self.rollups.unique_users, window)),", "arpu: ratio(total_revenue, window.days().count() as u64),"),
    ("the last day of a window is left out", "answers/mod.rs", "self.rollups.revenue.sums(window.start, window.end)", "self.rollups.revenue.sums(window.start, Day(window.end.0 - 1))"),
    ("ratios are cut", "money.rs", "Amount(decimal::divide_half_away(amount.0, i128::from(divisor)))", "Amount(amount.0.checked_div(i128::from(divisor)).unwrap_or_default())"),
    ("attribution shows what had no rate at any time", "answers/attribution.rs", "reader.project.rollups.revenue.sums(self.window.start, self.window.end)", "reader.project.rollups.revenue.sums(Day(i32::MIN), Day(i32::MAX))"),
    # Time.
    ("days are UTC", "admission.rs", "day: policy.timezone.day_of(time),", "day: crate::time::Timezone::UTC.day_of(time),"),
    ("future events stay in the future", "time/instant.rs", "Some(told) if told > received.plus_ms(MAX_AHEAD_MS)", "Some(told) if told > received.plus_ms(i64::MAX)"),
    ("a late day is put at the end", "paged.rs", "let at = place_near_end(items, |other| other.number() <= number);", "let at = items.len();"),
    ("a range is a day too long", "time/window.rs", "i32::try_from(days.saturating_sub(1))", "i32::try_from(days)"),
    # Who is counted.
    ("nobody is a user", "fold/mod.rs", "RawId::Nobody => Level::Nobody,", "RawId::Nobody => Level::Identity,"),
    ("consent is not asked", "admission.rs", "let who = if consent {", "let who = if consent || !consent {"),
    ("an empty list of categories grants all", "admission.rs", "Some(categories) => categories.0.split(',')", "Some(categories) if categories.0.is_empty() => true,\n        Some(categories) => categories.0.split(',')"),
    ("the short spelling of the categories wins", "admission.rs", "match submission.privacy_categories.as_ref().or(submission.pc.as_ref()) {", "match submission.pc.as_ref().or(submission.privacy_categories.as_ref()) {"),
    ("signals that make anonymous don't", "admission.rs", "granted(submission) && !(signalled && policy.signals == SignalsPolicy::Anonymize)", "granted(submission)"),
    ("cookieless visitors are told apart where they mustn't be", "admission.rs", "anonymous_id.is_none() && policy.cookieless)", "anonymous_id.is_none())"),
    ("a cookieless visitor is the same on all days", "admission.rs", "let date = time.0.div_euclid(86_400_000);", "let date = time.0.div_euclid(i64::MAX);"),
    ("accounts are counted as users", "rollups/distinct.rs", "level == own && change.new_day", "level != Level::Nobody && change.new_day"),
    ("users without a company are no accounts", "fold/mod.rs", "if level == Level::Identity && identity.company.is_none() {", "if level == Level::Account {"),
    ("a new day forgets the next one's gap", "facts/change.rs", "let last = if new_day { next().unwrap_or(day) } else { day };", "let _ = next;\n        let last = day;"),
    ("the day before is not looked at", "rollups/distinct.rs", "let mut previous = facts.active_before(change.days.first);", "let mut previous: Option<crate::time::Day> = None;"),
    ("gaps are off by one", "rollups/distinct.rs", "*gap >= day.abs_diff(first).saturating_add(1)", "*gap >= day.abs_diff(first)"),
    ("the total is a sum of days", "rollups/distinct.rs", "*gap >= day.abs_diff(first).saturating_add(1)", "*gap >= 1 || *day < first"),
    # Links.
    ("the last link wins", "fold/subject.rs", "Some(Person::Linked(_)) => return Ok(()),", "Some(Person::Linked(_)) => None,"),
    ("a link leaves the past behind", "fold/subject.rs", "let merged = self.merge(user_identity, former)?;", "let merged = user_identity; let _ = former;"),
    ("a link counts the past twice", "fold/subject.rs", "        self.contribute(&small, Sign::Minus)?;\n        self.adopt_company", "        self.adopt_company"),
    ("a link leaves the sessions behind", "fold/subject.rs", "self.add_session(&mut base, session.clone())?;", "let _ = session;"),
    ("a link leaves the orders behind", "fold/subject.rs", "self.add_order(&mut base, order.clone())?;", "let _ = order;"),
    ("a link leaves the hits behind", "fold/subject.rs", "self.add_hit(&mut base, hit)?;", "let _ = hit;"),
    ("a link leaves the first and last sight behind", "fold/subject.rs", "if let Some((first, last)) = small.seen {", "if let Some((first, last)) = small.seen.filter(|_| false) {"),
    ("a link leaves the e-mail addresses behind", "fold/subject.rs", "base.emails.tell(email, *told);", "let _ = (email, told);"),
    ("a linked member of a company stays one by itself", "fold/groups.rs", "group.remove_member(day, member, load)?", "drop((member, load))"),
    ("an anonymous id without a past is not linked", "fold/subject.rs", "            None => None,\n        };\n        self.project.people.insert", "            None => return Ok(()),\n        };\n        self.project.people.insert"),
    ("an event of a user is of whom its anonymous id is linked to", "fold/subject.rs", "                self.link(self.hasher.anonymous(anonymous), key)?;\n                Ok(key)", "                self.link(self.hasher.anonymous(anonymous), key)?;\n                self.project.resolve(self.hasher.anonymous(anonymous), self.source)"),
    # An identity's company.
    ("the later company wins a merge", "fold/subject.rs", "base.company.into_iter().chain(other).min()", "base.company.into_iter().chain(other).max()"),
    ("a merged identity keeps its account", "fold/subject.rs", "        self.contribute(base, Sign::Minus)?;\n        base.company = company;\n        self.contribute(base, Sign::Plus)", "        base.company = company;\n        Ok(())"),
    ("a company takes only the future", "fold/mod.rs", "        self.contribute(identity, Sign::Minus)?;\n        identity.company = Some(association);\n        self.contribute(identity, Sign::Plus)", "        identity.company = Some(association);\n        Ok(())"),
    ("a merge forgets when its company was first told", "fold/subject.rs", "            base.company = company;\n            return Ok(());", "            return Ok(());"),
    ("an event's own company is ignored", "fold/subject.rs", "named.and_then(Named::company).or(identity.company.map(|association| association.company))", "identity.company.map(|association| association.company).or(named.and_then(Named::company))"),
    ("an order's own company is ignored", "fold/deposit.rs", "match order.company.as_deref().copied().or(identity.company.map(|association| association.company)) {", "match identity.company.map(|association| association.company).or(order.company.as_deref().copied()) {"),
    ("an e-mail address wins over the company that the event names", "fold/mod.rs", "(Some(company), _) => company,\n            (None, Some(key)) => self.company(key)?,", "(_, Some(key)) => self.company(key)?,\n            (Some(company), None) => company,"),
    ("free mail is a company", "company.rs", "filter(|domain| !is_free_mail(domain))", "filter(|domain| !domain.is_empty())"),
    ("e-mails of users without a name for it are ignored", "admission.rs", "let tells = name == \"identify\" || who.user_id.is_some();", "let tells = name == \"identify\";"),
    ("e-mails of anybody's events count", "admission.rs", "let tells = name == \"identify\" || who.user_id.is_some();", "let tells = true;"),
    ("e-mail addresses keep their case", "company.rs", "let email = text.trim().to_lowercase();", "let email = text.trim().to_owned();"),
    ("a user_id is never an address", "admission.rs", "let id_email = who.user_id.as_deref().and_then(company::normalise_email);", "let id_email: Option<String> = None;"),
    ("domains keep their www", "company.rs", "strip_prefix(\"www.\")", "strip_prefix(\"wwww.\")"),
    # Companies that turn out to be one, in a project.
    ("a domain told late takes only the future", "fold/accounts.rs", "self.share_account_day(key, entry.day, &entry.sums, Sign::Plus)?;", "let _ = entry;"),
    ("a domain told late doesn't get the touches", "fold/accounts.rs", "self.share(key, &Share::Touches { gone: &[], new: &[touch] })?;", "let _ = touch;"),
    ("a domain told late doesn't get the orders", "fold/accounts.rs", "self.share_order(key, order, Sign::Plus)?;", "let _ = order;"),
    ("the last domain told wins", "fold/accounts.rs", "                // Told again: it may have been told earlier than was known.\n                let key = self.hasher.company(domain.as_str());\n                self.project.rollups.company_links.remember(company, key, told);\n                return Ok(());\n", "                Box::new(Account { key: domain.clone(), facts: Facts::default() })\n"),
    ("a domain can be told another", "fold/accounts.rs", "Some(AccountSlot::Account(account)) if !account.key.is_domain() => account.clone(),", "Some(AccountSlot::Account(account)) => account.clone(),"),
    ("a linked company keeps its account too", "fold/accounts.rs", "        self.project.rollups.contribute(Level::Account, facts, Sign::Minus, &Change::ANY);\n        self.project.accounts.insert", "        self.project.accounts.insert"),
    ("a company's last event of a day leaves the day active", "facts/change.rs", "Sign::Minus => there <= sums.events,", "Sign::Minus => there == 0,"),
    # Sessions.
    ("a gap of 30 minutes is too long", "facts/parts.rs", "pub const SESSION_GAP_MS: i64 = 30 * 60 * 1000;", "pub const SESSION_GAP_MS: i64 = 30 * 60 * 1000 - 1;"),
    ("a gap of 30 minutes and a millisecond is not too long", "facts/parts.rs", "pub const SESSION_GAP_MS: i64 = 30 * 60 * 1000;", "pub const SESSION_GAP_MS: i64 = 30 * 60 * 1000 + 1;"),
    ("a late event bridges nothing", "fold/deposit.rs", "let met = identity.facts.met_by(&session);", "let met: Vec<Session> = identity.facts.met_by(&session).into_iter().take(1).collect();"),
    ("groups of two types share their place in a day", "facts/parts.rs", "u128::from(self.kind) << 32 | u128", "u128"),
    ("the first group of a type has the place of no group", "facts/parts.rs", "u128::from(self.kind) << 32 | u128::from(self.number.saturating_add(1))", "if self.number == 0 { 0 } else { u128::from(self.kind) << 32 | u128::from(self.number) }"),
    ("a joined session keeps the later entry", "facts/parts.rs", "let entry = if other.at < self.at { other } else { self };", "let entry = if other.at > self.at { other } else { self };"),
    ("a joined session has the day of its last event", "facts/parts.rs", "let entry = if other.at < self.at { other } else { self };", "let day = if other.last > self.last { other.day } else { self.day };\n        let entry = if other.at < self.at { other } else { self };", "Session { last, events, ..entry }", "Session { last, events, day, ..entry }"),
    ("a joined session is of the company of its last event", "facts/parts.rs", "let entry = if other.at < self.at { other } else { self };", "let company = if other.last > self.last { other.company.clone() } else { self.company.clone() };\n        let entry = if other.at < self.at { other } else { self };", "Session { last, events, ..entry }", "Session { last, events, company, ..entry }"),
    ("a joined session has the events of the longer one", "facts/parts.rs", "(self.last.max(other.last), self.events + other.events)", "(self.last.max(other.last), self.events.max(other.events))"),
    ("a joined session ends where the first one does", "facts/parts.rs", "(self.last.max(other.last), self.events + other.events)", "(if other.at < self.at { other.last } else { self.last }, self.events + other.events)"),
    ("a late event within the last session makes it shorter", "facts/mod.rs", "session.last = session.last.max(time);", "session.last = time;"),
    ("an event before the last session makes it longer", "facts/mod.rs", "(at >= last.at && at.time.0 - last.last.0 <= SESSION_GAP_MS)", "(at.time.0 - last.last.0 <= SESSION_GAP_MS)"),
    ("an event long after the last session makes it longer", "facts/mod.rs", "(at >= last.at && at.time.0 - last.last.0 <= SESSION_GAP_MS)", "(at >= last.at && at.time.0 - last.last.0 <= 2 * SESSION_GAP_MS)"),
    ("sessions of two events bounce", "answers/identity.rs", "u64::from(session.events == 1)", "u64::from(session.events <= 2)"),
    ("the 90th percentile is one rank too low", "answers/identity.rs", "let rank = (values.len() * 9).div_ceil(10);", "let rank = (values.len() * 9 / 10).max(values.len().min(1));"),
    ("the 90th percentile is one rank too high", "answers/identity.rs", "let rank = (values.len() * 9).div_ceil(10);", "let rank = (values.len() * 9 / 10 + 1).min(values.len());"),
    ("sessions of a window are looked for on UTC days", "facts/change.rs", "(at(i64::from(span.first.0) - 1), at(i64::from(span.last.0) + 2))", "(at(i64::from(span.first.0)), at(i64::from(span.last.0) + 1))"),
    ("sessions of other projects are left out", "answers/identity.rs", "self.durations_ms.extend(other.durations_ms);", "let _ = other.durations_ms;"),
    ("nobody has sessions", "fold/mod.rs", "let is_somebody = identity.id != RawId::Nobody;", "let is_somebody = true;"),
    ("a session that grew is still a bounce among the visits", "fold/deposit.rs", "Some(last) if last.events == 1 => Change::of_session(last.at),", "Some(last) if last.events == 0 => Change::of_session(last.at),"),
    # Touches.
    ("a direct session is a touch", "fold/mod.rs", "filter(|acquisition| !acquisition.is_direct())", "filter(|_| true)"),
    ("the last touch may come after the order", "facts/lists.rs", "let until = items.partition_point(|item| item.number() <= last);", "let until = items.len();"),
    ("a touch at the order's millisecond comes too late", "facts/lists.rs", "    let last = last_number(time);\n    let of = |items: &[T]| {\n        let until", "    let last = Number::from(time.0) << 64;\n    let of = |items: &[T]| {\n        let until"),
    ("the first touch outlives its session", "facts/mod.rs", "        for former in joined.iter().filter_map(Session::touch_at) {\n            self.lost_touch(former.at);\n        }\n", ""),
    ("a company keeps the touch of a session that was joined", "fold/groups.rs", "        self.share_touch(company, session, sign)?;\n", "        if sign == Sign::Plus {\n            self.share_touch(company, session, sign)?;\n        }\n"),
    ("orders after a late touch stay where they are", "facts/change.rs", "Moment::last_of(next.max(to)) };", "Moment::last_of(to) };\n        let _ = next;"),
    ("orders under a touch that goes stay there", "facts/change.rs", "for touch in gone {", "for touch in gone.take(0) {"),
    ("another first touch leaves the orders where they are", "facts/change.rs", "if first_touch && self.bundle.is_none() { Times::ALL }", "if first_touch && self.bundle.is_some() { Times::ALL }"),
    ("another first touch leaves the bundle where it is", "rollups/attribution.rs", "Sign::Plus => cells.set(bundle, facts.first_touch().map(|first| first.touch)),", "Sign::Plus if cells.get(bundle).is_none() => cells.set(bundle, facts.first_touch().map(|first| first.touch)),\n        Sign::Plus => {}", "Sign::Minus => cells.remove(bundle),", "Sign::Minus => {}"),
    ("a bundle that is no more is kept", "rollups/attribution.rs", "Sign::Minus => cells.remove(bundle),", "Sign::Minus => {}"),
    ("what is bundled is counted loose for good", "facts/mod.rs", "if change.first_touch && self.bundle.is_none() && is_many() {", "if self.bundle.is_none() && is_many() {"),
    ("a bundle gets another key", "facts/mod.rs", "if change.first_touch && self.bundle.is_none() && is_many() {", "let key = RecordKey(key.0 ^ self.len() as u128);\n        if change.first_touch && is_many() {"),
    ("a run keeps its former touch", "rollups/attribution.rs", "Sign::Plus => cells.set(run, facts.touch_at(from)),", "Sign::Plus if cells.get(run).is_none() => cells.set(run, facts.touch_at(from)),\n            Sign::Plus => {}", "Sign::Minus => cells.remove(run),", "Sign::Minus => {}"),
    ("orders between runs stay under the former touch", "rollups/attribution.rs", ".chain(facts.loose_orders(change.loose))", ".chain(facts.loose_orders(change.loose).take(0))"),
    ("two identities have one bundle", "fold/deposit.rs", "bundle_orders(identity.member, change)", "bundle_orders(crate::ids::RecordKey(7), change)"),
    ("bundles are shown as direct", "answers/attribution.rs", "Under::Bundle(bundle) => bundles.get(bundle).flatten(),", "Under::Bundle(bundle) => bundles.get(bundle).flatten().filter(|_| false),"),
    ("bundles are left out", "answers/attribution.rs", "Under::Bundle(bundle) => bundles.get(bundle).flatten(),", "Under::Bundle(_) => continue,"),
    ("an account's bundles are looked for among the identities'", "answers/attribution.rs", "&rollups.bundles_by_account", "&rollups.bundles_by_identity"),
    ("the next touch is the first of any page", "facts/lists.rs", "let in_pages = || list.digests_after(last)", "let in_pages = || list.digests_after(Number::MIN)"),
    ("the first touch is the first one recorded", "facts/mod.rs", "if self.first_touch.is_none_or(|first| touch.at < first.at) {", "if self.first_touch.is_none() {"),
    ("the first touch must come before the order", "rollups/attribution.rs", "cells.change((order.day.0, under), |row|", "let under = match under {\n            Under::Touch(touch) => Under::Touch(touch.filter(|_| facts.first_touch().is_some_and(|touch| touch.at <= order.at))),\n            bundle => bundle,\n        };\n        cells.change((order.day.0, under), |row|"),
    ("nobody's orders are under the company's touch too", "fold/deposit.rs", "Some(company) if super::level(identity) == Level::Identity => self", "Some(company) => self"),
    ("nobody's orders are under no row", "rollups/attribution.rs", "level == own || level == Level::Nobody", "level == own"),
    ("a row that comes to nothing is left out", "rollups/attribution.rs", "Self { entries: 1,", "Self { entries: 0,"),
    ("direct is the medium of what has no source", "answers/attribution.rs", "if self.dimension == Dimension::Source { DIRECT } else { NONE }", "DIRECT"),
    ("attributed orders are in the organization's currency", "event.rs", "Some((money.in_project?, u8", "Some((money.in_organization?, u8"),
    ("utm_source is less than a click id", "acquisition/mod.rs", "        .or(query.utm.source)\n        .or(query.source)\n        .or(query.reference)\n        .or_else(|| click.map(|(_, source, _)| source.to_owned()))", "        .or_else(|| click.map(|(_, source, _)| source.to_owned()))\n        .or_else(|| referrer.as_ref().map(|referrer| referrer.source.clone()))\n        .or(query.utm.source)\n        .or(query.source)\n        .or(query.reference)"),
    ("overrides are ignored", "acquisition/mod.rs", "overrides.and_then(|o| clean(pick(o).as_deref()?))", "overrides.and_then(|o| clean(pick(o).as_deref()?)).filter(|_| false)"),
    ("click ids of social networks are cpc", "acquisition/mod.rs", "(\"fbclid\", \"facebook\", \"paid_social\")", "(\"fbclid\", \"facebook\", \"cpc\")"),
    ("sources keep their case", "acquisition/mod.rs", "let value = text::non_empty(value)?.to_lowercase();", "let value = text::non_empty(value)?.to_owned();"),
    ("no medium and no source are two rows", "answers/attribution.rs", "let id = reader.project.names.find(nothing, reader.hasher, reader.source)?;", "let id = None;"),
    # Cohorts.
    ("a late event leaves the cohort", "facts/change.rs", "let first_day = new_day && self.first_day().is_none_or(|first| day <= first);", "let first_day = new_day && self.first_day().is_none();"),
    ("a cohort leaves out who never paid", "rollups/cohorts.rs", "level == own && (change.first_day || change.money)", "level == own && change.money"),
    ("a cohort's money is the organization's", "rollups/cohorts.rs", "(money.revenue, money.orders)", "(money.organization_revenue, money.organization_orders)"),
    ("a cohort's refunds are left out", "facts/mod.rs", "parts::add_money(&mut self.money, sums.money.as_deref(), sign);", "parts::add_money(&mut self.money, sums.money.as_deref().filter(|money| !money.revenue.is_negative()), sign);"),
    ("a list that just fits is cut", "answers/attribution.rs", "truncated: cells.len() > self.limit", "truncated: cells.len() >= self.limit"),
    ("the oldest cohorts come first", "answers/attribution.rs", "cells.iter().rev().take(self.limit)", "cells.iter().take(self.limit)"),
    # Companies and groups.
    ("of projects that disagree the last told wins", "answers/company.rs", "filter_map(|part| part.get(at).copied().flatten()).min();\n    Ok(companies", "filter_map(|part| part.get(at).copied().flatten()).max();\n    Ok(companies"),
    ("a domain forgets what was told to be it", "fold/groups.rs", "            group.tell_alias(company, |serial| source.page::<Group>(page_key(domain, serial)))?;\n", ""),
    ("what another project told to be a domain is not looked at", "answers/company.rs", "for part in projects.each(AskAliases { domains: companies.clone() }).await? {", "for part in projects.each(AskAliases { domains: companies.clone() }).await?.into_iter().take(1) {"),
    ("a company is two domains where projects disagree", "answers/company.rs", "keys.retain(|key| key == company || means.get(key) == Some(company));", "let _ = (&keys, company, &means);"),
    ("a former id shows the domain told last", "answers/company.rs", "filter_map(|(_, link)| *link).min()", "filter_map(|(_, link)| *link).max()"),
    ("a former id shows what it was", "answers/company.rs", "link.map_or(*key, |link| link.domain)))", "link.map_or(*key, |_| *key)))"),
    ("a company's name is the first that was told", "groups.rs", "is_none_or(|(known, _)| *known <= at)", "is_none_or(|(known, _)| *known > at)"),
    ("a company's name is the one recorded last", "groups.rs", "let is_latest = self.name.as_ref().is_none_or(|(known, _)| *known <= at);", "let is_latest = !name.is_empty();"),
    ("of projects' names the first wins", "answers/group.rs", "self.name.take().into_iter().chain(other.name).max()", "self.name.take().into_iter().chain(other.name).min()"),
    ("a name told to a company before its domain is lost", "answers/group.rs", "name: group.name.clone(), seen", "name: group.name.clone().filter(|_| place == 0), seen"),
    ("any event tells a company's name", "fold/groups.rs", "if &*event.name == \"group\" {", "if !event.name.is_empty() {"),
    ("equals come in the wrong order", "answers/question.rs", "name(left).cmp(&name(right))", "name(right).cmp(&name(left))"),
    ("last seen anywhere is last seen at a company", "answers/company.rs", ".filter(|(_, named, _)| here(*named))", ".filter(|(_, named, _)| here(*named) || true)"),
    ("a company's beginning is not looked for when it moves away", "groups.rs", "[(&mut self.first_seen, first), (&mut self.last_seen, last)]", "[(&mut self.last_seen, last)]"),
    ("a company's end is not looked for when it moves away", "groups.rs", "[(&mut self.first_seen, first), (&mut self.last_seen, last)]", "[(&mut self.first_seen, first)]"),
    ("a company's end is looked for after its last day", "groups.rs", "last_day.0.saturating_sub(DAYS_OVERLAP)", "last_day.0.saturating_add(1)"),
    ("users are counted once a project", "answers/group.rs", "(keys, projects > 1)", "(keys, projects > 99)"),
    ("users of a company with two keys in one project are counted once a key", "answers/group.rs", "            part.users.sort();\n            part.users.dedup();\n", "            part.users.sort();\n"),
    ("users of two projects are counted in each", "answers/group.rs", "        users.sort();\n        users.dedup();\n        total", "        users.sort();\n        total"),
    ("a company that another project knows, too, is counted as if it were its own", "answers/group.rs", "        self.projects += other.projects;\n", "        self.projects = other.projects;\n"),
    ("nobody is a member", "fold/groups.rs", "(Sign::Plus, Some((None, did))) => group.add_nobody(day, did),", "(Sign::Plus, Some((None, did))) => group.add_member(day, RecordKey(0), did, load)?,"),
    ("nobody is never seen", "fold/groups.rs", "(Sign::Plus, Some((None, did))) => group.add_nobody(day, did),", "(Sign::Plus, Some((None, _))) => {}"),
    ("a top list is cut before equals have names", "answers/top.rs", "rank(&mut rows, |(_, named)| named.events, |(_, named)| named.rank());", "rank(&mut rows, |(_, named)| named.events, |_| 0);"),
    ("lists of users are cut before equals have names", "answers/question.rs", "rows.partition_point(|row| figure(row) >= last)", "limit; let _ = last"),
    ("groups of two types are one", "ids.rs", "        hasher.write(group_type.as_bytes());\n", ""),
    ("a company's money is the project's", "fold/groups.rs", "money.organization_revenue", "money.revenue"),
    ("a company's orders are the project's", "fold/groups.rs", "money.organization_orders", "money.orders"),
    ("a session that grows is counted again", "fold/groups.rs", "match company(joined).filter(|_| kept.is_none()) {", "match company(joined) {"),
    ("what moves to another company stays in top lists", "fold/groups.rs", "        rollups.group_activity.count(day, self.hasher.group_type(&group.kind), group.number, sums.events, sign);\n", "        if sign == Sign::Plus {\n            rollups.group_activity.count(day, self.hasher.group_type(&group.kind), group.number, sums.events, sign);\n        }\n"),
    ("a block of days is counted in the next one", "rollups/group_activity.rs", "self.change((kind, bucket(level, day.0 >> digits), number), |sum|", "self.change((kind, bucket(level, (day.0 >> digits) + i32::from(level > 1)), number), |sum|"),
    ("the rest of a block is not taken out of it", "rollups/group_activity.rs", "Self::of(first, last, level - 1, sign.opposite())", "Self::of(first, last, level - 1, sign)"),
    ("a block reaches beyond the window's beginning", "rollups/group_activity.rs", "let first = if first == least { first & !whole } else { first };", "let first = if first == least || first > least + 3 { first & !whole } else { first };"),
    ("what the others may have is one project's", "answers/top.rs", "parts.iter().map(TopPart::others).sum::<i64>()", "parts.iter().map(TopPart::others).min().unwrap_or_default()"),
    ("the others of a top list are never asked for", "answers/top.rs", "if others > 0 && others >= last {", "if others > 0 && others >= i64::MAX {"),
    ("a list that just fits is cut, too", "answers/top.rs", "let truncated = least.len() > limit;", "let truncated = least.len() >= limit;"),
    ("a link told again keeps its first time", "rollups/company_links.rs", "known.domain != domain || known.told <= told", "known.domain == domain || known.told <= told"),
    ("an earlier telling of another domain counts", "rollups/company_links.rs", "known.domain != domain || known.told <= told", "known.told <= told"),
    ("a day's first event is seen a day late", "facts/parts.rs", "(self.first_ms <= self.last_ms).then(|| (at(self.first_ms), at(self.last_ms)))", "(self.first_ms <= self.last_ms).then(|| (at(self.last_ms), at(self.last_ms)))"),
    ("a list of users stops too early", "answers/company.rs", "candidates(&mut members, enough.saturating_add(1),", "candidates(&mut members, enough.saturating_sub(1),"),
    ("a company's key is its domain", "answers/company.rs", "normalise_domain(key).filter(|domain| domain == key)", "Some(key.to_owned())"),
    ("an empty name is a name", "fold/groups.rs", "name.filter(|name| !name.is_empty())", "name"),
    ("a member is whom it was before a link", "answers/group.rs", "Some(KnownAs::User(user)) => (Who::User(user), true),", "Some(KnownAs::User(_)) => (Who::Of(self.id, member), true),"),
    ("a link tells no list of members", "fold/subject.rs", "        self.know_member(&base);\n", ""),
    ("an address tells no list of members", "fold/mod.rs", "        self.know_member(identity);\n", ""),
    ("a user was last seen where the first project saw it", "answers/company.rs", "row.last_seen = seen.iter().filter_map(|part| part.get(at).copied().flatten()).max();", "row.last_seen = seen.iter().filter_map(|part| part.get(at).copied().flatten()).next();"),
    ("an anonymous id is one user in two projects", "answers/group.rs", "Some(KnownAs::Addressed) => (Who::Of(self.id, member), true),", "Some(KnownAs::Addressed) => (Who::Of(ProjectId(0), member), true),"),
    ("an anonymous id has one identity in all projects", "answers/identity.rs", "self.id.public(organization, self.project.unwrap_or(ProjectId(0)))", "self.id.public(organization, ProjectId(0))"),
    ("a user at a company in two projects is listed with one", "answers/company.rs", "*total.entry(who).or_default() += events", "*total.entry(who).or_default() = events"),
    ("a company's users have the e-mail of the first project that knows one", "answers/company.rs", "filter_map(|(_, email)| email.as_ref()).max()", "filter_map(|(_, email)| email.as_ref()).next()"),
    ("an anonymous visitor is a user of a company", "answers/group.rs", "None => (Who::Of(self.id, member), false),", "None => (Who::Of(self.id, member), true),"),
    ("a company's sessions are those of its own events", "fold/groups.rs", "let company = |session: &Session| session.company.as_deref().copied().or(own);", "let company = |session: &Session| session.company.as_deref().copied().or(own.filter(|_| false));"),
    # Identities.
    ("the address recorded last is the latest", "people.rs", "Some((_, told)) if at < *told => {}", "Some((_, told)) if at < *told && at > *told => {}"),
    ("an address that is told again stays old", "people.rs", "*told = at.max(*told);", "let _ = told;"),
    ("only the latest address finds an identity", "people.rs", "Some((_, told)) if at < *told => {}", "Some((_, told)) if at < *told => return false,"),
    ("an address is known once somebody has it", "fold/mod.rs", "if !owners.has(person, page)? {", "if owners.has(person, page)? && false {"),
    ("an address told late is the latest", "people.rs", "*told = at.max(*told);", "*told = at;"),
    ("the first who had an address is found", "answers/identity.rs", ".max_by_key(|(seen, _)| *seen);", ".next();"),
    ("an address finds one only", "fold/mod.rs", "for_each(|owners| owners.add(person));", "for_each(|owners| *owners = EmailOwners::new(person));"),
    ("all events are pageviews", "event.rs", "pageviews: u32::from(self.is_pageview()),", "pageviews: 1,"),
    ("pages keep their query", "fold/mod.rs", "self.intern(text::page(url), NameKind::Page)?", "self.intern(url, NameKind::Page)?"),
    ("pages keep their fragment", "text.rs", "url.find(['?', '#'])", "url.find(['?'])"),
    ("referrers keep their www", "text.rs", "match host.strip_prefix(\"www.\") {", "match host.strip_prefix(\"wwww.\") {"),
    ("every event's page counts", "fold/mod.rs", "details.url.as_deref().filter(|_| event.is_pageview())", "details.url.as_deref()"),
    ("a site refers to itself", "text.rs", "(!is_internal).then_some(host)", "Some(host).filter(|_| is_internal || !is_internal)"),
    ("a late event is never the first", "people.rs", "(a.min(first), b.max(last))", "(a, b.max(last))"),
    ("a profile's money is the project's", "answers/identity.rs", "money.organization_revenue", "money.revenue"),
    ("a profile is that of the first project", "answers/identity.rs", "parts.into_iter().flatten().reduce(ProfilePart::merge)", "parts.into_iter().flatten().next()"),
    # Pages.
    ("a page that changed is not saved", "paged/sealed.rs", "        page.dirty = true;\n        page.chunk = Some(chunk);", "        page.chunk = Some(chunk);"),
    ("a page in memory is read again", "paged/sealed.rs", "if page.chunk.is_none() {", "if page.chunk.is_none() || page.items > 0 {"),
    ("a page that was cut is not saved", "paged/sealed.rs", "            dirty: true,", "            dirty: false,"),
    ("the recent part begins a day early", "paged/sealed.rs", "        self.recent_from = recent_from;", "        self.recent_from = recent_from - 1;"),
    ("a page is cut a day late", "paged/sealed.rs", "Page::new(middle, serial, later)", "Page::new(middle + 1, serial, later)"),
    ("two pages have one name", "paged/sealed.rs", "let serial = self.next_serial;\n        self.next_serial += 1;\n        self.pages.insert", "let serial = self.next_serial - 1;\n        self.pages.insert"),
    ("the digest of a page is not renewed", "paged/sealed.rs", "        self.digest = T::digest(chunk);\n", ""),
    ("a group's page is cut too late", "paged/sealed.rs", "chunk.partition_point(|item| item.number() < middle)", "chunk.partition_point(|item| item.number() <= middle)"),
    ("pages of two lists have one name", "paged/sealed.rs", "visit(page.serial * T::LISTS + T::LIST,", "visit(page.serial * T::LISTS,"),
    ("a member that comes back was last there before", "groups.rs", "known.last = before.max(day);", "known.last = before;"),
    ("a late event is a member's last", "groups.rs", "known.last = before.max(day);", "known.last = day;"),
    ("a member stays on the roster", "groups.rs", "roster[at].days == 0 {", "roster[at].days == u32::MAX {"),
    ("members are counted by a day that is not their last any more", "groups.rs", "            self.by_last[at].1 -= 1;\n", "            self.by_last[at].1 -= u32::from(after.is_none());\n"),
    ("a late event loads no pages", "fold/deposit.rs", "        identity.facts.load_day(day, named, page)?;\n", ""),
    ("a company's late event loads no pages", "fold/accounts.rs", "            share.load(facts, page)?;\n", ""),
    ("a session loads no pages", "fold/deposit.rs", "        identity.facts.load_session(&session, page)?;\n", ""),
    ("a group that is named beside another is not kept", "facts/mod.rs", "if several || differs {", "if several {"),
    ("a day of several groups belongs to the last", "facts/mod.rs", "(entry.several, entry.named) = (true, None);", "entry.named = named.map(Box::new);"),
    ("of equals a told name is not looked at", "fold/groups.rs", "            rollups.group_names.tell(self.hasher.group_type(&group.kind), group.number, &name);\n", "            let _ = rollups;\n"),
    ("one project's list is cut before equals that begin alike", "answers/top.rs", "last.is_some_and(|last| last < others)", "last.is_some_and(|last| last <= others)"),
    ("equal users come by their ids", "answers/company.rs", "(row.name.clone(), Reverse(row.last_seen), row.public.clone())", "(row.name.clone(), row.public.clone())"),
    ("orders are cut into pages by calendar days", "facts/lists.rs", "|order| order.at.number(),", "|order| number_of_day(order.day),"),
    ("sessions are cut into pages by calendar days", "facts/lists.rs", "|session| session.at.number(),", "|session| number_of_day(session.day),"),
    ("another first touch loads no pages", "facts/load.rs", "            self.orders.load(orders.from.number(), orders.to.number(), &mut page)?;\n", "            let _ = orders;\n"),
    ("the first day is looked for in the recent part", "paged.rs", "sealed.or_else(|| self.recent.first().map(T::number))", "self.recent.first().map(T::number).or(sealed)"),
    ("the day before is the last of its page", "paged/sealed.rs", "if page.last < number {", "if page.last <= number {"),
    ("the next first touch is looked for in the recent part", "facts/lists.rs", "sealed.or_else(|| list.recent().iter().find_map(T::touch))", "list.recent().iter().find_map(T::touch).or(sealed)"),
    ("the last touch is looked for in the first page", "facts/lists.rs", "list.digests_until(last).find(before)?", "list.digests_until(last).filter(before).last()?"),
    ("the last touch of a page may come after the order", "facts/lists.rs", "digest.last.filter(|last| last.at.time <= time)", "digest.last"),
    ("pages of a record that is no more stay for ever", "fold/subject.rs", "        self.project.orphans.extend(small", "        let _ = Vec::from_iter(small"),
    ("the pages of the larger side of a link go", "fold/subject.rs", "small.facts.serials().map(|serial| (Person::PAGE_SPACE, page_key(small.member, serial)))", "base.facts.serials().map(|serial| (Person::PAGE_SPACE, page_key(base.member, serial)))"),
    ("a linked identity looks for its pages under its own name", "fold/mod.rs", "let (source, member) = (self.source, identity.member);", "let (source, member) = (self.source, self.hasher.identity(&identity.id));"),
    # Records and cells, saved and read back.
    ("what is collected goes before it is in the store", "table.rs", "slot.changed_in == 0 && slot.collected_in <= self.settled", "slot.changed_in == 0"),
    ("pages of a record that is being saved go", "table.rs", "self.frozen.is_empty() && self.settled + 1 == self.generation", "self.frozen.is_empty()"),
    ("a record that changed is not saved", "table.rs", "            slot.changed_in = *generation;\n            dirty.push(key);", "            slot.changed_in = *generation;"),
    ("a record that changes during a checkpoint is missing in it", "table.rs", "                spilled.push((key, slot.value.clone()));\n", ""),
    ("a record that changes during a checkpoint loses its pages in it", "table.rs", "                spilled.push((key, slot.value.clone()));\n                slot.value.saved();", "                slot.value.saved();\n                spilled.push((key, slot.value.clone()));"),
    ("a record that changes during a checkpoint is in it as it is then", "table.rs", "if slot.changed_in + 1 == *generation && !frozen.is_empty() {", "if slot.changed_in == 0 && !frozen.is_empty() {", "                && slot.changed_in + 1 == self.generation\n", ""),
    ("a record that changes after a checkpoint began is not in the next", "table.rs", "        self.generation += 1;\n", ""),
    ("pages are saved again and again", "table.rs", "                visit(key, &slot.value);\n                slot.value.saved();", "                visit(key, &slot.value);"),
    ("a part that is no more stays on disk", "rollup/parts.rs", "            self.release(number);\n            return;", "            self.release(number);\n            self.dirty.retain(|other| *other != number);\n            return;"),
    ("a part that changed is not saved", "rollup/parts.rs", "        self.mark(number);\n        if first", "        if first"),
    ("a part that is split off is not saved", "rollup/parts.rs", "        self.mark(number);\n        self.put(number, part);", "        self.put(number, part);"),
    ("a part is looked for where it began before", "rollup/parts.rs", "            self.index.remove(&place(&first));\n            self.index.insert(place(&part.key(0)), number);\n", ""),
    ("a row's value runs over into the next row", "rollup/packed.rs", "let kept = u64::from_le_bytes(*bytes) & !low_bytes(width);", "let kept = 0;"),
    ("a row is taken for the one that its number would be", "rollup/packed.rs", "if guess < to && of_row(guess) == wanted {", "if guess < to {"),
    ("what is new goes to the end of its part", "rollup/packed.rs", "if to > 0 && of_row(to - 1) < wanted {", "if to > 0 && of_row(0) < wanted {"),
    ("wide numbers are cut", "rollup/packed.rs", "bits.div_ceil(8)", "(bits / 8).max(1)"),
    ("the keys of a part begin with too much", "rollup/packed.rs", "self.prefix_len.min(u8::try_from(common).unwrap_or(self.prefix_len))", "self.prefix_len"),
    ("a name on disk gets another number", "names.rs", "        if let Some(id) = self.ids.get(key, || source.record(key))? {\n            return Ok(*id);", "        if let Some(id) = self.ids.get(key, || Ok(None))? {\n            return Ok(*id);"),
    ("a company on disk is a new one", "fold/accounts.rs", "if self.project.accounts.get(key, || source.record(key))?.is_none() {", "if self.project.accounts.get(key, || Ok(None))?.is_none() {"),
]


def make_copy():
    """The domain and what its comparison needs, in a workspace of their own."""
    tree = WORK / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    for part in PARTS:
        # New times: cargo would take the copy for older than the build of the last planted bug.
        shutil.copytree(ROOT / part, tree / part, copy_function=shutil.copyfile)
    manifest = (ROOT / "Cargo.toml").read_text()
    manifest = manifest[: manifest.index("[package]")]
    manifest = re.sub(r"members = \[.*?\]", 'members = ' + json.dumps(PARTS), manifest, count=1, flags=re.S)
    # Bugs leave things unused; and what runs a thousand histories had better be fast.
    manifest += '\n[profile.dev]\nopt-level = 1\ndebug = false\n[profile.dev.package.headcount-domain]\nopt-level = 0\n'
    (tree / "Cargo.toml").write_text(manifest)
    shutil.copy(ROOT / "Cargo.lock", tree / "Cargo.lock")
    return tree


def trial(tree):
    """Runs the comparison. Returns (passed, last lines)."""
    command = ["cargo", "test", "--quiet", "-p", "headcount-domain", "--test", "against_model", "every_answer_equals_the_model"]
    environment = dict(os.environ, CARGO_TARGET_DIR=str(WORK / "build"), HEADCOUNT_TRIALS=TRIALS, HEADCOUNT_AS_FOUND="1", RUST_BACKTRACE="0", RUSTFLAGS="-Awarnings")
    try:
        run = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=900)
    except subprocess.TimeoutExpired:
        return False, "it hangs"
    output = run.stdout + run.stderr
    if "error: could not compile" in output:
        return None, output[-3000:]
    return run.returncode == 0, output


def main():
    words = sys.argv[1:]
    bugs = [bug for bug in BUGS if not words or any(word in bug[0] for word in words)]
    tree = make_copy()
    passed, output = trial(tree)
    if not passed:
        print("the domain as it is does not pass:", output[-3000:])
        return 1
    survived = []
    for name, file, *changes in bugs:
        path = tree / "domain" / "src" / file
        source = path.read_text()
        wrong = source
        for there, planted in zip(changes[::2], changes[1::2]):
            if wrong.count(there) != 1:
                print(f"STALE     {name}: its text occurs {wrong.count(there)} times in {file}")
                wrong = None
                break
            wrong = wrong.replace(there, planted)
        if wrong is None:
            survived.append(name)
            continue
        path.write_text(wrong)
        began = time.monotonic()
        passed, output = trial(tree)
        path.write_text(source)
        seconds = time.monotonic() - began
        if passed is None:
            print(f"BROKEN    {name}: does not compile\n{output}")
            survived.append(name)
        elif passed:
            print(f"SURVIVED  {name} ({seconds:.0f} s)", flush=True)
            survived.append(name)
        else:
            how = re.search(r"seed \d+", output) or re.search(r"panicked at .*\n.*", output)
            how = " ".join(how.group().split()) if how else output[-100:].strip()
            print(f"caught    {name} ({how}, {seconds:.0f} s)", flush=True)
    print(f"{len(bugs) - len(survived)} passed, {len(survived)} failed")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())

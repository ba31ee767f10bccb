"""The bugs that `run.py` plants in goals, segments and conditions on people, as `bugs.py` has those of the domain. Random histories over HTTP, and the tests of
definitions, catch them."""

BUGS = [
    # Goals.
    ("a goal counts events that are not chosen", "if !question.chooses(&event, *parts) {\n                return Ok(());\n            }", ""),
    ("a goal ignores the session of its events", "let Ok(place) = self.of_sessions.binary_search(&goal) else { return true };", "let Ok(place) = self.of_sessions.binary_search(&goal).and(Err::<usize, usize>(0)) else { return true };"),
    ("a goal's session is that of the event alone", "self.goals[goal].holds(in_session.replaced(self.goals[goal].mask(None), own))", "{ let _ = in_session; self.goals[goal].holds(own) }"),
    ("a session decides no goals", "self.question.goals.decide(decider, event.goals, &mut self.of_goals);", ""),
    ("an event that carries nothing decides nothing", "parts.chain(std::iter::repeat(PartSet::default()))", "parts"),
    ("a converter is counted at each conversion", "figures.converters += u64::from(is_new(last));", "figures.converters += 1 + u64::from(is_new(last)) * 0;"),
    ("a converter of a report is counted once a window", "figures.converters += self.last_converter_of_bucket.get_mut(at).map_or(0, is_new);", "figures.converters += is_new(&mut self.last_converter);"),
    ("every user of a row converts", "self.figures.converters += u64::from(converts && note(", "self.figures.converters += u64::from((converts || true) && note("),
    ("a goal earns all money", "if !event.goals_met.is_empty() {\n            add_unconverted", "if true {\n            add_unconverted"),
    ("only the first eight goals are met", "let fitting = bits.iter().enumerate()", "let fitting = bits.iter().take(1).enumerate()"),
    # Conditions on people.
    ("conditions count the window alone", "Self::Ever => Window::ALL,", "Self::Ever => window,"),
    ("days of a condition begin a day early", "start: window.end.plus(1 - i32::from(days))", "start: window.end.plus(-i32::from(days))"),
    ("a condition holds for fewer events", "(count >= self.at_least) != self.is_negated", "(count > self.at_least) != self.is_negated"),
    ("did not means did", "(count >= self.at_least) != self.is_negated", "count >= self.at_least"),
    ("one condition on people is enough", "conditions.iter().zip(counts).all(|(condition, count)|", "conditions.iter().zip(counts).any(|(condition, count)|"),
    ("people without an event that fits are left out", "map_or(self.others, |(_, windows)| windows)", "map_or(0, |(_, windows)| windows)"),
    ("a goal has the users of the one before", "let next = Marks::one(first + 1 + goal);", "let next = Marks::one(first + goal);"),
    ("both windows of goals have the same users", "window * (1 + self.question.goals.len())", "window * 0 + (self.question.goals.len() * 0)"),
    ("a goal of the comparison is not counted", "for window in (0..2).filter(|window| windows[*window]) {\n            let first", "for window in (0..1).filter(|window| windows[*window]) {\n            let first"),
    ("an id has only its first marks of a row group", "last.replace(marks) != Some(marks)", "last.replace(marks).is_none()"),
    ("conversions of sealed events are lost", "self.marks.add(read.sums, &mut self.counted.sums);", "drop(read.sums);"),
    ("goals that are kept are advanced by nothing", "self.marks.event(event, &mut self.counted.sums, &mut |marks| given.push(marks));", "let after = self.counted.users.until > 0;\n        self.marks.event(event, &mut self.counted.sums, &mut |marks| given.extend((!after).then_some(marks)));"),
    ("counts of the person before go on", "self.counts.fill(0);", ""),
    ("the second window has the people of the first", "(0..2).filter(|window| !held(*window)).for_each(|window| event.buckets[window] = None);", ""),
    ("events of nobody pass conditions on people", "self.people.is_empty() && self.holds(self.parts_in(None)", "self.holds(self.parts_in(None)"),
    ("conditions on people stay as they were", "if self.people.is_empty() { depends } else { Depends::Everything }", "depends"),
    ("people are looked for from the second on", "while self.next.is_some_and(|(next, _)| next < key) {", "while self.next.is_some_and(|(next, _)| next <= key) {"),
    # Definitions.
    ("a segment's own filters are left out", "filters.extend(filters_of(&segment)?);", "filters_of(&segment)?;"),
    ("a segment's people are left out", "people.push(self.resolved(condition, \"segment\")?);", "drop(condition);"),
    ("the tag does not follow definitions", "self.body = body.into();", "drop(body);"),
    ("a page goal takes any event", "Ok([pageviews, path.into()])", "drop(pageviews);\n    let path = Clause::from(path);\n    Ok([path.clone(), path])"),
    ("definitions of other projects are known", "let found = tenant.definitions.get(id).filter(|definition| definition.project == project);", "let found = tenant.definitions.get(id).filter(|definition| definition.project == project || true);"),
    ("a patch forgets the fields that it lacks", "changed.fields.extend(patch.fields.clone());", "changed.fields = patch.fields.clone();"),
]

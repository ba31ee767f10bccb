"""The bugs that `run.py` plants in the way of requests to other nodes, as `bugs.py` has those of the domain. The tests with two nodes (`src/http/tests/forwarding*.rs`) catch them."""

BUGS = [
    # Trust.
    ("everybody is a node", "if !token.is(candidate) {", "if token.expose() == candidate {"),
    ("the owner takes the first node for the client", "return first.address;", ""),
    ("what clients claim goes on to the owner", "|| name == first_node::FORWARDED.as_str()", ""),
    # Which requests, and where to.
    ("a request goes from node to node", "Owner::There(address) if request.first_node().is_none() => Ok(Some(OwnerNode { partition, address, holder })),", "Owner::There(address) => Ok(Some(OwnerNode { partition, address, holder })),"),
    ("keys and shares travel", "public_keys => list: Project(Admin, Admin);", "public_keys => list: Project(Admin, Admin), ProjectOwner(Reads);"),
    ("an import only reads", "track => import: Project(EventsWrite, Admin), ProjectOwner(Records);", "track => import: Project(EventsWrite, Admin), ProjectOwner(Reads);"),
    ("strangers hear of the owner's state", "_ if !auth::is_visible(state, request, project) => Ok(None),", ""),
    # Failures.
    ("events without an answer may be sent again", "Travel::Records => ApiError::outcome_unknown(),", 'Travel::Records => ApiError::overloaded("again"),'),
    ("what was sent counts as not sent", "None => return Err(NoAnswer::Lost),", "None => return Err(NoAnswer::NotSent),"),
    ("a connection that was closed while idle is a failure", "Some(unsent) if !is_new => {", "Some(_) if !is_new => return Err(NoAnswer::Lost),\n                    Some(unsent) => {"),
    ("a frozen node is waited for", "Owner::There(_) | Owner::Here => LAST_PATIENCE,", "Owner::There(_) | Owner::Here => LAST_PATIENCE * 100,"),
    ("a project may have all requests to a node under way", "gate.take_within(holders, 1, within)", "gate.take_within([None, None], 1, within)"),
    ("a live stream is silent after its owner was replaced", "if this.until.as_mut().is_some_and(|until| until.poll_unpin(cx).is_ready()) {", "if this.until.as_mut().is_some_and(|until| until.poll_unpin(cx).is_ready() && false) {"),
    ("questions that wait for a position have no limit", 'let _place = place.ok_or_else(|| ApiError::overloaded("too many questions wait for positions that are not there"))?;', "let _place = place;"),
    ("a short answer that breaks off is passed on", "while !is_complete && bytes < AHEAD_BYTES && !matches!(travel, Travel::ReadsForLong | Travel::Follows) {", "while !is_complete && bytes > AHEAD_BYTES {"),
    # What goes with a request and its answer.
    ("headers of the connection are passed on", "|| named.iter().any(|other| other == name)", ""),
    ("an answer is encoded again", "if response.extensions().contains::<PassedOn>() {", "if false {"),
    ("an answer to a page is marked twice", "page.filter(|_| !is_passed_on)", "page"),
]

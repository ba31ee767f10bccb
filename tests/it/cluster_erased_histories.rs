//! Random histories through three nodes that keep files, in which somebody is erased, while events
//! are sealed and removed from the brokers, early ones are removed as retentions say, and nodes are
//! killed, stopped, halted and started again. Each request goes to a random node. Compared with the
//! naive model, which forgets the same identity.
//!
//! `HEADCOUNT_TRIALS` says how many histories, `HEADCOUNT_FIRST_SEED` from which seed on.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use headcount_histories::{Rng, Served, Step, Subject as _, above, compare, model_of, questions};
use headcount_model::{Ids, Model, Question};

use crate::client::Call;
use crate::cluster_histories::{OnNodes, Scattered, moving_history};
use crate::erased_histories::Erased;
use crate::histories::{can_be_asked, history, number, send};
use crate::moving_nodes::{Kind, MovingNodes, while_nodes_move};
use crate::tenant::{away_from_midnight, now_ms};

/// How many histories, unless `HEADCOUNT_TRIALS` says otherwise.
const TRIALS: u64 = 6;
/// How many run at once.
const AT_ONCE: usize = 12;
/// In how many parts a history is sent. After each, somebody is erased.
const PARTS: usize = 3;
/// How many questions are asked about each.
const QUESTIONS: usize = 120;
/// The pause after all nodes have sealed.
const PAUSE: Duration = Duration::from_secs(1);
/// How long an erasure may take, while owners change.
const PATIENCE: Duration = Duration::from_secs(240);

/// What a history that equals the model was.
struct Outcome {
    erased: usize,
    compared: usize,
    floors: usize,
}

/// Erases somebody from both, and waits until nothing of them is left.
fn erase(subject: &mut OnNodes<'_>, model: &mut Model, erased: &Erased) {
    let body = erased.body(|project| subject.0.project(project).expect("the project").0.clone());
    // A request that is made twice erases once more.
    let made = subject.0.server.send(Call::post("/privacy-requests").json(&body));
    assert_eq!(made.status, 201, "{}", made.text());
    let path = format!("/privacy-requests/{}", made.field("id"));
    let began = Instant::now();
    loop {
        let shown = subject.0.server.send(Call::get(&path));
        if shown.field("status") == "completed" {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{} does not end\n{}", shown.text(), subject.0.server.nodes.end_of_logs());
        std::thread::sleep(Duration::from_millis(50));
    }
    erased.erase_from(model);
}

fn trial(nodes: &MovingNodes, seed: u64) -> Result<Outcome, String> {
    let history = moving_history(seed);
    let mut rng = Rng::new(seed);
    let mut subject = OnNodes(Served::new(Scattered::new(nodes, seed)));
    subject.setup(&history);
    let mut model = model_of(&history);
    let mut erased = Vec::new();
    for part in history.steps.chunks(history.steps.len() / PARTS + 1) {
        let part: &[Step] = part;
        part.iter().for_each(|step| send(&mut subject, &mut model, step));
        if let Some(somebody) = Erased::pick(&model, &mut rng) {
            erase(&mut subject, &mut model, &somebody);
            erased.push(somebody);
        }
    }
    let floors = history.projects.iter().filter(|project| model.floor(&project.name).is_some()).count();
    // Without ids that only an answer tells, and what frozen days have: once events are gone, an
    // erased identity stays in it as one of a number.
    let is_comparable = |question: &Question| {
        let is_live = floors == 0 || !question.path.ends_with("/ltv-cohorts");
        can_be_asked(question) && is_live && !question.path.contains("{company:") && !question.path.ends_with("/top-users")
    };
    let asked = questions(&history, &mut rng, QUESTIONS).into_iter().filter(is_comparable);
    let asked: Vec<Question> = match floors {
        0 => asked.collect(),
        _ => asked.filter_map(|question| above(question, |project| model.floor(project))).collect(),
    };
    let mut ids = Ids::default();
    for question in &asked {
        compare(model.answer(now_ms(), question), subject.ask(question), &mut ids).map_err(|difference| {
            format!("seed {seed}: {difference:?} at {question:?} without {erased:?} of {history}\n{}", nodes.end_of_logs())
        })?;
    }
    Ok(Outcome { erased: erased.len(), compared: asked.len(), floors })
}

/// Has nodes seal until the end of the value.
struct KeepSealing<'a>(&'a AtomicBool);

impl<'a> KeepSealing<'a> {
    fn on<'scope>(
        nodes: &'scope MovingNodes,
        has_ended: &'scope AtomicBool,
        scope: &'scope std::thread::Scope<'scope, '_>,
    ) -> Self
    where
        'scope: 'a,
    {
        scope.spawn(|| {
            while !has_ended.load(Ordering::Acquire) {
                nodes.seal();
                std::thread::sleep(PAUSE);
            }
        });
        Self(has_ended)
    }
}

impl Drop for KeepSealing<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// How many files with events or figures are in a directory and those in it.
fn files_in(dir: &Path) -> usize {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { files_in(&path) } else { 1 }).sum()
}

#[test]
fn erased_identities_leave_the_answers_of_all_nodes_while_owners_move() {
    away_from_midnight();
    let Some((nodes, started)) = MovingNodes::start(Kind::WithFiles) else { return };
    let (first, trials) = (number("HEADCOUNT_FIRST_SEED", 4_000), usize::try_from(number("HEADCOUNT_TRIALS", TRIALS)).unwrap());
    let is_fit = |seed: &u64| !history(*seed).live;
    let seeds: Vec<u64> = (first..).filter(is_fit).take(trials).collect();
    let began = Instant::now();
    let has_ended = AtomicBool::new(false);
    let outcomes = std::thread::scope(|scope| {
        let _sealing = KeepSealing::on(&nodes, &has_ended, scope);
        while_nodes_move((&nodes, started), AT_ONCE, &seeds, trial)
    });
    let moves = nodes.moves().len();
    let (mut equal, mut of_all, mut failures) = (0, Outcome { erased: 0, compared: 0, floors: 0 }, Vec::new());
    for outcome in outcomes {
        match outcome {
            Ok(Outcome { erased, compared, floors }) => {
                equal += 1;
                of_all.erased += erased;
                of_all.compared += compared;
                of_all.floors += floors;
            }
            Err(failure) => failures.push(failure),
        }
    }
    let Outcome { erased, compared, floors } = of_all;
    println!("{nodes}");
    println!(
        "{equal} histories equal the model in {compared} answers, in {} s; {erased} identities erased, {floors} floors, {} files; {moves} times a partition had another owner than before",
        began.elapsed().as_secs(),
        files_in(nodes.files())
    );
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    assert_eq!(equal, trials);
    assert!(erased >= trials && compared >= 50 * trials && moves > 0 && files_in(nodes.files()) > 0);
    assert!(trials < 8 || floors > 0);
}

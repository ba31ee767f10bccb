//! Background work, which leaves the processors to events and questions.
//!
//! Background work runs at full speed while processors are free. When they are busy, a low priority
//! alone is not enough: on a machine with few processors, a thread that never waits occupies almost
//! one of them whatever its priority, and requests queue for the others. So other threads interrupt
//! the work when they wake up, and it pauses in proportion to its own waiting time.

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant as Stopwatch};

/// By how much the priority of background work is lower, as a `nice` value.
const NICENESS: i32 = 5;
/// The same of questions that read events. Beside them, the 99th percentile of 4,000 events/s on
/// two busy processors is 16 ms instead of 19 ms, and without questions 9 ms.
pub const NICENESS_OF_QUESTIONS: i32 = 10;
/// How long work runs between two checks of the processors' load.
const SLICE: Duration = Duration::from_millis(2);
/// The longest pause.
const MAX_PAUSE: Duration = Duration::from_millis(100);
/// By how much the share grows, in percentage points, after a slice without waiting.
const GROWTH: u32 = 10;
/// The processors are busy if a thread's waiting time exceeds this fraction of its running time.
const WAITS_ONE_IN: u32 = 8;

/// The speed of background work while the processors are busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tempo {
    /// It takes an eighth of a processor, since it is not urgent. At this tempo, sealing keeps up
    /// with half the maximum load of a server on two processors.
    Slow,
    /// It takes a quarter of a processor, so that it does not fall behind.
    Steady,
    /// It never pauses, since something waits for it.
    Full,
}

impl Tempo {
    /// Returns [`Tempo::Full`] if `is_urgent`, else [`Tempo::Steady`].
    pub fn urgent_if(is_urgent: bool) -> Self {
        if is_urgent { Self::Full } else { Self::Steady }
    }

    /// The minimum share of a processor, in percent.
    fn least_share(self) -> u32 {
        match self {
            Self::Slow => 12,
            Self::Steady => 25,
            Self::Full => 100,
        }
    }
}

/// The number of [`Burst`]s.
static BURSTS: AtomicUsize = AtomicUsize::new(0);

/// Work of a thread that serves events and questions, which can't move to the background. While
/// such work exists, background work takes only half of its share.
#[derive(Debug)]
pub struct Burst(());

impl Burst {
    /// Begins such work.
    pub fn begin() -> Self {
        BURSTS.fetch_add(1, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for Burst {
    fn drop(&mut self) {
        BURSTS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The running and waiting time of a thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct ProcessorTime {
    ran: Duration,
    waited: Duration,
}

/// Adapts the share of background work to the load of the processors.
#[derive(Debug)]
struct Pacer {
    times: Times,
    before: ProcessorTime,
    share: u32,
}

impl Pacer {
    /// Creates a pacer for the current thread. Only Linux measures the waiting time of a thread;
    /// elsewhere work never pauses.
    fn of_this_thread() -> Self {
        let times = Times::of_this_thread();
        let before = times.read().unwrap_or_default();
        Self { times, before, share: 100 }
    }

    /// Measures the load since the last call. Returns the running time of this thread since then.
    fn look(&mut self, least_share: u32) -> Duration {
        self.times.read().map_or(Duration::ZERO, |now| self.adapt(now, least_share))
    }

    fn adapt(&mut self, now: ProcessorTime, least_share: u32) -> Duration {
        let ran = now.ran.saturating_sub(self.before.ran);
        let waited = now.waited.saturating_sub(self.before.waited);
        self.before = now;
        self.share = match waited * WAITS_ONE_IN > ran {
            true => (self.share / 2).max(least_share),
            false => (self.share + GROWTH).min(100),
        };
        ran
    }

    /// The pause after the thread worked for `worked`.
    fn pause(&self, worked: Duration) -> Duration {
        (worked * (100 - self.share) / self.share).min(MAX_PAUSE)
    }
}

/// The background work of a thread.
struct Work {
    pacer: Pacer,
    slice_began: Stopwatch,
    tempo: Box<dyn Fn() -> Tempo>,
}

impl Work {
    /// The minimum share of a processor, in percent.
    fn least_share(&self) -> u32 {
        let alone = (self.tempo)().least_share();
        if BURSTS.load(Ordering::Relaxed) > 0 { alone / 2 } else { alone }
    }

    /// Ends the slice if its time is up. Returns the pause that follows.
    fn end_slice(&mut self) -> Option<Duration> {
        if self.slice_began.elapsed() < SLICE {
            return None;
        }
        let worked = self.pacer.look(self.least_share());
        let pause = self.pacer.pause(worked);
        let pause = (!pause.is_zero() && (self.tempo)() != Tempo::Full).then_some(pause);
        self.slice_began = Stopwatch::now() + pause.unwrap_or_default();
        pause
    }
}

thread_local! {
    static WORK: RefCell<Option<Work>> = const { RefCell::new(None) };
}

/// Makes the current thread work in the background: the kernel prefers other threads, and
/// [`give_way`] pauses unless `tempo` returns [`Tempo::Full`].
///
/// Only Linux has priorities of threads. On other systems, and if the system refuses, nothing
/// changes.
pub fn begin(tempo: impl Fn() -> Tempo + 'static) {
    begin_at(NICENESS, tempo);
}

/// Like [`begin`], with a priority that is lower by the `nice` value `niceness`.
pub fn begin_at(niceness: i32, tempo: impl Fn() -> Tempo + 'static) {
    if let Err(error) = headcount_scheduling::stand_back(niceness) {
        tracing::debug!(%error, "could not lower the priority of a background thread");
    }
    let work = Work { pacer: Pacer::of_this_thread(), slice_began: Stopwatch::now(), tempo: Box::new(tempo) };
    WORK.set(Some(work));
}

/// Whether the current thread works in the background and nothing waits for it. It then writes to
/// the disk in small pieces, since a large sync would delay the syncs of others.
pub fn gives_way() -> bool {
    WORK.with_borrow(|work| work.as_ref().is_some_and(|work| (work.tempo)() != Tempo::Full))
}

/// Pauses if the current thread works in the background and the processors are busy. Long work
/// calls this every few microseconds to milliseconds, without a lock that other threads need. It is
/// cheap, and does nothing on other threads.
pub fn give_way() {
    if let Some(pause) = WORK.with_borrow_mut(|work| work.as_mut().and_then(Work::end_slice)) {
        std::thread::sleep(pause);
    }
}

/// Reads the [`ProcessorTime`] of a thread.
#[derive(Debug)]
struct Times {
    /// The kernel's statistics of the thread; `None` if it has none.
    #[cfg(target_os = "linux")]
    schedstat: Option<std::fs::File>,
}

#[cfg(target_os = "linux")]
impl Times {
    fn of_this_thread() -> Self {
        Self { schedstat: std::fs::File::open("/proc/thread-self/schedstat").ok() }
    }

    /// Returns the times so far, if they are known.
    fn read(&self) -> Option<ProcessorTime> {
        use std::os::unix::fs::FileExt;
        let mut line = [0; 96];
        let length = self.schedstat.as_ref()?.read_at(&mut line, 0).ok()?;
        parse(std::str::from_utf8(&line[..length]).ok()?)
    }
}

/// Parses a line of `schedstat`: nanoseconds on a processor, nanoseconds of waiting for one, and
/// the number of times that the thread got one.
#[cfg(target_os = "linux")]
fn parse(line: &str) -> Option<ProcessorTime> {
    let mut numbers = line.split_ascii_whitespace().map(|number| number.parse().map(Duration::from_nanos));
    let (ran, waited) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    Some(ProcessorTime { ran, waited })
}

#[cfg(not(target_os = "linux"))]
impl Times {
    fn of_this_thread() -> Self {
        Self {}
    }

    fn read(&self) -> Option<ProcessorTime> {
        None
    }
}

#[cfg(test)]
mod tests;

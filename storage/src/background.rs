//! Work in the background, which leaves the processors to events and questions.
//!
//! Such work runs at full speed as long as processors are free. A low priority alone is not enough while they are busy: on a few
//! processors a thread that never waits keeps one of them nearly to itself, whatever its priority, and requests queue for the others. So
//! others interrupt the work when they wake up, and it pauses for as long as it finds itself waiting for a processor.

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant as Stopwatch};

/// How much lower the priority of work in the background is, as `nice` counts it.
const NICENESS: i32 = 5;
/// How long work goes on between two looks at how busy the processors are.
const SLICE: Duration = Duration::from_millis(2);
/// The longest pause.
const MAX_PAUSE: Duration = Duration::from_millis(100);
/// How much the share grows, in percentage points, after a slice without waiting.
const GROWTH: u32 = 10;
/// The processors are busy if a thread waits for one longer than this part of the time for which it has one.
const WAITS_ONE_IN: u32 = 8;

/// How fast work in the background goes on while the processors are busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tempo {
    /// It takes an eighth of a processor: it may take its time. At that tempo, sealing keeps up with half of what a server on two processors can take.
    Slow,
    /// It takes a quarter of a processor: it is not to fall behind.
    Steady,
    /// It never pauses: somebody waits for it.
    Full,
}

impl Tempo {
    /// Returns [`Tempo::Full`] if `is_urgent`, else [`Tempo::Steady`].
    #[must_use]
    pub fn urgent_if(is_urgent: bool) -> Self {
        if is_urgent { Self::Full } else { Self::Steady }
    }

    /// The part of a processor, in percent, that the work takes at least.
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

/// Work beside events and questions on a thread that serves them, which can't be left to the background. While it exists, what gives way
/// takes half as much of a processor.
#[derive(Debug)]
pub struct Burst(());

impl Burst {
    /// Begins such work.
    #[must_use]
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

/// How long a thread ran on a processor, and how long it waited for one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct ProcessorTime {
    ran: Duration,
    waited: Duration,
}

/// Adapts the share of a processor that some work takes to how busy the processors are.
#[derive(Debug)]
struct Pacer {
    times: Times,
    before: ProcessorTime,
    share: u32,
}

impl Pacer {
    /// Returns a pacer of the current thread's work. Only Linux knows how long a thread waits for a processor; elsewhere work never pauses.
    fn of_this_thread() -> Self {
        let times = Times::of_this_thread();
        let before = times.read().unwrap_or_default();
        Self { times, before, share: 100 }
    }

    /// Looks at how busy the processors were since the last look. Returns how long this thread ran meanwhile.
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

    /// The pause after work that kept the thread busy for `worked`.
    fn pause(&self, worked: Duration) -> Duration {
        (worked * (100 - self.share) / self.share).min(MAX_PAUSE)
    }
}

/// Work of a thread in the background.
struct Work {
    pacer: Pacer,
    slice_began: Stopwatch,
    tempo: Box<dyn Fn() -> Tempo>,
}

impl Work {
    /// The part of a processor, in percent, that the work takes at least.
    fn least_share(&self) -> u32 {
        let alone = (self.tempo)().least_share();
        if BURSTS.load(Ordering::Relaxed) > 0 { alone / 2 } else { alone }
    }

    /// Ends the slice if its time is over. Returns how long to pause then.
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

/// Puts the work of the current thread into the background: has the kernel prefer other threads, and has [`give_way`] pause unless `tempo` returns [`Tempo::Full`].
///
/// Only Linux knows priorities of threads. Elsewhere, and where the system refuses it, the thread stays as it is.
pub fn begin(tempo: impl Fn() -> Tempo + 'static) {
    if let Err(error) = headcount_scheduling::stand_back(NICENESS) {
        tracing::debug!(%error, "a thread in the background has the priority of all others");
    }
    let work = Work { pacer: Pacer::of_this_thread(), slice_began: Stopwatch::now(), tempo: Box::new(tempo) };
    WORK.set(Some(work));
}

/// Whether the current thread works in the background, and nobody waits for it. It writes to the disk little by little then, since a sync of much at once
/// would hold up those of others.
pub fn gives_way() -> bool {
    WORK.with_borrow(|work| work.as_ref().is_some_and(|work| (work.tempo)() != Tempo::Full))
}

/// Pauses if the current thread's work is in the background and the processors are busy. Long work calls this every few
/// microseconds to milliseconds, and holds no lock then that others need. Cheap, and does nothing on other threads.
pub fn give_way() {
    if let Some(pause) = WORK.with_borrow_mut(|work| work.as_mut().and_then(Work::end_slice)) {
        std::thread::sleep(pause);
    }
}

/// Reads the [`ProcessorTime`] of a thread.
#[derive(Debug)]
struct Times {
    /// What the kernel keeps of the thread. `None`: it keeps nothing.
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

/// Parses a line of `schedstat`: nanoseconds on a processor, nanoseconds of waiting for one, and the number of times that the thread got one.
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

use super::*;

/// A pacer that found, since the last look, what `ran` and `waited` say in milliseconds.
fn looks(pacer: &mut Pacer, ran: u64, waited: u64) -> Duration {
    let before = pacer.before;
    let now =
        ProcessorTime { ran: before.ran + Duration::from_millis(ran), waited: before.waited + Duration::from_millis(waited) };
    pacer.adapt(now, Tempo::Steady.least_share())
}

#[test]
fn work_that_never_waits_never_pauses() {
    let mut pacer = Pacer::of_this_thread();
    for _ in 0..100 {
        let ran = looks(&mut pacer, 2, 0);
        assert_eq!(pacer.pause(ran), Duration::ZERO);
    }
}

#[test]
fn work_that_waits_takes_a_quarter_of_a_processor_until_processors_are_free() {
    let mut pacer = Pacer::of_this_thread();
    looks(&mut pacer, 2, 2);
    assert_eq!(pacer.pause(Duration::from_millis(2)), Duration::from_millis(2));
    for _ in 0..100 {
        looks(&mut pacer, 2, 2);
    }
    assert_eq!(pacer.pause(Duration::from_millis(2)), Duration::from_millis(6));
    for _ in 0..8 {
        looks(&mut pacer, 2, 0);
    }
    assert_eq!(pacer.pause(Duration::from_millis(2)), Duration::ZERO);
}

/// The pause after two milliseconds of work that has long waited for processors.
fn least_pause(tempo: Tempo) -> Duration {
    let work = move || {
        begin(move || tempo);
        WORK.with_borrow_mut(|work| {
            let work = work.as_mut().unwrap();
            for _ in 0..10 {
                let before = work.pacer.before;
                let now = ProcessorTime { ran: before.ran, waited: before.waited + Duration::from_secs(1) };
                let least_share = work.least_share();
                work.pacer.adapt(now, least_share);
            }
            work.pacer.pause(Duration::from_millis(2))
        })
    };
    std::thread::spawn(work).join().unwrap()
}

#[test]
fn slow_work_takes_half_as_much_as_steady_work_and_half_of_that_beside_a_burst() {
    let (slow, steady) = (least_pause(Tempo::Slow), least_pause(Tempo::Steady));
    assert_eq!(steady, Duration::from_millis(2) * 75 / 25);
    assert_eq!(slow, Duration::from_millis(2) * 88 / 12);
    let burst = Burst::begin();
    assert_eq!(least_pause(Tempo::Slow), Duration::from_millis(2) * 94 / 6);
    drop(burst);
    assert_eq!(least_pause(Tempo::Slow), slow);
}

#[test]
fn no_pause_is_long() {
    let mut pacer = Pacer::of_this_thread();
    for _ in 0..10 {
        looks(&mut pacer, 2, 100);
    }
    assert_eq!(pacer.pause(Duration::from_secs(10)), MAX_PAUSE);
}

/// Works in the background, on a thread of its own, until one slice is over. Returns the pause
/// after it.
fn pause_after_a_slice(tempo: Tempo) -> Option<Duration> {
    let work = move || {
        begin(move || tempo);
        WORK.with_borrow_mut(|work| {
            let work = work.as_mut().unwrap();
            assert_eq!(work.end_slice(), None, "the slice has only begun");
            // As if others had kept this thread from a processor.
            work.pacer.share = 25;
            work.pacer.before.waited = Duration::ZERO;
            work.pacer.before.ran = Duration::ZERO;
            work.slice_began -= SLICE;
            work.end_slice()
        })
    };
    std::thread::spawn(work).join().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn urgent_work_never_pauses() {
    assert_eq!(pause_after_a_slice(Tempo::Full), None);
    assert!(pause_after_a_slice(Tempo::Slow).is_some_and(|pause| pause <= MAX_PAUSE));
}

#[cfg(target_os = "linux")]
#[test]
fn the_kernel_says_how_long_a_thread_ran() {
    let times = Times::of_this_thread();
    let before = times.read().unwrap();
    let began = Stopwatch::now();
    while began.elapsed() < Duration::from_millis(20) {
        std::hint::spin_loop();
    }
    assert!(times.read().unwrap().ran > before.ran);
    assert_eq!(parse("12 34 5\n"), Some(ProcessorTime { ran: Duration::from_nanos(12), waited: Duration::from_nanos(34) }));
    assert_eq!(parse("12\n"), None);
    assert_eq!(parse(""), None);
}

#[test]
fn only_the_thread_that_asks_is_in_the_background() {
    std::thread::spawn(|| begin(|| Tempo::Steady)).join().unwrap();
    WORK.with_borrow(|work| assert!(work.is_none()));
    // Does nothing here.
    give_way();
}

use super::*;

/// A pacer that found, since the last look, what `ran` and `waited` say in milliseconds.
fn looks(pacer: &mut Pacer, ran: u64, waited: u64) -> Duration {
    let before = pacer.before;
    let now =
        ProcessorTime { ran: before.ran + Duration::from_millis(ran), waited: before.waited + Duration::from_millis(waited) };
    pacer.adapt(now)
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

#[test]
fn no_pause_is_long() {
    let mut pacer = Pacer::of_this_thread();
    for _ in 0..10 {
        looks(&mut pacer, 2, 100);
    }
    assert_eq!(pacer.pause(Duration::from_secs(10)), MAX_PAUSE);
}

/// Works in the background, on a thread of its own, until one slice is over. Returns the pause after it.
fn pause_after_a_slice(is_urgent: bool) -> Option<Duration> {
    let work = move || {
        begin(move || is_urgent);
        WORK.with_borrow_mut(|work| {
            let work = work.as_mut().unwrap();
            assert_eq!(work.end_slice(), None, "the slice has only begun");
            // As if others had kept this thread from a processor.
            work.pacer.share = LEAST_SHARE;
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
    assert_eq!(pause_after_a_slice(true), None);
    assert!(pause_after_a_slice(false).is_some_and(|pause| pause <= MAX_PAUSE));
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
    std::thread::spawn(|| begin(|| false)).join().unwrap();
    WORK.with_borrow(|work| assert!(work.is_none()));
    // Does nothing here.
    give_way();
}

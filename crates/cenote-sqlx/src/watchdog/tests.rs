//! The rules of a watch, without a server.

use std::future::{pending, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::AtomicUsize;
use std::task::{Context, Poll, Wake, Waker};

use sqlx::Sqlite;
use sqlx::sqlite::SqliteConnectOptions;

use super::*;

const LONG: Duration = Duration::from_secs(3600);

fn watchdog(silent_after: Duration) -> Arc<Watchdog<Sqlite>> {
    let options = SqliteConnectOptions::new();
    Arc::new(Watchdog::new(
        silent_after,
        &Config::default(),
        &options,
        &None,
    ))
}

fn watch(dog: &Arc<Watchdog<Sqlite>>) -> Arc<Watch<Sqlite>> {
    let watch = Arc::new(Watch::new(Place::of(7), Arc::clone(dog)));
    lock(&dog.sessions).push(Arc::downgrade(&watch));
    watch
}

fn tasks() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

/// Lets the other tasks run until `holds` returns true.
async fn eventually(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..5000 {
        if holds() {
            return;
        }
        sleep(Duration::from_millis(1)).await;
    }
    panic!("never: {what}");
}

/// Polls once, and returns whether the future waits.
async fn waits<F: Future>(mut future: Pin<&mut F>) -> bool {
    poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_pending())).await
}

/// A task that counts its wake-ups, and an operation whose answer comes when the test says so.
#[derive(Default)]
struct Server {
    woken: AtomicUsize,
    answered: AtomicBool,
    driver: Mutex<Option<Waker>>,
}

impl Wake for Server {
    fn wake(self: Arc<Self>) {
        self.woken.fetch_add(1, Ordering::SeqCst);
    }
}

impl Server {
    async fn answer(&self) -> u8 {
        poll_fn(|context| {
            *lock(&self.driver) = Some(context.waker().clone());
            match self.answered.load(Ordering::SeqCst) {
                true => Poll::Ready(42),
                false => Poll::Pending,
            }
        })
        .await
    }

    /// Bytes arrive.
    fn stir(&self) {
        let driver = lock(&self.driver).take();
        driver.expect("the operation was polled").wake();
    }

    fn woken(&self) -> usize {
        self.woken.swap(0, Ordering::SeqCst)
    }
}

/// Plays the steps of `play` on an operation that waits. It gets a function that polls it.
fn play(
    play: impl FnOnce(&Arc<Watch<Sqlite>>, &Server, &mut dyn FnMut() -> Poll<Result<u8, Error>>),
) {
    let (watch, server) = (watch(&watchdog(LONG)), Arc::new(Server::default()));
    let task = Waker::from(Arc::clone(&server));
    let answer = pin!(server.answer());
    let mut wait = pin!(over(Some(&watch), answer));
    let mut poll = || wait.as_mut().poll(&mut Context::from_waker(&task));
    assert!(poll().is_pending() && watch.is_waiting());
    play(&watch, &server, &mut poll);
}

fn why() -> String {
    String::from("silent")
}

#[test]
fn a_verdict_wakes_the_task_and_fails_the_statement() {
    play(|watch, server, poll| {
        watch.fail(1, why());

        assert_eq!(server.woken(), 1);
        assert!(matches!(poll(), Poll::Ready(Err(error)) if error.to_string().contains("silent")));
    });
}

#[test]
fn an_answer_that_has_arrived_counts_more_than_a_verdict() {
    play(|watch, server, poll| {
        watch.fail(1, why());
        server.answered.store(true, Ordering::SeqCst);

        assert!(matches!(poll(), Poll::Ready(Ok(42))));
    });
}

#[test]
fn a_verdict_about_an_earlier_wait_has_no_effect() {
    play(|watch, server, poll| {
        watch.fail(0, why());

        assert_eq!(server.woken(), 0);
        assert!(poll().is_pending());
    });
}

/// Lets so much time pass that a look begins.
fn pass(watch: &Watch<Sqlite>) {
    let ticks = (0..=TICKS).map(|_| watch.tick(TICKS));
    assert!(ticks.fold(false, |any, tick| any | matches!(tick, Tick::Silent(1))));
}

#[test]
fn a_suspect_fails_after_a_second_look_before_which_nothing_arrived() {
    play(|watch, server, poll| {
        pass(watch);
        watch.suspect(1, why);
        assert_eq!(server.woken(), 1, "the task must be polled");
        assert!(poll().is_pending());

        pass(watch);
        watch.suspect(1, why);
        assert_eq!(server.woken(), 1);
        assert!(poll().is_ready());
    });
}

#[test]
fn a_suspect_whose_task_is_not_polled_does_not_fail() {
    play(|watch, _, poll| {
        for _ in 0..5 {
            pass(watch);
            watch.suspect(1, why);
        }

        assert!(poll().is_pending());
    });
}

#[test]
fn a_look_that_began_before_the_task_was_polled_proves_nothing() {
    play(|watch, _, poll| {
        pass(watch);
        watch.suspect(1, why);
        pass(watch); // the second look begins
        assert!(poll().is_pending());
        watch.suspect(1, why); // it ends
        assert!(poll().is_pending());

        assert!(
            matches!(watch.tick(TICKS), Tick::Waits),
            "a new look is not due"
        );
        pass(watch);
        watch.suspect(1, why);
        assert!(poll().is_ready());
    });
}

#[test]
fn a_suspect_does_not_fail_while_bytes_arrive() {
    play(|watch, server, poll| {
        pass(watch);
        watch.suspect(1, why);
        assert!(poll().is_pending());
        for before in [true, false, true, false] {
            server.woken();
            if before {
                server.stir();
                pass(watch);
            } else {
                pass(watch);
                server.stir();
            }
            assert_eq!(server.woken(), 1, "the wake-up of the driver is passed on");
            assert!(poll().is_pending());
            watch.suspect(1, why);
            assert!(poll().is_pending());
        }

        pass(watch);
        watch.suspect(1, why);
        assert!(poll().is_ready(), "nothing arrived since the look before");
    });
}

#[test]
fn a_session_that_is_at_work_again_needs_two_bad_looks_again() {
    play(|watch, _, poll| {
        pass(watch);
        watch.suspect(1, why);
        assert!(poll().is_pending());
        pass(watch);
        watch.is_fine(1);
        pass(watch);
        watch.suspect(1, why);
        assert!(poll().is_pending());

        pass(watch);
        watch.suspect(1, why);
        assert!(poll().is_ready());
    });
}

#[test]
fn a_wait_is_silent_after_as_many_whole_ticks_as_it_needs() {
    play(|watch, _, _| {
        let silent = (0..9).map(|_| matches!(watch.tick(TICKS), Tick::Silent(1)));
        let silent: Vec<bool> = silent.collect();

        assert_eq!(
            silent,
            [false, false, false, false, true, false, false, false, true]
        );
    });
}

#[tokio::test]
async fn the_task_exists_only_while_a_session_waits() {
    let dog = watchdog(Duration::from_millis(20));
    let watch = watch(&dog);
    for _ in 0..3 {
        let mut work = Box::pin(pending::<()>());
        let mut wait = Box::pin(over(Some(&watch), work.as_mut()));
        assert!(waits(wait.as_mut()).await);
        assert_eq!(tasks(), 1);

        drop(wait);

        eventually("the task has ended", || tasks() == 0).await;
        assert!(!watch.is_waiting());
    }
}

#[tokio::test]
async fn the_task_ends_with_its_handle() {
    let watch = watch(&watchdog(LONG));
    let mut work = Box::pin(pending::<()>());
    let mut wait = Box::pin(over(Some(&watch), work.as_mut()));
    assert!(waits(wait.as_mut()).await);
    assert_eq!(tasks(), 1);

    drop(wait);
    assert_eq!(tasks(), 1, "it sleeps for a quarter of an hour");
    drop(watch);

    eventually("the task has ended", || tasks() == 0).await;
}

#[test]
fn a_runtime_that_ends_takes_the_task_and_the_next_wait_starts_another_one() {
    let dog = watchdog(LONG);
    let watch = watch(&dog);
    for _ in 0..2 {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_all().build().unwrap().block_on(async {
            let mut work = Box::pin(pending::<()>());
            let mut wait = Box::pin(over(Some(&watch), work.as_mut()));
            assert!(waits(wait.as_mut()).await);

            assert_eq!(tasks(), 1);
        });
    }
}

#[tokio::test(start_paused = true)]
async fn a_paused_clock_is_no_silence() {
    let dog = watchdog(LONG);
    let watch = watch(&dog);
    let mut work = Box::pin(pending::<()>());
    let mut wait = Box::pin(over(Some(&watch), work.as_mut()));

    let waited = timeout(LONG * 100, &mut wait).await;

    assert!(waited.is_err(), "the watchdog went by the paused clock");
    assert_eq!(tasks(), 0);
}

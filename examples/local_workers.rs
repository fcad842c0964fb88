//! Run: cargo run -p cenote-examples --example local_workers
//!
//! How does each worker thread of a server get a pool of its own?

use std::cell::Cell;
use std::error::Error;
use std::rc::Rc;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;

use cenote::Config;
use cenote::local::LocalPool;
use tokio::runtime::Builder;
use tokio::task::{LocalSet, spawn_local};

const WORKERS: usize = 4;
const REQUESTS: usize = 1000;

/// A session that shares data of its worker. It is not `Send`.
struct Session {
    answered: Rc<Cell<usize>>,
}

/// Answers the requests of one worker: each in a task, and all on this thread.
async fn serve(config: Config, requests: Receiver<usize>) -> Result<(usize, usize), String> {
    let answered = Rc::new(Cell::new(0));
    let shared = Rc::clone(&answered);
    let pool = LocalPool::from_fn(async move || {
        let answered = Rc::clone(&shared);
        Ok::<_, String>(Session { answered })
    });
    let pool = pool
        .config(config)
        .build()
        .map_err(|error| error.to_string())?;
    let mut tasks = Vec::new();
    for _request in requests {
        let pool = pool.clone();
        tasks.push(spawn_local(async move {
            let session = pool.acquire().await.map_err(|error| error.to_string())?;
            tokio::task::yield_now().await;
            session.answered.set(session.answered.get() + 1);
            Ok::<_, String>(())
        }));
    }
    for task in tasks {
        task.await.map_err(|error| error.to_string())??;
    }
    let status = pool.status();
    let opened = status.opened as usize;
    println!(
        "{}: {} requests by {opened} of {} sessions, {} waited",
        pool.name(),
        answered.get(),
        status.max_size,
        status.waited
    );
    Ok((answered.get(), opened))
}

/// One worker: a thread with a runtime and a `LocalSet` of its own.
fn work(config: Config, requests: Receiver<usize>) -> Result<(usize, usize), String> {
    let runtime = Builder::new_current_thread().enable_time().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    LocalSet::new().block_on(&runtime, serve(config, requests))
}

fn main() -> Result<(), Box<dyn Error>> {
    // The database allows 10 sessions, and the workers share them.
    let total = Config {
        name: Some("sessions".to_owned()),
        max_size: 10,
        ..Config::default()
    };
    let mut workers = Vec::new();
    let mut doors: Vec<SyncSender<usize>> = Vec::new();
    for config in total.divide(WORKERS)? {
        let (door, requests) = mpsc::sync_channel(REQUESTS);
        doors.push(door);
        workers.push(thread::spawn(move || work(config, requests)));
    }
    for request in 0..REQUESTS {
        doors[request % WORKERS].send(request)?;
    }
    drop(doors);

    let (mut answered, mut opened) = (0, 0);
    for worker in workers {
        let (requests, sessions) = worker.join().map_err(|_| "a worker panicked")??;
        answered += requests;
        opened += sessions;
    }
    assert_eq!(answered, REQUESTS);
    assert!(opened <= total.max_size, "the total is kept");
    println!("{answered} requests by {opened} sessions of all workers");
    Ok(())
}

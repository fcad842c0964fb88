//! The resources of the soak. They hold memory and, some of them, file descriptors. Their backend
//! fails now and then.

use std::future;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cenote::{LeaseEnd, Manager};

use crate::backend::{Call, Fault, explode};

/// How many resources exist now, in the pools and outside.
#[derive(Clone, Debug, Default)]
pub(super) struct Alive(Arc<AtomicUsize>);

impl Alive {
    pub(super) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    fn one_more(&self) -> One {
        self.0.fetch_add(1, Ordering::SeqCst);
        One(Arc::clone(&self.0))
    }
}

/// Counts a resource for as long as it exists.
#[derive(Debug)]
struct One(Arc<AtomicUsize>);

impl Drop for One {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Some memory, and a pipe if its manager gives it one. Unread bytes in the pipe make it dirty.
#[derive(Debug)]
pub(super) struct Thing {
    memory: Vec<u8>,
    pipe: Option<(PipeReader, PipeWriter)>,
    unread: usize,
    _one: One,
}

impl Thing {
    pub(super) fn new(with_pipe: bool, alive: &Alive) -> io::Result<Self> {
        Ok(Self {
            memory: vec![0; 512],
            pipe: with_pipe.then(io::pipe).transpose()?,
            unread: 0,
            _one: alive.one_more(),
        })
    }

    /// Leaves a byte in the pipe.
    pub(super) fn use_it(&mut self) -> io::Result<()> {
        let length = self.memory.len();
        self.memory[fastrand::usize(..length)] += 1;
        if let Some((_, writer)) = &mut self.pipe {
            writer.write_all(&[1])?;
            self.unread += 1;
        }
        Ok(())
    }

    /// Reads the bytes that are left, so that the resource is clean again.
    fn drain(&mut self) -> io::Result<()> {
        if let Some((reader, _)) = &mut self.pipe {
            reader.read_exact(&mut self.memory[..self.unread])?;
            self.unread = 0;
        }
        Ok(())
    }
}

#[derive(Debug)]
pub(super) struct Flaky {
    pub(super) with_pipe: bool,
    pub(super) alive: Alive,
}

/// How many of a thousand calls fail, panic, hang (until their time limit) and are slow. The others
/// pass.
const FAIL: u32 = 20;
const PANIC: u32 = 5;
const HANG: u32 = 2;
const SLOW: u32 = 50;

/// Draws what a call does. Its error owns no memory, because a pool keeps the last one.
async fn luck(call: Call) -> Result<(), Fault> {
    match fastrand::u32(0..1000) {
        n if n < FAIL => return Err(Fault(call)),
        n if n < FAIL + PANIC => explode(call),
        n if n < FAIL + PANIC + HANG => future::pending().await,
        n if n < FAIL + PANIC + HANG + SLOW => {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        n if n % 2 == 0 => tokio::task::yield_now().await,
        _ => {}
    }
    Ok(())
}

impl Manager for Flaky {
    type Resource = Thing;
    type Error = Fault;

    async fn open(&self) -> Result<Thing, Fault> {
        luck(Call::Open).await?;
        Thing::new(self.with_pipe, &self.alive).map_err(|_| Fault(Call::Open))
    }

    async fn check(&self, _: &mut Thing) -> Result<(), Fault> {
        luck(Call::Check).await
    }

    fn is_broken(&self, _: &mut Thing, _: LeaseEnd) -> bool {
        match fastrand::u32(0..1000) {
            n if n < PANIC => explode(Call::IsBroken),
            n => n < PANIC + FAIL,
        }
    }

    fn needs_cleaning(&self, thing: &mut Thing) -> bool {
        thing.unread > 0
    }

    async fn clean(&self, thing: &mut Thing) -> Result<(), Fault> {
        luck(Call::Clean).await?;
        thing.drain().map_err(|_| Fault(Call::Clean))
    }

    async fn close(&self, thing: Thing) -> Result<(), Fault> {
        // A resource whose close fails is closed all the same.
        let closed = luck(Call::Close).await;
        drop(thing);
        closed
    }
}

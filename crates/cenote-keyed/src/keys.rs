//! The keys: a map in shards, from which keys without resources are dropped.
//!
//! A key is dropped when other keys come. Each new key looks at three others of its shard, in a
//! circle, and drops those that have no resource and no caller and were not looked up since the
//! last look. So there are at most about three times as many keys as are in use, and no task has
//! to sweep.

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use cenote::Manager;

use crate::key::Entry;

/// More than the cores that look up keys at the same time on most machines.
const SHARDS: usize = 64;

/// A key is dropped at the second look. With a third, there are looks for the keys in use, too, and
/// the number of keys does not grow.
const LOOKS: usize = 3;

pub(crate) struct Keys<K, M: Manager + 'static> {
    hasher: RandomState,
    shards: Vec<RwLock<Shard<K, M>>>,
}

struct Shard<K, M: Manager + 'static> {
    map: HashMap<K, Arc<Entry<K, M>>, RandomState>,
    /// The keys of the map, in the order in which they are looked at.
    circle: VecDeque<Arc<Entry<K, M>>>,
    closed: bool,
}

impl<K, M> Keys<K, M>
where
    K: Hash + Eq + Clone + fmt::Debug + Send + Sync + 'static,
    M: Manager + 'static,
{
    pub(crate) fn new() -> Self {
        let hasher = RandomState::new();
        let shard = || {
            RwLock::new(Shard {
                map: HashMap::with_hasher(hasher.clone()),
                circle: VecDeque::new(),
                closed: false,
            })
        };
        Self {
            shards: (0..SHARDS).map(|_| shard()).collect(),
            hasher,
        }
    }

    /// Returns the entry of a key, if it has one.
    #[inline]
    pub(crate) fn find(&self, key: &K) -> Option<Arc<Entry<K, M>>> {
        let shard = read(self.shard(key));
        let entry = shard.map.get(key)?;
        entry.touch();
        Some(Arc::clone(entry))
    }

    /// Adds an entry, unless another thread was faster. Returns the one that is there, or `None`
    /// if the keys are closed.
    pub(crate) fn add(&self, added: Arc<Entry<K, M>>) -> Option<Arc<Entry<K, M>>> {
        let mut shard = write(self.shard(&added.key));
        if shard.closed {
            return None;
        }
        if let Some(entry) = shard.map.get(&added.key) {
            return Some(Arc::clone(entry));
        }
        let dropped = shard.sweep();
        shard.map.insert(added.key.clone(), Arc::clone(&added));
        shard.circle.push_back(Arc::clone(&added));
        drop(shard);
        // The end of a pool is user code.
        drop(dropped);
        Some(added)
    }

    /// Returns all entries.
    pub(crate) fn all(&self) -> Vec<Arc<Entry<K, M>>> {
        let shards = self.shards.iter();
        shards
            .flat_map(|shard| read(shard).circle.iter().cloned().collect::<Vec<_>>())
            .collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| read(shard).map.len()).sum()
    }

    /// Lets no key come from now on. Returns all entries.
    pub(crate) fn close(&self) -> Vec<Arc<Entry<K, M>>> {
        for shard in &self.shards {
            write(shard).closed = true;
        }
        self.all()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.shards.iter().all(|shard| read(shard).closed)
    }

    fn shard(&self, key: &K) -> &RwLock<Shard<K, M>> {
        // The map uses the low bits and the high seven.
        let place = self.hasher.hash_one(key) >> 32;
        &self.shards[place as usize % SHARDS]
    }
}

impl<K, M> Shard<K, M>
where
    K: Hash + Eq + Clone + fmt::Debug + Send + Sync + 'static,
    M: Manager + 'static,
{
    /// Takes out the next keys of the circle that are idle.
    fn sweep(&mut self) -> Vec<Arc<Entry<K, M>>> {
        let mut dropped = Vec::new();
        for _ in 0..LOOKS.min(self.circle.len()) {
            let Some(entry) = self.circle.pop_front() else {
                break;
            };
            if Entry::is_idle(&entry) {
                dropped.extend(self.map.remove(&entry.key));
                dropped.push(entry);
            } else {
                self.circle.push_back(entry);
            }
        }
        dropped
    }
}

fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

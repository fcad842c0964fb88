//! What the scenes work with, and what they say.

use std::time::Duration;

use cenote::Pool;
use serde::Serialize;

use super::crowd::Crowd;
use super::live::Live;
use super::shop::Shop;
use super::wired::Wired;

#[derive(Debug)]
pub(super) struct Stage<S: Shop> {
    pub(super) pool: Pool<Wired<S>>,
    pub(super) crowd: Crowd,
    pub(super) live: Live<S>,
    pub(super) lasts: Duration,
    pub(super) tasks: u32,
}

/// What a scene has shown.
#[derive(Clone, Debug, Serialize)]
pub(super) struct SceneResult {
    pub(super) scene: &'static str,
    pub(super) shown: String,
    /// Whether it is what the scene promises.
    pub(super) ok: bool,
}

impl<S: Shop> Stage<S> {
    /// Tells where the shop is, if it is on the server of a user.
    pub(super) fn welcome(&self) {
        if let Some(place) = self.pool.manager().shop.place() {
            self.live
                .say(&format!("the shop: {place}, removed at the end"));
        }
    }

    /// Tells in one sentence what happens now.
    pub(super) fn announce(&self, scene: &'static str, sentence: &str) {
        self.live.say(&format!("{scene}: {sentence}"));
    }

    /// Tells what was seen.
    pub(super) fn result(&self, scene: &'static str, shown: Result<String, &str>) -> SceneResult {
        let ok = shown.is_ok();
        let shown = shown.unwrap_or_else(str::to_owned);
        self.live.say(&format!("  -> {shown}"));
        SceneResult { scene, shown, ok }
    }

    /// Returns a part of the whole time.
    pub(super) fn part(&self, percent: u32) -> Duration {
        self.lasts * percent / 100
    }

    pub(super) fn interrupted(&self) -> SceneResult {
        let shown = "the scenes were ended, and the pool is drained".to_owned();
        self.result("interrupt", Ok(shown))
    }
}

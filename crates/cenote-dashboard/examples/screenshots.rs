//! Run with `cargo xtask screenshots`: writes pictures of the page to `screenshots/`.
//!
//! `CENOTE_SCENE_SECONDS` is how long the load runs before, and `CENOTE_DRAFTS` a folder for whole
//! pages at several widths in place of the pictures.

#![expect(clippy::unwrap_used, reason = "only the authors of the page run it")]

#[path = "../tests/it/browser.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod browser;
#[path = "screenshots/picture.rs"]
mod picture;
#[path = "screenshots/scene.rs"]
mod scene;

use std::env;
use std::fs;
use std::path::Path;

use browser::Tab;
use scene::Scene;

/// The README of a crate must not become a download.
const MOST_BYTES: usize = 150_000;

#[tokio::main]
async fn main() {
    let scene = Scene::start().await;
    let tab = Tab::open(&scene.address).await;
    scene.wait(&tab).await;
    let list = ("overview", "#/".to_owned());
    for theme in ["light", "dark"] {
        tab.prefer("prefers-color-scheme", theme).await;
        if let Ok(folder) = env::var("CENOTE_DRAFTS") {
            for (size, width) in [("wide", 1280), ("tablet", 800), ("phone", 360)] {
                for (name, hash) in [list.clone(), ("pool", scene.hash())] {
                    show(&tab, &hash, width, 900).await;
                    let file = format!("{folder}/{name}-{size}-{theme}.png");
                    fs::write(file, picture::take(&tab, true).await).unwrap();
                }
            }
            continue;
        }
        for (name, hash, width, height) in [
            (list.0, list.1.clone(), 1160, 500),
            ("pool", scene.hash(), 1160, 860),
            ("phone", scene.hash(), 390, 844),
        ] {
            show(&tab, &hash, width, height).await;
            save(
                &format!("{name}-{theme}"),
                &picture::take(&tab, false).await,
            );
        }
    }
    tab.assert_content();
}

async fn show(tab: &Tab, hash: &str, width: u32, height: u32) {
    tab.size(width, height).await;
    tab.eval(&format!("location.hash = {hash:?}; scrollTo(0, 0)"))
        .await;
    tab.until("document.querySelector('.pools tbody tr, .slots .cell')")
        .await;
    // Some frames of the stream, so that everything is drawn.
    tab.eval("new Promise((done) => setTimeout(done, 700))")
        .await;
}

fn save(name: &str, picture: &[u8]) {
    let bytes = picture.len();
    assert!(bytes < MOST_BYTES, "{name} has {bytes} bytes");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("screenshots");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(format!("{name}.png")), picture).unwrap();
    println!("screenshots/{name}.png: {bytes} bytes");
}

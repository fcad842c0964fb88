//! The page without a mouse.

use cenote_dashboard::{Dashboard, Token};

use super::browser::Tab;
use super::rig::{Server, TOKEN, pool};

/// Describes the element with the focus, and whether the focus can be seen.
const FOCUSED: &str = "(() => {
    const node = document.activeElement;
    const style = getComputedStyle(node);
    const seen = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2
        || node.className === 'skip';
    return `${seen ? '' : 'unseen '}${node.tagName.toLowerCase()} ${node.getAttribute('aria-label') ?? node.innerText ?? ''}`;
})()";

async fn focused(tab: &Tab) -> String {
    tab.eval(FOCUSED).await.as_str().unwrap().trim().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_is_reached_read_and_left_by_keys() {
    let pool = pool("keys", 5);
    let server = Server::start(Dashboard::new().actions(Token::new(TOKEN).unwrap()));
    let tab = Tab::open(&server.url("/live")).await;
    tab.until("document.querySelector('.pools tbody tr')").await;
    let mut seen = Vec::new();
    loop {
        tab.press("Tab").await;
        let now = focused(&tab).await;
        assert!(!now.starts_with("unseen"), "{now}");
        seen.push(now);
        if seen.last().unwrap() == "a keys" {
            break;
        }
        assert!(seen.len() < 60, "{seen:?}");
    }
    assert_eq!(seen[0], "a Skip to content");
    for part in [
        "button Theme: system",
        "input Filter pools by name",
        "button Waiting",
    ] {
        assert!(seen.iter().any(|one| one == part), "{part}: {seen:?}");
    }

    tab.press("Enter").await;
    tab.until(
        "document.activeElement.tagName === 'H1' && document.activeElement.innerText === 'keys'",
    )
    .await;
    let mut found = Vec::new();
    while found.len() < 60 && !found.iter().any(|one| one == "button Close pool") {
        tab.press("Tab").await;
        let now = focused(&tab).await;
        assert!(!now.starts_with("unseen"), "{now}");
        found.push(now);
    }
    for part in [
        "svg Wait for a lease, over time",
        "button Suspend",
        "button Close pool",
    ] {
        assert!(found.iter().any(|one| one == part), "{part}: {found:?}");
    }

    tab.press("Enter").await;
    tab.until("document.querySelector('dialog').open").await;
    assert_eq!(
        focused(&tab).await,
        "button Cancel",
        "the safe answer has the focus"
    );
    tab.press("Escape").await;
    tab.until("!document.querySelector('dialog')").await;
    assert_eq!(
        focused(&tab).await,
        "button Close pool",
        "the focus goes back"
    );
    assert!(!pool.is_closed());
    tab.eval("document.querySelector('.crumb').focus()").await;
    tab.press("Enter").await;
    tab.until("document.activeElement.innerText === 'Pools'")
        .await;
    tab.assert_content();
}

#[tokio::test(flavor = "multi_thread")]
async fn arrow_keys_read_a_chart() {
    let pool = pool("keys chart", 5);
    let server = Server::start(Dashboard::new());
    let _held = pool.acquire().await.unwrap();
    let tab = Tab::open(&server.url(&format!("/live#/pool/{}", pool.number()))).await;
    tab.until("document.querySelector('.plot')?.getAttribute('aria-valuemax') >= 1")
        .await;
    tab.eval("document.querySelector('.plot').focus()").await;

    tab.press("ArrowLeft").await;

    let value = "document.querySelector('.plot').getAttribute('aria-valuetext')";
    tab.until(&format!("{value}.includes(' ago: in use ')"))
        .await;
    assert_eq!(
        tab.eval("document.querySelector('.cursor').getAttribute('visibility')")
            .await,
        "visible"
    );
    tab.assert_content();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_switch_changes_the_colours_and_is_remembered() {
    let server = Server::start(Dashboard::new());
    let tab = Tab::open(&server.url("/live")).await;
    let ground = "getComputedStyle(document.body).backgroundColor";
    tab.prefer("prefers-color-scheme", "dark").await;
    assert_eq!(tab.eval(ground).await, "rgb(15, 19, 24)");
    tab.eval("document.getElementById('theme').focus()").await;

    tab.press("Enter").await;

    assert_eq!(tab.text("#theme").await, "Theme: light");
    assert_eq!(tab.eval(ground).await, "rgb(244, 246, 248)");
    tab.go(&server.url("/live")).await;
    tab.until("document.getElementById('theme').innerText === 'Theme: light'")
        .await;
    assert_eq!(tab.eval(ground).await, "rgb(244, 246, 248)");
    tab.assert_content();
}

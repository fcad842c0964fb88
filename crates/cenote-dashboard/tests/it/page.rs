//! The page in a real browser: it shows what the pools are, whatever their names, and comes back
//! after a loss.

use std::time::Duration;

use cenote::{Lease, Pool};
use cenote_dashboard::{Dashboard, Token};
use serde_json::json;
use tokio::time::sleep;

use super::browser::Tab;
use super::rig::{Server, TOKEN, pool};

/// The row of a pool in the list, as an expression.
fn row(number: u64) -> String {
    format!("document.querySelector('a[href=\"#/pool/{number}\"]').closest('tr')")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_shows_the_numbers_of_the_status() {
    let orders = pool("page orders", 8);
    let mail = Pool::from_fn(async || Ok::<_, &str>(())).name("page mail");
    let mail = mail
        .max_size(2)
        .stuck_after(Duration::from_secs(600))
        .build()
        .unwrap();
    let server = Server::start(Dashboard::new());
    let held = [
        orders.acquire().await.unwrap(),
        orders.acquire().await.unwrap(),
    ];
    drop(orders.acquire().await.unwrap());
    let full = [mail.acquire().await.unwrap(), mail.acquire().await.unwrap()];
    let waiting = tokio::spawn({
        let mail = mail.clone();
        async move { drop(mail.acquire_within(Duration::from_secs(60)).await) }
    });

    let tab = Tab::open(&server.url("")).await;

    let cells = |number: u64| format!("[...{}.cells].map((cell) => cell.innerText)", row(number));
    tab.until(&format!(
        "{}.cells[7].innerText === '1'",
        row(mail.number())
    ))
    .await;
    let status = orders.status();
    let shown = tab.eval(&cells(orders.number())).await;
    assert_eq!(shown[0], "healthy");
    assert_eq!(
        shown[1].as_str().unwrap().lines().next(),
        Some("page orders")
    );
    let numbers = [
        status.in_use,
        status.max_size,
        status.idle,
        status.opening,
        status.waiting,
    ];
    let numbers = numbers.map(|number| json!(number.to_string()));
    assert_eq!(shown.as_array().unwrap()[3..8], numbers);
    let shown = tab.eval(&cells(mail.number())).await;
    assert_eq!(
        (&shown[0], &shown[3], &shown[4]),
        (&json!("busy"), &json!("2"), &json!("2"))
    );

    drop((held, full));
    tab.until(&format!(
        "{}.cells[3].innerText === '0'",
        row(orders.number())
    ))
    .await;
    tab.assert_content();
    waiting.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_numbers_of_a_pool_under_load_follow_its_status() {
    let busy = Pool::from_fn(async || Ok::<_, &str>(()))
        .name("page load")
        .max_size(6);
    let busy = busy.build().unwrap();
    let server = Server::start(Dashboard::new());
    let load: Vec<_> = (0..12)
        .map(|_| {
            let busy = busy.clone();
            tokio::spawn(async move {
                loop {
                    let lease = busy.acquire().await;
                    sleep(Duration::from_millis(3)).await;
                    drop(lease);
                }
            })
        })
        .collect();
    let tab = Tab::open(&server.url(&format!("#/pool/{}", busy.number()))).await;
    tab.go(&server.url(&format!("/live#/pool/{}", busy.number())))
        .await;
    tab.until("document.querySelectorAll('.slots .cell[data-state=leased]').length >= 2")
        .await;

    let total = "Number([...document.querySelectorAll('.counts div')]
        .find((row) => row.innerText.startsWith('acquired')).lastChild.innerText.replaceAll(',', ''))";
    let before = busy.status().acquired;
    tab.until(&format!("{total} >= {before}")).await;
    let shown = tab.eval(total).await.as_u64().unwrap();
    assert!(
        (before..=busy.status().acquired).contains(&shown),
        "{shown}"
    );
    tab.until("document.querySelector('.plot .p99').getAttribute('d').length > 20")
        .await;

    load.iter().for_each(|task| task.abort());
    for task in load {
        let _ = task.await;
    }
    let last = busy.status();
    assert_eq!(last.in_use, 0);
    tab.until(&format!("{total} === {}", last.acquired)).await;
    let figures = tab.text(".figures").await;
    assert!(
        figures.starts_with("In use\n0 of 6\nIdle\n6\n"),
        "{figures}"
    );
    tab.assert_content();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_planted_leak_shows_its_line_within_two_seconds() {
    let leak_after = Duration::from_millis(300);
    let leaky = Pool::from_fn(async || Ok::<_, &str>(())).name("page leak");
    let leaky = leaky.max_size(3).leak_after(leak_after).build().unwrap();
    let server = Server::start(Dashboard::new());
    let tab = Tab::open(&server.url(&format!("/live#/pool/{}", leaky.number()))).await;
    tab.until("document.querySelectorAll('.slots .cell').length === 3")
        .await;

    let forgotten = leaky.acquire().await.unwrap();
    let line = line!() - 1;
    Lease::label(&forgotten, "monthly report");
    let site = format!("{}:{line}", file!());
    let holder = format!("document.querySelector('tr.leaked')?.innerText.includes({site:?})");
    let passed = tab.until(&holder).await;

    assert!(passed < Duration::from_secs(2), "{passed:?}");
    let row = tab.text("tr.leaked").await;
    assert!(
        row.contains("longer than leak_after") && row.contains("monthly report"),
        "{row}"
    );
    tab.until("document.querySelector('.cell[data-leaked]')")
        .await;
    tab.until("document.querySelector('.events').innerText.includes('leaked')")
        .await;
    tab.until("document.querySelector('.advice').innerText.includes('a leak or slow work')")
        .await;
    tab.assert_content();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_is_a_script_stays_text() {
    let name = "<script>alert(1)</script><img src=x onerror=alert(2)>";
    let odd = pool(name, 2);
    let server = Server::start(Dashboard::new());
    let held = odd.acquire().await.unwrap();
    Lease::label(&held, "<b onmouseover=alert(3)>label</b>");
    let tab = Tab::blank().await;
    let watch = "window.alerts = 0; window.alert = () => { window.alerts += 1; };";
    let source = json!({"source": watch});
    tab.call("Page.addScriptToEvaluateOnNewDocument", source)
        .await;

    tab.go(&server.url("/live")).await;
    tab.until(&format!(
        "{}.innerText.includes({name:?})",
        row(odd.number())
    ))
    .await;
    tab.go(&server.url(&format!("/live#/pool/{}", odd.number())))
        .await;
    tab.until(&format!(
        "document.querySelector('h1').textContent === {name:?}"
    ))
    .await;
    tab.until("document.body.innerText.includes('<b onmouseover=alert(3)>label</b>')")
        .await;

    let inside =
        tab.eval("document.querySelectorAll('main script, main img, main b[onmouseover]').length");
    assert_eq!(inside.await, 0);
    assert_eq!(tab.eval("window.alerts").await, 0);
    tab.assert_content();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_comes_back_after_a_restart_of_the_server() {
    let pool = pool("page restart", 5);
    let mut server = Server::start(Dashboard::new());
    let tab = Tab::open(&server.url("/live")).await;
    let in_use = |count: u64| format!("{}.cells[3].innerText === '{count}'", row(pool.number()));
    tab.until(&in_use(0)).await;

    server.stop();
    tab.until("document.getElementById('state-text').innerText === 'Connection lost'")
        .await;
    tab.until("!document.getElementById('banner').hidden").await;
    let _held = pool.acquire().await.unwrap();
    let _server = Server::at(server.address, Dashboard::new());

    tab.until("document.getElementById('state-text').innerText === 'Live'")
        .await;
    tab.until(&in_use(1)).await;
    assert_eq!(
        tab.eval("document.getElementById('banner').hidden").await,
        true
    );
    // While there is no server, the browser itself reports that it cannot connect.
    let complaints = tab.complaints();
    let own = complaints.iter().filter(|text| !text.contains("net::ERR_"));
    assert_eq!(own.count(), 0, "{complaints:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hidden_page_rests_and_comes_back_with_fresh_numbers() {
    let pool = pool("page hidden", 5);
    let server = Server::start(Dashboard::new());
    let tab = Tab::open(&server.url("/live")).await;
    let state =
        |text: &str| format!("document.getElementById('state-text').innerText === '{text}'");
    tab.until(&state("Live")).await;
    let hide = |hidden: bool| {
        format!(
            "Object.defineProperty(document, 'hidden', {{ value: {hidden}, configurable: true }});
             document.dispatchEvent(new Event('visibilitychange'));"
        )
    };

    tab.eval(&hide(true)).await;
    tab.until(&state("Paused")).await;
    let clients = "fetch('api/pools').then((it) => it.json()).then((it) => it.clients)";
    let mut open = tab.eval(clients).await;
    while open != 0 {
        open = tab.eval(clients).await;
    }
    let _held = pool.acquire().await.unwrap();
    tab.eval(&hide(false)).await;

    tab.until(&state("Live")).await;
    tab.until(&format!(
        "{}.cells[3].innerText === '1'",
        row(pool.number())
    ))
    .await;
    tab.assert_content();
}

#[tokio::test(flavor = "multi_thread")]
async fn actions_work_with_the_token_only() {
    let pool = pool("page actions", 5);
    let server = Server::start(Dashboard::new().actions(Token::new(TOKEN).unwrap()));
    let tab = Tab::open(&server.url(&format!("/live#/pool/{}", pool.number()))).await;
    tab.until("document.querySelector('.actions button')?.offsetParent")
        .await;
    let click = |title: &str| {
        format!(
            "[...document.querySelectorAll('button')]
                .find((it) => it.innerText === {title:?} && it.offsetParent).click()"
        )
    };
    let said = |text: &str| format!("document.querySelector('.said').innerText.includes({text:?})");

    tab.eval(&click("Suspend")).await;
    tab.until(&said("Refused: the token is wrong")).await;
    assert!(!pool.is_suspended());
    tab.eval("document.querySelector('.token input').focus()")
        .await;
    tab.write(TOKEN).await;
    tab.eval(&click("Suspend")).await;
    tab.until(&said("Done: suspend")).await;
    assert!(pool.is_suspended());
    tab.until("document.querySelector('.title').innerText.includes('suspended')")
        .await;
    tab.eval(&click("Resume")).await;
    tab.until(&said("Done: resume")).await;
    tab.eval("document.querySelector('.size input').value = 7")
        .await;
    tab.eval(&click("Resize")).await;
    tab.until(&said("Done: resize to 7")).await;
    assert_eq!(pool.status().max_size, 7);
    tab.until("document.querySelectorAll('.slots .cell').length === 7")
        .await;

    tab.eval(&click("Close pool")).await;
    tab.until("document.querySelector('dialog').open").await;
    tab.eval(&click("Cancel")).await;
    tab.until("!document.querySelector('dialog')").await;
    assert!(!pool.is_closed());
    tab.eval(&click("Close pool")).await;
    tab.until("document.querySelector('dialog').open").await;
    tab.eval("document.querySelector('dialog .danger').click()")
        .await;
    tab.until(&said("Done: close")).await;
    assert!(pool.is_closed());
    let kept =
        "JSON.stringify([document.cookie, location.href, {...localStorage}, {...sessionStorage}])";
    let kept = tab.eval(kept).await;
    assert!(!kept.as_str().unwrap().contains(TOKEN), "{kept}");
    // The browser reports the one response with the status 401.
    let complaints = tab.complaints();
    let own = complaints
        .iter()
        .filter(|text| !text.contains("status of 401"));
    assert_eq!(own.count(), 0, "{complaints:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_permission_there_are_no_buttons_that_act() {
    let pool = pool("page no actions", 5);
    let server = Server::start(Dashboard::new());
    let tab = Tab::open(&server.url(&format!("/live#/pool/{}", pool.number()))).await;
    tab.until("document.querySelectorAll('.slots .cell').length === 5")
        .await;

    assert_eq!(
        tab.eval("document.querySelector('.actions').hidden").await,
        true
    );
    tab.assert_content();
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_scrolls_sideways_on_a_phone() {
    let long = "a-name-of-a-pool-that-is-much-longer-than-the-screen-of-a-phone-is-wide-in-letters";
    let (narrow, wide) = (pool(long, 200), pool("page phone", 5));
    let server = Server::start(Dashboard::new().actions(Token::new(TOKEN).unwrap()));
    let held = wide.acquire().await.unwrap();
    Lease::label(
        &held,
        "a label without any blank: ".to_owned() + &"x".repeat(120),
    );
    let tab = Tab::blank().await;
    for width in [360, 390, 768, 1280] {
        tab.size(width, 800).await;
        for hash in [
            "#/".to_owned(),
            format!("#/pool/{}", narrow.number()),
            format!("#/pool/{}", wide.number()),
        ] {
            tab.go("about:blank").await;
            tab.go(&server.url(&format!("/live{hash}"))).await;
            tab.until("document.querySelector('.pools tbody tr, .slots .cell')")
                .await;

            let overflow = tab.eval(
                "[document.scrollingElement, ...document.querySelectorAll('.scroll, .card')]
                    .filter((node) => node.scrollWidth > node.clientWidth + 1)
                    .map((node) => `${node.className}: ${node.scrollWidth} > ${node.clientWidth}`)",
            );
            assert_eq!(overflow.await, json!([]), "{width} {hash}");
        }
    }
    tab.assert_content();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_too_many_says_why_it_is_not_live() {
    let server = Server::start(Dashboard::new().max_clients(0));
    let tab = Tab::open(&server.url("/live")).await;

    tab.until("document.getElementById('banner').innerText.includes('too many pages are open')")
        .await;

    // The browser reports each response with the status 503.
    let complaints = tab.complaints();
    let own = complaints
        .iter()
        .filter(|text| !text.contains("status of 503"));
    assert_eq!(own.count(), 0, "{complaints:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_that_is_dropped_is_told_as_gone() {
    let pool = pool("page gone", 1);
    let server = Server::start(Dashboard::new());
    let tab = Tab::open(&server.url(&format!("/live#/pool/{}", pool.number()))).await;
    tab.until("document.querySelector('.slots .cell')").await;

    drop(pool);

    tab.until("document.querySelector('h1').innerText === 'The pool is gone'")
        .await;
    tab.assert_content();
}

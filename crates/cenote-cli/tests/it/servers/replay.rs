//! A trace of a service on PostgreSQL: recorded by its page, and replayed.

use axum::Router;
use cenote_dashboard::Dashboard;
use cenote_postgres::Pool;
use cenote_servers::postgres;
use tempfile::tempdir;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::{cenote, json, text};

#[tokio::test(flavor = "multi_thread")]
async fn a_service_is_recorded_and_replayed() {
    let server = postgres::find().unwrap();
    let pool = Pool::from_url(server.url())
        .name("shop")
        .max_size(3)
        .build()
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/pools", listener.local_addr().unwrap());
    let app: Router = Router::new().nest("/pools", Dashboard::new().routes());
    tokio::spawn(async { axum::serve(listener, app).await });
    let mut callers = JoinSet::new();
    for _ in 0..12 {
        let pool = pool.clone();
        callers.spawn(async move {
            loop {
                pool.execute("select pg_sleep(0.005)", &[]).await.unwrap();
            }
        });
    }
    let folder = tempdir().unwrap();
    let file = folder.path().join("shop.trace");
    let file = file.to_str().unwrap().to_owned();

    let args = [
        "record",
        &url,
        "--out",
        &file,
        "--pool",
        "shop",
        "--seconds",
        "2",
    ];
    let args = args.map(str::to_owned);
    let recorded = tokio::task::spawn_blocking(move || cenote(&args.each_ref().map(|it| &**it)));
    let output = recorded.await.unwrap();
    callers.abort_all();
    while let Some(ended) = callers.join_next().await {
        assert!(ended.is_err_and(|error| error.is_cancelled()));
    }
    let (code, report) = json(&["replay", &file, "--max-size", "2,3,12"]);

    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(
        (&report["pool"], &report["firm_up_to"]),
        (&"shop".into(), &3.into())
    );
    let [two, three, twelve] = [0, 1, 2].map(|nth| {
        let wait = &report["sizes"][nth]["best"]["wait_ms"]["p50"];
        wait.as_f64().unwrap()
    });
    // Twelve callers on three connections wait for three others. Two connections are too few for
    // the same callers, and with twelve there is one for each.
    assert!(three > 5.0 && two > three, "{report}");
    assert!(twelve < three, "{report}");
}

//! Totals by call site, of a real pool.

use std::sync::Arc;
use std::time::Duration;

use cenote::Pool;
use cenote_telemetry::Sites;
use tokio::time::sleep;

#[tokio::test(start_paused = true)]
async fn each_line_has_its_count_its_wait_and_its_time() {
    let sites = Arc::new(Sites::new(10));
    let pool = Pool::from_fn(async || Ok::<_, &str>(())).max_size(1);
    let pool = pool.observer(sites.clone()).build().unwrap();
    let limit = Duration::from_secs(1);

    let greedy = pool.acquire().await.unwrap();
    let greedy_line = line!() - 1;
    sleep(limit * 3).await;
    drop(greedy);
    for _ in 0..4 {
        drop(pool.acquire().await.unwrap());
    }
    let modest = line!() - 2;
    let held = pool.acquire().await.unwrap();
    assert!(pool.acquire_within(limit).await.is_err());
    let late = line!() - 1;
    drop(held);

    let totals = sites.totals();
    let at = |line| totals.iter().find(|it| it.site.unwrap().line() == line);
    assert_eq!(totals.len(), 4);
    let most = &totals[0];
    assert_eq!(most.site.unwrap().line(), greedy_line);
    assert_eq!((most.acquired, most.held), (1, limit * 3));
    let modest = at(modest).unwrap();
    assert_eq!((modest.acquired, modest.timed_out), (4, 0));
    assert_eq!(
        (modest.waited, modest.held),
        (Duration::ZERO, Duration::ZERO)
    );
    let late = at(late).unwrap();
    assert_eq!((late.acquired, late.timed_out, late.waited), (0, 1, limit));
    assert!(
        late.to_string().ends_with("waited 1.0s, 1 timed out"),
        "{late}"
    );
}

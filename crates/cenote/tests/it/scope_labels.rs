//! What a scope passes on to the scopes and tasks inside it: labels, values, and held resources.

use std::sync::Arc;

use cenote::scope::{LazyScope, Scope};
use cenote::status::UNKNOWN_SITE;
use cenote::{Lease, scope};
use cenote_testkit::Rig;

fn label_of(rig: &Rig) -> Option<String> {
    let leases = rig.pool.leases();
    leases[0].label.as_deref().map(String::from)
}

#[tokio::test(start_paused = true)]
async fn the_leases_of_a_scope_have_its_label_until_they_get_their_own() {
    let rig = Rig::with_max_size(1);
    let labelled = Scope::new().labelled("GET /rooms");

    let inside = labelled.run_and_end(scope(async {
        let bound = rig.pool.bind().await.unwrap();
        let first = label_of(&rig);
        Lease::label(&bound, "the first room");
        (first, label_of(&rig))
    }));

    let (first, second) = inside.await;
    assert_eq!(first.as_deref(), Some("GET /rooms"));
    assert_eq!(second.as_deref(), Some("the first room"));
    let _outside = rig.pool.bind().await.unwrap();
    assert_eq!(label_of(&rig), None);
}

#[tokio::test(start_paused = true)]
async fn a_lazy_scope_is_opened_with_its_label() {
    let mut lazy = LazyScope::opened_by(|| Scope::new().labelled("GET /rooms"));

    let label = lazy.enter(|| Scope::current().and_then(|scope| scope.label()));

    assert_eq!(label.as_deref(), Some("GET /rooms"));
}

#[tokio::test(start_paused = true)]
async fn an_attached_value_is_seen_in_inner_scopes_and_other_tasks_and_outlives_the_end() {
    let outer = Scope::new();
    outer.attach(Arc::new(1_u32));
    outer.attach(Arc::new(2_u32));
    outer.attach(Arc::new("text"));

    let seen = outer.run(scope(async { Scope::current().unwrap().attached::<u32>() }));
    assert_eq!(seen.await.as_deref(), Some(&2));
    let task = outer.run(async { Scope::current().unwrap().attached::<u32>() });
    assert_eq!(tokio::spawn(task).await.unwrap().as_deref(), Some(&2));
    outer.end();

    assert_eq!(outer.attached::<u32>().as_deref(), Some(&2));
    assert_eq!(outer.attached::<u64>(), None);
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_is_first_used_in_an_inner_scope_is_held_by_the_outer_one() {
    let rig = Rig::with_max_size(2);

    let used = Scope::new().hold().run_and_end(async {
        let inside = scope(async { Lease::id(&rig.pool.bind().await.unwrap()) });
        let inside = inside.await;
        assert_eq!(rig.pool.status().in_use, 1, "it rests in the outer scope");
        (inside, Lease::id(&rig.pool.bind().await.unwrap()))
    });

    assert_eq!(used.await, (1, 1));
    assert_eq!(rig.pool.status().acquired, 1);
}

#[tokio::test(start_paused = true)]
async fn a_scope_adopts_a_lease_that_was_bound_in_it() {
    let rig = Rig::with_max_size(1);
    let scope = Scope::new();
    let bound = scope.run(rig.pool.bind()).await.unwrap();

    assert!(scope.adopt(&rig.pool, bound).is_ok());

    assert!(scope.is_pinned(&rig.pool));
    assert!(scope.peek(&rig.pool).is_some());
    scope.end();
    assert_eq!(rig.pool.status().idle, 1);
}

#[tokio::test(start_paused = true)]
async fn a_report_leaves_out_a_site_that_is_not_known() {
    let rig = Rig::with_max_size(1);
    let lease = rig.pool.acquire_at(UNKNOWN_SITE, None).await.unwrap();
    Lease::label(&lease, "SELECT 1");

    let report = rig.pool.acquire().await.unwrap_err().to_string();

    assert!(report.contains("held: 1 for up to"), "{report}");
    assert!(report.contains("(SELECT 1)"), "{report}");
    assert!(!report.contains(".rs"), "{report}");
}

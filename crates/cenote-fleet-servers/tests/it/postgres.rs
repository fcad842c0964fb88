//! A real PostgreSQL server keeps the cell, counts its sessions, and ends those of silent members.

mod observer;
mod seat;

use std::pin::pin;
use std::time::Duration;

use cenote::AcquireError;
use cenote::breaker::{BreakerState, ConsecutiveFailures};
use cenote_fleet::protocol::DecodeError;
use cenote_fleet::{Fleet, JoinError};
use observer::{Admin, Observer};
use seat::{Seat, Stopped, until};
use tokio::time::timeout;

/// All sessions of all members. Each has a control connection and place for a canceller, and one
/// place is for a process that joins.
const CAPACITY: u32 = 13;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shares_move_and_the_server_never_has_more_sessions_than_the_capacity() {
    let server = cenote_servers::postgres::start().unwrap();
    let (first, second) = (
        Seat::join(server.url(), CAPACITY).await,
        Seat::join(server.url(), CAPACITY).await,
    );
    let observer = Observer::watch(server.url()).await;

    let leases = first.hold(7).await; // without the floor and the overhead of both
    let wanted = second.want(7);
    until("one is lent", || second.in_use() == 1).await;
    until("ten are seen", || observer.has_seen(10)).await;
    drop(leases);
    let leases = wanted.await.unwrap();

    assert_eq!((leases.len(), first.share()), (7, 1));
    let most = observer.most().await;
    assert!(most <= CAPACITY, "{most} sessions of {CAPACITY}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_timeout_says_how_the_fleet_stands() {
    let server = cenote_servers::postgres::start().unwrap();
    let (busy, calm) = (
        Seat::join(server.url(), CAPACITY).await,
        Seat::join(server.url(), CAPACITY).await,
    );
    let status = calm.fleet.status();
    let name = status.mine().expect("it has joined").name;
    let mut leases = Vec::new();

    let error = loop {
        match busy.pool.acquire_within(Duration::from_secs(1)).await {
            Ok(lease) => leases.push(lease),
            Err(error) => break error,
        }
    };

    let text = error.to_string();
    let out = format!(" of {CAPACITY} out; here ");
    assert!(text.contains(&out), "{text}");
    assert!(text.contains(&format!("; most: {name} 3")), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_control_connection_that_is_killed_is_opened_again() {
    let server = cenote_servers::postgres::start().unwrap();
    let seat = Seat::join(server.url(), CAPACITY).await;
    let lease = seat.hold(1).await;
    let admin = Admin::at(server.url()).await;

    assert_eq!(admin.end_control_connections().await, 1);

    let swaps = seat.fleet.status().swaps;
    until("it renews", || seat.fleet.status().swaps > swaps + 1).await;
    let status = seat.fleet.status();
    assert_eq!((status.members.len(), status.losses), (1, 1));
    assert!(!seat.pool.is_suspended());
    lease[0].query_one("select 1", &[]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fleet_outlives_a_restart_of_the_server() {
    let mut server = cenote_servers::postgres::start().unwrap();
    let (first, second) = (
        Seat::join(server.url(), CAPACITY).await,
        Seat::join(server.url(), CAPACITY).await,
    );
    drop((first.hold(5).await, second.hold(1).await));

    server.restart().unwrap();
    let observer = Observer::watch(server.url()).await;

    for seat in [&first, &second] {
        let swaps = seat.fleet.status().swaps;
        until("it renews", || seat.fleet.status().swaps > swaps).await;
    }
    let leases = second.hold(7).await;
    for lease in &leases {
        lease.query_one("select 1", &[]).await.unwrap();
    }
    let most = observer.most().await;
    assert!(most <= CAPACITY, "{most} sessions of {CAPACITY}");
}

#[test]
fn the_sessions_of_a_stopped_process_are_ended_before_its_share_is_given_away() {
    let server = cenote_servers::postgres::start().unwrap();
    let stopped = Stopped::join(server.url(), CAPACITY, 7);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let other = Seat::join(server.url(), CAPACITY).await;
        let observer = Observer::watch(server.url()).await;
        assert_eq!(other.hold(1).await.len(), 1, "the rest is lent");

        stopped.stop();
        let leases = other.hold(7).await;

        assert_eq!(leases.len(), 7);
        assert!(other.fleet.status().fences > 0);
        let most = observer.most().await;
        assert!(most <= CAPACITY, "{most} sessions of {CAPACITY}");
        drop(leases);
        stopped.go_on();
        until("the other is back", || {
            other.fleet.status().members.len() == 2
        })
        .await;
    });
    assert!(
        stopped.end(),
        "it joins again, and opens another connection"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_table_needs_no_learning_and_a_lost_row_does() {
    let server = cenote_servers::postgres::start().unwrap();
    let admin = Admin::at(server.url()).await;
    let first = Seat::join(server.url(), CAPACITY).await;
    assert!(first.fleet.status().learned);

    admin.run("delete from cenote_fleet").await;

    until("the loss is seen", || !first.fleet.status().learned).await;
    until("the cell is learned", || first.fleet.status().learned).await;
    assert_eq!(first.hold(7).await.len(), 7);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_is_set_back_is_not_believed() {
    let server = cenote_servers::postgres::start().unwrap();
    let admin = Admin::at(server.url()).await;
    let seat = Seat::join(server.url(), CAPACITY).await;
    admin
        .run("create table old as select * from cenote_fleet")
        .await;
    let swaps = seat.fleet.status().swaps;
    until("it renews", || seat.fleet.status().swaps > swaps).await;

    let back = "update cenote_fleet set version = old.version, cell = old.cell from old";
    admin.run(back).await;

    until("it is seen", || !seat.fleet.status().learned).await;
    until("the cell is learned", || seat.fleet.status().learned).await;
    assert_eq!(seat.hold(7).await.len(), 7);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_full_is_waited_for() {
    let server = cenote_servers::postgres::start().unwrap();
    let admin = Admin::at(server.url()).await;
    admin
        .run("create role app login connection limit 4; grant create on schema public to app")
        .await;
    let url = server.url().replace("postgres@", "app@");
    let seat = Seat::join(&url, CAPACITY).await;
    let breaker = seat.pool.breaker();
    breaker.set_strategy(ConsecutiveFailures::new(1));

    let leases = seat.hold(3).await; // and the control connection
    let wanted = seat.want(3);
    until("opens are refused", || seat.pool.status().open_failed > 1).await;
    let late = seat.pool.acquire_within(Duration::from_millis(300)).await;

    let late = late.map(drop).unwrap_err();
    assert!(matches!(late, AcquireError::TimedOut { .. }), "{late:?}");
    assert_eq!(breaker.state(), BreakerState::Active);
    assert_eq!((seat.in_use(), wanted.is_finished()), (3, false));
    drop(leases);
    assert_eq!(wanted.await.unwrap().len(), 3);
    admin.run("alter role app connection limit -1").await;
    assert_eq!(seat.hold(7).await.len(), 7, "the others are opened");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_joins_a_full_server_waits_for_a_place() {
    let server = cenote_servers::postgres::start().unwrap();
    let admin = Admin::at(server.url()).await;
    let role = "create role app login connection limit 1; grant create on schema public to app";
    admin.run(role).await;
    let url = server.url().replace("postgres@", "app@");
    let occupant = Admin::at(&url).await;

    let late = Seat::try_join(&url, CAPACITY).await;
    let mut joining = pin!(Seat::try_join(&url, CAPACITY));
    let early = timeout(Duration::from_secs(1), &mut joining).await;
    drop(occupant);
    let joined = joining.await;

    let error = late.err().expect("it has waited for a TTL");
    let said = error.to_string();
    assert!(
        error.is_retryable() && said.contains("too many connections"),
        "{said}"
    );
    assert!(early.is_err(), "the server was full");
    assert!(joined.is_ok(), "{:?}", joined.err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_of_a_newer_program_is_refused_and_left_alone() {
    let server = cenote_servers::postgres::start().unwrap();
    let admin = Admin::at(server.url()).await;
    admin.run(cenote_fleet::TABLE).await;
    admin
        .run("insert into cenote_fleet values ('orders', 0, '\\x0907')")
        .await;

    let error = Seat::try_join(server.url(), CAPACITY).await.err().unwrap();

    assert!(
        matches!(error, JoinError::Cell(DecodeError::Newer { version: 9 })),
        "{error:?}"
    );
    let row = "select cell = '\\x0907' from cenote_fleet";
    assert!(admin.asks(row).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_leaves_closes_all_its_sessions() {
    let server = cenote_servers::postgres::start().unwrap();
    let admin = Admin::at(server.url()).await;
    let seat = Seat::join(server.url(), CAPACITY).await;
    drop(seat.hold(4).await);

    seat.fleet.leave().await;

    until_sessions(&admin, 0).await;
}

async fn until_sessions(admin: &Admin, count: u32) {
    let limit = tokio::time::timeout(seat::LIMIT, async {
        while admin.sessions().await != count {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    limit.await.expect("the sessions end");
}

#[test]
fn a_tag_fits_into_the_name_of_a_session() {
    let options = tokio_postgres::Config::new();
    let group = "g".repeat(40);

    let joining = Fleet::postgres(&options, &group).unwrap();

    let tag = joining.tag("a long name");
    assert_eq!(tag, format!("al cn:{group}:{}", joining.id()));
    assert!(tag.len() <= 63, "{}", tag.len());
    let error = Fleet::postgres(&options, "a'b").unwrap_err();
    let text = "the group `a'b` must be 1 to 40 letters, digits, `-` or `_`";
    assert_eq!(error.to_string(), text);
}

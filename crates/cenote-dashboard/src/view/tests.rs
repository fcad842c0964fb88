//! The exact JSON. A change here is a change for every program that reads it.

use std::time::Duration;

use super::{
    EventView, Head, HealthView, HistoryView, HolderView, Level, Overview, PoolView, SampleView,
    SettingView, SiteView, SlotItem, TimesHistoryView, TimesView, WaiterItem, millis,
};
use crate::histogram::Percentiles;

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap()
}

fn head() -> Head {
    Head {
        frame: 3,
        time_ms: 1_700_000_000_123,
        instance: "00ff".to_owned(),
        version: "0.1.0",
        interval_ms: 250,
        actions: false,
        clients: 1,
        max_clients: 32,
        dropped_frames: 0,
    }
}

fn sample(times: Option<TimesView>) -> SampleView {
    SampleView {
        time_ms: 7,
        max_size: 10,
        in_use: 2,
        waiting: 1,
        acquired_per_second: 12.5,
        times,
    }
}

const TIMES: Percentiles = Percentiles {
    p50: 0.25,
    p95: 1.0,
    p99: 3.5,
};

#[test]
fn a_frame_of_all_pools() {
    let pool = PoolView {
        number: 1,
        name: "orders".to_owned(),
        health: HealthView {
            verdict: "busy",
            ready: true,
            text: "busy".to_owned(),
        },
        breaker: "active".to_owned(),
        suspended: false,
        max_size: 10,
        total: 10,
        in_use: 8,
        idle: 0,
        opening: 1,
        checking: 0,
        cleaning: 1,
        closing: 0,
        reserved: 0,
        waiting: 2,
        oldest_wait_ms: Some(12.5),
        acquired: 1_000,
        timed_out: 4,
        leaked: 0,
        history: None,
        sample: Some(sample(None)),
    };
    let frame = Overview {
        head: head(),
        pools: vec![pool],
    };

    assert_eq!(
        json(&frame),
        concat!(
            r#"{"frame":3,"time_ms":1700000000123,"instance":"00ff","version":"0.1.0","#,
            r#""interval_ms":250,"actions":false,"clients":1,"max_clients":32,"dropped_frames":0,"#,
            r#""pools":[{"number":1,"name":"orders","#,
            r#""health":{"verdict":"busy","ready":true,"text":"busy"},"#,
            r#""breaker":"active","suspended":false,"max_size":10,"total":10,"in_use":8,"#,
            r#""idle":0,"opening":1,"checking":0,"cleaning":1,"closing":0,"reserved":0,"#,
            r#""waiting":2,"oldest_wait_ms":12.5,"acquired":1000,"timed_out":4,"leaked":0,"#,
            r#""sample":{"time_ms":7,"max_size":10,"in_use":2,"waiting":1,"#,
            r#""acquired_per_second":12.5}}]}"#,
        )
    );
}

#[test]
fn a_sample_and_a_history_with_times() {
    let times = TimesView {
        wait_ms: Some(TIMES),
        use_ms: None,
    };
    assert_eq!(
        json(&sample(Some(times))),
        concat!(
            r#"{"time_ms":7,"max_size":10,"in_use":2,"waiting":1,"acquired_per_second":12.5,"#,
            r#""wait_ms":{"p50":0.25,"p95":1.0,"p99":3.5},"use_ms":null}"#,
        )
    );
    let history = HistoryView {
        every_ms: 2_000,
        time_ms: vec![1, 2],
        max_size: vec![10, 10],
        in_use: vec![0, 2],
        waiting: vec![0, 1],
        acquired_per_second: vec![0.0, 12.5],
        times: Some(TimesHistoryView {
            wait_ms: vec![None, Some(TIMES)],
            use_ms: vec![None, None],
        }),
    };
    assert_eq!(
        json(&history),
        concat!(
            r#"{"every_ms":2000,"time_ms":[1,2],"max_size":[10,10],"in_use":[0,2],"#,
            r#""waiting":[0,1],"acquired_per_second":[0.0,12.5],"#,
            r#""wait_ms":[null,{"p50":0.25,"p95":1.0,"p99":3.5}],"use_ms":[null,null]}"#,
        )
    );
}

#[test]
fn the_lists_of_one_pool() {
    let slot = SlotItem {
        number: 0,
        state: "leased",
        resource: Some(7),
        since_ms: Some(1.5),
        leaked: true,
    };
    assert_eq!(
        json(&slot),
        r#"{"number":0,"state":"leased","resource":7,"since_ms":1.5,"leaked":true}"#
    );
    let holder = HolderView {
        site: Some("src/orders.rs:88".to_owned()),
        label: None,
        count: 2,
        longest_ms: 12.5,
        used_ms: Some(3.0),
        used: Some("in statements"),
        resource: 7,
        task: Some("task 4".to_owned()),
        claimed: true,
        leaked: false,
    };
    assert_eq!(
        json(&holder),
        concat!(
            r#"{"site":"src/orders.rs:88","label":null,"count":2,"longest_ms":12.5,"#,
            r#""used_ms":3.0,"used":"in statements","resource":7,"task":"task 4","#,
            r#""claimed":true,"leaked":false}"#,
        )
    );
    let waiter = WaiterItem {
        site: None,
        waited_ms: 0.5,
    };
    assert_eq!(json(&waiter), r#"{"site":null,"waited_ms":0.5}"#);
    let site = SiteView {
        site: None,
        others: true,
        acquired: 9,
        timed_out: 1,
        waited_ms: 2.0,
        held_ms: 3.0,
    };
    assert_eq!(
        json(&site),
        concat!(
            r#"{"site":null,"others":true,"acquired":9,"timed_out":1,"#,
            r#""waited_ms":2.0,"held_ms":3.0}"#,
        )
    );
}

#[test]
fn events_and_settings() {
    let event = EventView {
        id: 5,
        time_ms: 1_700_000_000_123,
        count: 2,
        kind: "timed_out",
        level: Level::Trouble,
        resource: None,
        took_ms: Some(5_000.0),
        site: Some("src/cart.rs:31".to_owned()),
        text: String::new(),
    };
    assert_eq!(
        json(&event),
        concat!(
            r#"{"id":5,"time_ms":1700000000123,"count":2,"kind":"timed_out","level":"trouble","#,
            r#""resource":null,"took_ms":5000.0,"site":"src/cart.rs:31","text":""}"#,
        )
    );
    let setting = SettingView {
        name: "max_size".to_owned(),
        value: "20".to_owned(),
        default: "10".to_owned(),
        changed: true,
    };
    assert_eq!(
        json(&setting),
        r#"{"name":"max_size","value":"20","default":"10","changed":true}"#
    );
}

#[test]
fn times_are_milliseconds_with_three_decimals() {
    assert_eq!(millis(Duration::from_nanos(1_234_567)), 1.234);
    assert_eq!(millis(Duration::from_secs(5)), 5_000.0);
}

//! Tests of the table of sites.

use std::sync::Arc;
use std::thread;

use super::*;

/// Five sites, each on a line of its own.
#[rustfmt::skip]
fn places() -> [&'static Location<'static>; 5] {
    [
        Location::caller(),
        Location::caller(),
        Location::caller(),
        Location::caller(),
        Location::caller(),
    ]
}

/// Adds one lease of a second.
fn use_once(sites: &Sites, place: &'static Location<'static>) {
    let counts = sites.counts(place);
    counts.acquired.fetch_add(1, Relaxed);
    add(&counts.held, Duration::from_secs(1));
}

#[test]
fn sites_beyond_the_limit_are_others() {
    let sites = Sites::new(2);
    let places = places();
    for (index, place) in places.into_iter().enumerate() {
        for _ in 0..=index {
            use_once(&sites, place);
        }
    }

    let totals = sites.totals();

    let seen: Vec<_> = totals.iter().map(|it| (it.site, it.acquired)).collect();
    let (one, two) = (Some(places[0]), Some(places[1]));
    assert_eq!(seen, [(two, 2), (one, 1), (None, 3 + 4 + 5)]);
    assert_eq!(totals[2].held, Duration::from_secs(12));
    assert!(
        totals[2]
            .to_string()
            .starts_with("others: 12 leases held for 12.0s")
    );
}

#[test]
fn without_room_for_any_site_all_are_others() {
    let sites = Sites::new(0);
    use_once(&sites, places()[0]);

    assert_eq!(sites.totals()[0].site, None);
    assert_eq!(sites.totals().len(), 1);
}

#[test]
fn one_line_is_one_site_wherever_its_location_is_stored() {
    let sites = Sites::new(10);
    let place = places()[0];
    let copy: &'static Location<'static> = Box::leak(Box::new(*place));
    assert!(!std::ptr::eq(place, copy));

    use_once(&sites, place);
    use_once(&sites, copy);

    assert_eq!(sites.totals().len(), 1);
    assert_eq!(sites.totals()[0].acquired, 2);
}

#[test]
fn threads_that_enter_the_same_sites_lose_nothing() {
    for _ in 0..200 {
        let sites = Arc::new(Sites::new(5));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let sites = Arc::clone(&sites);
                thread::spawn(move || {
                    for place in places() {
                        use_once(&sites, place);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }

        let totals = sites.totals();
        assert_eq!(totals.iter().map(|it| it.acquired).sum::<u64>(), 20);
        assert!(sites.taken.load(Relaxed) <= 5);
        assert_eq!(totals.iter().filter(|it| it.site.is_some()).count(), 5);
    }
}

#[test]
fn a_site_that_is_not_known_is_called_so() {
    let sites = Sites::new(1);
    use_once(&sites, UNKNOWN_SITE);

    assert!(
        sites.to_string().starts_with("unknown site: 1 leases"),
        "{sites}"
    );
}

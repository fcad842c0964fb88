//! The error text of the program.

use std::error::Error;
use std::{fmt, io};

use cenote::Pool;

use super::whole_story;

#[tokio::test]
async fn the_cause_of_an_error_is_shown_once() {
    let pool = Pool::from_fn(async || Err::<(), _>(io::Error::other("disk on fire")));
    let pool = pool.name("demo").build().unwrap();

    let told = whole_story(&pool.acquire().await.err().unwrap());

    assert!(told.starts_with("pool `demo`: "), "{told}");
    assert_eq!(told.matches("disk on fire").count(), 1, "{told}");
}

#[test]
fn a_cause_that_the_error_does_not_name_is_added() {
    let error = Silent(io::Error::other("disk on fire"));

    assert_eq!(whole_story(&error), "nothing saved: disk on fire");
}

/// An error that names its cause by `source` alone.
#[derive(Debug)]
struct Silent(io::Error);

impl fmt::Display for Silent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nothing saved")
    }
}

impl Error for Silent {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

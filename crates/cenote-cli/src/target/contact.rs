//! The first connection to a server: why there is none, and what to do about it.

use std::error::Error;
use std::time::Duration;

use cenote::error::ErrorClass;
use cenote::{AcquireError, Manager, OpenError, Pool};

use super::Target;
use crate::failure::{Failure, whole_story};
use crate::out::Countdown;

/// A server that works lets a client in much sooner, also far away.
const LIMIT: Duration = Duration::from_secs(5);

/// Opens a first connection.
pub(crate) async fn contact<M>(target: &Target, pool: &Pool<M>) -> Result<(), Failure>
where
    M: Manager<Error: Error> + 'static,
{
    let shown = target.shown();
    let countdown = Countdown::after_a_second(format!("connecting to {shown}"), LIMIT);
    let opened = pool.acquire_within(LIMIT).await;
    drop(countdown);
    let (why, fix) = match opened {
        Ok(_) => return Ok(()),
        Err(AcquireError::Open {
            error: OpenError::Failed(cause),
            ..
        }) => {
            let story = whole_story(cause.as_error());
            let fix = fix(&story, pool.manager().classify(&cause));
            (story, fix)
        }
        Err(AcquireError::TimedOut(_) | AcquireError::Open { .. }) => (
            format!("no answer within {LIMIT:?}"),
            "check host and port in the URL, and firewalls on the way",
        ),
        Err(error) => (whole_story(&error), RUNS),
    };
    Err(format!("no connection to {shown}: {why}; {fix}").into())
}

const RUNS: &str = "check that the server runs, and host and port in the URL";

fn fix(story: &str, class: ErrorClass) -> &'static str {
    match class {
        _ if story.contains("certificate") => {
            "name the file of its root certificate in `SSL_CERT_FILE`, and its own name in the URL"
        }
        ErrorClass::Denied => "check user, password and database in the URL",
        _ => RUNS,
    }
}

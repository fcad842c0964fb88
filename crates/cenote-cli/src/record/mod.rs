//! `cenote record`: a trace of a running service, by its live page.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;

use cenote_telemetry::trace::{Recorded, whole_blocks};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::args::RecordArgs;
use crate::failure::{Failure, Verdict, usage};
use crate::out::{self, Countdown, short_time, thousands};
use crate::top::{Overview, PoolRow, Site};

/// No service sends more.
const LONGEST: u64 = 256 << 20;

/// A service that sends its last bytes later than this is gone.
const LATE: Duration = Duration::from_secs(30);

pub(crate) async fn run(args: &RecordArgs) -> Result<Verdict, Failure> {
    let site = Site::parse(&args.url)?;
    let overview: Overview = site.read("api/pools").await?;
    let pool = choose(&overview.pools, args.pool.as_deref())?;
    let path = format!("api/pools/{}/trace?seconds={}", pool.number, args.seconds);
    let (head, stream) = site.stream(&path).await?;
    check(&head, &site)?;
    let mut file = File::create(&args.out).map_err(|error| unwritable(&args.out, &error))?;

    let lasts = Duration::from_secs(args.seconds);
    let countdown = Countdown::start(format!("recording {}", pool.name), lasts);
    let ended = tokio::select! {
        copied = timeout(lasts + LATE, copy(stream, &mut file, &args.out)) => match copied {
            Ok(copied) => copied,
            Err(_) => Err("the service has gone silent".into()),
        },
        _ = tokio::signal::ctrl_c() => Ok(()),
    };
    drop(countdown);
    // What has come is kept, whatever has happened.
    let kept = keep(&file, &args.out, &pool.name);
    ended?;
    out::print(&kept?)?;
    Ok(Verdict::Fine)
}

/// Returns the pool with this name, or the only one.
fn choose<'a>(pools: &'a [PoolRow], name: Option<&str>) -> Result<&'a PoolRow, Failure> {
    let names = || {
        let names: Vec<_> = pools
            .iter()
            .map(|pool| format!("`{}`", pool.name))
            .collect();
        names.join(", ")
    };
    match (name, pools) {
        (_, []) => Err("the service has no pools: build one first".into()),
        (Some(name), _) => {
            let found = pools.iter().find(|pool| pool.name == name);
            found.ok_or_else(|| {
                usage(format!(
                    "there is no pool `{name}`: name one of {}",
                    names()
                ))
            })
        }
        (None, [pool]) => Ok(pool),
        (None, _) => Err(usage(format!(
            "the service has several pools: use `--pool` with one of {}",
            names()
        ))),
    }
}

fn check(head: &str, site: &Site) -> Result<(), Failure> {
    let status = head.lines().next().unwrap_or_default();
    match status.split_whitespace().nth(1) {
        Some("200") => Ok(()),
        // An older page knows the path of an action only.
        Some("404" | "405") => Err(format!(
            "the service at {} cannot record: update its `cenote-dashboard` (it said `{status}`)",
            site.shown()
        )
        .into()),
        Some("503") => Err("too many pages are open, or the service ends: try again later".into()),
        _ => Err(format!("{} (it said `{status}`)", site.foreign()).into()),
    }
}

async fn copy(stream: TcpStream, file: &mut File, path: &Path) -> Result<(), Failure> {
    let mut stream = stream.take(LONGEST);
    let mut bytes = vec![0; 64 << 10];
    loop {
        let read = stream.read(&mut bytes).await;
        let count = read.map_err(|error| format!("the connection was lost: {error}"))?;
        if count == 0 {
            return Ok(());
        }
        let written = file.write_all(&bytes[..count]);
        written.map_err(|error| unwritable(path, &error))?;
    }
}

/// Cuts off half a block at the end, and returns what to say about the rest.
fn keep(file: &File, path: &Path, pool: &str) -> Result<String, Failure> {
    let shown = path.display();
    let bytes = read(path).map_err(|error| format!("cannot read `{shown}`: {error}"))?;
    let whole = &bytes[..whole_blocks(&bytes)];
    if whole.len() < bytes.len() {
        file.set_len(whole.len() as u64)
            .map_err(|error| unwritable(path, &error))?;
    }
    let trace = Recorded::read(whole).map_err(|_| format!("nothing was recorded in `{shown}`"))?;
    let lasted = match trace.end {
        Some(end) => format!(" in {}", short_time(end.lasted)),
        None => ", and the recording was cut short".to_owned(),
    };
    let acquires = thousands(trace.visits.len() as u64);
    Ok(format!(
        "{acquires} acquires of `{pool}`{lasted}; now try `cenote replay {shown}`\n"
    ))
}

/// Reads as much as the file has. A device may have no end.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    let path = path.display();
    format!("cannot write `{path}`: {error}; name a place that you may write to").into()
}

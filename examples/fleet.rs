//! Run: cargo run -p cenote-examples --example fleet
//!
//! How do several processes share one limit of connections, so that a busy one gets what the others
//! do not use? The program starts itself three times, and each process is busy for a while. It
//! starts a private PostgreSQL, or uses the one whose URL is its argument.

use std::env;
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use cenote_fleet::Fleet;
use cenote_postgres::Pool;
use cenote_postgres::tokio_postgres::Config;
use tokio::sync::watch;

/// The sessions of all processes together.
const CAPACITY: u32 = 20;

/// A busy process has more than half of them soon.
const MANY: u32 = 12;

/// How often the shares are printed, and how often before the example gives up.
const PACE: Duration = Duration::from_millis(200);
const LOOKS: u32 = 300;

type AnyError = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), AnyError> {
    let args: Vec<String> = env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["member", name, url] => member(name, url),
        [url] => watch_three(url),
        _ => {
            let server = cenote_servers::postgres::start()?;
            watch_three(server.url())
        }
    }
}

/// One process of the service: it joins, works when it is told to, and leaves in the end.
#[tokio::main(flavor = "current_thread")]
async fn member(name: &str, url: &str) -> Result<(), AnyError> {
    let mut options: Config = url.parse()?;
    let joining = Fleet::postgres(&options, "example")?;
    options.application_name(joining.tag(name)); // the server counts sessions by this name
    let pool = Pool::with_options(options)
        .cancel_on_server(false)
        .build()?;
    let joining = joining.capacity(CAPACITY).ttl(Duration::from_secs(4));
    let mut fleet = joining.join(&pool).await?;

    let mut orders = orders();
    for _ in 0..30 {
        tokio::spawn(work(pool.clone(), orders.clone()));
    }
    loop {
        let status = fleet.status();
        println!("{} {}", status.share, status.granted);
        tokio::select! {
            _ = fleet.changed() => {}
            order = orders.changed() => if order.is_err() { break },
        }
    }
    fleet.leave().await;
    Ok(())
}

/// Whether there is work to do. It ends with the standard input.
fn orders() -> watch::Receiver<bool> {
    let (sender, orders) = watch::channel(false);
    thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            sender.send_replace(line == "work");
        }
    });
    orders
}

async fn work(pool: Pool, mut orders: watch::Receiver<bool>) {
    while orders.wait_for(|is_busy| *is_busy).await.is_ok() {
        if let Ok(lease) = pool.acquire().await {
            // A statement that fails is tried again in the next turn.
            let _ = lease.query("select pg_sleep(0.01)", &[]).await;
        }
    }
}

/// A process, and what it said last: its share, and what all have together.
struct Process {
    name: &'static str,
    child: Child,
    said: Arc<Mutex<(u32, u32)>>,
}

impl Process {
    fn start(name: &'static str, url: &str) -> Result<Self, AnyError> {
        let mut program = Command::new(env::current_exe()?);
        program.args(["member", name, url]);
        let mut child = program
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
        let said = Arc::new(Mutex::new((0, 0)));
        let hear = Arc::clone(&said);
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let numbers = line.split_once(' ').map(|(a, b)| (a.parse(), b.parse()));
                if let Some((Ok(share), Ok(granted))) = numbers {
                    *hear.lock().unwrap_or_else(PoisonError::into_inner) = (share, granted);
                }
            }
        });
        Ok(Self { name, child, said })
    }

    fn order(&mut self, order: &str) -> Result<(), AnyError> {
        let input = self.child.stdin.as_mut().ok_or("no input")?;
        Ok(writeln!(input, "{order}")?)
    }

    fn said(&self) -> (u32, u32) {
        *self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn watch_three(url: &str) -> Result<(), AnyError> {
    let mut processes = Vec::new();
    for name in ["api", "web", "batch"] {
        processes.push(Process::start(name, url)?);
    }
    println!("{CAPACITY} sessions for three processes, each with a control connection of its own");
    for nth in 0..processes.len() {
        let name = processes[nth].name;
        println!("{name} is busy");
        processes[nth].order("work")?;
        let mut looks = 0;
        while processes[nth].said().0 < MANY {
            looks += 1;
            assert!(looks < LOOKS, "{name} does not get its share");
            thread::sleep(PACE);
            show(&processes);
        }
        processes[nth].order("rest")?;
    }
    for mut process in processes {
        drop(process.child.stdin.take()); // it leaves
        assert!(process.child.wait()?.success());
    }
    println!("all have left");
    Ok(())
}

fn show(processes: &[Process]) {
    let mut line = String::new();
    for process in processes {
        let (share, granted) = process.said();
        assert!(granted <= CAPACITY, "{granted} of {CAPACITY}");
        line += &format!("  {} {share:>2}", process.name);
    }
    println!("{line}");
}

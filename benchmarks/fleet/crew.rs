//! The six processes, seen from their parent: it tells each how many requests to make, kills them,
//! and hears what became of the requests.

use std::collections::BTreeSet;
use std::env;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::event::Event;
use crate::member::{ERROR, READY, VARIABLE};
use crate::system::{PROCESSES, System};

/// A process is ready before this, also on a busy machine.
const READY_LIMIT: Duration = Duration::from_secs(60);

/// The test that is a process of the crew. A benchmark does not read its arguments.
const TEST: [&str; 3] = ["--exact", "a_member_is_a_process_of_its_own", "--nocapture"];

/// What a process has told.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) events: Vec<Event>,
    /// Texts of errors.
    pub(crate) errors: BTreeSet<String>,
}

/// The processes. They are killed when it is dropped.
pub(crate) struct Crew(Vec<Process>);

struct Process {
    child: Child,
    orders: Option<ChildStdin>,
    reader: Option<JoinHandle<Heard>>,
}

impl Crew {
    /// Starts one process after another.
    pub(crate) fn start(system: System, url: &str) -> Result<Self, String> {
        let mut crew = Self(Vec::new());
        for nth in 0..PROCESSES {
            let process = Process::start(&format!("{nth} {url} {}", system.name()));
            let (process, is_ready) = process.map_err(|error| error.to_string())?;
            crew.0.push(process);
            let is_ready = is_ready.recv_timeout(READY_LIMIT);
            is_ready.map_err(|_| format!("process {nth} is not ready"))?;
        }
        Ok(crew)
    }

    /// Has a process make so many requests per second.
    pub(crate) fn load(&mut self, process: usize, rate: f64) -> Result<(), String> {
        let Some(orders) = &mut self.0[process].orders else {
            return Err(format!("process {process} was killed before"));
        };
        writeln!(orders, "{rate}").map_err(|error| format!("process {process}: {error}"))
    }

    /// Kills a process as `kill -9` does.
    pub(crate) fn kill(&mut self, process: usize) -> Result<(), String> {
        let process = &mut self.0[process];
        process.orders = None;
        process.child.kill().map_err(|error| error.to_string())
    }

    /// Ends all processes, and returns what each has told.
    pub(crate) fn finish(mut self) -> Vec<Heard> {
        let heard = self.0.iter_mut().map(|process| {
            process.end();
            // The output has ended with the process.
            let heard = process.reader.take().map(JoinHandle::join);
            heard.and_then(Result::ok).unwrap_or_default()
        });
        heard.collect()
    }
}

impl Process {
    fn start(orders: &str) -> std::io::Result<(Self, Receiver<()>)> {
        let mut child = Command::new(env::current_exe()?)
            .args(TEST)
            .env(VARIABLE, orders)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (ready, is_ready) = channel();
        let reader = stdout.map(|stdout| thread::spawn(move || listen(stdout, &ready)));
        let process = Self {
            child,
            orders: stdin,
            reader,
        };
        Ok((process, is_ready))
    }

    fn end(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

fn listen(stdout: ChildStdout, ready: &Sender<()>) -> Heard {
    let mut heard = Heard::default();
    for line in BufReader::new(stdout).lines().map_while(Result::ok) {
        if line == READY {
            // The parent may have given up waiting.
            let _ = ready.send(());
        } else if let Some(event) = Event::from_line(&line) {
            heard.events.push(event);
        } else if let Some(error) = line.strip_prefix(ERROR) {
            heard.errors.insert(error.to_owned());
        }
    }
    heard
}

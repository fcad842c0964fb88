//! The views of the program on a terminal.

use std::io::Read;
#[cfg(feature = "top")]
use std::io::Write;

use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use vt100::Parser;

/// Enough for everything that the program shows.
const ROWS: u16 = 100;
const COLUMNS: u16 = 200;

/// Runs the program on a terminal until it ends. Returns the screen, all bytes and whether the
/// program ended well.
fn on_terminal(args: &[&str]) -> (Parser, String, bool) {
    on_terminal_with(args, &[])
}

/// The same, with more variables of the environment.
fn on_terminal_with(args: &[&str], variables: &[(&str, &str)]) -> (Parser, String, bool) {
    let size = PtySize {
        rows: ROWS,
        cols: COLUMNS,
        ..PtySize::default()
    };
    let pair = native_pty_system().openpty(size).unwrap();
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_cenote"));
    command.args(args);
    command.env("TERM", "xterm-256color");
    command.env_remove("NO_COLOR");
    for (name, value) in variables {
        command.env(name, value);
    }
    let mut program = pair.slave.spawn_command(command).unwrap();
    drop(pair.slave);
    let mut reader = pair.master.try_clone_reader().unwrap();
    let mut bytes = Vec::new();
    // The end of a terminal is an error on Linux.
    let _ = reader.read_to_end(&mut bytes);
    let ended_well = program.wait().unwrap().success();
    let mut screen = Parser::new(ROWS.try_into().unwrap(), COLUMNS.try_into().unwrap(), 0);
    screen.process(&bytes);
    let all = String::from_utf8_lossy(&bytes).into_owned();
    (screen, all, ended_well)
}

/// Returns the lines of a screen, with `#` in place of numbers.
fn lines(screen: &Parser) -> Vec<String> {
    let text = screen.screen().contents();
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut shown = String::new();
        for letter in line.chars() {
            match letter {
                '0'..='9' | ',' | '.' if shown.ends_with('#') => {}
                '0'..='9' => shown.push('#'),
                other => shown.push(other),
            }
        }
        lines.push(shown.trim_end().to_owned());
    }
    lines
}

#[test]
fn the_demo_shows_its_scenes_and_rewrites_one_line() {
    let (screen, all, ended_well) = on_terminal(&["--seconds", "2", "--tasks", "8", "--size", "4"]);

    assert!(ended_well, "{all}");
    let lines = lines(&screen);
    let snapshot = [
        "warm-up: connections are opened before the first customer comes",
        "spike: # customers share # connections, first come, first served",
        "leak: a handler takes a connection and forgets it; the pool finds the line",
        "outage: the database is gone; the breaker trips, and callers fail at once",
        "outage: the database is back; the pool proves it by a probe of its own",
        "nested: every connection is held by a task that waits for one more; the pool says so",
        "drain: no new customer is let in, and leases that are out come back",
    ];
    let scenes: Vec<&String> = lines
        .iter()
        .filter(|line| snapshot.contains(&&***line))
        .collect();
    assert_eq!(scenes, snapshot, "{lines:#?}");
    let states: Vec<&String> = lines
        .iter()
        .filter(|line| line.contains(" of # s "))
        .collect();
    assert_eq!(states.len(), 1, "{lines:#?}");
    assert!(
        states[0].ends_with("# in use  # waiting  breaker active"),
        "{states:?}"
    );
    assert!(all.contains('█'), "slots in use are shown");
    let states = ["breaker inactive", "breaker recovering"];
    let shown = states.iter().any(|state| all.contains(state));
    assert!(shown, "the outage is shown");
}

#[test]
fn the_name_of_a_scene_stands_out() {
    let (screen, ..) = on_terminal(&["--seconds", "1", "--tasks", "2", "--size", "1"]);

    let screen = screen.screen();
    let rows: Vec<String> = screen.rows(0, COLUMNS).collect();
    let row = rows
        .iter()
        .position(|row| row.starts_with("spike: "))
        .unwrap();
    let bold = |column| {
        screen
            .cell(u16::try_from(row).unwrap(), column)
            .unwrap()
            .bold()
    };
    assert!(bold(0) && bold(4) && !bold(8));
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let wrong = ["config", "check", "no-such-file.toml"];
    let red = "\x1b[31;1merror:";

    let (_, coloured, _) = on_terminal(&wrong);
    let (_, refused, _) = on_terminal_with(&wrong, &[("NO_COLOR", "1")]);
    let (_, dumb, _) = on_terminal_with(&wrong, &[("TERM", "dumb")]);

    assert!(coloured.starts_with(red), "{coloured:?}");
    assert!(refused.starts_with("error: "), "{refused:?}");
    assert!(dumb.starts_with("error: "), "{dumb:?}");
}

#[test]
fn the_bar_of_a_measurement_is_erased_at_its_end() {
    let (screen, all, ended_well) = on_terminal(&["bench", ":memory:", "--seconds", "1"]);

    assert!(ended_well, "{all}");
    assert!(all.contains("bench ░") && all.contains(" of 1 s"), "{all}");
    let lines = lines(&screen);
    assert!(lines[0].starts_with(":memory:: closed loop"), "{lines:#?}");
}

#[cfg(feature = "top")]
#[test]
fn the_full_screen_view_shows_the_pool_and_gives_the_terminal_back() {
    the_view_ends_by("q");
}

/// The view reads the keys itself, and so also this one.
#[cfg(feature = "top")]
#[test]
fn an_interrupt_gives_the_terminal_back() {
    the_view_ends_by("\x03");
}

/// Looks at the screen of `top`, and at what is left after a key.
#[cfg(feature = "top")]
#[track_caller]
fn the_view_ends_by(key: &str) {
    let demo = crate::top::Demo::start();

    let shown = shown_until(&["top", &demo.url], "arrows: choose a pool", key);

    assert!(shown[0].contains("cenote top http://"), "{shown:#?}");
    let titles: Vec<&str> = shown[1].split_whitespace().collect();
    assert_eq!(titles[..4], ["│pool", "health", "size", "in"], "{shown:#?}");
    assert!(shown[2].contains("demo"), "{shown:#?}");
}

/// Reads the screen of a view until it shows a text, presses a key, and returns what was shown. The
/// view must end well and give the terminal back.
#[cfg(feature = "top")]
#[track_caller]
pub(crate) fn shown_until(args: &[&str], text: &str, key: &str) -> Vec<String> {
    let size = PtySize {
        rows: 24,
        cols: 140,
        ..PtySize::default()
    };
    let pair = native_pty_system().openpty(size).unwrap();
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_cenote"));
    command.args(args);
    command.env("TERM", "xterm-256color");
    let mut program = pair.slave.spawn_command(command).unwrap();
    drop(pair.slave);
    let mut reader = pair.master.try_clone_reader().unwrap();
    let mut keys = pair.master.take_writer().unwrap();
    let mut screen = Parser::new(24.try_into().unwrap(), 140.try_into().unwrap(), 0);
    let mut bytes = [0; 4096];

    while !screen.screen().contents().contains(text) {
        let count = reader.read(&mut bytes).unwrap();
        assert!(count > 0, "{}", screen.screen().contents());
        screen.process(&bytes[..count]);
    }
    let shown = lines(&screen);
    keys.write_all(key.as_bytes()).unwrap();
    while let Ok(count @ 1..) = reader.read(&mut bytes) {
        screen.process(&bytes[..count]);
    }

    assert!(program.wait().unwrap().success());
    assert!(
        !screen.screen().alternate_screen(),
        "the terminal is as it was"
    );
    shown
}

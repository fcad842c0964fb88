//! The frame of the program: help, completions, wrong usage, colours.

use crate::{cenote, refused, text};

#[test]
fn help_names_every_command_and_the_exit_codes() {
    let output = cenote(&["--help"]);

    let shown = text(&output.stdout);
    for part in [
        "demo",
        "bench",
        "tune",
        "top",
        "fleet",
        "doctor",
        "record",
        "replay",
        "config",
        "completions",
        "Exit codes:",
    ] {
        assert!(shown.contains(part), "no `{part}` in: {shown}");
    }
}

#[test]
fn the_readme_names_every_command() {
    let help = text(&cenote(&["--help"]).stdout);
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands = commands.take_while(|line| !line.is_empty());
    // A text that goes on in the next line is indented more.
    let commands = commands.filter(|line| !line.starts_with("   "));
    let mut names: Vec<&str> = commands
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    names.retain(|name| *name != "help");

    assert_eq!(names.len(), 10, "{help}");
    for name in names {
        let shown = include_str!("../../README.md").contains(&format!("`cenote {name}"));
        assert!(shown, "the README does not show `{name}`");
    }
}

#[test]
fn completions_are_written_for_a_shell() {
    for shell in ["bash", "zsh", "fish"] {
        let output = cenote(&["completions", shell]);

        assert!(output.status.success());
        assert!(text(&output.stdout).contains("doctor"));
    }
}

#[test]
fn an_unknown_command_is_wrong_usage() {
    let output = cenote(&["bensch"]);

    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn an_unknown_scheme_names_those_that_are_known() {
    refused(
        &["doctor", "oracle://db"],
        2,
        &["no driver for `oracle://`", "`postgres://`"],
    );
}

#[cfg(not(feature = "postgres"))]
#[test]
fn an_unknown_scheme_names_the_feature_that_has_it() {
    refused(
        &["doctor", "postgres://db"],
        2,
        &["`--features postgres`", "`--features full`"],
    );
}

#[test]
fn a_pipe_gets_no_colours() {
    let output = cenote(&["config", "check", "no-such-file.toml"]);

    assert!(!output.stderr.contains(&0x1b));
}

#[test]
fn a_fleet_is_not_kept_in_a_file() {
    refused(
        &["fleet", "shop.db", "orders"],
        2,
        &["no fleet can be read from `shop.db`", "`postgres://`"],
    );
}

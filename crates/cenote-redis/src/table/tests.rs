//! Commands are read by their names and arguments.

use redis::cmd;

use super::{Kind, name};

fn kind(text: &str) -> Kind {
    let mut words = text.split(' ');
    let mut command = cmd(words.next().unwrap());
    command.arg(words.collect::<Vec<_>>());
    Kind::of(&command)
}

#[test]
fn most_commands_are_plain() {
    for text in [
        "GET k",
        "get k",
        "EVAL return 0",
        "FT.SEARCH index query",
        "A.NAME.LONGER.THAN.ALL.ON.THE.TABLE k",
        "CLIENT LIST",
        "CLIENT ID",
        "SCRIPT LOAD x",
        "BLPOPS k",
    ] {
        assert_eq!(kind(text), Kind::Plain, "{text}");
    }
    assert_eq!(Kind::of(&redis::Cmd::new()), Kind::Plain);
}

#[test]
fn names_are_read_in_any_case() {
    assert_eq!(kind("bLpOp k 0"), Kind::Blocks);
    assert_eq!(kind("watch k"), Kind::Watch);
    assert_eq!(kind("client setname x"), Kind::Session);
    assert_eq!(name(cmd("blpop").arg("secret")), "BLPOP");
}

#[test]
fn a_read_of_streams_blocks_by_its_option_only() {
    assert_eq!(kind("XREAD BLOCK 0 STREAMS s $"), Kind::Blocks);
    assert_eq!(kind("XREAD COUNT 2 BLOCK 5 STREAMS s $"), Kind::Blocks);
    assert_eq!(
        kind("XREADGROUP GROUP g c block 0 STREAMS s >"),
        Kind::Blocks
    );
    assert_eq!(kind("XREAD COUNT 2 STREAMS BLOCK $"), Kind::Plain);
    assert_eq!(
        kind("XREADGROUP GROUP BLOCK BLOCK STREAMS s >"),
        Kind::Plain
    );
    assert_eq!(kind("XREAD STREAMS s $"), Kind::Plain);
}

#[test]
fn a_select_has_its_number() {
    assert_eq!(kind("SELECT 3"), Kind::Select(Some(3)));
    assert_eq!(kind("SELECT three"), Kind::Select(None));
    assert_eq!(Kind::of(&cmd("SELECT")), Kind::Select(None));
}

#[test]
fn commands_without_one_answer_each_are_unfit() {
    for text in ["MONITOR", "PSYNC x 1", "CLIENT REPLY OFF", "QUIT"] {
        assert!(matches!(kind(text), Kind::Unfit(_)), "{text}");
    }
}

#[test]
fn channels_are_counted() {
    assert_eq!(kind("SUBSCRIBE a b"), Kind::Subscribe(2));
    assert_eq!(Kind::of(&cmd("UNSUBSCRIBE")), Kind::Subscribe(0));
}

//! The commands by which a used connection becomes as good as new.

use redis::aio::MultiplexedConnection;
use redis::{Cmd, Pipeline, ProtocolVersion, RedisConnectionInfo, RedisResult, Value, cmd, pipe};

/// Undoes everything that a session may have changed, and logs in again, in one round trip.
///
/// `RESET` needs Redis 6.2. On older servers it is an error, and the connection is closed.
pub(crate) async fn reset(
    connection: &mut MultiplexedConnection,
    login: &RedisConnectionInfo,
) -> RedisResult<()> {
    let (steps, courtesies) = steps(login);
    let answers = connection.send_packed_commands(&steps, 0, steps.len());
    let mut answers = answers.await?;
    answers.truncate(steps.len() - courtesies);
    for answer in answers {
        answer.extract_error()?;
    }
    Ok(())
}

/// Returns the steps, and how many of the last ones may fail.
fn steps(login: &RedisConnectionInfo) -> (Pipeline, usize) {
    let mut steps = pipe();
    steps.cmd("RESET");
    if let Some(command) = authentication(login) {
        steps.add_command(command);
    }
    if login.db() != 0 {
        steps.cmd("SELECT").arg(login.db());
    }
    // `RESET` forgets to undo it before 7.2, and servers before 7.0 do not know it.
    steps.cmd("CLIENT").arg("NO-EVICT").arg("OFF");
    if login.skip_set_lib_name() {
        return (steps, 1);
    }
    let name = login.lib_name().unwrap_or(env!("CARGO_PKG_NAME"));
    let version = login.lib_ver().unwrap_or(env!("CARGO_PKG_VERSION"));
    // Only Redis 7.2 knows them.
    steps.cmd("CLIENT").arg("SETINFO").arg("LIB-NAME").arg(name);
    steps
        .cmd("CLIENT")
        .arg("SETINFO")
        .arg("LIB-VER")
        .arg(version);
    (steps, 3)
}

fn authentication(login: &RedisConnectionInfo) -> Option<Cmd> {
    if login.protocol() != ProtocolVersion::RESP2 {
        let mut hello = cmd("HELLO");
        hello.arg(3);
        if let Some(password) = login.password() {
            let user = login.username().unwrap_or("default");
            hello.arg("AUTH").arg(user).arg(password);
        }
        return Some(hello);
    }
    let password = login.password()?;
    let mut auth = cmd("AUTH");
    if let Some(user) = login.username() {
        auth.arg(user);
    }
    auth.arg(password);
    Some(auth)
}

/// Returns the error of the server among these answers, if there is one.
pub(crate) fn first_error(answers: &[Value]) -> Option<&redis::ServerError> {
    answers.iter().find_map(|answer| match answer {
        Value::ServerError(error) => Some(error),
        _ => None,
    })
}

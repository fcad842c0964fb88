//! Texts that are refused outside a scope, because their effect would be undone at once.

use cenote::scope::Scope;
use sqlx::Error;

use crate::label::label;
use crate::reading::Reading;
use crate::template::Reset;

/// Refuses a text that begins a transaction or only changes the session, if its connection would be
/// cleaned before the next statement.
pub(crate) fn outside_a_scope(reading: &Reading, reset: &Reset, sql: &str) -> Result<(), Error> {
    if !reading.is_undone() || Scope::current().is_some() {
        return Ok(());
    }
    let (what, fix) = if reading.begins_for_good() {
        let fix = "use `Db::transaction` or `Db::begin`";
        ("begins a transaction that is rolled back", fix)
    } else if *reset == Reset::Never {
        return Ok(());
    } else {
        let fix = "run it in a transaction, in `cenote::scope` or on a lease of `Db::acquire`, or \
                   give it to `Builder::setting`, which runs it on every connection";
        ("changes a session that is reset", fix)
    };
    Err(Error::InvalidArgument(format!(
        "`{}` {what} before the next statement: {fix}",
        label(sql)
    )))
}

//! The databases that the suite runs on.

pub(crate) mod postgres;
pub(crate) mod sqlite;

use std::error::Error;
use std::fmt;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

pub(crate) type Done = Result<(), sqlx::Error>;

/// The error type of an application.
#[derive(Debug)]
pub(crate) enum Problem {
    SoldOut,
    Database(sqlx::Error),
}

impl From<sqlx::Error> for Problem {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SoldOut => f.write_str("sold out"),
            Self::Database(_) => f.write_str("the database failed"),
        }
    }
}

impl Error for Problem {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::SoldOut => None,
            Self::Database(error) => Some(error),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        match self {
            Self::SoldOut => (StatusCode::CONFLICT, "sold out").into_response(),
            Self::Database(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        }
    }
}

/// Returns the name of a table. Two copies of this repository use different names, so that both can
/// be tested on one server at the same time.
pub(crate) fn table(name: &str) -> String {
    let place = env!("CARGO_MANIFEST_DIR").bytes();
    let number = place.fold(7_u16, |number, byte| {
        number.wrapping_mul(31).wrapping_add(byte.into())
    });
    format!("cenote_{number}_{name}")
}

fn safe(text: String) -> sqlx::SqlStr {
    sqlx::SqlSafeStr::into_sql_str(sqlx::AssertSqlSafe(text))
}

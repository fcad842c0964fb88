//! Run: cargo run -p cenote-examples --example sql_rotating_credentials
//!
//! How do I connect with a password that changes?
//!
//! The provider is asked whenever a connection is opened. When a secret is revoked, `invalidate`
//! closes the connections that were opened with it. The example needs no server: every open fails.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use cenote_sqlx::{Credentials, Db, pool_error};

/// Stands for a vault, or the token service of a cloud.
#[derive(Default)]
struct Vault {
    asked: AtomicU32,
}

impl Vault {
    async fn secret(&self) -> Result<Credentials, &'static str> {
        let nth = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        if nth == 3 {
            return Err("the vault is sealed");
        }
        println!("the vault gives password {nth}");
        Ok(Credentials::new("app", format!("password-{nth}")))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let vault = Arc::new(Vault::default());
    let provider = Arc::clone(&vault);
    let db = Db::postgres("postgres://127.0.0.1:1/shop")
        .name("shop")
        .credentials(move || {
            let vault = Arc::clone(&provider);
            async move { vault.secret().await }
        })
        .build()?;
    assert_eq!(
        vault.asked.load(Ordering::Relaxed),
        0,
        "building opens nothing"
    );

    for nth in 1..=3 {
        let error = db.acquire().await.expect_err("there is no server");
        assert_eq!(vault.asked.load(Ordering::Relaxed), nth);
        let shown = format!("{:?}", pool_error(&error));
        assert!(!shown.contains("password-"), "an error shows a password");
        assert_eq!(shown.contains("the vault is sealed"), nth == 3);
        println!("{error}");
    }

    // Your program calls this when the old secret is revoked.
    db.pool().invalidate();
    Ok(())
}

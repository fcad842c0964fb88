//! cenote with connections of tokio-postgres, by cenote-postgres. Everything but the number of
//! connections is its default.

use std::time::Duration;

use crate::harness::contender::Contender;
use crate::harness::peer::Kind;
use crate::harness::sql::statements::{ONE, READ, UPDATE};
use crate::harness::sql::{Database, SIZE, SqlPeer, round};
use cenote_postgres::{Lease, Pool};

use crate::subject::Cenote;

/// Takes part in S13 only. The other scenarios measure the same pool as those of cenote.
pub(crate) const CONTENDER: Contender = Contender {
    name: "cenote-postgres",
    kind: Kind::Database,
    sql: &[(Database::Postgres, round::<OnPostgres>)],
    ..Contender::new::<Cenote>()
};

/// Idle connections close at once. A slow close would disturb the next round.
const CLOSE: Duration = Duration::from_secs(5);

#[derive(Clone)]
struct OnPostgres(Pool);

impl OnPostgres {
    async fn acquire(&self) -> Lease {
        self.0.acquire().await.expect("an acquire succeeds")
    }
}

impl SqlPeer for OnPostgres {
    async fn open(url: &str) -> Self {
        let pool = Pool::from_url(url).max_size(SIZE).build();
        let pool = Self(pool.expect("the setup is in range"));
        let mut held = Vec::with_capacity(SIZE);
        for _ in 0..SIZE {
            let lease = pool.acquire().await;
            for sql in [ONE, READ, UPDATE] {
                lease.prepare_cached(sql).await.expect("it is prepared");
            }
            held.push(lease);
        }
        pool
    }

    async fn one(&self) {
        let lease = self.acquire().await;
        let one = lease.prepare_cached(ONE).await.expect("it is prepared");
        let row = lease.query_one(&one, &[]).await;
        assert_eq!(row.expect("a statement succeeds").get::<_, i32>(0), 1);
    }

    async fn read(&self, id: i32) {
        let lease = self.acquire().await;
        let read = lease.prepare_cached(READ).await.expect("it is prepared");
        let row = lease.query_one(&read, &[&id]).await;
        let _: i32 = row.expect("a read succeeds").get(0);
    }

    async fn update(&self, id: i32) {
        let lease = self.acquire().await;
        let update = lease.prepare_cached(UPDATE).await.expect("it is prepared");
        let changed = lease.execute(&update, &[&id]).await;
        assert_eq!(changed.expect("an update succeeds"), 1);
    }

    async fn close(&self) {
        self.0.close_within(CLOSE).await;
    }
}

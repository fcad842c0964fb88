//! One engine keeps the cell, and the server of the pooled connections counts and fences.

use std::sync::Mutex;
use std::time::Duration;

use cenote_fleet::{Fleet, JoinError};
use cenote_servers::Server;

use crate::live::{LIMIT, Place, Seat};

/// Takes everything about the cell from the place that keeps it.
macro_rules! kept_by {
    ($keeper:ident: $place:ty) => {
        const OVERHEAD: u32 = 2;
        const FENCES: bool = true;
        const LEARNS_AFTER_RESTART: bool = <$place>::LEARNS_AFTER_RESTART;

        fn restart(&self) {
            self.$keeper.restart();
        }

        async fn wipe(&self) {
            self.$keeper.wipe().await;
        }

        async fn save(&mut self) {
            self.$keeper.save().await;
        }

        async fn put_back(&self) {
            self.$keeper.put_back().await;
        }
    };
}

mod redis_and_postgres {
    use tokio::sync::Mutex;
    use tokio_postgres::{Client, Config, NoTls};

    use super::*;
    use crate::redis::OnRedis;
    use crate::suite::suite;

    suite!(Places:
        shares_follow_demand,
        a_lost_cell_is_learned_again,
        an_old_cell_that_is_put_back_is_learned_again,
        a_killed_member_is_buried_and_its_share_comes_back,
        a_stopped_member_is_buried_and_joins_again,
    );

    const SESSIONS: &str = "select count(*) from pg_stat_activity \
         where application_name like '%cn:orders:%'";

    struct Places {
        keeper: OnRedis,
        database: Server,
        observer: Mutex<Client>,
    }

    impl Place for Places {
        type Manager = cenote_postgres::Postgres;

        kept_by!(keeper: OnRedis);

        async fn start() -> Self {
            let database = cenote_servers::postgres::start().unwrap();
            let (observer, connection) = tokio_postgres::connect(database.url(), NoTls)
                .await
                .unwrap();
            tokio::spawn(connection);
            Self {
                keeper: OnRedis::start().await,
                database,
                observer: Mutex::new(observer),
            }
        }

        async fn try_join(&self, ttl: Duration) -> Result<Seat<Self::Manager>, JoinError> {
            let mut options: Config = self.database.url().parse().unwrap();
            let counter = Fleet::postgres(&options, "orders").unwrap();
            options.application_name(counter.tag("api"));
            let pool = cenote_postgres::Pool::with_options(options)
                .acquire_timeout(LIMIT)
                .open_timeout(LIMIT);
            let joining = Fleet::redis(&self.keeper.client, "orders").unwrap();
            let joining = joining.counted_by(counter).overhead(1);
            Seat::take(joining, &pool.build().unwrap(), ttl).await
        }

        async fn count(&self) -> u32 {
            let observer = self.observer.lock().await;
            let count: i64 = observer.query_one(SESSIONS, &[]).await.unwrap().get(0);
            count.try_into().unwrap()
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_server_that_counts_needs_no_table() {
        let places = Places::start().await;
        let seat = places.join().await;
        assert_eq!(seat.hold(9).await.len(), 9);

        let table = "select to_regclass('cenote_fleet') is null";
        let observer = places.observer.lock().await;
        let is_missing: bool = observer.query_one(table, &[]).await.unwrap().get(0);
        assert!(is_missing);
    }
}

mod nats_and_mariadb {
    use super::*;
    use crate::mysql::Database;
    use crate::nats::{OnNats, connect};
    use crate::suite::suite;

    suite!(Places:
        shares_follow_demand,
        a_stopped_member_is_buried_and_joins_again,
    );

    struct Places {
        keeper: OnNats,
        database: Database,
        _server: Mutex<Server>,
    }

    impl Place for Places {
        type Manager = cenote_mysql::Mysql;

        kept_by!(keeper: OnNats);

        async fn start() -> Self {
            let server = cenote_servers::mariadb::start().unwrap();
            Self {
                keeper: OnNats::start().await,
                database: Database::at(server.url()).await,
                _server: Mutex::new(server),
            }
        }

        async fn try_join(&self, ttl: Duration) -> Result<Seat<Self::Manager>, JoinError> {
            let counter = Fleet::mysql(&self.database.options, "orders").unwrap();
            let pool = self.database.pool(&counter);
            let context = connect(&self.keeper.url).await;
            let joining = Fleet::nats(&context, "orders").unwrap();
            Seat::take(joining.counted_by(counter).overhead(1), &pool, ttl).await
        }

        async fn count(&self) -> u32 {
            self.database.sessions().await
        }
    }
}

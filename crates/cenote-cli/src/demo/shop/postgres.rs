//! The shop in a schema of its own on a PostgreSQL server.

use cenote::Config;
use cenote_postgres::{Postgres, Session};

use super::{ACCOUNTS, Books, Place, RANGE, Sale, Shop, Sold, own_name};
use crate::failure::Failure;
use crate::target::{self, Target};

#[derive(Debug)]
pub(in crate::demo) struct PostgresShop {
    manager: Postgres,
    place: Place,
    sql: Sql,
}

/// The statements, which name the schema.
#[derive(Debug)]
struct Sql {
    make: String,
    stock: String,
    balance: String,
    sum: String,
    update: String,
    insert: String,
    books: String,
    remove: String,
}

impl PostgresShop {
    /// Opens a first connection, so that an error says what to do.
    pub(in crate::demo) async fn connect(url: String) -> Result<Self, Failure> {
        let pool = target::postgres::open(&url, Config::default()).await?;
        let manager = pool.manager().clone();
        pool.close();
        let schema = own_name();
        let sql = Sql::new(&schema);
        let place = Place {
            name: format!("schema `{schema}`"),
            url: Target::Postgres(url).shown(),
            right: "to create a schema in the database",
            by_hand: sql.remove.clone(),
        };
        Ok(Self {
            manager,
            place,
            sql,
        })
    }
}

impl Sql {
    fn new(schema: &str) -> Self {
        Self {
            make: format!("create schema {schema}"),
            stock: format!(
                "create table {schema}.account (id bigint primary key, balance bigint not null); \
                 create table {schema}.entry (id bigserial primary key, account bigint not null, \
                 amount bigint not null); \
                 insert into {schema}.account select i, 0 from generate_series(0, {}) i",
                ACCOUNTS - 1
            ),
            balance: format!("select balance from {schema}.account where id = $1"),
            sum: format!(
                "select sum(balance)::bigint from {schema}.account where id between $1 and $2"
            ),
            update: format!("update {schema}.account set balance = balance + $2 where id = $1"),
            insert: format!("insert into {schema}.entry (account, amount) values ($1, $2)"),
            books: format!(
                "select count(*), coalesce(sum(amount), 0)::bigint, \
                 (select sum(balance)::bigint from {schema}.account) from {schema}.entry"
            ),
            remove: format!("drop schema {schema} cascade"),
        }
    }
}

impl Shop for PostgresShop {
    type Manager = Postgres;

    fn manager(&self) -> &Postgres {
        &self.manager
    }

    fn place(&self) -> Option<Place> {
        Some(self.place.clone())
    }

    async fn make(&self, session: &mut Session) -> Result<(), Failure> {
        Ok(session.batch_execute(&self.sql.make).await?)
    }

    async fn stock(&self, session: &mut Session) -> Result<(), Failure> {
        Ok(session.batch_execute(&self.sql.stock).await?)
    }

    async fn read(&self, session: &mut Session, account: i64) -> Result<(), Failure> {
        session.query_one(&self.sql.balance, &[&account]).await?;
        let last = account + RANGE - 1;
        session.query_one(&self.sql.sum, &[&account, &last]).await?;
        Ok(())
    }

    async fn sell(&self, session: &mut Session, sale: Sale) -> Result<Sold, Failure> {
        let Sale {
            account, amount, ..
        } = sale;
        session.batch_execute("begin").await?;
        for sql in [&self.sql.update, &self.sql.insert] {
            session.execute(sql, &[&account, &amount]).await?;
        }
        if !sale.abandon {
            session.batch_execute("commit").await?;
        }
        Ok(Sold::Done)
    }

    async fn books(&self, session: &mut Session) -> Result<Books, Failure> {
        let row = session.query_one(&self.sql.books, &[]).await?;
        Ok(Books {
            entries: row.try_get(0)?,
            moved: row.try_get(1)?,
            balance: row.try_get(2)?,
        })
    }

    async fn remove(&self, session: &mut Session) -> Result<(), Failure> {
        Ok(session.batch_execute(&self.sql.remove).await?)
    }
}

//! The shop in a database of its own on a MySQL or MariaDB server.

use cenote::Config;
use cenote_mysql::mysql_async::prelude::Queryable;
use cenote_mysql::{Mysql, Session};

use super::{ACCOUNTS, Books, Place, RANGE, Sale, Shop, Sold, own_name};
use crate::failure::Failure;
use crate::target::{self, Target};

#[derive(Debug)]
pub(in crate::demo) struct MysqlShop {
    manager: Mysql,
    database: String,
    url: String,
}

impl MysqlShop {
    /// Opens a first connection, so that an error says what to do.
    pub(in crate::demo) async fn connect(url: String) -> Result<Self, Failure> {
        let pool = target::mysql::open(&url, Config::default()).await?;
        let manager = pool.manager().clone();
        pool.close();
        Ok(Self {
            manager,
            database: own_name(),
            url: Target::Mysql(url).shown(),
        })
    }
}

impl Shop for MysqlShop {
    type Manager = Mysql;

    fn manager(&self) -> &Mysql {
        &self.manager
    }

    fn place(&self) -> Option<Place> {
        Some(Place {
            name: format!("database `{}`", self.database),
            url: self.url.clone(),
            right: "to create a database",
            by_hand: format!("DROP DATABASE {}", self.database),
        })
    }

    async fn make(&self, session: &mut Session) -> Result<(), Failure> {
        let make = format!("CREATE DATABASE {}", self.database);
        Ok(session.query_drop(make).await?)
    }

    async fn stock(&self, session: &mut Session) -> Result<(), Failure> {
        let shop = &self.database;
        let rows: Vec<String> = (0..ACCOUNTS).map(|id| format!("({id}, 0)")).collect();
        let statements = [
            format!(
                "CREATE TABLE {shop}.account (id BIGINT PRIMARY KEY, balance BIGINT NOT NULL) \
                 ENGINE = InnoDB"
            ),
            format!(
                "CREATE TABLE {shop}.entry (id BIGINT AUTO_INCREMENT PRIMARY KEY, \
                 account BIGINT NOT NULL, amount BIGINT NOT NULL) ENGINE = InnoDB"
            ),
            format!("INSERT INTO {shop}.account VALUES {}", rows.join(", ")),
        ];
        for statement in statements {
            session.query_drop(statement).await?;
        }
        Ok(())
    }

    async fn read(&self, session: &mut Session, account: i64) -> Result<(), Failure> {
        let shop = &self.database;
        let balance = format!("SELECT balance FROM {shop}.account WHERE id = ?");
        session.exec_drop(balance, (account,)).await?;
        let sum = format!("SELECT SUM(balance) FROM {shop}.account WHERE id BETWEEN ? AND ?");
        let range = (account, account + RANGE - 1);
        Ok(session.exec_drop(sum, range).await?)
    }

    async fn sell(&self, session: &mut Session, sale: Sale) -> Result<Sold, Failure> {
        let shop = &self.database;
        let (account, amount) = (sale.account, sale.amount);
        session.query_drop("START TRANSACTION").await?;
        let update = format!("UPDATE {shop}.account SET balance = balance + ? WHERE id = ?");
        session.exec_drop(update, (amount, account)).await?;
        let insert = format!("INSERT INTO {shop}.entry (account, amount) VALUES (?, ?)");
        session.exec_drop(insert, (account, amount)).await?;
        if !sale.abandon {
            session.query_drop("COMMIT").await?;
        }
        Ok(Sold::Done)
    }

    async fn books(&self, session: &mut Session) -> Result<Books, Failure> {
        let shop = &self.database;
        let books = format!(
            "SELECT COUNT(*), CAST(COALESCE(SUM(amount), 0) AS SIGNED), \
             (SELECT CAST(SUM(balance) AS SIGNED) FROM {shop}.account) FROM {shop}.entry"
        );
        let row: Option<(i64, i64, i64)> = session.query_first(books).await?;
        let (entries, moved, balance) = row.ok_or("the server returned no row of sums")?;
        Ok(Books {
            entries,
            moved,
            balance,
        })
    }

    async fn remove(&self, session: &mut Session) -> Result<(), Failure> {
        let remove = format!("DROP DATABASE {}", self.database);
        Ok(session.query_drop(remove).await?)
    }
}

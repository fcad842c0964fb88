//! How each database makes and drops the databases of tests.

use std::path::{Path, PathBuf};

use sqlx::migrate::Migrate;
use sqlx::{Connection, Database, Error};

use crate::dialect::{Dialect, Options, Statements};

/// A database for tests: on the server of a URL, or in a folder.
#[doc(hidden)]
#[derive(Debug)]
pub struct Place {
    pub(super) url: String,
    /// The beginning of the names of all databases for tests.
    pub(super) prefix: String,
    pub(super) name: String,
    #[cfg_attr(
        not(feature = "sqlite"),
        expect(dead_code, reason = "only SQLite has files")
    )]
    pub(super) folder: PathBuf,
}

impl Place {
    /// Runs a statement in the database of the URL.
    async fn run<DB: Dialect>(&self, sql: String) -> Result<(), Error> {
        let mut connection = self.connect::<DB>().await?;
        let run = <DB as Statements>::run(&mut connection, &sql).await;
        connection.close().await?;
        run
    }

    async fn connect<DB: Database>(&self) -> Result<DB::Connection, Error> {
        let (address, _) = crate::url::split(&self.url);
        let options: Options<DB> = address.parse()?;
        DB::Connection::connect_with(&options).await
    }
}

/// A database that can make others for tests.
#[doc(hidden)]
pub trait Makes: Dialect<Connection: Migrate> {
    /// Whether a database can be a copy of a template.
    const COPIES: bool = true;

    /// Returns the names of the databases for tests.
    fn names(at: &Place) -> impl Future<Output = Result<Vec<String>, Error>> + Send;

    /// Makes a database: empty, or as a copy.
    fn create(at: &Place, from: Option<&Place>) -> impl Future<Output = Result<(), Error>> + Send;

    /// Drops a database, if it is there. Its connections are closed.
    fn remove(at: &Place) -> impl Future<Output = Result<(), Error>> + Send;

    /// Drops a database that has no connections.
    fn remove_unused(at: &Place) -> impl Future<Output = Result<(), Error>> + Send;

    /// Returns the name of the database in the URL.
    fn name(url: &str) -> String {
        let (address, _) = url.split_once('?').unwrap_or((url, ""));
        let name = address.rsplit('/').next().unwrap_or_default();
        name.replace(|letter: char| !letter.is_ascii_alphanumeric(), "_")
    }

    /// Returns the URL of another database on the same server, or of a file in `folder`.
    fn url_of(url: &str, name: &str, folder: &Path) -> String {
        let _ = folder;
        let (address, query) = url.split_once('?').unwrap_or((url, ""));
        let server = address.find("://").map_or(0, |at| at + 3);
        let end = address[server..].find('/');
        let server = &address[..end.map_or(address.len(), |end| server + end)];
        format!("{server}/{name}?{query}")
    }
}

#[cfg(feature = "postgres")]
impl Makes for sqlx::Postgres {
    async fn names(at: &Place) -> Result<Vec<String>, Error> {
        let mut connection = at.connect::<Self>().await?;
        let sql = "SELECT datname::text FROM pg_database WHERE starts_with(datname, $1) \
                   ORDER BY oid DESC";
        let names = sqlx::query_scalar(sql).bind(&at.prefix);
        let names = names.fetch_all(&mut connection).await;
        connection.close().await?;
        names
    }

    async fn create(at: &Place, from: Option<&Place>) -> Result<(), Error> {
        let template = from.map_or(String::new(), |from| format!(" TEMPLATE \"{}\"", from.name));
        let sql = format!("CREATE DATABASE \"{}\"{template}", at.name);
        at.run::<Self>(sql).await
    }

    async fn remove(at: &Place) -> Result<(), Error> {
        let sql = format!("DROP DATABASE IF EXISTS \"{}\" WITH (FORCE)", at.name);
        at.run::<Self>(sql).await
    }

    async fn remove_unused(at: &Place) -> Result<(), Error> {
        // Fails if there are connections.
        at.run::<Self>(format!("DROP DATABASE \"{}\"", at.name))
            .await
    }
}

#[cfg(feature = "mysql")]
impl Makes for sqlx::MySql {
    const COPIES: bool = false;

    async fn names(at: &Place) -> Result<Vec<String>, Error> {
        let mut connection = at.connect::<Self>().await?;
        let sql = "SELECT CAST(schema_name AS CHAR) FROM information_schema.schemata \
                   WHERE LEFT(schema_name, CHAR_LENGTH(?)) = ?";
        let names = sqlx::query_scalar(sql).bind(&at.prefix).bind(&at.prefix);
        let names = names.fetch_all(&mut connection).await;
        connection.close().await?;
        names
    }

    async fn create(at: &Place, _: Option<&Place>) -> Result<(), Error> {
        at.run::<Self>(format!("CREATE DATABASE `{}`", at.name))
            .await
    }

    async fn remove(at: &Place) -> Result<(), Error> {
        at.run::<Self>(format!("DROP DATABASE IF EXISTS `{}`", at.name))
            .await
    }

    async fn remove_unused(at: &Place) -> Result<(), Error> {
        let sql = "SELECT count(*) FROM information_schema.processlist WHERE db = ?";
        let mut connection = at.connect::<Self>().await?;
        let users = sqlx::query_scalar(sql).bind(&at.name);
        let users: Result<i64, Error> = users.fetch_one(&mut connection).await;
        connection.close().await?;
        match users? {
            0 => Self::remove(at).await,
            _ => Ok(()),
        }
    }
}

/// The databases are files in the folder of the budget.
#[cfg(feature = "sqlite")]
impl Makes for sqlx::Sqlite {
    async fn names(at: &Place) -> Result<Vec<String>, Error> {
        let files = std::fs::read_dir(&at.folder)?;
        let names = files.filter_map(|file| {
            let name = file.ok()?.file_name().into_string().ok()?;
            let name = name.strip_suffix(".db")?.to_owned();
            name.starts_with(&at.prefix).then_some(name)
        });
        Ok(names.collect())
    }

    async fn create(at: &Place, from: Option<&Place>) -> Result<(), Error> {
        let Some(from) = from else {
            return std::fs::File::create(file_of(&at.name, &at.folder))
                .map(drop)
                .map_err(Error::Io);
        };
        let from = Place {
            url: Self::url_of(&from.url, &from.name, &from.folder),
            prefix: String::new(),
            name: String::new(),
            folder: from.folder.clone(),
        };
        let file = file_of(&at.name, &at.folder).display().to_string();
        let sql = format!("VACUUM INTO '{}'", file.replace('\'', "''"));
        from.run::<Self>(sql).await
    }

    async fn remove(at: &Place) -> Result<(), Error> {
        for end in ["", "-wal", "-shm", "-journal"] {
            let file = format!("{}{end}", file_of(&at.name, &at.folder).display());
            match std::fs::remove_file(file) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(error.into());
                }
                _ => {}
            }
        }
        Ok(())
    }

    async fn remove_unused(at: &Place) -> Result<(), Error> {
        // One sandbox at a time uses these files, and it is the caller.
        Self::remove(at).await
    }

    fn url_of(_: &str, name: &str, folder: &Path) -> String {
        format!("sqlite://{}?mode=rwc", file_of(name, folder).display())
    }
}

#[cfg(feature = "sqlite")]
fn file_of(name: &str, folder: &Path) -> PathBuf {
    folder.join(format!("{name}.db"))
}

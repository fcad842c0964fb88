//! The databases that tests make: one with the migrations for all sandboxes, a template, and one
//! for each isolated test.
//!
//! The name of an isolated database has the number of its slot. If the slot is free, a killed test
//! has left the database, and the next isolated test drops it.

use std::marker::PhantomData;
use std::str::FromStr;
use std::sync::Mutex;

use sqlx::migrate::Migrator;
use sqlx::{Connection, Error};

use super::budget::{Budget, Slot};
use super::home::in_background;
use super::makes::{Makes, Place};
use crate::db::Db;
use crate::dialect::Options;

/// How many connections an isolated test has.
const CONNECTIONS: usize = 3;

/// How many databases with other migrations are kept.
const KEPT: usize = 3;

/// The length of a hash in a name.
const HASH: usize = 16;

/// The names of databases that this process has prepared.
static PREPARED: Mutex<Vec<String>> = Mutex::new(Vec::new());

pub(super) struct Databases<'a, DB: Makes> {
    url: &'a str,
    budget: Budget,
    migrator: Option<&'a Migrator>,
    database: PhantomData<DB>,
}

impl<'a, DB: Makes> Databases<'a, DB> {
    pub(super) fn new(
        url: &'a str,
        place: &str,
        migrator: Option<&'a Migrator>,
    ) -> Result<Self, Error> {
        let budget = Budget::of(place, DB::BUDGET)?;
        Ok(Self {
            url,
            budget,
            migrator,
            database: PhantomData,
        })
    }

    /// Returns the URL of the database for sandboxes: with migrations, one of its own.
    pub(super) fn base_url(&self) -> String {
        match self.migrator {
            Some(migrator) => self.url_of(&self.name(&hash(migrator))),
            None => self.url.to_owned(),
        }
    }

    /// Makes the database for sandboxes, if it is not there.
    pub(super) async fn prepare_base(&self) -> Result<(), Error> {
        match self.migrator {
            Some(migrator) => self.prepare(&self.name(&hash(migrator)), migrator).await,
            None => Ok(()),
        }
    }

    /// Makes a database of its own for a test, from a template with the migrations.
    pub(super) async fn isolate(&self) -> Result<(Db<DB>, Isolated<DB>), Error> {
        let count = CONNECTIONS.min(DB::BUDGET);
        let budget = self.budget.clone();
        let slots = in_background(async move { budget.take(count).await }).await?;
        let number = slots.first().map_or(0, |(number, _)| *number);
        let name = self.name(&format!("{}_{number}", self.machine()?));
        let template = match self.migrator {
            Some(migrator) => {
                let template = self.name(&format!("{}_t", hash(migrator)));
                self.prepare(&template, migrator).await?;
                Some(template)
            }
            None => None,
        };
        let place = self.place(&name);
        self.remove_left(&place).await?;
        DB::remove(&place).await?;
        let template = template.map(|template| self.place(&template));
        DB::create(&place, template.as_ref()).await?;
        let isolated = Isolated {
            place,
            _slots: slots,
            database: PhantomData,
        };
        if DB::COPIES {
            // It has the migrations.
        } else if let Some(migrator) = self.migrator {
            self.migrate(&name, migrator).await?;
        }
        let db = Db::from_url(self.url_of(&name))
            .max_size(CONNECTIONS)
            .build();
        let db = db.map_err(|error| Error::Configuration(Box::new(error)))?;
        Ok((db, isolated))
    }

    /// Drops the databases of killed tests. Their slots are free, and taken meanwhile.
    async fn remove_left(&self, place: &Place) -> Result<(), Error> {
        let prefix = self.name(&format!("{}_", self.machine()?));
        for name in DB::names(place).await? {
            let number = name.strip_prefix(&prefix).and_then(|end| end.parse().ok());
            if let Some(number) = number
                && let Some(_slot) = self.budget.try_take(number)?
            {
                DB::remove(&self.place(&name)).await?;
            }
        }
        Ok(())
    }

    /// Makes a database with the migrations, if it is not there. One process at a time does it.
    async fn prepare(&self, name: &str, migrator: &Migrator) -> Result<(), Error> {
        if is_prepared(name) {
            return Ok(());
        }
        let budget = self.budget.clone();
        let turn = in_background(async move { budget.exclusive("databases").await }).await?;
        let place = self.place(name);
        let is_there = DB::names(&place).await?;
        let found = is_there.iter().any(|known| known == name);
        if !found {
            self.forget_old(&is_there).await;
            DB::create(&place, None).await?;
        }
        let migrated = self.migrate(name, migrator).await;
        if migrated.is_err() {
            // A killed process may have left it half done.
            DB::remove(&place).await?;
            if found {
                DB::create(&place, None).await?;
                self.migrate(name, migrator).await?;
            }
        }
        if !found {
            migrated?;
        }
        drop(turn);
        lock_prepared().push(name.to_owned());
        Ok(())
    }

    /// Drops databases of old migrations, if there are many. One that is in use stays.
    async fn forget_old(&self, names: &[String]) {
        let old = names.iter().filter(|name| {
            let end = name.rsplit("_cenote_").next().unwrap_or_default();
            end.trim_end_matches("_t").len() == HASH
        });
        for name in old.skip(KEPT) {
            let _ = DB::remove_unused(&self.place(name)).await;
        }
    }

    async fn migrate(&self, name: &str, migrator: &Migrator) -> Result<(), Error> {
        let (address, _) = crate::url::split(&self.url_of(name));
        let options = Options::<DB>::from_str(&address)?;
        let mut connection = DB::Connection::connect_with(&options).await?;
        // The turn is the lock. MariaDB does not grant the lock of the migrator.
        let unlocked = Migrator {
            migrations: migrator.migrations.clone(),
            table_name: migrator.table_name.clone(),
            create_schemas: migrator.create_schemas.clone(),
            locking: false,
            ..*migrator
        };
        let migrated = unlocked.run_direct(None, &mut connection, false).await;
        connection.close().await?;
        migrated.map_err(Error::from)
    }

    fn place(&self, name: &str) -> Place {
        Place {
            url: self.url.to_owned(),
            prefix: self.name(""),
            name: name.to_owned(),
            folder: self.budget.folder().to_owned(),
        }
    }

    fn url_of(&self, name: &str) -> String {
        DB::url_of(self.url, name, self.budget.folder())
    }

    fn name(&self, end: &str) -> String {
        let mut name = DB::name(self.url);
        name.truncate(20);
        format!("{name}_cenote_{end}")
    }

    /// Returns a name for this machine, so that machines with one server do not drop each other's
    /// databases.
    fn machine(&self) -> Result<String, Error> {
        let file = self.budget.folder().join("machine");
        if let Ok(name) = std::fs::read_to_string(&file)
            && !name.is_empty()
        {
            return Ok(name);
        }
        let name = format!("{:08x}", fastrand::u32(..));
        let draft = self.budget.folder().join(format!("machine-{name}"));
        std::fs::write(&draft, &name)?;
        // The first process that gets here names the machine.
        let _ = std::fs::hard_link(&draft, &file);
        std::fs::remove_file(&draft)?;
        Ok(std::fs::read_to_string(&file)?)
    }
}

/// The database of an isolated test.
pub(super) struct Isolated<DB: Makes> {
    place: Place,
    _slots: Vec<(usize, Slot)>,
    database: PhantomData<DB>,
}

impl<DB: Makes> Isolated<DB> {
    pub(super) async fn remove(self) -> Result<(), Error> {
        DB::remove(&self.place).await
    }
}

fn is_prepared(name: &str) -> bool {
    lock_prepared().iter().any(|known| known == name)
}

fn lock_prepared() -> std::sync::MutexGuard<'static, Vec<String>> {
    PREPARED
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Returns a name for the content of the migrations.
fn hash(migrator: &Migrator) -> String {
    let bytes = migrator.iter().flat_map(|one| {
        let version = one.version.to_le_bytes();
        version.into_iter().chain(one.checksum.iter().copied())
    });
    // FNV-1a, because the name must be the same for every build of a test.
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

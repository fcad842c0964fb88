//! Which database: none, or more than one.

use cenote_macros::transactional;

type Done = Result<(), ()>;

struct Db;

struct App {
    db: Db,
}

#[transactional]
async fn none(_app: &App) -> Done {
    Ok(())
}

impl App {
    #[transactional]
    async fn none_in_sight(&self) -> Done {
        Ok(())
    }
}

#[transactional]
async fn two(_from: &Db, _to: &Db) -> Done {
    Ok(())
}

#[transactional]
async fn nameless(_: &Db) -> Done {
    Ok(())
}

#[transactional(_from, _to)]
async fn both(_from: &Db, _to: &Db) -> Done {
    Ok(())
}

#[transactional(dp)]
async fn misspelled(_db: &Db) -> Done {
    Ok(())
}

fn main() {}

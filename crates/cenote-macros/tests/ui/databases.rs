//! No database that can be found, or more than one.

use cenote_macros::transactional;

type Done = Result<(), ()>;

struct Db;

struct App {
    db: Db,
}

#[transactional]
async fn none(_app: &App, _id: i32) -> Done {
    Ok(())
}

impl App {
    #[transactional]
    async fn none_in_a_method(&self) -> Done {
        Ok(())
    }
}

#[transactional]
async fn two(_from: &Db, _to: &Db) -> Done {
    Ok(())
}

#[transactional]
async fn without_a_name(_: &Db) -> Done {
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

//! Options that are unknown, given twice, or have a wrong value.

use cenote_macros::transactional;

type Done = Result<(), ()>;

struct Db;

#[transactional(readonly)]
async fn unknown(_db: &Db) -> Done {
    Ok(())
}

#[transactional(level = Serializable)]
async fn unknown_with_a_value(_db: &Db) -> Done {
    Ok(())
}

#[transactional(retry, read_only, retry = Default::default())]
async fn twice(_db: &Db) -> Done {
    Ok(())
}

#[transactional(isolation = Snapshot)]
async fn unknown_level(_db: &Db) -> Done {
    Ok(())
}

#[transactional(isolation = "serializable")]
async fn a_level_as_text(_db: &Db) -> Done {
    Ok(())
}

#[transactional(isolation)]
async fn without_a_level(_db: &Db) -> Done {
    Ok(())
}

#[transactional(nested = new)]
async fn unknown_nesting(_db: &Db) -> Done {
    Ok(())
}

#[transactional(read_only = true)]
async fn with_a_value(_db: &Db) -> Done {
    Ok(())
}

#[transactional(retry(3))]
async fn with_parentheses(_db: &Db) -> Done {
    Ok(())
}

struct Counter(u32);

impl Counter {
    #[transactional(_db, retry)]
    async fn changes_itself(mut self, _db: &Db) -> Done {
        self.0 += 1;
        Ok(())
    }
}

fn main() {}

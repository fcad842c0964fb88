//! Items that cannot be transactional.

use cenote_macros::transactional;

type Done = Result<(), ()>;

struct Db;

#[transactional]
fn not_async(_db: &Db) -> Done {
    Ok(())
}

#[transactional]
const fn constant(_db: &Db) -> Done {
    Ok(())
}

#[transactional]
extern "C" fn foreign(_db: &Db) {}

trait Store {
    #[transactional(self.db)]
    async fn without_a_body(&self) -> Done;
}

#[transactional]
struct NoFunction;

#[transactional]
async fn without_a_result(_db: &Db) {}

#[transactional]
async fn with_nothing(_db: &Db) -> () {}

fn main() {}

//! The attribute changes nothing about a function but the code around its body.

use std::fmt::Display;
use std::future::Future;
use std::sync::{Arc, OnceLock};

use axum::extract::State;
use cenote_sqlx::{Reply, transactional};
use tokio::sync::Mutex;

use crate::sqlite::suite::Rig;
use crate::world::sqlite::{DB, Db};
use crate::world::{Done, Problem};

fn assert_send<T: Send>(value: T) -> T {
    value
}

/// The expansion has variables with the same names.
#[transactional(db)]
async fn many_names(
    rig: &Rig,
    db: &Db,
    work: i32,
    how: i32,
    end: i32,
    tries: i32,
) -> Result<i32, sqlx::Error> {
    rig.insert(work).await?;
    assert!(db.in_transaction());
    Ok(work + how + end + tries)
}

#[tokio::test]
async fn variables_of_the_expansion_hide_no_argument() {
    #[transactional(db, retry)]
    async fn again(db: &Db, rest: i32, mut tries: i32, end: i32) -> Result<i32, sqlx::Error> {
        assert!(db.in_transaction());
        tries += rest + end;
        Ok(tries)
    }
    let rig = Rig::new("names").await;

    assert_eq!(many_names(&rig, &rig.db, 1, 2, 3, 4).await.unwrap(), 10);
    assert_eq!(again(&rig.db, 1, 2, 3).await.unwrap(), 6);
}

#[tokio::test]
async fn the_only_database_among_the_arguments_is_found() {
    #[transactional]
    async fn borrowed(_: i32, handle: &Db) -> Result<bool, sqlx::Error> {
        Ok(handle.in_transaction())
    }
    #[transactional]
    async fn owned(handle: cenote_sqlx::Db<DB>) -> Result<bool, sqlx::Error> {
        let moved = handle;
        Ok(moved.in_transaction())
    }
    #[transactional(handle)]
    async fn shared(handle: Arc<Db>) -> Result<bool, sqlx::Error> {
        Ok(handle.in_transaction())
    }
    let rig = Rig::new("found").await;

    assert!(borrowed(1, &rig.db).await.unwrap());
    assert!(owned(rig.db.clone()).await.unwrap());
    assert!(shared(Arc::new(rig.db.clone())).await.unwrap());
}

/// An alias of `Db` that is not called `Db`.
type Lite = cenote_sqlx::Db<DB>;

#[tokio::test]
async fn a_database_behind_a_type_alias_is_found_by_its_name_or_as_the_only_argument() {
    #[transactional]
    async fn by_name(_: i32, db: &Lite, _other: &str) -> Result<bool, sqlx::Error> {
        Ok(db.in_transaction())
    }
    #[transactional(retry)]
    async fn by_name_in_a_pattern(State(db): State<Lite>, id: i32) -> Result<i32, sqlx::Error> {
        Ok(if db.in_transaction() { id } else { 0 })
    }
    #[transactional]
    async fn alone(handle: Lite) -> Result<bool, sqlx::Error> {
        let moved = handle;
        Ok(moved.in_transaction())
    }
    #[transactional]
    async fn alone_in_an_arc(handle: Arc<Lite>) -> Result<bool, sqlx::Error> {
        Ok(handle.in_transaction())
    }
    let rig = Rig::new("alias").await;

    assert!(by_name(1, &rig.db, "other").await.unwrap());
    let in_a_pattern = by_name_in_a_pattern(State(rig.db.clone()), 7).await;
    assert_eq!(in_a_pattern.unwrap(), 7);
    assert!(alone(rig.db.clone()).await.unwrap());
    assert!(alone_in_an_arc(Arc::new(rig.db.clone())).await.unwrap());
}

#[tokio::test]
async fn the_database_can_be_in_a_static() {
    static RIG: OnceLock<Rig> = OnceLock::new();
    #[transactional(RIG.get().expect("it is set").db)]
    async fn insert(id: i32) -> Done {
        RIG.get().expect("it is set").insert(id).await?;
        Err(sqlx::Error::RowNotFound)
    }
    let rig = RIG.get_or_init({
        let rig = Rig::new("static").await;
        || rig
    });

    assert!(insert(1).await.is_err());

    assert!(rig.ids().await.is_empty());
}

#[tokio::test]
async fn generics_lifetimes_and_bounds_are_kept() {
    #[transactional(rig.db)]
    async fn longest<'a, T, const N: usize>(
        rig: &Rig,
        words: [&'a T; N],
        (first, second): (i32, i32),
        name: impl Display,
    ) -> Result<(&'a T, String), Problem>
    where
        T: Ord + Sync + ?Sized,
    {
        rig.insert(first).await?;
        rig.insert(second).await?;
        let longest = words.into_iter().max().ok_or(Problem::SoldOut)?;
        Ok((longest, name.to_string()))
    }
    let rig = Rig::new("generics").await;

    let (word, name) = longest(&rig, ["b", "a"], (1, 2), 7).await.unwrap();
    assert_eq!((word, &*name), ("b", "7"));
    assert!(longest::<str, 0>(&rig, [], (3, 4), "x").await.is_err());

    assert_eq!(rig.ids().await, [1, 2]);
}

#[tokio::test]
async fn the_return_type_guides_the_inference_in_the_body() {
    #[transactional(rig.db)]
    async fn choose(rig: &Rig, id: i32) -> Result<Box<dyn Display + Send>, Problem> {
        rig.insert(id).await?;
        if id == 1 {
            return Ok(Box::new("one"));
        }
        let parsed = "2".parse().map_err(|_| Problem::SoldOut)?;
        let number: i64 = parsed;
        Ok(Box::new(number))
    }
    #[transactional(rig.db)]
    async fn count(rig: &Rig, to: i32) -> Result<impl Iterator<Item = i32> + use<>, Problem> {
        rig.insert(to).await?;
        Ok(0..to)
    }
    let rig = Rig::new("guides").await;

    assert_eq!(choose(&rig, 1).await.unwrap().to_string(), "one");
    assert_eq!(choose(&rig, 2).await.unwrap().to_string(), "2");
    assert_eq!(count(&rig, 3).await.unwrap().sum::<i32>(), 3);
}

struct Shop {
    rig: Rig,
    sold: i32,
}

impl Shop {
    /// Takes `&mut self`.
    #[transactional(self.rig.db)]
    #[must_use = "attributes below are kept"]
    pub(crate) async fn sell(&mut self, id: i32) -> Result<&i32, sqlx::Error> {
        self.rig.insert(id).await?;
        self.sold += 1;
        Ok(&self.sold)
    }

    #[transactional(self.rig.db, retry)]
    async fn sell_again(&mut self, id: i32) -> Done {
        self.sold += 1;
        self.rig.insert(id).await
    }

    #[transactional(self.rig.db)]
    async fn close(self: Arc<Self>) -> Result<i32, sqlx::Error> {
        Ok(self.sold)
    }

    #[transactional(self.rig.db)]
    async fn wind_up(self) -> Result<Rig, sqlx::Error> {
        Ok(self.rig)
    }
}

#[tokio::test]
async fn methods_take_self_by_value_by_reference_and_in_an_arc() {
    let mut shop = Shop {
        rig: Rig::new("shop").await,
        sold: 0,
    };

    assert_eq!(*shop.sell(1).await.unwrap(), 1);
    shop.sell_again(2).await.unwrap();
    let rig = shop.wind_up().await.unwrap();

    assert_eq!(rig.ids().await, [1, 2]);
    assert_eq!(Arc::new(Shop { rig, sold: 2 }).close().await.unwrap(), 2);
}

trait Store {
    fn rig(&self) -> &Rig;

    async fn put(&self, id: i32) -> Done;

    /// A default method.
    #[transactional(self.rig().db)]
    async fn put_two(&self, first: i32) -> Done {
        self.put(first).await?;
        self.put(first).await
    }
}

/// A trait whose future is `Send`.
trait SendStore {
    fn put_spawned(self: Arc<Self>, id: i32) -> impl Future<Output = Done> + Send;
}

impl Store for Shop {
    fn rig(&self) -> &Rig {
        &self.rig
    }

    #[transactional(self.rig.db)]
    async fn put(&self, id: i32) -> Done {
        self.rig.insert(id).await
    }
}

impl SendStore for Shop {
    #[transactional(self.rig.db)]
    async fn put_spawned(self: Arc<Self>, id: i32) -> Done {
        self.rig.insert(id).await
    }
}

#[tokio::test]
async fn methods_of_traits_can_be_transactional() {
    let rig = Rig::new("traits").await;
    let shop = Arc::new(Shop { rig, sold: 0 });

    shop.put(1).await.unwrap();
    assert!(shop.put_two(2).await.is_err());
    let spawned = tokio::spawn(shop.clone().put_spawned(3));
    spawned.await.unwrap().unwrap();

    assert_eq!(shop.rig.ids().await, [1, 3]);
}

#[tokio::test]
async fn the_future_is_send() {
    #[transactional(rig.db, retry, nested = join, isolation = Serializable)]
    async fn everything(rig: &Rig, mut ids: Vec<i32>, seen: &Mutex<Vec<i32>>) -> Done {
        while let Some(id) = ids.pop() {
            rig.insert(id).await?;
            seen.lock().await.push(id);
        }
        Ok(())
    }
    let (rig, seen) = (Rig::new("send").await, Mutex::new(Vec::new()));

    assert_send(many_names(&rig, &rig.db, 1, 1, 1, 1))
        .await
        .unwrap();
    assert_send(everything(&rig, vec![2, 3], &seen))
        .await
        .unwrap();

    assert_eq!(rig.ids().await, [1, 2, 3]);
    assert_eq!(*seen.lock().await, [3, 2]);
}

#[tokio::test]
async fn a_function_can_call_itself() {
    #[transactional(rig.db)]
    async fn countdown(rig: &Rig, from: i32) -> Done {
        rig.insert(from).await?;
        if from > 0 {
            Box::pin(countdown(rig, from - 1)).await?;
        }
        Ok(())
    }
    let rig = Rig::new("itself").await;

    assert_send(countdown(&rig, 3)).await.unwrap();

    assert_eq!(rig.ids().await, [0, 1, 2, 3]);
    rig.assert_clean().await;
}

macro_rules! inserts {
    ($name:ident, $rig:ident, $id:expr) => {
        #[transactional($rig.db)]
        async fn $name($rig: &Rig) -> Done {
            let id = $id;
            $rig.insert(id).await
        }
    };
}

inserts!(insert_seven, rig, 7);

#[tokio::test]
async fn a_function_can_come_from_a_macro() {
    let rig = Rig::new("macro").await;

    insert_seven(&rig).await.unwrap();

    assert_eq!(rig.ids().await, [7]);
}

#[tokio::test]
async fn a_reply_that_says_error_rolls_back() {
    #[derive(Debug)]
    struct Left(i32);
    impl Reply for Left {
        fn is_error(&self) -> bool {
            self.0 < 0
        }
    }
    #[transactional(rig.db)]
    async fn take<T: Reply + Sync>(rig: &Rig, id: i32, left: T) -> Result<T, Problem> {
        rig.insert(id).await?;
        Ok(left)
    }
    let rig = Rig::new("reply").await;

    assert_eq!(take(&rig, 1, Left(1)).await.unwrap().0, 1);
    assert_eq!(take(&rig, 2, Left(-1)).await.unwrap().0, -1);

    assert_eq!(rig.ids().await, [1]);
    rig.assert_clean().await;
}

//! Small pools for the examples in the documentation. Not part of the interface.

use std::future::Future;

use cenote::Manager;

use crate::Pools;

/// Its resources are copies of the key.
#[derive(Debug)]
pub struct Copies(&'static str);

impl Manager for Copies {
    type Resource = String;
    type Error = String;

    fn open(&self) -> impl Future<Output = Result<String, String>> + Send {
        std::future::ready(Ok(self.0.to_owned()))
    }
}

/// Pools with a total of two.
pub fn pools() -> Pools<&'static str, Copies> {
    let pools = Pools::builder(|key: &&'static str| Copies(key)).total(2);
    pools.build().expect("two is a valid total")
}

//! Values that layers attach to a scope.

use std::any::Any;
use std::sync::Arc;

use super::Scope;

impl Scope {
    /// Attaches a value, in place of one of the same type. It goes wherever the scope goes, and
    /// stays until the last handle to the scope is dropped, also after the end of the scope.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use cenote::scope::Scope;
    ///
    /// struct Tenant(u32);
    ///
    /// let scope = Scope::new();
    /// assert!(scope.attached::<Tenant>().is_none());
    /// scope.attach(Arc::new(Tenant(7)));
    /// assert_eq!(scope.attached::<Tenant>().unwrap().0, 7);
    /// ```
    pub fn attach<T: Any + Send + Sync>(&self, value: Arc<T>) {
        let mut seats = self.lock();
        let place = seats.attached.iter().position(|other| other.is::<T>());
        let before = place.map(|place| seats.attached.swap_remove(place));
        seats.attached.push(value);
        drop(seats);
        drop(before);
    }

    /// Returns the value of this type that is attached to this scope, or to the next one around it
    /// that has one.
    pub fn attached<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        let seats = self.lock();
        let found = seats.attached.iter().find(|value| value.is::<T>()).cloned();
        let outer = seats.outer.clone();
        drop(seats);
        match found {
            Some(value) => value.downcast().ok(),
            None => outer?.attached(),
        }
    }
}

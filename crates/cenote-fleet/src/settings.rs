//! The settings of a member as plain data.

use std::time::Duration;

use crate::cell::Name;
use crate::error::JoinError;
use crate::step::Terms;

/// The settings of a member. With the feature `serde` they can be read from a file. Unknown fields
/// are refused, and times are written as `"10s"`.
///
/// ```
/// use cenote_fleet::Settings;
///
/// let settings = Settings { capacity: 80, ..Settings::default() };
/// assert_eq!((settings.floor, settings.weight, settings.overhead), (1, 1, 0));
/// assert_eq!(settings.ttl.as_secs(), 10);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct Settings {
    /// What the member is called where people read it: on pages, in errors, in logs. From 1 to 32
    /// visible ASCII characters. Default `None`: the host and the number of the process.
    pub name: Option<String>,
    /// The sessions that all members may have, together. If members say different numbers, the
    /// lowest counts. At least `floor + overhead`. Default 100.
    pub capacity: u32,
    /// The connections of the pool that come before the demand of all members. At least 1, and not
    /// below the pool's `min_size` and `min_idle`. Default 1.
    pub floor: u32,
    /// The member's part of what is left beyond the floors. A member of weight 2 gets twice as much
    /// as one of weight 1, if both want it. From 1 to 1000. Default 1.
    pub weight: u32,
    /// The sessions that the process may open beside the pool: for cancel requests, a watchdog, or
    /// what the program opens by itself. An annex of the pool is added, and so is the control
    /// connection of an engine that has one. Default 0.
    pub overhead: u32,
    /// How long the member may be silent before it is fenced and buried. It renews ten times in
    /// that time, and stops using its share after four fifths of it. All members of a group should
    /// have the same. From one second to ten minutes. Default 10 seconds.
    #[cfg_attr(feature = "serde", serde(with = "human"))]
    pub ttl: Duration,
    /// The most processes of the group that are alive at once, with those that a deploy adds. If it
    /// is set, the floor and the overhead of so many members are kept, and a member whose engine is
    /// away goes on with its floor. Otherwise its pool is suspended when its lease is over. All
    /// members of a group should have the same. It is refused for an engine that is the server of
    /// the connections, because the two are away together. Default `None`.
    pub members_max: Option<u32>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            name: None,
            capacity: 100,
            floor: 1,
            weight: 1,
            overhead: 0,
            ttl: Duration::from_secs(10),
            members_max: None,
        }
    }
}

impl Settings {
    /// Checks the settings. `least` is the smallest size of the pool, `annex` is overhead that the
    /// member has in any case, and `control` counts the sessions of the engine.
    pub(crate) fn terms(&self, least: u32, annex: u32, control: u32) -> Result<Terms, JoinError> {
        let more = annex.saturating_add(control);
        let overhead = self.overhead.saturating_add(more);
        let has_control = control > 0;
        let share = self.floor.saturating_add(overhead);
        let share = share.saturating_add(u32::from(has_control));
        let second = Duration::from_secs(1);
        require(self.floor >= least, "floor", self.floor, || {
            format!("at least {least} (1, `min_size` and `min_idle` of the pool must fit)")
        })?;
        require(self.capacity >= share, "capacity", self.capacity, || {
            let next = if has_control { ", and one to join" } else { "" };
            format!("at least {share} (the floor, and {overhead} sessions beside the pool{next})")
        })?;
        let members_max = self.members_max.unwrap_or(0);
        let floors = members_max.saturating_mul(share);
        let is_one_server = has_control && self.members_max.is_some();
        require(!is_one_server, "members_max", members_max, || {
            "unset, because the engine is the server of the connections".to_owned()
        })?;
        require(self.members_max != Some(0), "members_max", 0, || {
            "unset, or at least 1".to_owned()
        })?;
        require(self.capacity >= floors, "capacity", self.capacity, || {
            format!("at least {floors} (floor and overhead of {members_max} members)")
        })?;
        require(
            (1..=1000).contains(&self.weight),
            "weight",
            self.weight,
            || "from 1 to 1000".to_owned(),
        )?;
        let ttl = format!("{:?}", self.ttl);
        require(
            (second..=600 * second).contains(&self.ttl),
            "ttl",
            ttl,
            || "from 1s to 600s".to_owned(),
        )?;
        Ok(Terms {
            name: self.checked_name()?,
            capacity: self.capacity,
            floor: self.floor,
            weight: self.weight,
            overhead,
            ttl: self.ttl.as_millis() as u32,
            control: has_control,
            members_max,
        })
    }

    fn checked_name(&self) -> Result<Name, JoinError> {
        let Some(name) = &self.name else {
            return Ok(Name::of_process());
        };
        Name::new(name).ok_or_else(|| JoinError::Setting {
            field: "name",
            value: format!("`{name}`"),
            allowed: "1 to 32 visible ASCII characters".to_owned(),
        })
    }
}

fn require(
    holds: bool,
    field: &'static str,
    value: impl ToString,
    allowed: impl FnOnce() -> String,
) -> Result<(), JoinError> {
    match holds {
        true => Ok(()),
        false => Err(JoinError::Setting {
            field,
            value: value.to_string(),
            allowed: allowed(),
        }),
    }
}

/// Times as people write them.
#[cfg(feature = "serde")]
mod human {
    use std::borrow::Cow;
    use std::time::Duration;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&humantime::format_duration(*time))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        let text = Cow::<str>::deserialize(from)?;
        humantime::parse_duration(&text).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests;

//! The end of a play: no more faults, and shares that must become max-min.

use super::process::RENEW;
use super::world::World;

impl World {
    /// Checks O3, and O2 twice: for the demand that the faults have left, and for another one.
    pub(crate) fn finale(&mut self) -> Result<(), String> {
        self.heal();
        while self
            .processes
            .iter()
            .filter(|process| !process.leaving)
            .count()
            < 2
        {
            self.start();
        }
        // A cell may have to be learned, and a member of it to be buried after that.
        self.pass(2 * Self::burial())?;
        self.assert_max_min()?;
        for nth in 0..self.processes.len() {
            self.change_demand(nth);
        }
        self.pass(3 * RENEW + 3000)?; // the leases that are out may take three seconds
        self.assert_max_min()?;
        match (self.stops, self.server.refused) {
            (0, 1..) => Err("O3 wall: an open was refused, and no process was stopped".to_owned()),
            _ => Ok(()),
        }
    }

    fn assert_max_min(&self) -> Result<(), String> {
        let Some(cell) = &self.server.cell else {
            return Err("O2 end: there is no cell".to_owned());
        };
        let staying = self.processes.iter().filter(|process| !process.leaving);
        let members: Vec<_> = staying.collect();
        let fail = |why: &str| {
            let state: Vec<_> = members
                .iter()
                .map(|process| (process.id, process.pool.demand, process.pool.max_size))
                .collect();
            Err(format!("O2 end: {why}: {state:?} in {cell:?}"))
        };
        if members.len() != cell.members.len() || !cell.learned {
            return fail("strangers in the cell");
        }
        if cell.granted() > self.plan.capacity {
            return fail("more is granted than there is");
        }
        // Every floor is one connection and the overhead.
        let shares = || {
            members.iter().map(|process| {
                let record = &cell.members[&process.id];
                let more = |count: u32| match count {
                    0 => u32::from(self.plan.can_count()), // its control connection
                    _ => count + record.floor - 1,
                };
                let wants = more(process.pool.demand.max(1)).min(cell.capacity());
                (more(process.pool.max_size), wants, record)
            })
        };
        let absent = self.plan.members_max.saturating_sub(members.len() as u32);
        // The floors of the absent, or the place of the next control connection.
        let kept = 2 * absent + u32::from(self.plan.can_count());
        let usable = self.plan.capacity - kept;
        let given: u32 = shares().map(|(share, ..)| share).sum();
        let laid = shares().map(|(share, _, record)| share.min(record.floor));
        let laid: u32 = laid.sum();
        for (less, wants, poor) in shares().filter(|(less, wants, _)| less < wants) {
            if less < poor.floor {
                if laid - less + poor.floor <= usable {
                    return fail("a floor is missing that fits");
                }
                continue;
            }
            if given < usable {
                return fail("a place is free that a member wants");
            }
            for (more, enough, rich) in shares() {
                let gains = u64::from(more) * u64::from(poor.weight);
                let fair = u64::from(less + 1) * u64::from(rich.weight);
                if more > rich.floor && (more > enough || gains > fair) {
                    return fail(&format!("{less} of {wants} beside {more} of {enough}"));
                }
            }
        }
        Ok(())
    }
}

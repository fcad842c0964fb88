//! The order of an upload: a crate comes after the crates of ours that its manifest names.

use crate::manifest::versioned_dependencies;
use crate::packages::Package;

pub(super) fn by_need(mut rest: Vec<Package>) -> Result<Vec<Package>, String> {
    let mut ordered = Vec::new();
    while !rest.is_empty() {
        let names: Vec<String> = rest.iter().map(|package| package.name.clone()).collect();
        let waits = |package: &Package| {
            let mut needs = versioned_dependencies(&package.manifest).into_iter();
            needs.any(|need| names.iter().any(|name| name == need))
        };
        let Some(next) = rest.iter().position(|package| !waits(package)) else {
            return Err(format!("no order is possible for: {}", names.join(", ")));
        };
        ordered.push(rest.remove(next));
    }
    Ok(ordered)
}

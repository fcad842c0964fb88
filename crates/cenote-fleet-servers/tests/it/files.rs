//! The files of a server, to be put back as they were.

use std::fs::{self, Metadata};
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};

/// A folder, and all files in it and below.
pub(crate) struct Files {
    folder: PathBuf,
    contents: Vec<(PathBuf, Vec<u8>)>,
}

impl Files {
    pub(crate) fn of(folder: PathBuf) -> Self {
        let contents = contents(&folder);
        Self { folder, contents }
    }

    /// Removes the folder, and makes it again. Its server must not run.
    pub(crate) fn put_back(&self) {
        fs::remove_dir_all(&self.folder).unwrap();
        let owner = fs::metadata(self.folder.parent().unwrap()).unwrap();
        make(&self.folder, &owner);
        for (path, bytes) in &self.contents {
            let folders = path.ancestors().skip(1);
            let missing: Vec<_> = folders.take_while(|folder| !folder.exists()).collect();
            missing.iter().rev().for_each(|folder| make(folder, &owner));
            fs::write(path, bytes).unwrap();
            chown(path, Some(owner.uid()), Some(owner.gid())).unwrap();
        }
    }
}

fn make(folder: &Path, owner: &Metadata) {
    fs::create_dir(folder).unwrap();
    chown(folder, Some(owner.uid()), Some(owner.gid())).unwrap();
}

fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .flat_map(|path| match path.is_dir() {
            true => contents(&path),
            false => vec![(path.clone(), fs::read(path).unwrap())],
        })
        .collect()
}

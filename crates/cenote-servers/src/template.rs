//! Data folders that are made once. The first start of a server makes one and packs it, and later
//! starts unpack it. The packed folder stays in the temporary folder.

use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::home::{Home, random};

/// Makes `data` in this home: it unpacks a packed folder, or runs this program. The arguments alone
/// decide the contents.
pub(crate) fn fill(home: &Home, program: &Path, args: &[&str]) -> io::Result<()> {
    let packed = packed(home, program, args)?;
    let tar = Path::new("tar");
    // A file of another user could contain anything.
    let ours = fs::metadata(&packed).is_ok_and(|it| it.is_file() && it.uid() == home.uid());
    if ours {
        return home.run(tar, &["-xf", &packed.to_string_lossy()]);
    }
    home.run(program, args)?;
    // It has another name until it is complete. Two processes that do this at the same time write
    // the same contents.
    let partial = packed.with_extension(format!("{:016x}", random()));
    home.run(tar, &["-cSf", &partial.to_string_lossy(), "data"])?;
    fs::rename(partial, packed)
}

/// The name depends on the version of the program, the arguments and the user, so that each
/// combination has a folder of its own.
fn packed(home: &Home, program: &Path, args: &[&str]) -> io::Result<PathBuf> {
    let file = fs::metadata(fs::canonicalize(program)?)?;
    let mut hash = DefaultHasher::new();
    (program, file.mtime(), file.size(), home.uid()).hash(&mut hash);
    args.hash(&mut hash);
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    Ok(env::temp_dir().join(format!("cenote-{name}-{:016x}.tar", hash.finish())))
}

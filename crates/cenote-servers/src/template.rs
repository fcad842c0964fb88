//! Data folders made once: the first start of a server makes one and packs it, later ones unpack it. It stays in the temporary folder.

use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::home::{Home, random};

/// Makes `data` in this home: by unpacking, or else with this program. The arguments are all that decide what is in it.
pub(crate) fn fill(home: &Home, program: &Path, args: &[&str]) -> io::Result<()> {
    let packed = packed(home, program, args)?;
    let tar = Path::new("tar");
    // One of somebody else could hold anything.
    let ours = fs::metadata(&packed).is_ok_and(|it| it.is_file() && it.uid() == home.uid());
    if ours {
        return home.run(tar, &["-xf", &packed.to_string_lossy()]);
    }
    home.run(program, args)?;
    // Under another name until it is whole. Two who do this at once make the same thing.
    let partial = packed.with_extension(format!("{:016x}", random()));
    home.run(tar, &["-cSf", &partial.to_string_lossy(), "data"])?;
    fs::rename(partial, packed)
}

/// Named after what it depends on: another version of the program, other arguments or another user make another one.
fn packed(home: &Home, program: &Path, args: &[&str]) -> io::Result<PathBuf> {
    let file = fs::metadata(fs::canonicalize(program)?)?;
    let mut hash = DefaultHasher::new();
    (program, file.mtime(), file.size(), home.uid()).hash(&mut hash);
    args.hash(&mut hash);
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    Ok(env::temp_dir().join(format!("cenote-{name}-{:016x}.tar", hash.finish())))
}

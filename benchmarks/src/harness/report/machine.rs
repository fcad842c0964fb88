//! The date and the machine of a run.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::SystemTime;

/// Returns the processor, the kernel and the compiler in one line.
pub fn describe() -> String {
    let processors = thread::available_parallelism().map_or(0, usize::from);
    let model = first_after("/proc/cpuinfo", "model name").unwrap_or("unknown processor".into());
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let compiler = Command::new("rustc").arg("--version").output();
    let compiler = compiler.map_or(Vec::new(), |said| said.stdout);
    format!(
        "{processors} × {model}, Linux {}, {}",
        kernel.trim(),
        String::from_utf8_lossy(&compiler).trim()
    )
}

/// Returns how many threads were running or ready in the last minute, on average.
pub fn load() -> String {
    let said = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    said.split(' ').next().unwrap_or_default().to_owned()
}

/// Returns the date like `2026-11-15`.
pub fn today() -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let days = since.map_or(0, |since| since.as_secs() / 86_400);
    let (year, month, day) = date(days);
    format!("{year}-{month:02}-{day:02}")
}

/// Returns the year, month and day of a day since 1970-01-01.
pub(super) fn date(mut days: u64) -> (u64, u64, u64) {
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

fn first_after(file: &str, key: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    Some(line.split(':').nth(1)?.trim().to_owned())
}

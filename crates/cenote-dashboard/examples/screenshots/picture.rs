//! A picture of a page.

use serde_json::json;

use super::browser::Tab;

/// Returns what is visible of the page, or all of it, in PNG.
pub(crate) async fn take(tab: &Tab, whole: bool) -> Vec<u8> {
    let params = json!({"format": "png", "captureBeyondViewport": whole});
    let shot = tab.call("Page.captureScreenshot", params).await;
    decode(shot["data"].as_str().unwrap_or_default())
}

/// Reads base 64.
fn decode(text: &str) -> Vec<u8> {
    let value = |letter| match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for four in text.trim_end_matches('=').as_bytes().chunks(4) {
        let bits = four
            .iter()
            .fold(0_u32, |bits, letter| bits << 6 | u32::from(value(*letter)));
        let bits = bits << (6 * (4 - four.len()));
        bytes.extend(bits.to_be_bytes()[1..].iter().take(four.len() * 3 / 4));
    }
    bytes
}

//! Settings from a file.

#[cfg(feature = "serde")]
#[test]
fn settings_are_read_from_a_file_and_written_back() {
    use super::Settings;

    let text = "{\"name\":\"api-3\",\"capacity\":80,\"floor\":2,\"weight\":3,\"overhead\":1,\"ttl\":\"30s\",\
                \"members_max\":8}";

    let settings: Settings = serde_json::from_str(text).unwrap();

    assert_eq!((settings.capacity, settings.ttl.as_secs()), (80, 30));
    assert_eq!(serde_json::to_string(&settings).unwrap(), text);
    let short: Settings = serde_json::from_str("{}").unwrap();
    assert_eq!(short, Settings::default());
    let wrong = serde_json::from_str::<Settings>(r#"{"capcity":80}"#).unwrap_err();
    assert!(
        wrong.to_string().contains("unknown field `capcity`"),
        "{wrong}"
    );
}

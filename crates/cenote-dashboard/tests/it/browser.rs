//! Drives a real Chromium by its DevTools protocol, which is JSON over a WebSocket.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cenote_servers::chromium;
use futures_util::SinkExt;
use futures_util::stream::{SplitSink, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async_with_config};

/// A busy machine is slow, but not that slow.
const LIMIT: Duration = Duration::from_secs(30);

type Wire = WebSocketStream<MaybeTlsStream<TcpStream>>;
type Waiting = HashMap<u64, oneshot::Sender<Value>>;

/// One page in a browser of its own.
pub(crate) struct Tab {
    sink: tokio::sync::Mutex<SplitSink<Wire, Message>>,
    heard: Arc<Heard>,
    next: AtomicU64,
    session: String,
    _browser: chromium::Browser,
}

#[derive(Default)]
struct Heard {
    waiting: Mutex<Waiting>,
    complaints: Mutex<Vec<String>>,
}

impl Tab {
    /// Opens a page, and waits until it is loaded.
    pub(crate) async fn open(url: &str) -> Self {
        let tab = Self::blank().await;
        tab.go(url).await;
        tab
    }

    pub(crate) async fn blank() -> Self {
        let browser = tokio::task::spawn_blocking(chromium::start).await;
        let browser = browser.unwrap().unwrap_or_else(|error| panic!("{error}"));
        // A screenshot is one large message.
        let config = WebSocketConfig::default()
            .max_message_size(None)
            .max_frame_size(None);
        let wire = connect_async_with_config(browser.devtools(), Some(config), true).await;
        let (sink, mut stream) = wire.unwrap().0.split();
        let heard = Arc::new(Heard::default());
        let hear = Arc::clone(&heard);
        tokio::spawn(async move {
            while let Some(Ok(message)) = stream.next().await {
                if let Message::Text(text) = message {
                    hear.take(serde_json::from_str(&text).unwrap());
                }
            }
        });
        let mut tab = Self {
            sink: tokio::sync::Mutex::new(sink),
            heard,
            next: AtomicU64::new(1),
            session: String::new(),
            _browser: browser,
        };
        let made = tab.call("Target.createTarget", json!({"url": "about:blank"}));
        let target = made.await["targetId"].clone();
        let joined = tab.call(
            "Target.attachToTarget",
            json!({"targetId": target, "flatten": true}),
        );
        let session = joined.await["sessionId"].as_str().unwrap().to_owned();
        tab.session = session;
        for domain in ["Page", "Runtime", "Log", "Accessibility"] {
            tab.call(&format!("{domain}.enable"), json!({})).await;
        }
        tab.size(1280, 900).await;
        tab
    }

    pub(crate) async fn go(&self, url: &str) {
        self.call("Page.navigate", json!({"url": url})).await;
        self.until("document.readyState === 'complete'").await;
    }

    /// Calls a method of the protocol, and returns its result.
    pub(crate) async fn call(&self, method: &str, params: Value) -> Value {
        let id = self.next.fetch_add(1, Relaxed);
        let (sender, receiver) = oneshot::channel();
        self.heard.waiting.lock().unwrap().insert(id, sender);
        let mut request = json!({"id": id, "method": method, "params": params});
        if !self.session.is_empty() {
            request["sessionId"] = json!(self.session);
        }
        let message = Message::text(request.to_string());
        self.sink.lock().await.send(message).await.unwrap();
        let reply = timeout(2 * LIMIT, receiver).await;
        let reply = reply
            .unwrap_or_else(|_| panic!("no reply to {request}"))
            .unwrap();
        assert!(reply["error"].is_null(), "{request}: {}", reply["error"]);
        reply["result"].clone()
    }

    /// Evaluates an expression on the page. A promise is awaited.
    pub(crate) async fn eval(&self, expression: &str) -> Value {
        let params = json!({
            "expression": expression,
            "awaitPromise": true,
            "returnByValue": true,
            "userGesture": true,
        });
        let result = self.call("Runtime.evaluate", params).await;
        let failure = &result["exceptionDetails"];
        assert!(failure.is_null(), "{expression}: {failure}");
        result["result"]["value"].clone()
    }

    pub(crate) async fn text(&self, selector: &str) -> String {
        let read = format!("document.querySelector({selector:?})?.innerText ?? ''");
        self.eval(&read).await.as_str().unwrap().to_owned()
    }

    /// Waits until an expression is true on the page, and returns after how long.
    #[track_caller]
    pub(crate) fn until(&self, condition: &str) -> impl Future<Output = Duration> + use<'_> {
        let caller = std::panic::Location::caller();
        let condition = condition.to_owned();
        async move {
            let limit = LIMIT.as_millis();
            let wait = format!(
                "new Promise((resolve) => {{
                    const start = performance.now();
                    const look = () => {{
                        let holds = false;
                        try {{ holds = ({condition}); }} catch {{}}
                        const passed = performance.now() - start;
                        if (holds) resolve(passed);
                        else if (passed > {limit}) resolve(null);
                        else setTimeout(look, 10);
                    }};
                    look();
                }})"
            );
            let passed = self.eval(&wait).await;
            let Some(passed) = passed.as_f64() else {
                let page = self.eval("document.body.innerText").await;
                panic!(
                    "{caller}: never true: {condition}\n{page}\n{:?}",
                    self.complaints()
                );
            };
            Duration::from_secs_f64(passed / 1e3)
        }
    }

    /// Presses and releases a key, by its name.
    pub(crate) async fn press(&self, key: &str) {
        let (code, text) = match key {
            "Enter" => (13, "\r"),
            "Tab" => (9, ""),
            "ArrowLeft" => (37, ""),
            "ArrowRight" => (39, ""),
            "Escape" => (27, ""),
            other => panic!("no such key: {other}"),
        };
        let mut event = json!({"key": key, "code": key, "windowsVirtualKeyCode": code});
        for (kind, text) in [("keyDown", text), ("keyUp", "")] {
            event["type"] = json!(if text.is_empty() && kind == "keyDown" {
                "rawKeyDown"
            } else {
                kind
            });
            event["text"] = json!(text);
            self.call("Input.dispatchKeyEvent", event.clone()).await;
        }
    }

    /// Types a text where the focus is.
    pub(crate) async fn write(&self, text: &str) {
        self.call("Input.insertText", json!({"text": text})).await;
    }

    pub(crate) async fn size(&self, width: u32, height: u32) {
        let mobile = width < 600;
        let metrics =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile});
        self.call("Emulation.setDeviceMetricsOverride", metrics)
            .await;
    }

    /// Chooses what the system of the visitor prefers, such as `prefers-color-scheme`.
    pub(crate) async fn prefer(&self, feature: &str, value: &str) {
        let features = json!({"features": [{"name": feature, "value": value}]});
        self.call("Emulation.setEmulatedMedia", features).await;
    }

    /// Returns the exceptions and errors of the page so far.
    pub(crate) fn complaints(&self) -> Vec<String> {
        self.heard.complaints.lock().unwrap().clone()
    }

    #[track_caller]
    pub(crate) fn assert_content(&self) {
        assert_eq!(self.complaints(), [""; 0], "the page complains");
    }
}

impl Heard {
    fn take(&self, message: Value) {
        if let Some(id) = message["id"].as_u64() {
            if let Some(waiting) = self.waiting.lock().unwrap().remove(&id) {
                // The caller may have given up.
                let _ = waiting.send(message);
            }
            return;
        }
        let params = &message["params"];
        let complaint = match message["method"].as_str().unwrap_or_default() {
            "Runtime.exceptionThrown" => params["exceptionDetails"].to_string(),
            "Runtime.consoleAPICalled" if params["type"] == "error" => params["args"].to_string(),
            "Log.entryAdded" if params["entry"]["level"] == "error" => params["entry"].to_string(),
            _ => return,
        };
        self.complaints.lock().unwrap().push(complaint);
    }
}

#![cfg(feature = "tower")]

use bytes::Bytes;
use futures_executor::block_on;
use http::{Method, Request, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use sluice_core::tower::GuardLayer;
use sluice_core::{Builtin, Guard};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tower::{Layer, ServiceExt, service_fn};

const COMPLETIONS: &str = "/v1/chat/completions";

/// A body of pieces, the last of which may be an error.
struct Pieces(VecDeque<Result<Bytes, String>>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = String;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, String>>> {
        Poll::Ready(self.0.pop_front().map(|piece| piece.map(Frame::data)))
    }
}

fn answer(status: u16, media: &str, pieces: impl IntoIterator<Item = String>) -> Response<Pieces> {
    let pieces = pieces.into_iter().map(|piece| Ok(piece.into())).collect();
    Response::builder()
        .status(status)
        .header("content-type", media)
        .header("content-length", "7")
        .body(Pieces(pieces))
        .unwrap()
}

/// A model that answers with the last message, whole or one character an event. `_AT_` becomes `@`.
fn repeat(body: &Value) -> Response<Pieces> {
    let text = body["messages"][0]["content"].as_str().unwrap_or("");
    let text = text.replace("_AT_", "@");
    if let Some((status, rest)) = text
        .strip_prefix("fail ")
        .and_then(|rest| rest.split_once(' '))
    {
        let (media, text) = rest.split_once(' ').unwrap();
        return answer(status.parse().unwrap(), media, [text.to_owned()]);
    }
    if body["stream"] == true {
        let event = |character: char| {
            let delta = json!({ "content": character.to_string() });
            format!(
                "data: {}\n\n",
                json!({ "choices": [{ "index": 0, "delta": delta }] })
            )
        };
        let done = "data: [DONE]\n\n".to_owned();
        let mut response = answer(
            200,
            "text/event-stream",
            text.chars().map(event).chain([done]),
        );
        if text.contains("broken") {
            response
                .body_mut()
                .0
                .push_back(Err("the connection broke off".into()));
        }
        return response;
    }
    let message = json!({ "role": "assistant", "content": text });
    answer(
        200,
        "application/json",
        [json!({ "choices": [{ "index": 0, "message": message }] }).to_string()],
    )
}

struct Host {
    layer: GuardLayer,
    /// Bodies that the model got.
    sent: Arc<Mutex<Vec<String>>>,
}

impl Host {
    fn new(request: Vec<Guard>, response: Vec<Guard>) -> Host {
        Host {
            layer: GuardLayer::new(request, response)
                .unwrap()
                .unguarded_path("/v1/models"),
            sent: Arc::default(),
        }
    }

    fn call(&self, method: Method, path: &str, body: &str) -> (StatusCode, Result<String, String>) {
        let sent = self.sent.clone();
        let model = service_fn(move |request: Request<Full<Bytes>>| {
            let sent = sent.clone();
            async move {
                let body = request.into_body().collect().await.unwrap().to_bytes();
                sent.lock()
                    .unwrap()
                    .push(String::from_utf8_lossy(&body).into_owned());
                let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
                Ok::<_, Infallible>(repeat(&body))
            }
        });
        let request = Request::builder().method(method).uri(path);
        let request = request.body(Full::from(body.to_owned())).unwrap();
        let response = block_on(self.layer.layer(model).oneshot(request)).unwrap();
        let (parts, body) = response.into_parts();
        let collected = block_on(body.collect());
        let text = collected.map(|body| String::from_utf8_lossy(&body.to_bytes()).into_owned());
        if let (Some(length), Ok(text)) = (parts.headers.get("content-length"), &text)
            && path != "/v1/models"
        {
            assert_eq!(length, &text.len().to_string());
        }
        (parts.status, text.map_err(|error| error.to_string()))
    }

    fn chat(&self, text: &str, stream: bool) -> (u16, String) {
        let message = json!({ "role": "user", "content": text });
        let body = json!({ "messages": [message], "stream": stream }).to_string();
        let (status, text) = self.call(Method::POST, COMPLETIONS, &body);
        (status.as_u16(), text.unwrap())
    }
}

fn masking() -> Vec<Guard> {
    vec![Guard::masking([Builtin::Email])]
}

fn rejecting() -> Vec<Guard> {
    vec![Guard::rejecting(["forbidden"])]
}

/// The texts of a stream.
fn deltas(body: &str) -> String {
    let events = body.lines().filter_map(|line| line.strip_prefix("data: "));
    let events = events.filter_map(|event| serde_json::from_str::<Value>(event).ok());
    events
        .filter_map(|event| {
            event["choices"][0]["delta"]["content"]
                .as_str()
                .map(str::to_owned)
        })
        .collect()
}

#[test]
fn masks_requests_and_answers() {
    let host = Host::new(masking(), masking());
    let (status, body) = host.chat("ada@example.com bob_AT_example.com", false);
    assert_eq!(
        (status, body.matches("<EMAIL_ADDRESS>").count()),
        (200, 2),
        "{body}"
    );
    let sent = host.sent.lock().unwrap().join("");
    assert!(
        !sent.contains('@') && sent.contains("<EMAIL_ADDRESS>"),
        "{sent}"
    );
}

#[test]
fn masks_streams() {
    let (status, body) = Host::new(vec![], masking()).chat("to bob_AT_example.com now", true);
    assert_eq!(
        (status, deltas(&body).as_str()),
        (200, "to <EMAIL_ADDRESS> now")
    );
    assert!(body.ends_with("data: [DONE]\n\n"), "{body}");
}

#[test]
fn rejects() {
    let host = Host::new(rejecting(), rejecting());
    assert_eq!(host.chat("forbidden", false).0, 403);
    assert!(host.sent.lock().unwrap().is_empty());
    let host = Host::new(vec![], rejecting());
    let (status, body) = host.chat("say forbidden", false);
    assert!(
        status == 403 && !body.contains("forbidden"),
        "{status} {body}"
    );
    let (status, body) = host.chat("say forbidden", true);
    assert!(
        status == 200 && !deltas(&body).contains("forbidden"),
        "{status} {body}"
    );
    assert!(body.contains("rejected"), "{body}");
}

#[test]
fn masks_errors_or_hides_them() {
    let host = Host::new(vec![], [masking(), rejecting()].concat());
    let hidden = "do not let pass";
    for (failed, wanted) in [
        (
            r#"application/json {"error":"of bob\u0040example.com","code":1}"#,
            r#""of <EMAIL_ADDRESS>""#,
        ),
        ("text/plain of bob_AT_example.com", "of <EMAIL_ADDRESS>"),
        (
            r#"application/json {"error":"of bob\u0040example.com"#,
            hidden,
        ),
        ("text/html of bob&#64;example.com", hidden),
        (r#"application/json {"error":"forbidden"}"#, hidden),
    ] {
        let (status, body) = host.chat(&format!("fail 400 {failed}"), false);
        assert!(
            status == 400 && body.contains(wanted) && !body.contains("bob"),
            "{failed}: {body}"
        );
    }
}

#[test]
fn refuses_what_it_cannot_judge() {
    let host = Host::new(masking(), masking());
    assert_eq!(
        host.chat("fail 200 text/plain ada_AT_example.com", false).0,
        500
    );
    assert_eq!(
        host.chat(r#"fail 200 application/json {"choices": ["#, false)
            .0,
        502
    );
    assert_eq!(host.call(Method::POST, COMPLETIONS, "{").0, 400);
    let large = " ".repeat(sluice_core::MAX_MESSAGE_BYTES + 1);
    assert_eq!(host.call(Method::POST, COMPLETIONS, &large).0, 413);
    let message = json!({ "messages": [{ "role": "user", "content": "broken ada_AT_example.com" }], "stream": true });
    let (_, body) = host.call(Method::POST, COMPLETIONS, &message.to_string());
    assert_eq!(body.unwrap_err(), "the connection broke off");
}

#[test]
fn passes_only_known_paths() {
    let host = Host::new(masking(), masking());
    let before = host.sent.lock().unwrap().len();
    for (method, path) in [
        (Method::GET, COMPLETIONS),
        (Method::DELETE, COMPLETIONS),
        (Method::POST, "/v1/threads/1/messages"),
        (Method::POST, "/v1%2Fmodels"),
        (Method::POST, "/v1/chat/completions/"),
    ] {
        assert_eq!(host.call(method, path, "ada@example.com").0, 404, "{path}");
    }
    assert_eq!(host.sent.lock().unwrap().len(), before);
    assert_eq!(host.call(Method::GET, "/v1/models", "").0, 200);
}

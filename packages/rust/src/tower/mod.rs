//! A layer that guards messages of language models, in clients and in servers.

mod body;
mod service;

use crate::error::{Error, Result};
use crate::guards::{Format, Guard, Guards};
use crate::mask::Mask;
use http::{HeaderMap, Method, StatusCode, header};
pub use service::GuardService;
use std::sync::Arc;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The body of a guarded answer.
pub type GuardedBody = http_body_util::combinators::UnsyncBoxBody<bytes::Bytes, BoxError>;

const HIDDEN_ERROR: &str =
    r#"{"error":{"message":"The vendor answered with an error that the guards do not let pass."}}"#;

/// Guards the requests to a service, and what the service answers.
///
/// Texts of requests and of answers, whole or streamed, are masked, and so are those in errors. A message that
/// cannot be judged does not pass. The layer answers 403 if a guard rejects a message; 400, 413 or 415 to a
/// request that cannot be read; 404 to one in no known format; and 500 or 502, or the error event of a stream,
/// instead of an answer that cannot be judged.
///
/// The layer fits clients, such as those of hyper, and servers, such as axum: bodies of requests must be made
/// from [`bytes::Bytes`].
#[derive(Clone)]
pub struct GuardLayer(Arc<Guarding>);

#[derive(Clone)]
struct Guarding {
    request: Guards,
    response: Guards,
    /// The mask of each guard of answers, for texts of errors.
    error_masks: Vec<(Mask, bool)>,
    formats: Vec<(String, Format)>,
    unguarded_paths: Vec<String>,
}

impl GuardLayer {
    /// Compiles the guards of requests and those of answers. POST requests whose path ends with
    /// `/chat/completions`, `/v1/messages`, `/responses` or `/embeddings` are read.
    pub fn new(request: Vec<Guard>, response: Vec<Guard>) -> Result<GuardLayer> {
        let mask = |guard: &Guard| Ok((Mask::new(guard.rules.clone())?, guard.rejects));
        let formats = [
            ("/chat/completions", Format::Completions),
            ("/v1/messages", Format::Messages),
            ("/responses", Format::Responses),
            ("/embeddings", Format::Embeddings),
        ];
        Ok(GuardLayer(Arc::new(Guarding {
            error_masks: response.iter().map(mask).collect::<Result<_>>()?,
            request: Guards::new(request)?,
            response: Guards::new(response)?,
            formats: formats.map(|(end, format)| (end.to_owned(), format)).into(),
            unguarded_paths: Vec::new(),
        })))
    }

    /// Lets requests with any method pass whose path is this one, exactly as it is escaped in the URL.
    pub fn unguarded_path(mut self, path: impl Into<String>) -> GuardLayer {
        Arc::make_mut(&mut self.0).unguarded_paths.push(path.into());
        self
    }

    /// Reads POST requests whose path ends with `end` in a format.
    pub fn format(mut self, end: impl Into<String>, format: Format) -> GuardLayer {
        Arc::make_mut(&mut self.0)
            .formats
            .insert(0, (end.into(), format));
        self
    }
}

impl<S> tower_layer::Layer<S> for GuardLayer {
    type Service = GuardService<S>;

    fn layer(&self, inner: S) -> GuardService<S> {
        GuardService::new(inner, self.0.clone())
    }
}

/// How a request passes.
enum Passage {
    Unguarded,
    Guarded(Format),
    Refused(String),
}

impl Guarding {
    fn passage(&self, method: &Method, path: &str) -> Passage {
        if self.unguarded_paths.iter().any(|each| each == path) {
            return Passage::Unguarded;
        }
        let found = self
            .formats
            .iter()
            .find(|(end, _)| path.ends_with(end.as_str()));
        match found {
            Some((_, format)) if method == Method::POST => Passage::Guarded(*format),
            _ => Passage::Refused(format!(
                "{method} {path} is in no format that the guards read; make the path unguarded if it may pass"
            )),
        }
    }

    /// An error of the vendor, which may repeat texts of the request, and whether it is another one.
    fn error(&self, headers: &HeaderMap, body: &[u8]) -> (Vec<u8>, bool) {
        let masked = match serde_json::from_slice::<serde_json::Value>(body) {
            _ if body.is_empty() => Some(Vec::new()),
            Ok(value) => self
                .masked(value)
                .map(|value| value.to_string().into_bytes()),
            // Text that could be broken JSON may hide something behind escapes.
            Err(_) if media_of(headers) == "text/plain" => std::str::from_utf8(body)
                .ok()
                .filter(|text| !text.contains(['{', '[', '"']))
                .and_then(|text| self.masked_text(text))
                .map(String::into_bytes),
            Err(_) => None,
        };
        match masked {
            Some(masked) => (masked, false),
            None => (HIDDEN_ERROR.into(), true),
        }
    }

    /// A JSON value with masked strings and names; `None` if it must not pass.
    fn masked(&self, value: serde_json::Value) -> Option<serde_json::Value> {
        use serde_json::Value;
        Some(match value {
            Value::String(text) => Value::String(self.masked_text(&text)?),
            Value::Array(list) => {
                let masked: Option<Vec<_>> =
                    list.into_iter().map(|each| self.masked(each)).collect();
                Value::Array(masked?)
            }
            Value::Object(object) => {
                let masked = object
                    .into_iter()
                    .map(|(name, each)| Some((self.masked_text(&name)?, self.masked(each)?)));
                Value::Object(masked.collect::<Option<_>>()?)
            }
            other => other,
        })
    }

    fn masked_text(&self, text: &str) -> Option<String> {
        self.error_masks
            .iter()
            .try_fold(text.to_owned(), |text, (mask, rejects)| {
                let masked = mask.mask(&text).ok()?;
                (!rejects || masked == text).then_some(masked)
            })
    }
}

/// The status and the message of the error in the place of a message that must not pass.
fn refusal_of(error: &Error, unreadable: StatusCode) -> (StatusCode, &'static str) {
    match error {
        Error::Rejected { .. } => (
            StatusCode::FORBIDDEN,
            "The message was rejected by a guard.",
        ),
        Error::Unreadable { .. } => (unreadable, "The message cannot be judged by the guards."),
        _ => (StatusCode::INTERNAL_SERVER_ERROR, "The guards have failed."),
    }
}

fn media_of(headers: &HeaderMap) -> String {
    let value = headers.get(header::CONTENT_TYPE);
    let text = value.and_then(|value| value.to_str().ok()).unwrap_or("");
    let media = text.split(';').next().unwrap_or("");
    media.trim().to_ascii_lowercase()
}

fn is_encoded(headers: &HeaderMap) -> bool {
    let codings = headers.get_all(header::CONTENT_ENCODING);
    codings
        .iter()
        .any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"))
}

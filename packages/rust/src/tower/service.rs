use super::body::GuardedStream;
use super::{BoxError, GuardedBody, Guarding, Passage, is_encoded, media_of, refusal_of};
use crate::error::Error;
use crate::guards::{Format, Kind, MAX_MESSAGE_BYTES};
use bytes::{Buf, Bytes};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use http_body::Body;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower_service::Service;

/// Errors of a vendor are read up to this size.
const MAX_ERROR_BYTES: usize = 1 << 20;

/// The service of a [`super::GuardLayer`].
#[derive(Clone)]
pub struct GuardService<S> {
    inner: S,
    guarding: Arc<Guarding>,
}

impl<S> GuardService<S> {
    pub(super) fn new(inner: S, guarding: Arc<Guarding>) -> GuardService<S> {
        GuardService { inner, guarding }
    }
}

impl<S, In, Out> Service<Request<In>> for GuardService<S>
where
    S: Service<Request<In>, Response = Response<Out>> + Clone + Send + 'static,
    S::Future: Send,
    In: Body + From<Bytes> + Send + 'static,
    In::Data: Send,
    In::Error: Into<BoxError>,
    Out: Body + Send + 'static,
    Out::Data: Send,
    Out::Error: Into<BoxError>,
{
    type Response = Response<GuardedBody>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<In>) -> Self::Future {
        // The instance that is ready is the one to call.
        let next = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, next);
        let guarding = self.guarding.clone();
        Box::pin(async move {
            let format = match guarding.passage(request.method(), request.uri().path()) {
                Passage::Unguarded => return Ok(inner.call(request).await?.map(pass)),
                Passage::Refused(reason) => return Ok(refusal(StatusCode::NOT_FOUND, &reason)),
                Passage::Guarded(format) => format,
            };
            match guarding.guard_request(request, format).await {
                Err(refused) => Ok(refused),
                Ok(guarded) => {
                    let response = inner.call(guarded).await?;
                    Ok(guarding.guard_response(response, format).await)
                }
            }
        })
    }
}

impl Guarding {
    /// The request with masked texts, or a refusal.
    async fn guard_request<In>(
        &self,
        request: Request<In>,
        format: Format,
    ) -> Result<Request<In>, Response<GuardedBody>>
    where
        In: Body + From<Bytes>,
        In::Error: Into<BoxError>,
    {
        let (mut parts, body) = request.into_parts();
        if is_encoded(&parts.headers) {
            let reason = "The request is compressed, so that it cannot be judged.";
            return Err(refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, reason));
        }
        let body = read(body, MAX_MESSAGE_BYTES).await.map_err(|error| {
            match error.is::<LengthLimitError>() {
                true => refusal(StatusCode::PAYLOAD_TOO_LARGE, "The request is too large."),
                false => refusal(StatusCode::BAD_REQUEST, "The request could not be read."),
            }
        })?;
        let masked = self.rewrite(format, Kind::Request, &body, StatusCode::BAD_REQUEST)?;
        set_length(&mut parts.headers, masked.len());
        // Compressed answers cannot be read.
        let identity = HeaderValue::from_static("identity");
        parts.headers.insert(header::ACCEPT_ENCODING, identity);
        Ok(Request::from_parts(parts, In::from(Bytes::from(masked))))
    }

    async fn guard_response<Out>(
        &self,
        response: Response<Out>,
        format: Format,
    ) -> Response<GuardedBody>
    where
        Out: Body + Send + 'static,
        Out::Error: Into<BoxError>,
    {
        let (mut parts, body) = response.into_parts();
        let is_error = parts.status.as_u16() >= 300;
        let media = media_of(&parts.headers);
        if is_encoded(&parts.headers) {
            return unjudged("The answer is compressed, so that it cannot be judged.");
        }
        if !is_error && media == "text/event-stream" {
            let Ok(rewriter) = self.response.rewriter(format, Kind::Stream) else {
                return unjudged("The guards have failed.");
            };
            parts.headers.remove(header::CONTENT_LENGTH);
            let stream = GuardedStream::new(body, rewriter);
            return Response::from_parts(parts, stream.boxed_unsync());
        }
        if !is_error && media != "application/json" {
            return unjudged("The answer has a type that the guards cannot read.");
        }
        let limit = if is_error {
            MAX_ERROR_BYTES
        } else {
            MAX_MESSAGE_BYTES
        };
        let Ok(body) = read(body, limit).await else {
            return refusal(
                StatusCode::BAD_GATEWAY,
                "The answer is too large, or broke off.",
            );
        };
        let masked = if is_error {
            let (masked, is_other) = self.error(&parts.headers, &body);
            if is_other {
                let json = HeaderValue::from_static("application/json");
                parts.headers.insert(header::CONTENT_TYPE, json);
            }
            masked
        } else {
            match self.rewrite(format, Kind::Answer, &body, StatusCode::BAD_GATEWAY) {
                Ok(masked) => masked,
                Err(refused) => return refused,
            }
        };
        set_length(&mut parts.headers, masked.len());
        Response::from_parts(parts, whole(masked))
    }

    /// A whole message with masked texts, or a refusal in its format.
    fn rewrite(
        &self,
        format: Format,
        kind: Kind,
        message: &[u8],
        unreadable: StatusCode,
    ) -> Result<Vec<u8>, Response<GuardedBody>> {
        let guards = match kind {
            Kind::Request => &self.request,
            _ => &self.response,
        };
        let failed = |error: &Error| {
            let (status, text) = refusal_of(error, unreadable);
            (status, refusal(status, text))
        };
        let mut rewriter = guards
            .rewriter(format, kind)
            .map_err(|error| failed(&error).1)?;
        rewriter.end(message).map_err(|error| {
            let (status, plain) = failed(&error);
            match rewriter.fail(status.as_u16(), refusal_of(&error, unreadable).1) {
                Ok(text) => response_of(status, text),
                Err(_) => plain,
            }
        })
    }
}

async fn read<B>(body: B, limit: usize) -> Result<Bytes, BoxError>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    Ok(Limited::new(body, limit).collect().await?.to_bytes())
}

/// Gives a message the length of its new body, without headers that describe the old one.
fn set_length(headers: &mut HeaderMap, length: usize) {
    for name in [
        "transfer-encoding",
        "etag",
        "content-md5",
        "digest",
        "content-digest",
        "repr-digest",
    ] {
        headers.remove(name);
    }
    headers.insert(header::CONTENT_LENGTH, length.into());
}

fn whole(body: Vec<u8>) -> GuardedBody {
    let body = Full::new(Bytes::from(body));
    body.map_err(|never| match never {}).boxed_unsync()
}

/// The body of an answer that is not guarded.
fn pass<B>(body: B) -> GuardedBody
where
    B: Body + Send + 'static,
    B::Error: Into<BoxError>,
{
    let to_bytes = |mut data: B::Data| data.copy_to_bytes(data.remaining());
    body.map_frame(move |frame| frame.map_data(to_bytes))
        .map_err(Into::into)
        .boxed_unsync()
}

fn response_of(status: StatusCode, body: Vec<u8>) -> Response<GuardedBody> {
    let length = body.len();
    let mut response = Response::new(whole(body));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    set_length(response.headers_mut(), length);
    response
}

fn refusal(status: StatusCode, message: &str) -> Response<GuardedBody> {
    let body = serde_json::json!({ "error": { "message": message } });
    response_of(status, body.to_string().into_bytes())
}

fn unjudged(message: &str) -> Response<GuardedBody> {
    refusal(StatusCode::INTERNAL_SERVER_ERROR, message)
}

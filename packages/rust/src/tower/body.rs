use super::{BoxError, refusal_of};
use crate::guards::Rewriter;
use bytes::{Buf, Bytes};
use http::StatusCode;
use http_body::{Body, Frame};
use std::pin::Pin;
use std::task::{Context, Poll};

/// The body of a streamed answer. Trailers are left out, because texts follow them when the stream ends.
pub(super) struct GuardedStream<B> {
    inner: Pin<Box<B>>,
    /// `None` once the stream has ended.
    rewriter: Option<Rewriter>,
}

impl<B> GuardedStream<B> {
    pub fn new(body: B, rewriter: Rewriter) -> GuardedStream<B> {
        GuardedStream {
            inner: Box::pin(body),
            rewriter: Some(rewriter),
        }
    }
}

impl<B> Body for GuardedStream<B>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        while let Some(mut rewriter) = this.rewriter.take() {
            let Poll::Ready(frame) = this.inner.as_mut().poll_frame(context) else {
                this.rewriter = Some(rewriter);
                return Poll::Pending;
            };
            let (pushed, is_end) = match frame.transpose().map_err(Into::into)? {
                None => (rewriter.end(&[]), true),
                Some(frame) => match frame.into_data() {
                    Ok(mut data) => (rewriter.push(&data.copy_to_bytes(data.remaining())), false),
                    Err(_trailers) => (Ok(Vec::new()), false),
                },
            };
            let out = match pushed {
                Ok(out) if is_end => out,
                Ok(out) => {
                    this.rewriter = Some(rewriter);
                    out
                }
                Err(error) => {
                    let (status, message) = refusal_of(&error, StatusCode::BAD_GATEWAY);
                    rewriter.fail(status.as_u16(), message)?
                }
            };
            if !out.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(out.into()))));
            }
        }
        Poll::Ready(None)
    }
}

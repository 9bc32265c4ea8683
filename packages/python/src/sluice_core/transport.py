"""Transports for httpx that guard calls to language models."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from typing import Any

import httpx

from .guards import DEFAULT_LIMIT, Format, Guard, Guards, GuardsError, Kind, Rewriter
from .masks import Mask

#: Ends of the paths whose messages the guards read, and the format there.
FORMATS: Mapping[str, Format] = {
    "/chat/completions": "Completions",
    "/v1/messages": "Messages",
    "/responses": "Responses",
    "/embeddings": "Embeddings",
}
#: Larger errors of a vendor are not shown.
_MAX_ERROR_BYTES = 1024 * 1024

_REJECTED = "The request was rejected by a guard."
_REJECTED_ANSWER = "The answer was rejected by a guard."
_UNREADABLE = "The answer cannot be judged by the guards."
_HIDDEN = "The vendor answered with an error that the guards do not let pass."


class _Guarding:
    """What both transports do, without waiting for anything."""

    def __init__(
        self,
        request: Sequence[Guard],
        response: Sequence[Guard],
        unguarded_paths: Collection[str],
        formats: Mapping[str, Format],
    ) -> None:
        self._request = Guards(request)
        self._response = Guards(response)
        self._error_masks = [(Mask(guard.rules), guard.rejects) for guard in response]
        self._unguarded = frozenset(unguarded_paths)
        self._formats = formats

    def format_of(self, request: httpx.Request) -> Format | None:
        """The format of a request; None if its path is not guarded."""
        path = request.url.path
        if path in self._unguarded:
            return None
        if request.method == "POST":
            for end, format in self._formats.items():
                if path.endswith(end):
                    return format
        raise GuardsError(
            f"{request.method} {path} is not in a format that the guards read; "
            "add the path to unguarded_paths if it may pass"
        )

    def guarded(self, request: httpx.Request, format: Format) -> httpx.Request | httpx.Response:
        """The request with masked texts, or the response of a guard that rejects it."""
        rewriter = self._request.rewriter(format, "request")
        body = rewriter.end(request.content)
        if rewriter.details.rejected_by is not None:
            return _refusal(403, rewriter.fail(403, _REJECTED), request)
        headers = httpx.Headers(request.headers)
        # Compressed answers cannot be read.
        headers["accept-encoding"] = "identity"
        headers["content-length"] = str(len(body))
        headers.pop("transfer-encoding", None)
        return httpx.Request(
            request.method,
            request.url,
            headers=headers,
            content=body,
            extensions=request.extensions,
        )

    def kind_of(self, response: httpx.Response) -> Kind | None:
        """The kind of an answer; None for errors of the vendor."""
        if response.headers.get("content-encoding", "identity") != "identity":
            raise GuardsError("the answer is compressed, although the request did not accept that")
        if response.status_code >= 300:
            return None
        media = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media == "text/event-stream":
            return "stream"
        if media == "application/json":
            return "answer"
        raise GuardsError(f"the answer has the type {media!r}, which the guards cannot read")

    def stream_rewriter(self, format: Format) -> Rewriter:
        return self._response.rewriter(format, "stream")

    def answered(self, response: httpx.Response, format: Format, body: bytes) -> httpx.Response:
        """The response with masked texts, or an error."""
        rewriter = self._response.rewriter(format, "answer")
        out, refused = _step(rewriter, body, True)
        if refused:
            return _refusal(refused, out, response.request)
        return _with_body(response, out)

    def error(self, response: httpx.Response, body: bytes) -> httpx.Response:
        """An error of the vendor, which may repeat texts of the request."""
        try:
            content = json.dumps(self._masked(json.loads(body))).encode()
        except RecursionError:
            content = json.dumps({"error": {"message": _HIDDEN}}).encode()
        except ValueError:
            content = self._masked_text(body.decode("utf-8", "replace")).encode()
        return _with_body(response, content)

    def _masked(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._masked_text(value)
        if isinstance(value, list):
            return [self._masked(each) for each in value]
        if isinstance(value, dict):
            return {self._masked_text(name): self._masked(each) for name, each in value.items()}
        return value

    def _masked_text(self, text: str) -> str:
        for mask, rejects in self._error_masks:
            masked = mask(text)
            if rejects and masked != text:
                return _HIDDEN
            text = masked
        return text


def _with_body(response: httpx.Response, body: bytes) -> httpx.Response:
    return httpx.Response(
        response.status_code,
        headers=_headers(response),
        content=body,
        extensions=response.extensions,
    )


def _refusal(status: int, body: bytes, request: httpx.Request | None) -> httpx.Response:
    media = {"content-type": "application/json"}
    return httpx.Response(status, headers=media, content=body, request=request)


def _step(rewriter: Rewriter, piece: bytes, is_end: bool) -> tuple[bytes, int]:
    """The bytes that can be forwarded, and the status of the error that ends the message, or 0."""
    try:
        out = rewriter.end(piece) if is_end else rewriter.push(piece)
    except GuardsError:
        return rewriter.fail(502, _UNREADABLE), 502
    if rewriter.details.rejected_by is not None:
        return rewriter.fail(403, _REJECTED_ANSWER), 403
    return out, 0


def _too_large(response: httpx.Response, size: int) -> bool:
    limit = DEFAULT_LIMIT if response.status_code < 300 else _MAX_ERROR_BYTES
    return size > limit


def _headers(response: httpx.Response) -> httpx.Headers:
    headers = httpx.Headers(response.headers)
    headers.pop("content-length", None)
    return headers


class _Stream(httpx.SyncByteStream):
    def __init__(self, stream: httpx.SyncByteStream, rewriter: Rewriter) -> None:
        self._stream = stream
        self._rewriter = rewriter

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._stream:
            out, refused = _step(self._rewriter, piece, False)
            if out:
                yield out
            if refused:
                return
        yield _step(self._rewriter, b"", True)[0]

    def close(self) -> None:
        self._stream.close()


class _AsyncStream(httpx.AsyncByteStream):
    def __init__(self, stream: httpx.AsyncByteStream, rewriter: Rewriter) -> None:
        self._stream = stream
        self._rewriter = rewriter

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            out, refused = _step(self._rewriter, piece, False)
            if out:
                yield out
            if refused:
                return
        yield _step(self._rewriter, b"", True)[0]

    async def aclose(self) -> None:
        await self._stream.aclose()


class GuardTransport(httpx.BaseTransport):
    """Guards the calls of an ``httpx.Client``. A message that cannot be judged does not pass."""

    def __init__(
        self,
        *,
        request: Sequence[Guard] = (),
        response: Sequence[Guard] = (),
        unguarded_paths: Collection[str] = (),
        formats: Mapping[str, Format] = FORMATS,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._guarding = _Guarding(request, response, unguarded_paths, formats)
        self._transport = transport or httpx.HTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        format = self._guarding.format_of(request)
        if format is None:
            return self._transport.handle_request(request)
        request.read()
        sent = self._guarding.guarded(request, format)
        if isinstance(sent, httpx.Response):
            return sent
        response = self._transport.handle_request(sent)
        response.request = sent
        assert isinstance(response.stream, httpx.SyncByteStream)
        try:
            kind = self._guarding.kind_of(response)
            if kind == "stream":
                stream = _Stream(response.stream, self._guarding.stream_rewriter(format))
                return httpx.Response(
                    response.status_code,
                    headers=_headers(response),
                    stream=stream,
                    extensions=response.extensions,
                )
            body = bytearray()
            for piece in response.stream:
                body += piece
                if _too_large(response, len(body)):
                    raise GuardsError("the answer is too large to be judged")
        except BaseException:
            response.close()
            raise
        response.close()
        if kind is None:
            return self._guarding.error(response, bytes(body))
        return self._guarding.answered(response, format, bytes(body))

    def close(self) -> None:
        self._transport.close()


class AsyncGuardTransport(httpx.AsyncBaseTransport):
    """Guards the calls of an ``httpx.AsyncClient``. A message that cannot be judged does not pass."""

    def __init__(
        self,
        *,
        request: Sequence[Guard] = (),
        response: Sequence[Guard] = (),
        unguarded_paths: Collection[str] = (),
        formats: Mapping[str, Format] = FORMATS,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._guarding = _Guarding(request, response, unguarded_paths, formats)
        self._transport = transport or httpx.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        format = self._guarding.format_of(request)
        if format is None:
            return await self._transport.handle_async_request(request)
        await request.aread()
        sent = self._guarding.guarded(request, format)
        if isinstance(sent, httpx.Response):
            return sent
        response = await self._transport.handle_async_request(sent)
        response.request = sent
        assert isinstance(response.stream, httpx.AsyncByteStream)
        try:
            kind = self._guarding.kind_of(response)
            if kind == "stream":
                stream = _AsyncStream(response.stream, self._guarding.stream_rewriter(format))
                return httpx.Response(
                    response.status_code,
                    headers=_headers(response),
                    stream=stream,
                    extensions=response.extensions,
                )
            body = bytearray()
            async for piece in response.stream:
                body += piece
                if _too_large(response, len(body)):
                    raise GuardsError("the answer is too large to be judged")
        except BaseException:
            await response.aclose()
            raise
        await response.aclose()
        if kind is None:
            return self._guarding.error(response, bytes(body))
        return self._guarding.answered(response, format, bytes(body))

    async def aclose(self) -> None:
        await self._transport.aclose()

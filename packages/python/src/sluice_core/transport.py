"""Transports for httpx that guard calls to language models."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator, Sequence

import httpx

from .guards import Format, Guard, Guards, GuardsError, Rewriter

#: The last segments of the paths whose messages the guards read.
_FORMATS: dict[str, Format] = {
    "completions": "Completions",
    "messages": "Messages",
    "responses": "Responses",
    "embeddings": "Embeddings",
}
#: Methods whose requests have no message.
_BODILESS = frozenset({"GET", "HEAD", "OPTIONS", "DELETE"})

_REJECTED = "The request was rejected by a guard."
_REJECTED_ANSWER = "The answer was rejected by a guard."
_UNREADABLE = "The answer cannot be judged by the guards."


class _Guarding:
    """What both transports do, without waiting for anything."""

    def __init__(
        self, request: Sequence[Guard], response: Sequence[Guard], unguarded_paths: Collection[str]
    ) -> None:
        self._request = Guards(request)
        self._response = Guards(response)
        self._unguarded = frozenset(unguarded_paths)

    def format_of(self, request: httpx.Request) -> Format | None:
        """The format of a request; None if there is nothing to guard."""
        path = request.url.path
        format = _FORMATS.get(path.rstrip("/").rsplit("/", 1)[-1])
        if request.method in _BODILESS or path in self._unguarded:
            return None
        if format is None:
            raise GuardsError(f"{request.method} {path} is not in a format that the guards read")
        return format

    def guarded(self, request: httpx.Request, format: Format) -> httpx.Request | httpx.Response:
        """The request with masked texts, or the response of a guard that rejects it."""
        rewriter = self._request.rewriter(format, "request")
        body = rewriter.end(request.content)
        if rewriter.details.rejected_by is not None:
            content = rewriter.fail(403, _REJECTED)
            media = {"content-type": "application/json"}
            return httpx.Response(403, headers=media, content=content, request=request)
        headers = httpx.Headers(request.headers)
        # Compressed answers cannot be read.
        headers["accept-encoding"] = "identity"
        headers["content-length"] = str(len(body))
        return httpx.Request(
            request.method,
            request.url,
            headers=headers,
            content=body,
            extensions=request.extensions,
        )

    def rewriter_for(self, response: httpx.Response, format: Format) -> Rewriter | None:
        """A rewriter for the body of a response; None for errors of the vendor."""
        if response.status_code >= 300:
            return None
        if response.headers.get("content-encoding", "identity") != "identity":
            raise GuardsError("the answer is compressed, although the request did not accept that")
        media = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media == "text/event-stream":
            return self._response.rewriter(format, "stream")
        if media == "application/json":
            return self._response.rewriter(format, "answer")
        raise GuardsError(f"the answer has the type {media!r}, which the guards cannot read")


def _step(rewriter: Rewriter, piece: bytes, is_end: bool) -> tuple[bytes, bool]:
    """The bytes that can be forwarded, and whether the message ends with them."""
    try:
        out = rewriter.end(piece) if is_end else rewriter.push(piece)
    except GuardsError:
        return rewriter.fail(502, _UNREADABLE), True
    if rewriter.details.rejected_by is not None:
        return rewriter.fail(403, _REJECTED_ANSWER), True
    return out, is_end


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
            out, ended = _step(self._rewriter, piece, False)
            if out:
                yield out
            if ended:
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
            out, ended = _step(self._rewriter, piece, False)
            if out:
                yield out
            if ended:
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
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._guarding = _Guarding(request, response, unguarded_paths)
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
        try:
            rewriter = self._guarding.rewriter_for(response, format)
        except GuardsError:
            response.close()
            raise
        if rewriter is None:
            return response
        assert isinstance(response.stream, httpx.SyncByteStream)
        return httpx.Response(
            response.status_code,
            headers=_headers(response),
            stream=_Stream(response.stream, rewriter),
            extensions=response.extensions,
        )

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
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._guarding = _Guarding(request, response, unguarded_paths)
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
        try:
            rewriter = self._guarding.rewriter_for(response, format)
        except GuardsError:
            await response.aclose()
            raise
        if rewriter is None:
            return response
        assert isinstance(response.stream, httpx.AsyncByteStream)
        return httpx.Response(
            response.status_code,
            headers=_headers(response),
            stream=_AsyncStream(response.stream, rewriter),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        await self._transport.aclose()

"""Chunked bodies: bytes in pieces, spans of data out."""

from core import Core


def read_body(core: Core, data: bytes, cuts: list[int], trailer_limit: int = 256) -> dict:
    """What there is of a body that arrives cut at `cuts`, and the code of the last call."""
    abi = core.abi
    seen = {"code": abi["CHUNKS_MORE"], "data": "", "trailers": "", "rest": "", "flags": []}
    with core.scratch():
        body = core.alloc(abi["BODY_SIZE"])
        start = at = core.put(data)
        core.check(core.call("chunks_start", body, trailer_limit))

        def word(offset: int) -> int:
            return core.unpack("i", body + offset)[0]

        def text(offset: int) -> str:
            return core.read(*core.unpack("2I", body + offset)).decode("latin-1")

        for cut in [*cuts, len(data)]:
            while True:
                seen["code"] = core.call("chunks_read", body, at, start + cut)
                if seen["code"] < 0:
                    return seen
                for index in range(word(abi["BODY_SPAN_COUNT"])):
                    seen["data"] += text(abi["BODY_SPANS"] + index * 8)
                if word(abi["BODY_TRAILER"]) != -1:
                    seen["trailers"] += text(abi["BODY_TRAILER"])
                at = word(abi["BODY_CONSUMED"]) & 0xFFFFFFFF
                if seen["code"] != abi["CHUNKS_AGAIN"]:
                    break
            if seen["code"] == abi["CHUNKS_END"]:
                break
        flags = word(abi["BODY_FLAGS"])
        seen["flags"] = sorted(
            name.removeprefix("BODY_HAS_")
            for name, bit in abi.items()
            if name.startswith("BODY_HAS_") and flags & bit
        )
        seen["rest"] = data[at - start :].decode("latin-1")
    return seen

"""HTTP/1.1 heads: bytes in, a record of numbers and spans out."""

from core import Core

SPANS = ["method", "target", "path", "query", "authority", "host", "upgrade", "reason"]
NUMBERS = {
    "methodId": "HEAD_METHOD_ID",
    "status": "HEAD_STATUS",
    "minor": "HEAD_MINOR",
    "port": "HEAD_PORT",
    "scheme": "HEAD_SCHEME",
    "hostField": "HEAD_HOST_FIELD",
}


def read_head(core: Core, message: str, data: bytes, max_bytes: int, max_fields: int):
    """The code, and the record as plain data when that is 0."""
    abi = core.abi
    with core.scratch():
        record = core.alloc(abi["HEAD_SIZE"] + max_fields * abi["FIELD_SIZE"])
        core.write(record, b"\xff" * abi["HEAD_SIZE"])
        core.write(record + abi["HEAD_FIELD_LIMIT"], max_fields.to_bytes(4, "little"))
        start = core.put(data)
        end = start + len(data)
        if message == "trailers":
            code = core.call("head_trailers", record, start, end)
        else:
            code = core.call(f"head_{message}", record, start, end, 0, max_bytes)
        return code, describe(core, record, end) if code == 0 else {}


def describe(core: Core, record: int, end: int) -> dict:
    abi = core.abi

    def word(offset: int) -> int:
        return core.unpack("i", record + offset)[0]

    def text(offset: int) -> str | None:
        start, stop = core.unpack("iI", record + offset)
        return None if start == -1 else core.read(start & 0xFFFFFFFF, stop).decode("latin-1")

    flags = word(abi["HEAD_FLAGS"])
    head: dict = {name: text(abi[f"HEAD_{name.upper()}"]) for name in SPANS}
    head |= {name: word(abi[field]) for name, field in NUMBERS.items()}
    head["contentLength"] = core.unpack("d", record + abi["HEAD_CONTENT_LENGTH"])[0]
    head["flags"] = sorted(
        name.removeprefix("FLAG_")
        for name, bit in abi.items()
        if name.startswith("FLAG_") and flags & bit
    )
    places = [
        abi["HEAD_FIELDS"] + index * abi["FIELD_SIZE"]
        for index in range(word(abi["HEAD_FIELD_COUNT"]))
    ]
    head["fields"] = [
        [text(at + abi["FIELD_NAME"]), text(at + abi["FIELD_VALUE"])] for at in places
    ]
    head["hops"] = [
        index
        for index, at in enumerate(places)
        if word(at + abi["FIELD_INFO"]) & abi["INFO_HOP"]
    ]
    after = min(word(abi["HEAD_END"]) & 0xFFFFFFFF, end)
    head["rest"] = core.read(after, end).decode("latin-1")
    return head

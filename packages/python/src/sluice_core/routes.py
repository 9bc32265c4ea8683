"""Selects a route for a request, with the precedence of the Gateway API."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from .kernel import Compiled, Core, abi, core_kernel, free_later
from .masks import compile_pattern

PathType = Literal["prefix", "exact", "regex"]


@dataclass(frozen=True)
class Route:
    """A route. A header or a query parameter matches exactly, or with a pattern if it is in ``regexes``."""

    id: int
    path: str = "/"
    path_type: PathType = "prefix"
    hostname: str = ""
    method: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    #: Names of headers and query parameters whose values are patterns.
    regexes: frozenset[str] = frozenset()
    #: Of routes that match equally well, the older one wins, then the one whose name comes first.
    created: float = 0
    name: str = ""
    #: Positions of the rule in its route and of the match in its rule, which decide after the name.
    rule_index: int = 0
    match_index: int = 0
    #: Only requests for a listener of this scope see the route.
    scope: int = 0


class Router(Compiled):
    """A table of routes. ``listeners`` has the scope of each hostname; an empty one is any host."""

    def __init__(
        self, routes: Iterable[Route], *, listeners: Mapping[str, int] | None = None
    ) -> None:
        self.routes = tuple(routes)
        self._listeners = {"": 0} if listeners is None else dict(listeners)
        super().__init__(core_kernel, "table_free", self._build)

    def match(
        self,
        path: str,
        *,
        method: str = "GET",
        host: str = "localhost",
        headers: Iterable[tuple[str, str]] = (),
    ) -> int | None:
        """The id of the route for a request, or None. ``path`` may have a query."""
        fields = list(headers)
        with self._kernel.lock:
            core, table = self._ready()
            with core.scratch():
                record = _record(core, method, host, path, fields)
                found = core.call("match_request", table, record)
        if found in (abi["NO_ROUTE"], abi["NO_LISTENER"]):
            return None
        return found

    def _build(self, core: Core) -> int:
        table = core.checked("creating a table", "table_new")
        for hostname, scope in self._listeners.items():
            kind, host = _host(hostname)
            with core.scratch():
                address = core.put(host)
                core.checked(
                    "adding a listener", "listener_add", table, kind, address, len(host), scope
                )
        for route in self.routes:
            self._add(core, table, route)
        return table

    def _add(self, core: Core, table: int, route: Route) -> None:
        def regex(pattern: str, is_regex: bool) -> int:
            if not is_regex:
                return 0
            handle = compile_pattern(core, pattern, abi["REGEX_MATCH_ONLY"])
            # The table refers to it.
            free_later(self, self._kernel, core, "regex_free", handle)
            return handle

        spec = _specification(route, regex)
        with core.scratch():
            core.checked("adding a route", "route_add", table, core.put(spec), len(spec))


def _host(hostname: str) -> tuple[int, bytes]:
    """The kind of a hostname, and its bytes: those of a wildcard begin with the dot."""
    if hostname == "":
        return abi["HOST_ANY"], b""
    if hostname.startswith("*."):
        return abi["HOST_WILDCARD"], hostname[1:].encode()
    return abi["HOST_EXACT"], hostname.encode()


def _specification(route: Route, regex: Callable[[str, bool], int]) -> bytes:
    """Fixed words first; texts follow, and are named by offset and length."""
    predicates = [*route.headers.items(), *route.query.items()]
    spec = bytearray(abi["ROUTE_PREDICATES"] + len(predicates) * abi["PREDICATE_SIZE"])

    def word(offset: int, value: int) -> None:
        struct.pack_into("<i", spec, offset, value)

    def text(offset: int, value: bytes) -> None:
        struct.pack_into("<ii", spec, offset, len(spec), len(value))
        spec.extend(value)

    kind, host = _host(route.hostname)
    word(abi["ROUTE_ID"], route.id)
    word(abi["ROUTE_SCOPE"], route.scope)
    word(abi["ROUTE_HOST_KIND"], kind)
    text(abi["ROUTE_HOST"], host)
    word(abi["ROUTE_PATH_KIND"], abi[f"PATH_{route.path_type.upper()}"])
    text(abi["ROUTE_PATH"], route.path.encode())
    word(abi["ROUTE_PATH_REGEX"], regex(route.path, route.path_type == "regex"))
    struct.pack_into("<d", spec, abi["ROUTE_CREATED"], route.created)
    text(abi["ROUTE_NAME"], (route.name or f"default/{route.id:010}").encode())
    word(abi["ROUTE_RULE"], route.rule_index)
    word(abi["ROUTE_MATCH"], route.match_index)
    text(abi["ROUTE_METHOD"], route.method.encode())
    word(abi["ROUTE_FIELD_COUNT"], len(route.headers))
    word(abi["ROUTE_QUERY_COUNT"], len(route.query))
    for index, (name, value) in enumerate(predicates):
        at = abi["ROUTE_PREDICATES"] + index * abi["PREDICATE_SIZE"]
        is_regex = name in route.regexes
        word(at + abi["PREDICATE_KIND"], abi["PREDICATE_PATTERN" if is_regex else "PREDICATE_EXACT"])
        text(at + abi["PREDICATE_NAME"], name.encode())
        text(at + abi["PREDICATE_VALUE"], value.encode())
        word(at + abi["PREDICATE_REGEX"], regex(value, is_regex))
    return bytes(spec)


def _record(
    core: Core, method: str, authority: str, target: str, fields: list[tuple[str, str]]
) -> int:
    """Writes the head of a request into scratch memory, as the head reader of the core does."""
    record = core.alloc(abi["HEAD_SIZE"] + len(fields) * abi["FIELD_SIZE"])

    def word(offset: int, value: int) -> None:
        core.write(record + offset, struct.pack("<i", value))

    def place(offset: int, text: str) -> None:
        data = text.encode("latin-1")
        start = core.put(data)
        core.write(record + offset, struct.pack("<II", start, start + len(data)))

    core.write(record, b"\xff" * abi["HEAD_SIZE"])
    word(abi["HEAD_FIELD_COUNT"], len(fields))
    word(abi["HEAD_FIELD_LIMIT"], len(fields))
    word(abi["HEAD_FLAGS"], 0)
    place(abi["HEAD_METHOD"], method)
    place(abi["HEAD_AUTHORITY"], authority)
    colon = authority.find(":", authority.find("]") if authority.startswith("[") else 0)
    # Without the port, and without the dot of an absolute name.
    place(abi["HEAD_HOST"], (authority if colon < 0 else authority[:colon]).removesuffix("."))
    path, question, query = target.partition("?")
    place(abi["HEAD_PATH"], path)
    place(abi["HEAD_TARGET"], target)
    if question:
        place(abi["HEAD_QUERY"], query)
    for index, (name, value) in enumerate(fields):
        at = abi["HEAD_FIELDS"] + index * abi["FIELD_SIZE"]
        place(at + abi["FIELD_NAME"], name)
        place(at + abi["FIELD_VALUE"], value)
        word(at + abi["FIELD_INFO"], 0)
    return record

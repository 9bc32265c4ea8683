"""Route tables: specifications in, the id of the route for a request out."""

import struct

from core import Core, Regex


def host_key(core: Core, hostname: str) -> tuple[int, bytes]:
    """Kind of a hostname, and its bytes: those of a wildcard begin with the dot."""
    if hostname == "":
        return core.abi["HOST_ANY"], b""
    if hostname.startswith("*."):
        return core.abi["HOST_WILDCARD"], hostname[1:].encode()
    return core.abi["HOST_EXACT"], hostname.encode()


class Routes:
    def __init__(self, core: Core) -> None:
        self.core = core
        self.table = core.check(core.call("table_new"))
        self.regexes: list[Regex] = []

    def add_listener(self, hostname: str, scope: int) -> None:
        core = self.core
        kind, host = host_key(core, hostname)
        with core.scratch():
            core.check(core.call("listener_add", self.table, kind, core.put(host), len(host), scope))

    def add_route(self, route: dict) -> None:
        """Words where abi.ts draws them; texts lie behind, named by offset and length."""
        core, abi = self.core, self.core.abi
        headers, query = route.get("headers", []), route.get("query", [])
        predicates = [*headers, *query]
        spec = bytearray(abi["ROUTE_PREDICATES"] + len(predicates) * abi["PREDICATE_SIZE"])

        def word(offset: int, value: int) -> None:
            struct.pack_into("<i", spec, offset, value)

        def text(offset: int, data: bytes) -> None:
            struct.pack_into("<ii", spec, offset, len(spec), len(data))
            spec.extend(data)

        path = route.get("path", {"type": "prefix", "value": "/"})
        kind, host = host_key(core, route.get("hostname", ""))
        word(abi["ROUTE_ID"], route["id"])
        word(abi["ROUTE_SCOPE"], route.get("scope", 0))
        word(abi["ROUTE_HOST_KIND"], kind)
        text(abi["ROUTE_HOST"], host)
        word(abi["ROUTE_PATH_KIND"], abi[f"PATH_{path['type'].upper()}"])
        text(abi["ROUTE_PATH"], path["value"].encode())
        word(abi["ROUTE_PATH_REGEX"], self.regex_of(path))
        struct.pack_into("<d", spec, abi["ROUTE_CREATED"], route.get("createdAt", 0))
        text(abi["ROUTE_NAME"], route.get("name", f"n/{route['id']}").encode())
        word(abi["ROUTE_RULE"], route.get("ruleIndex", 0))
        word(abi["ROUTE_MATCH"], route.get("matchIndex", 0))
        text(abi["ROUTE_METHOD"], route.get("method", "").encode())
        word(abi["ROUTE_FIELD_COUNT"], len(headers))
        word(abi["ROUTE_QUERY_COUNT"], len(query))
        for index, predicate in enumerate(predicates):
            at = abi["ROUTE_PREDICATES"] + index * abi["PREDICATE_SIZE"]
            is_regex = predicate["type"] == "regex"
            word(at + abi["PREDICATE_KIND"], abi["PREDICATE_PATTERN" if is_regex else "PREDICATE_EXACT"])
            text(at + abi["PREDICATE_NAME"], predicate["name"].encode())
            text(at + abi["PREDICATE_VALUE"], predicate["value"].encode())
            word(at + abi["PREDICATE_REGEX"], self.regex_of(predicate))
        with core.scratch():
            core.check(core.call("route_add", self.table, core.put(bytes(spec)), len(spec)))

    def regex_of(self, described: dict) -> int:
        if described["type"] != "regex":
            return 0
        self.regexes.append(Regex(self.core, described["value"], self.core.abi["REGEX_MATCH_ONLY"]))
        return self.regexes[-1].handle

    def match(self, request: dict) -> int:
        """The id of the route, or a code: NO_ROUTE, NO_LISTENER. Texts are Latin-1: bytes."""
        core, abi = self.core, self.core.abi
        headers = request.get("headers", [])
        authority, path, query = request.get("authority", "a"), request.get("path", "/"), request.get("query")
        with core.scratch():
            record = core.alloc(abi["HEAD_SIZE"] + len(headers) * abi["FIELD_SIZE"])

            def word(offset: int, value: int) -> None:
                core.write(record + offset, struct.pack("<i", value))

            def place(offset: int, text: str) -> None:
                start = core.put(text.encode("latin-1"))
                core.write(record + offset, struct.pack("<II", start, start + len(text)))

            core.write(record, b"\xff" * abi["HEAD_SIZE"])
            word(abi["HEAD_FIELD_COUNT"], len(headers))
            word(abi["HEAD_FIELD_LIMIT"], len(headers))
            word(abi["HEAD_FLAGS"], 0)
            place(abi["HEAD_METHOD"], request.get("method", "GET"))
            place(abi["HEAD_AUTHORITY"], authority)
            colon = authority.find(":", authority.find("]") if authority.startswith("[") else 0)
            # As the head reader does it: without the port, and without the dot of an absolute name.
            host = authority if colon < 0 else authority[:colon]
            place(abi["HEAD_HOST"], host.removesuffix("."))
            place(abi["HEAD_PATH"], path)
            place(abi["HEAD_TARGET"], path if query is None else f"{path}?{query}")
            if query is not None:
                place(abi["HEAD_QUERY"], query)
            for index, (name, value) in enumerate(headers):
                field = abi["HEAD_FIELDS"] + index * abi["FIELD_SIZE"]
                place(field + abi["FIELD_NAME"], name)
                place(field + abi["FIELD_VALUE"], value)
                word(field + abi["FIELD_INFO"], 0)
            return core.call("match_request", self.table, record)

    def free(self) -> None:
        self.core.call("table_free", self.table)
        for regex in self.regexes:
            regex.free()

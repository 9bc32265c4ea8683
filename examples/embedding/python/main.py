"""python main.py core.wasm core.abi.json test/core: runs the case files, prints one JSON document.

Vocabularies lie beside core.wasm.
"""

import json
import math
import secrets
import struct
import sys
from functools import cache
from pathlib import Path

import brotli
from bodies import read_body
from core import Core, CoreError, Mask, Regex
from heads import read_head
from routes import Routes
from tokens import Vocabulary


def head_problem(core: Core, case: dict) -> str | None:
    abi = core.abi
    limits = (case.get("maxBytes", 65536), case.get("maxFields", 100))
    code, head = read_head(core, case["message"], case["bytes"].encode("latin-1"), *limits)
    wanted = abi[case["refused"]] if "refused" in case else 0
    if wanted != 0 and case["message"] == "response":
        wanted = abi["ERROR_RESPONSE"] - (-wanted % 100)
    if code != wanted:
        return f"code {code} instead of {wanted}"
    for key, value in case.get("expect", {}).items():
        if head[key] != (sorted(value) if key == "flags" else value):
            return f"{key} is {head[key]}"
    return None


def bytes_of(case: dict) -> bytes:
    """`text`, `hex` (what is not UTF-8) or `units` of UTF-16 (lone surrogates become U+FFFD)."""
    if "hex" in case:
        data = bytes.fromhex(case["hex"])
    elif "units" in case:
        units = case["units"]
        data = struct.pack(f"<{len(units)}H", *units).decode("utf-16-le", "surrogatepass")
        data = "".join("\ufffd" if 0xD800 <= ord(each) < 0xE000 else each for each in data).encode()
    else:
        data = case["text"].encode()
    return data * case.get("repeat", 1)


def regex_problem(core: Core, case: dict) -> str | None:
    try:
        regex = Regex(core, case["pattern"])
    except CoreError as error:
        is_right = (error.code, error.offset) == (core.abi[case.get("code")], case["offset"])
        return None if is_right else str(error)
    if "code" in case:
        return "was taken"
    text = bytes_of(case)
    spans = regex.find_all(text)
    is_match, is_full = regex.is_match(text), regex.is_match(text, whole=True)
    regex.free()
    if spans != case["spans"]:
        return str(spans)
    if is_match != bool(spans) or is_full != case.get("full", is_full):
        return f"is_match {is_match}, full_match {is_full}"
    return None


BUILTINS = [
    {"builtin": "DETECT_SSN", "replacement": "<SSN>"},
    {"builtin": "DETECT_CARD", "replacement": "<CREDIT_CARD>"},
    {"builtin": "DETECT_PHONE", "replacement": "<PHONE_NUMBER>"},
    {"builtin": "DETECT_EMAIL", "replacement": "<EMAIL_ADDRESS>"},
    {"builtin": "DETECT_SIN", "replacement": "<CA_SIN>"},
]


def cuts_of(length: int) -> list[list[int]]:
    """Nowhere, in two pieces at every byte, at every byte at once; a long text into some pieces."""
    if length > 400:
        return [[], *(list(range(0, length, size)) for size in (7, 64, 4096))]
    every = list(range(length))
    return [[], *([cut] for cut in every), [length], every]


def mask_problem(core: Core, case: dict) -> str | None:
    mask = Mask(core, case.get("rules", BUILTINS))
    text = bytes_of(case)
    out = {"hex": case["maskedHex"]} if "maskedHex" in case else {"text": case["masked"]}
    wanted = bytes_of(out | {"repeat": case.get("repeat", 1)})
    wrong = [cuts for cuts in cuts_of(len(text)) if mask.apply(text, cuts) != wanted]
    hold = mask.hold
    mask.free()
    if hold != case.get("hold", hold):
        return f"may hold back {hold} bytes"
    return f"differs when cut at {wrong[0][:3]}" if wrong else None


def body_problem(core: Core, case: dict) -> str | None:
    """Whole, cut at every byte, and everywhere at once."""
    abi, data = core.abi, case["bytes"].encode("latin-1")
    wanted = {
        "code": abi["CHUNKS_MORE" if case.get("open") else "CHUNKS_END"],
        "data": case.get("data"),
        "trailers": case.get("trailers", ""),
        "rest": case.get("rest", ""),
        "flags": sorted(case.get("flags", [])),
    }
    every = list(range(min(len(data), 200)))
    for cuts in [[], *([cut] for cut in every), every]:
        seen = read_body(core, data, cuts)
        is_right = seen["code"] == abi[case["refused"]] if "refused" in case else seen == wanted
        if not is_right:
            return f"{seen} when cut at {cuts[:3]}"
    return None


def route_problem(core: Core, case: dict) -> str | None:
    routes = Routes(core)
    for hostname, scope in case.get("listeners", [["", 0]]):
        routes.add_listener(hostname, scope)
    for route in case["routes"]:
        routes.add_route(route)
    wrong = [
        request
        for request in case["requests"]
        if routes.match(request) != core.abi.get(request["expect"], request["expect"])
    ]
    routes.free()
    return str(wrong[0]) if wrong else None


@cache
def vocabulary_of(core: Core, encoding: str) -> Vocabulary:
    """Loaded once, when the first text needs it."""
    file = Path(sys.argv[1]).with_name(f"{encoding}.tokens.br")
    return Vocabulary(core, brotli.decompress(file.read_bytes()))


def tokens_problem(core: Core, case: dict) -> str | None:
    vocabulary, text = vocabulary_of(core, case["encoding"]), bytes_of(case)
    count, ids = vocabulary.count(text), case.get("ids", [])
    if count != case["count"]:
        return f"{count} tokens instead of {case['count']}"
    return None if vocabulary.encode(text, len(ids)) == ids else "other ids"


def rate_problem(core: Core, case: dict) -> str | None:
    abi = core.abi
    groups, key_bytes = 4, 48
    table = core.call("block_new", core.check(core.call("rate_size", groups, key_bytes)))
    period, capacity = case["unit"] / case["rate"], case["rate"] + case["burst"]
    problem = None
    with core.scratch():
        secret = core.put(secrets.token_bytes(16))
        core.check(core.call("rate_format", table, groups, key_bytes, secret))
        out, key = core.alloc(abi["RATE_SIZE"]), core.put(b"key")
        for step in case["steps"]:
            demand = (period, capacity, step["amount"], step["at"])
            answer = core.check(core.call(f"rate_{step['do']}", table, 1, key, 3, *map(float, demand), out))
            wait, remaining, reset = core.unpack("3d", out)
            expected = math.inf if step.get("wait") == "never" else step.get("wait", wait)
            is_right = (
                bool(answer) == step.get("is", bool(answer))
                and remaining == step.get("remaining", remaining)
                and (wait == expected or abs(wait - expected) < 1e-4)
                and abs(reset - step.get("reset", reset)) < 1e-4
            )
            if not is_right:
                problem = problem or f"{step}: {answer}, {wait}, {remaining}, {reset}"
    core.call("block_free", table)
    return problem


SUITES = {
    "heads": head_problem,
    "chunks": body_problem,
    "regex/cases": regex_problem,
    "regex/masks": mask_problem,
    "routes": route_problem,
    "tokens/cases": tokens_problem,
    "rate": rate_problem,
}


def main() -> int:
    wasm, abi, folder = sys.argv[1:]
    core = Core(wasm, abi)
    run: dict[str, int] = {}
    failures: list[str] = []
    for name, problem_of in SUITES.items():
        run[name] = 0
        for file in sorted(Path(folder, name).glob("*.json")):
            document = json.loads(file.read_text(encoding="utf-8"))
            for case in document if isinstance(document, list) else document["cases"]:
                run[name] += 1
                problem = problem_of(core, case)
                if problem is not None:
                    title = case.get("title") or case.get("name") or case["pattern"]
                    failures.append(f"{name}: {title}: {problem}")
    print(json.dumps({"run": run, "failures": failures}))
    return 1 if failures else 0


sys.exit(main())

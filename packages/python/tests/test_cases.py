"""Runs the case files that all hosts share, in the folder that CASES names."""

import json
import math
import os
import struct
import unittest
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sluice_core import Builtin, Guard, Guards, GuardsError, Mask, MaskStream, Pattern, PatternError, RateLimiter, Route, Router, Rule, Words
from sluice_core.tokens import vocabulary

folder = Path(os.environ["CASES"])
builtins = {"DETECT_" + name: each for name, each in [
    ("SSN", Builtin.SSN),
    ("CARD", Builtin.CREDIT_CARD),
    ("PHONE", Builtin.PHONE_NUMBER),
    ("EMAIL", Builtin.EMAIL),
    ("SIN", Builtin.CA_SIN),
]}
by_code = {each.value[0]: each for each in Builtin}


def cases(name: str) -> Iterator[dict[str, Any]]:
    for file in sorted((folder / name).glob("*.json")):
        document = json.loads(file.read_text("utf-8"))
        yield from document if isinstance(document, list) else document["cases"]


def bytes_of(case: dict[str, Any]) -> bytes:
    """`text`, `hex` (bytes that are not UTF-8), or `units` of UTF-16."""
    if "hex" in case:
        data = bytes.fromhex(case["hex"])
    elif "units" in case:
        units = case["units"]
        text = struct.pack(f"<{len(units)}H", *units).decode("utf-16-le", "surrogatepass")
        data = "".join("\ufffd" if 0xD800 <= ord(each) < 0xE000 else each for each in text).encode()
    else:
        data = case["text"].encode()
    return data * int(case.get("repeat", 1))


def rule_of(rule: dict[str, Any]) -> Rule:
    if "words" in rule:
        return Rule(Words(rule["words"]), rule["replacement"])
    return Rule(rule["pattern"] if "pattern" in rule else by_code[rule["builtin"]], rule["replacement"])


class CaseFiles(unittest.TestCase):
    ran: dict[str, int] = {}

    def run_cases(self, name: str, check: Callable[[dict[str, Any]], None]) -> None:
        for case in cases(name):
            CaseFiles.ran[name] = CaseFiles.ran.get(name, 0) + 1
            with self.subTest(name=name, case=case.get("title") or case.get("name")):
                check(case)
        self.assertIn(name, CaseFiles.ran)

    def test_patterns(self) -> None:
        self.run_cases("regex/cases", self.check_pattern)

    def check_pattern(self, case: dict[str, Any]) -> None:
        if "code" in case:
            with self.assertRaises(PatternError) as raised:
                Pattern(case["pattern"])
            error = raised.exception
            self.assertEqual((error.name, error.offset), (case["code"], case["offset"]))
            self.assertTrue(str(error).endswith(case["message"]), error)
            return
        pattern, text = Pattern(case["pattern"]), bytes_of(case)
        self.assertEqual([list(span) for span in pattern.find_all_bytes(text)], case["spans"])
        self.assertEqual(pattern.is_match(text), bool(case["spans"]))
        if "full" in case:
            self.assertEqual(pattern.full_match(text), case["full"])

    def test_masks_cut_anywhere(self) -> None:
        self.run_cases("regex/masks", self.check_mask)

    def check_mask(self, case: dict[str, Any]) -> None:
        rules = [rule_of(rule) for rule in case["rules"]] if "rules" in case else builtins.values()
        mask, text = Mask([*rules]), bytes_of(case)
        out = {"hex": case["maskedHex"]} if "maskedHex" in case else {"text": case["masked"]}
        wanted = bytes_of(out | {"repeat": case.get("repeat", 1)})
        self.assertEqual(mask.mask_bytes(text), wanted)
        for cut in range(1, len(text), max(1, len(text) // 200)):
            stream = MaskStream(mask)
            first = stream.push_bytes(text[:cut])
            self.assertEqual(first + stream.push_bytes(text[cut:], is_end=True), wanted)
        if "hold" in case:
            self.assertEqual(-1 if mask.hold_bytes is None else mask.hold_bytes, case["hold"])

    def test_routes(self) -> None:
        self.run_cases("routes", self.check_routes)

    def check_routes(self, case: dict[str, Any]) -> None:
        listeners = dict(case.get("listeners", [["", 0]]))
        router = Router([route_of(one) for one in case["routes"]], listeners=listeners)
        for request in case["requests"]:
            query = f"?{request['query']}" if "query" in request else ""
            found = router.match(
                request.get("path", "/") + query,
                method=request.get("method", "GET"),
                host=request.get("authority", "a"),
                headers=[(name, value) for name, value in request.get("headers", [])],
            )
            expected = request["expect"] if isinstance(request["expect"], int) else None
            self.assertEqual(found, expected, request)

    def test_tokens(self) -> None:
        self.run_cases("tokens/cases", self.check_tokens)

    def check_tokens(self, case: dict[str, Any]) -> None:
        text, known = bytes_of(case), vocabulary(case["encoding"])
        self.assertEqual(known.count(text), case["count"])
        if "ids" in case:
            self.assertEqual(known.encode(text, len(case["ids"])), case["ids"])

    def test_rates(self) -> None:
        self.run_cases("rate", self.check_rate)

    def test_limits(self) -> None:
        self.run_cases("limits", self.check_rate)

    def check_rate(self, case: dict[str, Any]) -> None:
        now = 0.0
        shape = {"rate": case["rate"], "per": case["unit"] / 1000, "burst": case["burst"]}
        if "error" in case:
            with self.assertRaisesRegex(ValueError, case["error"]):
                RateLimiter(**shape)
            return
        limiter = RateLimiter(**shape, clock=lambda: now)
        for step in case["steps"]:
            now = step["at"] / 1000
            key = bytes_of(step["key"]).decode() if "key" in step else "key"
            if step["do"] == "charge":
                limit = limiter.charge(step["amount"], key)
            else:
                limit = getattr(limiter, step["do"])(key, step["amount"])
                self.assertEqual(limit.allowed, step["is"], step)
            self.assertEqual(limit.remaining, step.get("remaining", limit.remaining), step)
            if step.get("wait") == "never":
                self.assertEqual(limit.wait, math.inf)
            elif "wait" in step:
                self.assertAlmostEqual(limit.wait * 1000, step["wait"], 4)
            if "reset" in step:
                self.assertAlmostEqual(limit.reset * 1000, step["reset"], 4)

    def test_texts(self) -> None:
        self.run_cases("texts/cases", self.check_texts)

    def check_texts(self, case: dict[str, Any]) -> None:
        guards = Guards(
            [Guard([rule_of(rule) for rule in guard["rules"]], guard.get("rejects", False)) for guard in case["guards"]]
        )
        data = case["input"].encode()
        for cut in range(0, len(data) + 1, max(1, len(data) // 20)):
            rewriter = guards.rewriter(case["format"], case["message"])
            try:
                out = rewriter.push(data[:cut]) + rewriter.end(data[cut:])
            except GuardsError as error:
                self.assertEqual(str(error).split(" ")[-1], case["code"])
                continue
            rejected = rewriter.details.rejected_by
            self.assertEqual(rejected, case.get("rejectedBy"))
            if rejected is None:
                self.assertEqual(out.decode(), case["output"])


def route_of(route: dict[str, Any]) -> Route:
    path = route.get("path", {"type": "prefix", "value": "/"})
    headers, query = route.get("headers", []), route.get("query", [])
    return Route(
        route["id"],
        path["value"],
        path["type"],
        route.get("hostname", ""),
        route.get("method", ""),
        {each["name"]: each["value"] for each in headers},
        {each["name"]: each["value"] for each in query},
        frozenset(each["name"] for each in [*headers, *query] if each["type"] == "regex"),
        route.get("createdAt", 0),
        route.get("name", f"n/{route['id']}"),
        route.get("ruleIndex", 0),
        route.get("matchIndex", 0),
        route.get("scope", 0),
    )


def tearDownModule() -> None:
    print(json.dumps(CaseFiles.ran))


if __name__ == "__main__":
    unittest.main()

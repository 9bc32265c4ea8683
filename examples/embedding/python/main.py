"""python main.py core.wasm core.abi.json test/core: runs the case files, prints one JSON document."""

import json
import math
import secrets
import sys
from pathlib import Path

from core import Core, CoreError, Mask, Regex
from heads import read_head


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


def regex_problem(core: Core, case: dict) -> str | None:
    try:
        regex = Regex(core, case["pattern"])
    except CoreError as error:
        is_right = (error.code, error.offset) == (core.abi[case.get("code")], case["offset"])
        return None if is_right else str(error)
    if "code" in case:
        return "was taken"
    text = bytes.fromhex(case["hex"]) if "hex" in case else case["text"].encode()
    spans = regex.find_all(text)
    is_match, is_full = regex.is_match(text), regex.is_match(text, whole=True)
    regex.free()
    if spans != case["spans"]:
        return str(spans)
    if is_match != bool(spans) or is_full != case.get("full", is_full):
        return f"is_match {is_match}, full_match {is_full}"
    return None


BUILTINS = {
    "DETECT_SSN": "<SSN>",
    "DETECT_CARD": "<CREDIT_CARD>",
    "DETECT_PHONE": "<PHONE_NUMBER>",
    "DETECT_EMAIL": "<EMAIL_ADDRESS>",
    "DETECT_SIN": "<CA_SIN>",
}


def mask_problem(core: Core, case: dict) -> str | None:
    mask = Mask(core, BUILTINS)
    text = case["text"].encode()
    middle = len(text) // 2
    outcomes = [mask.apply(text), mask.apply(text[:middle], text[middle:])]
    mask.free()
    return None if outcomes == [case["masked"]] * 2 else str(outcomes)


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
    "regex/cases": regex_problem,
    "regex/masks": mask_problem,
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

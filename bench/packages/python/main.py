"""Measures the candidates of bench/packages/python.ts, in the texts of a folder."""

import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

from sluice_core import Builtin, Mask
from sluice_core.tokens import vocabulary

folder = Path(sys.argv[1])
rules = json.loads((folder / "rules.json").read_text())


def has_luhn(text: str) -> bool:
    total = 0
    for index, digit in enumerate(reversed([int(each) for each in text if each.isdigit()])):
        total += digit if index % 2 == 0 else digit * 2 - 9 if digit > 4 else digit * 2
    return total % 10 == 0


def through(compile: Callable) -> Callable[[str], str]:
    """Masks with an engine that substitutes as `re` does."""

    def checked(name: str) -> Callable:
        return lambda match: name if has_luhn(match[0]) else match[0]

    compiled = [(compile(source), checked(name) if is_checked else name) for source, name, is_checked in rules]

    def mask(text: str) -> str:
        for pattern, replacement in compiled:
            text = pattern.sub(replacement, text)
        return text

    return mask


def presidio() -> Callable[[str], str]:
    import tldextract
    from presidio_analyzer.predefined_recognizers import CreditCardRecognizer, EmailRecognizer, UsSsnRecognizer

    # The list of domains that is part of the package, instead of a download.
    tldextract.extract = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)
    recognizers = [EmailRecognizer(), CreditCardRecognizer(), UsSsnRecognizer()]

    def mask(text: str) -> str:
        found = [each for one in recognizers for each in one.analyze(text, one.supported_entities, None)]
        parts, end = [], 0
        for each in sorted(found, key=lambda each: each.start):
            if each.start >= end:
                parts += [text[end : each.start], f"<{each.entity_type}>"]
                end = each.end
        return "".join([*parts, text[end:]])

    return mask


def tiktoken() -> Callable[[str], int]:
    import tiktoken

    encoding = tiktoken.get_encoding("o200k_base")
    return lambda text: len(encoding.encode_ordinary(text))


def google_re2() -> Callable[[str], str]:
    import re2

    return through(re2.compile)


counters: dict[str, Callable] = {"sluice": lambda text: vocabulary("o200k_base").count(text.encode())}
masks: dict[str, Callable] = {
    "sluice": Mask([Builtin.SSN, Builtin.CREDIT_CARD, Builtin.PHONE_NUMBER, Builtin.EMAIL, Builtin.CA_SIN]),
    "sluice-of-presidio": Mask([Builtin.EMAIL, Builtin.CREDIT_CARD, Builtin.SSN]),
    "re": through(lambda source: re.compile(source, re.ASCII)),
}
for table, name, make in [(counters, "tiktoken", tiktoken), (masks, "google-re2", google_re2), (masks, "presidio", presidio)]:
    try:
        table[name] = make()
    except ImportError as error:
        print(f"{name}: {error}", file=sys.stderr)


def speed(work: Callable[[], object], size: int, least: float) -> float:
    """MB in a second of CPU time; repeats the work until it has taken `least` seconds."""
    begun, spent, times = time.process_time(), 0.0, 0
    while spent <= least:
        work()
        times += 1
        spent = time.process_time() - begun
    return size * times / spent / 1e6


def read(name: str) -> str:
    return (folder / name).read_text(encoding="utf-8")


print(*dict.fromkeys([*counters, *masks]), flush=True)
for line in sys.stdin:
    candidate, task, kind, turn = line.split()
    if task == "tokens":
        count, warm, text = counters[candidate], read(f"tokens.{kind}.0"), read(f"tokens.{kind}.{turn}")
        for _ in range(3):
            count(warm)
        print(speed(lambda: count(text), len(text.encode()), 0), count(text), flush=True)
    else:
        text = read(f"mask.{kind}")
        print(speed(lambda: masks[candidate](text), len(text), 0.05), 0, flush=True)

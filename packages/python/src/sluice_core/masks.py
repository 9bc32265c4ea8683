"""Regular expressions in linear time, and masks of whole and streamed texts."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from .kernel import Compiled, Core, CoreError, Kernel, abi, core_kernel, free_later, pattern_messages, utf8


class PatternError(ValueError):
    """A pattern cannot be compiled. ``offset`` is the position in the pattern in bytes."""

    def __init__(self, pattern: str, code: int, offset: int) -> None:
        self.pattern = pattern
        self.offset = offset
        self.name = CoreError(code, "").name
        reason = pattern_messages.get(code, self.name)
        character = len(utf8(pattern)[:offset].decode("utf-8", "replace")) + 1
        super().__init__(f"{pattern!r}: {reason} (at character {character})")


def compile_pattern(core: Core, pattern: str, flags: int = 0) -> int:
    source = utf8(pattern)
    with core.scratch():
        handle = core.call("regex_compile", core.put(source), len(source), flags)
        if handle < 0:
            raise PatternError(pattern, handle, core.call("last_error_offset"))
        return handle


class Pattern(Compiled):
    """A regular expression in RE2 syntax. Searching takes time linear in the text."""

    def __init__(self, pattern: str, *, ignore_case: bool = False) -> None:
        self.pattern = pattern
        flags = abi["REGEX_CASE_INSENSITIVE"] if ignore_case else 0
        super().__init__(
            core_kernel, "regex_free", lambda core: compile_pattern(core, pattern, flags)
        )

    def is_match(self, text: str | bytes) -> bool:
        """Whether the pattern matches anywhere in the text."""
        return self._matches("regex_is_match", text)

    def full_match(self, text: str | bytes) -> bool:
        """Whether the pattern matches the whole text."""
        return self._matches("regex_full_match", text)

    def find_all(self, text: str) -> list[tuple[int, int]]:
        """The matches from left to right, as positions of characters."""
        spans = self.find_all_bytes(utf8(text))
        if text.isascii():
            return spans
        positions = _character_positions(text)
        return [(positions[start], positions[end]) for start, end in spans]

    def find_all_bytes(self, text: bytes) -> list[tuple[int, int]]:
        """The matches from left to right, as positions of bytes."""
        # An empty text may have one empty match, and each byte may begin one.
        limit = len(text) + 1
        with self._kernel.lock:
            core, handle = self._ready()
            with core.scratch():
                out = core.alloc(limit * 8)
                address = core.put(text)
                count = core.checked(
                    "searching", "regex_find_all", handle, address, len(text), 0, out, limit
                )
                words = core.unpack(f"{count * 2}I", out)
        return list(zip(words[::2], words[1::2], strict=True))

    def _matches(self, function: str, text: str | bytes) -> bool:
        data = utf8(text) if isinstance(text, str) else text
        with self._kernel.lock:
            core, handle = self._ready()
            with core.scratch():
                return core.checked("matching", function, handle, core.put(data), len(data)) == 1


def _character_positions(text: str) -> dict[int, int]:
    """Positions of characters by those of their first bytes, the end included."""
    positions: dict[int, int] = {}
    byte = 0
    for index, character in enumerate(text):
        positions[byte] = index
        byte += len(utf8(character))
    positions[byte] = len(text)
    return positions


class Builtin(Enum):
    """Detectors of the core, with the replacements that the gateway uses."""

    EMAIL = ("DETECT_EMAIL", "<EMAIL_ADDRESS>")
    CREDIT_CARD = ("DETECT_CARD", "<CREDIT_CARD>")
    PHONE_NUMBER = ("DETECT_PHONE", "<PHONE_NUMBER>")
    SSN = ("DETECT_SSN", "<SSN>")
    CA_SIN = ("DETECT_SIN", "<CA_SIN>")
    IBAN = ("DETECT_IBAN", "<IBAN>")
    IP_ADDRESS = ("DETECT_IP", "<IP_ADDRESS>")
    API_KEY = ("DETECT_API_KEY", "<API_KEY>")
    PRIVATE_KEY = ("DETECT_PRIVATE_KEY", "<PRIVATE_KEY>")
    VAT_NUMBER = ("DETECT_VAT", "<VAT_NUMBER>")
    DE_TAX_ID = ("DETECT_TAX_ID", "<DE_TAX_ID>")
    FR_NIR = ("DETECT_NIR", "<FR_NIR>")
    ES_NIF = ("DETECT_NIF", "<ES_NIF>")
    IT_FISCAL_CODE = ("DETECT_FISCAL_CODE", "<IT_FISCAL_CODE>")
    NL_BSN = ("DETECT_BSN", "<NL_BSN>")
    PL_PESEL = ("DETECT_PESEL", "<PL_PESEL>")
    SE_PERSONNUMMER = ("DETECT_PERSONNUMMER", "<SE_PERSONNUMMER>")
    UK_NINO = ("DETECT_NINO", "<UK_NINO>")
    UK_NHS = ("DETECT_NHS", "<UK_NHS>")
    IN_AADHAAR = ("DETECT_AADHAAR", "<IN_AADHAAR>")
    BR_CPF = ("DETECT_CPF", "<BR_CPF>")
    BR_CNPJ = ("DETECT_CNPJ", "<BR_CNPJ>")
    SECRET = ("DETECT_SECRET", "<SECRET>")


@dataclass(frozen=True)
class Words:
    """Words and names, which match as a whole, in upper or lower case. At most 10,000 words of 256 bytes."""

    words: tuple[str, ...]

    def __init__(self, words: Iterable[str]) -> None:
        if isinstance(words, str):
            raise TypeError("words must be a list of words, not str")
        checked = tuple(words)
        for index, word in enumerate(checked):
            if not isinstance(word, str):
                raise TypeError(f"words[{index}] must be a str, not {type(word).__name__}")
        object.__setattr__(self, "words", checked)


@dataclass(frozen=True)
class Rule:
    """Replaces the matches of a pattern, of a builtin or of words with a text."""

    matches: str | Builtin | Words
    replacement: str | None = None
    ignore_case: bool = False

    @property
    def text(self) -> str:
        if self.replacement is not None:
            return self.replacement
        return self.matches.value[1] if isinstance(self.matches, Builtin) else "<masked>"


#: A rule, or what it matches.
RuleLike = Rule | Builtin | Words | str


def compile_rules(core: Core, rules: Sequence[RuleLike]) -> int:
    """Compiles rules to a mask set."""
    mask = core.checked("creating a mask", "mask_new")
    try:
        for each in rules:
            _add_rule(core, mask, each if isinstance(each, Rule) else Rule(each))
    except BaseException:
        core.call("mask_free", mask)
        raise
    return mask


def checked_rules(rules: Sequence[RuleLike]) -> tuple[RuleLike, ...]:
    """The rules. Raises TypeError if one is no rule; a text alone would be one rule for each character."""
    if isinstance(rules, (str, bytes, Rule, Builtin, Words)):
        raise TypeError(f"rules must be a list of rules, not {type(rules).__name__}")
    for index, each in enumerate(checked := tuple(rules)):
        rule = each if isinstance(each, Rule) else Rule(each)
        if not isinstance(rule.matches, (str, Builtin, Words)):
            raise TypeError(f"rules[{index}] must match a str, a Builtin or Words, not {type(rule.matches).__name__}")
        if not isinstance(rule.text, str):
            raise TypeError(f"rules[{index}].replacement must be a str, not {type(rule.text).__name__}")
    return checked


def _add_rule(core: Core, mask: int, rule: Rule) -> None:
    text = utf8(rule.text)
    with core.scratch():
        address = core.put(text)
        if isinstance(rule.matches, Builtin):
            builtin = abi[rule.matches.value[0]]
            core.checked("adding a rule", "mask_add_builtin", mask, builtin, address, len(text))
            return
        if isinstance(rule.matches, Words):
            # A line of the list is a word.
            words = utf8("\n".join(word.replace("\n", " ") for word in rule.matches.words))
            arguments = (mask, core.put(words), len(words), address, len(text))
            core.checked("adding a list of words", "mask_add_words", *arguments)
            return
        flags = abi["REGEX_CASE_INSENSITIVE"] if rule.ignore_case else 0
        regex = compile_pattern(core, rule.matches, flags)
        try:
            core.checked("adding a rule", "mask_add", mask, regex, address, len(text))
        finally:
            # The mask has its own reference to the pattern.
            core.call("regex_free", regex)


class Mask(Compiled):
    """Rules that are applied together. Of overlapping matches, the replacement of the first is used."""

    def __init__(self, rules: Sequence[RuleLike], *, kernel: Kernel = core_kernel) -> None:
        self.rules = checked_rules(rules)
        super().__init__(kernel, "mask_free", lambda core: compile_rules(core, self.rules))

    def __call__(self, text: str) -> str:
        """Masks a whole text."""
        try:
            data = text.encode()
        except UnicodeEncodeError:
            return self.mask_bytes(utf8(text)).decode("utf-8", "replace")
        masked = self.mask_bytes(data)
        return text if masked is data else masked.decode("utf-8", "replace")

    def mask_bytes(self, text: bytes) -> bytes:
        """Masks a whole text in UTF-8."""
        with self._kernel.lock:
            core, handle = self._ready()
            stream = core.checked("creating a stream", "stream_new", handle)
            try:
                size = push(core, stream, text, is_end=True)
                # Most texts have nothing to mask, so that none has to be made.
                if core.call("stream_count", stream) == 0:
                    return text
                return core.read(core.call("stream_output", stream) & 0xFFFFFFFF, size)
            finally:
                if not core.has_trapped:
                    core.call("stream_free", stream)

    @property
    def hold_bytes(self) -> int | None:
        """How many bytes a stream holds back at most; None if a match can be of any length."""
        with self._kernel.lock:
            core, handle = self._ready()
            hold = core.call("mask_hold", handle)
        return None if hold < 0 else hold


class MaskStream:
    """Masks a text that arrives in pieces. The result does not depend on where it was cut."""

    def __init__(self, mask: Mask) -> None:
        self._mask = mask
        self._kernel = mask._kernel
        with self._kernel.lock:
            self._core, handle = mask._ready()
            self._handle = self._core.checked("creating a stream", "stream_new", handle)
            free_later(self, self._kernel, self._core, "stream_free", self._handle)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        # The first half of a surrogate pair whose second half has not arrived.
        self._half = ""

    def push(self, piece: str) -> str:
        """Adds a piece. Returns what is ready."""
        text = self._half + piece
        has_half = "\ud800" <= text[-1:] <= "\udbff"
        self._half = text[-1:] if has_half else ""
        return self._decoder.decode(self.push_bytes(utf8(text[:-1] if has_half else text)))

    def end(self, piece: str = "") -> str:
        """Adds the last piece. Returns everything that remains."""
        return self._decoder.decode(self.push_bytes(utf8(self._half + piece), is_end=True), True)

    def push_bytes(self, piece: bytes, *, is_end: bool = False) -> bytes:
        """Adds a piece in UTF-8, which may end inside a character. Returns what is ready."""
        core = self._core
        with self._kernel.lock:
            size = push(core, self._handle, piece, is_end=is_end)
            return core.read(core.call("stream_output", self._handle) & 0xFFFFFFFF, size)


def push(core: Core, stream: int, piece: bytes, *, is_end: bool) -> int:
    """Adds a piece to a stream of the core. Returns the size of its output."""
    with core.scratch():
        address = core.put(piece)
        return core.checked("masking", "stream_push", stream, address, len(piece), int(is_end))

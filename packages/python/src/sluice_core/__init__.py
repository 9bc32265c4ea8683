"""The filter core of the Sluice gateway: masks, tokens, rate limits and routes."""

from .guards import Guard, Guards, GuardsError, MessageDetails, Rewriter
from .kernel import CoreError
from .limits import RateLimit, RateLimiter
from .log_filter import MaskFilter
from .masks import Builtin, Mask, MaskStream, Pattern, PatternError, Rule, Words
from .routes import Route, Router
from .tokens import TokenCounter, count_tokens

__all__ = [
    "Builtin",
    "CoreError",
    "Guard",
    "Guards",
    "GuardsError",
    "Mask",
    "MaskFilter",
    "MaskStream",
    "MessageDetails",
    "Pattern",
    "PatternError",
    "RateLimit",
    "RateLimiter",
    "Rewriter",
    "Route",
    "Router",
    "Rule",
    "TokenCounter",
    "Words",
    "count_tokens",
]

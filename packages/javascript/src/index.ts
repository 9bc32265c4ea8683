/** The filter core of the Sluice gateway: masks, tokens, rate limits, routes, and guards of messages to models. */
export { CoreError, CoreTrap } from '../../../src/engines/core/errors.ts'
export { defaultFormats, type GuardFetchOptions, guardFetch } from './guard-fetch.ts'
export {
  type Format,
  type Guard,
  Guards,
  GuardsError,
  type Kind,
  type MessageDetails,
  type Rewriter,
} from './guards.ts'
export { type RateLimit, RateLimiter, type RateLimiterOptions } from './limits.ts'
export {
  Builtin,
  type BuiltinName,
  type BuiltinRule,
  Mask,
  MaskStream,
  type PatternRule,
  type Rule,
  type WordsRule,
} from './masks.ts'
export { init, type Modules } from './modules.ts'
export { Pattern, PatternError, type Span } from './patterns.ts'
export {
  type MatchedRequest,
  type NamedMatch,
  type Route,
  Router,
  type RouterOptions,
} from './routes.ts'
export { type ChatMessage, countTokens, TokenCounter } from './tokens.ts'

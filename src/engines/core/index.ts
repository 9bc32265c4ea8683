/**
 * The host's side of core.wasm: heads, chunked bodies and routes in linear memory.
 *
 *     const core = createIoCore({ memoryPages: 256 })        // 16 MiB, never grows
 *     const head = core.createHead({ maxFields: 100 })
 *     const table = core.createRouteTable()
 *     table.addListener('*.example.com', 1)                    // hostname -> scope
 *     table.addRoute({ id: 7, scope: 1, hostname: 'a.example.com',
 *       path: { type: 'prefix', value: '/v1' }, createdAt: 0, name: 'ns/r', ruleIndex: 0, matchIndex: 0 })
 *
 *     const buffer = core.allocate(65536)                      // an address in core.bytes
 *     // ... a socket reads `length` bytes to it ...
 *     const code = core.parseRequestHead(head, buffer, buffer + length, resume, 65536)
 *     if (code === INCOMPLETE) resume = head.resume            // read more, call again with all bytes
 *     else if (code < 0) respond(statusOfRefusal(code))        // and close
 *     else {
 *       const route = table.match(head)                        // 7, NO_LISTENER or NO_ROUTE
 *       head.text(HEAD_PATH)                                   // a string, only when asked for
 *       head.end                                               // address where the body begins
 *     }
 *
 * Every call may throw CoreTrap, which is a bug of the core and makes the instance unusable. Count it,
 * respond with 500, create a new IoCore and copy the route tables to it with `copyTo`. CoreError means
 * lack of memory or a wrong argument.
 *
 * For rate limits by requests or tokens, in one thread or shared by several, see rate.ts.
 *
 * The memory of an IoCore is fixed, so its views never detach; that of a CoreInstance grows.
 */
export * from './abi.ts'
export * from './abi-texts.ts'
export { CoreError, CoreTrap, nameOfCode, statusOfRefusal } from './errors.ts'
export type { CoreExports } from './exports.ts'
export { type AssignedRequest, HeadRecord, type HeadSpan } from './head-record.ts'
export { CoreInstance } from './instance.ts'
export {
  ChunkedBody,
  createIoCore,
  type HeadOptions,
  IoCore,
  type IoCoreOptions,
} from './io-core.ts'
export { instantiateCore, loadCore } from './load.ts'
export type { CoreProblem } from './pattern-pool.ts'
export {
  createRateLimiter,
  createRateMemory,
  type RateBuckets,
  type RateLimit,
  type RateLimiter,
  type RateLimiterOptions,
  type RateTableOptions,
  type RateUnit,
  rateClock,
} from './rate.ts'
export {
  checkRegex,
  compileRegex,
  type Regex,
  type RegexOptions,
  type RegexOutcome,
  type RegexProblem,
  type Span,
} from './regex.ts'
export { type Builtin, builtinNames, builtinReplacements } from './regex-builtins.ts'
export { patternMemoryBytes } from './regex-host.ts'
export {
  compileMask,
  type Mask,
  type Masked,
  type MaskOutcome,
  type MaskRule,
  type MaskStream,
  patternReplacement,
} from './regex-mask.ts'
export type { NamedMatch, RouteSpec, ValueMatch } from './route-spec.ts'
export { RouteTable } from './route-table.ts'
export {
  compileGuards,
  type GuardRules,
  type Guards,
  type GuardsOutcome,
  type TextRewriter,
  type TextSpan,
  type TextsDetails,
  type TextsFormat,
  type TextsOptions,
  textMemoryBytes,
} from './texts.ts'
export {
  type CountOptions,
  countTokens,
  countTokensForModel,
  type EncodingName,
  encodeTokens,
  encodingForModel,
  loadEncoding,
  type ModelCount,
  type ModelEncoding,
} from './tokens.ts'

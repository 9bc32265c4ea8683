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
 *     if (code === INCOMPLETE) resume = head.resume            // read on, same bytes and more
 *     else if (code < 0) respond(statusOfRefusal(code))        // and close
 *     else {
 *       const route = table.match(head)                        // 7, NO_LISTENER or NO_ROUTE
 *       head.text(HEAD_PATH)                                   // a string, only when asked for
 *       head.end                                               // address where the body begins
 *     }
 *
 * createIoCore({ memoryPages, module? }): IoCore
 *   bytes: Buffer, words: Int32Array, floats: Float64Array     all memory; they never detach
 *   allocate(size): address      free(address)                 throws CoreError when the budget is spent
 *   createHead({ maxFields?, textBytes? }): HeadRecord         one a worker is enough: reads overwrite it
 *   createChunkedBody(): ChunkedBody
 *   createRouteTable(): RouteTable
 *   parseRequestHead(head, start, end, resume, maxBytes): 0 | INCOMPLETE | refusal
 *   parseResponseHead(head, start, end, resume, maxBytes): 0 | INCOMPLETE | refusal (status 502)
 *   parseTrailers(head, start, end): 0 | refusal
 *   errorOffset, untouchedBytes, trap
 *
 * HeadRecord (spans are addresses, end exclusive, -1 when absent)
 *   end, resume, status, minor, flags (FLAG_*), methodId (METHOD_*), scheme, port, contentLength
 *   fieldCount, hopCount, hostField, scope, route
 *   start(HEAD_METHOD | HEAD_TARGET | HEAD_PATH | HEAD_QUERY | HEAD_AUTHORITY | HEAD_HOST
 *     | HEAD_UPGRADE | HEAD_REASON), stop(...), text(...): string | undefined
 *   nameStart(i), nameEnd(i), valueStart(i), valueEnd(i), info(i), isHopByHop(i), name(i), value(i)
 *   assign({ method, authority, path, query, headers }): boolean   for HTTP/2 and edited requests;
 *     needs textBytes; false when it does not fit
 *
 * ChunkedBody: start(trailerLimit); read(start, end): CHUNKS_MORE | CHUNKS_END | CHUNKS_AGAIN | refusal;
 *   consumed, flags (BODY_HAS_*), spanCount, spanStart(i), spanEnd(i), trailerStart, trailerEnd
 *
 * RouteTable: addListener(hostname | undefined, scope), removeListener(hostname | undefined): boolean,
 *   addRoute(RouteSpec), removeRoute(id): boolean, match(head), matchListener(head),
 *   matchInScope(scope, head), copyTo(core), free(), size. Adding gives an Outcome.
 *
 * A trap is a bug of the core: every call may throw CoreTrap, after which the instance is lost. Count
 * it, answer 500, make a new IoCore and `copyTo` it. CoreError is want of memory or a wrong argument.
 *
 * Rate limits by requests and tokens, in one thread or exact over many: rate.ts.
 *
 * Other instances: new CoreInstance() grows as it needs.
 */
export * from './abi.ts'
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
export { patternMemoryBytes } from './regex-host.ts'
export {
  type Builtin,
  compileMask,
  type Mask,
  type Masked,
  type MaskOutcome,
  type MaskRule,
  type MaskStream,
} from './regex-mask.ts'
export type { NamedMatch, RouteSpec, ValueMatch } from './route-spec.ts'
export { RouteTable } from './route-table.ts'
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

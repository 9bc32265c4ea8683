// One request and its answer.
import { ERROR_MEMORY } from '../../abi'
import { append, appendAscii, appendByte, appendNumber, Bytes, clear, freeRecord, isAscii, newBytes, newRecord } from '../../texts/bytes'
import {
  TEXTS_ANSWER, TEXTS_EMBEDDINGS, TEXTS_HAS_INPUT, TEXTS_HAS_OUTPUT, TEXTS_HIDDEN, TEXTS_MALFORMED, TEXTS_MESSAGES, TEXTS_NOT_TEXT,
  TEXTS_REQUEST, TEXTS_STREAM, TEXTS_TOO_DEEP, TEXTS_TOO_LARGE,
} from '../../texts/abi'
import { texts_count, texts_fail, texts_free, texts_new, texts_output, texts_push } from '../../texts/exports'
import { guardCount, guardsOf } from '../../texts/chain'
import { rewriterOf } from '../../texts/rewriter'
import { Rewriter } from '../../texts/state'
import {
  addField, changeHeader, clearFields, CONTINUE, count, Fields, newFields, PAUSE, readBuffer, readHeader, removeHeader, replaceBuffer,
  REQUEST_BODY, REQUEST_HEADERS, respond, RESPONSE_BODY, RESPONSE_HEADERS, setHeader, setProperty,
} from './host'
import { admit, charge, Limit, remaining, resetSeconds, waitSeconds } from './limits'
import { metricFailed, metricInput, metricLimited, metricMasked, metricOutput, metricRejected, metricRequests } from './metrics'
import { plainPath } from './paths'
import { changeHeaders, Config, findRule, FORMAT_PASS, FORMAT_TOKEN_COUNT, formatOf, isNone, refusalOf, Rule } from './rules'

@unmanaged
export class Exchange {
  config: Config
  rule: Rule
  format: i32
  /** Rewriters of the request and of the answer: handles, or 0. */
  request: i32
  answer: i32
  /** The request was answered by this filter. */
  isAnswered: bool
  isHeld: bool
  isStream: bool
  hasFailed: bool
  isSuccess: bool
  isOver: bool
  /** The status of the limit with the fewest units left, which the client receives; limit 0 for none. */
  limit: i64
  remaining: i64
  reset: i64
}

const text: Bytes = changetype<Bytes>(memory.data(offsetof<Bytes>()))
const host: Bytes = changetype<Bytes>(memory.data(offsetof<Bytes>()))
const path: Bytes = changetype<Bytes>(memory.data(offsetof<Bytes>()))
const plain: Bytes = changetype<Bytes>(memory.data(offsetof<Bytes>()))
const method: Bytes = changetype<Bytes>(memory.data(offsetof<Bytes>()))
const body: Bytes = changetype<Bytes>(memory.data(offsetof<Bytes>()))
let fields: Fields = changetype<Fields>(0)

export function newExchange(config: Config): Exchange {
  const exchange = changetype<Exchange>(newRecord(offsetof<Exchange>()))
  exchange.config = config
  if (!isNone(config)) config.users++
  if (isNone(fields)) fields = newFields()
  return exchange
}

// --- answers of the filter -------------------------------------------------------------------------

function answer(exchange: Exchange, status: i32, details: string, type: string): i32 {
  clear(text)
  appendAscii(text, type)
  addField(fields, 'content-type', text)
  exchange.isAnswered = true
  respond(status, details, body, fields)
  return PAUSE
}

/** Answers with an error in the format of the client. */
function answerError(exchange: Exchange, status: i32, message: string, details: string): i32 {
  clearFields(fields)
  clear(body)
  clear(text)
  appendAscii(text, message)
  const isMessages = exchange.format == TEXTS_MESSAGES || exchange.format == FORMAT_TOKEN_COUNT
  const format = isMessages ? TEXTS_MESSAGES : TEXTS_EMBEDDINGS
  const writer = texts_new(0, format, TEXTS_ANSWER, 1)
  if (writer > 0) {
    const length = texts_fail(writer, status, text.data, text.used)
    append(body, texts_output(writer), length)
    texts_free(writer)
  }
  if (status >= 500) count(metricFailed, 1)
  return answer(exchange, status, details, 'application/json')
}

function addNumber(name: string, value: i64): void {
  clear(text)
  appendNumber(text, max<i64>(value, 0))
  addField(fields, name, text)
}

function answerLimited(exchange: Exchange, limit: Limit): i32 {
  clearFields(fields)
  clear(body)
  appendAscii(body, 'rate limit exceeded')
  addNumber('x-ratelimit-limit', limit.capacity)
  addNumber('x-ratelimit-remaining', remaining)
  addNumber('x-ratelimit-reset', resetSeconds)
  addNumber('retry-after', waitSeconds)
  count(metricLimited, 1)
  return answer(exchange, 429, 'sluice_rate_limit', 'text/plain')
}

// --- request -----------------------------------------------------------------------------------

function readTarget(): void {
  readHeader(REQUEST_HEADERS, ':path', path)
  for (let i = 0; i < path.used; i++) if (load<u8>(path.data + i) == 63) path.used = i
  readHeader(REQUEST_HEADERS, ':method', method)
  readHeader(REQUEST_HEADERS, ':authority', host)
  let end = host.used
  while (end > 0 && <u32>load<u8>(host.data + end - 1) - 48 < 10) end--
  if (end > 0 && end < host.used && load<u8>(host.data + end - 1) == 58) host.used = end - 1
  if (host.used > 0 && load<u8>(host.data + host.used - 1) == 46) host.used--
  for (let i = 0; i < host.used; i++) {
    const byte = <u32>load<u8>(host.data + i)
    if (byte - 65 < 26) store<u8>(host.data + i, byte | 32)
  }
}

export function onRequestHeaders(exchange: Exchange, isEnd: bool): i32 {
  if (isNone(exchange.config)) return answerError(exchange, 500, 'the filter has no configuration', 'sluice_unconfigured')
  readTarget()
  if (!plainPath(path.data, path.used, plain)) {
    return answerError(exchange, 400, 'the path has dot segments or control characters; send it without them', 'sluice_path')
  }
  let rule = findRule(exchange.config, host, path, method, false)
  const other = findRule(exchange.config, host, plain, method, true)
  if (isNone(rule)) rule = other
  // An upstream that reads the path in another way than this filter must not get around a rule.
  if (rule != other && !isNone(other)) {
    return answerError(exchange, 400, 'the path can be read in more than one way', 'sluice_path')
  }
  exchange.rule = rule
  if (isNone(rule)) return CONTINUE
  count(metricRequests, 1)
  if (rule.isUnusable) return answerError(exchange, 500, 'the policies of this route cannot be enforced', 'sluice_unusable')
  if (!takeLimits(exchange)) return PAUSE
  changeHeaders(REQUEST_HEADERS, rule.requestChanges)
  if (!rule.isModel) return CONTINUE
  exchange.format = formatOf(rule, plain)
  if (exchange.format == FORMAT_PASS) return CONTINUE
  // Compressed answers cannot be read.
  removeHeader(REQUEST_HEADERS, 'accept-encoding')
  return isEnd ? CONTINUE : beginRequest(exchange)
}

/** Charges a request to the limits, in order; false if one refuses and the request was answered. */
function takeLimits(exchange: Exchange): bool {
  for (let limit = exchange.rule.limits; !isNone(limit); limit = limit.next) {
    if (!admit(limit, 1, !limit.countsTokens)) {
      answerLimited(exchange, limit)
      return false
    }
    if (limit.countsTokens || (exchange.limit > 0 && remaining >= exchange.remaining)) continue
    exchange.limit = limit.capacity
    exchange.remaining = remaining
    exchange.reset = resetSeconds
  }
  return true
}

/** The format of texts: token counts have that of messages. */
function textFormat(exchange: Exchange): i32 {
  return exchange.format == FORMAT_TOKEN_COUNT ? TEXTS_MESSAGES : exchange.format
}

function isCoded(map: i32): bool {
  return readHeader(map, 'content-encoding', text) && text.used > 0 && !isAscii(text.data, text.used, 'identity')
}

function beginRequest(exchange: Exchange): i32 {
  const guards = exchange.rule.requestGuards
  if (guards > 0 && isCoded(REQUEST_HEADERS)) {
    return answerError(exchange, 415, 'a request with a content-encoding cannot be guarded', 'sluice_content_encoding')
  }
  exchange.request = texts_new(guards, textFormat(exchange), TEXTS_REQUEST, exchange.config.maxBody)
  if (exchange.request <= 0) return answerError(exchange, 500, 'the filter has no memory left', 'sluice_memory')
  exchange.isHeld = guards > 0
  if (!exchange.isHeld) return CONTINUE
  removeHeader(REQUEST_HEADERS, 'content-length')
  return exchange.config.holdsHeaders ? PAUSE : CONTINUE
}

function refuseRequest(exchange: Exchange, code: i32): i32 {
  if (code == TEXTS_MALFORMED) return answerError(exchange, 400, 'the body is not a JSON object', 'sluice_malformed')
  if (code == TEXTS_TOO_DEEP) return answerError(exchange, 400, 'the body has too many levels', 'sluice_too_deep')
  if (code == TEXTS_TOO_LARGE) return answerError(exchange, 413, 'the body is too large', 'sluice_too_large')
  if (code == TEXTS_HIDDEN) {
    return answerError(exchange, 400, 'a name occurs twice, or in another case than it must have', 'sluice_hidden')
  }
  if (code == TEXTS_NOT_TEXT) return answerError(exchange, 400, 'only texts can be guarded', 'sluice_not_text')
  return answerError(exchange, 500, 'the guards cannot judge the request', 'sluice_guard_failed')
}

export function onRequestBody(exchange: Exchange, size: i32, isEnd: bool): i32 {
  if (exchange.request <= 0 || exchange.isAnswered) return exchange.isAnswered ? PAUSE : CONTINUE
  if (!readBuffer(REQUEST_BODY, size, body)) return refuseRequest(exchange, ERROR_MEMORY)
  reserveSlack(body)
  const code = texts_push(exchange.request, body.data, body.used, isEnd ? 1 : 0)
  if (!exchange.isHeld) return CONTINUE
  if (code < 0) return refuseRequest(exchange, code)
  if (!isEnd) {
    replaceBuffer(REQUEST_BODY, size, 0, 0)
    return PAUSE
  }
  const rejected = rewriterOf(exchange.request).rejected
  if (rejected >= 0) return reject(exchange, rejected)
  noteMasked(exchange.request, exchange.rule.requestGuards)
  if (exchange.config.holdsHeaders) {
    clear(text)
    appendNumber(text, code)
    setHeader(REQUEST_HEADERS, 'content-length', text)
  }
  if (replaceBuffer(REQUEST_BODY, size, texts_output(exchange.request), code)) return CONTINUE
  return refuseRequest(exchange, ERROR_MEMORY)
}

/** Gives the buffer an address even if it is empty. */
function reserveSlack(bytes: Bytes): void {
  if (bytes.capacity > 0) return
  appendByte(bytes, 0)
  bytes.used = 0
}

export function onRequestTrailers(exchange: Exchange): i32 {
  if (exchange.request <= 0 || !exchange.isHeld || exchange.isAnswered) return exchange.isAnswered ? PAUSE : CONTINUE
  return answerError(exchange, 400, 'a request with trailers cannot be guarded', 'sluice_trailers')
}

function reject(exchange: Exchange, guard: i32): i32 {
  const refusal = refusalOf(exchange.rule, guard)
  clearFields(fields)
  clear(body)
  append(body, refusal.message.data, refusal.message.used)
  count(metricRejected, 1)
  clear(text)
  appendAscii(text, 'Reject')
  setProperty('sluice.guard', text)
  return answer(exchange, refusal.status, 'sluice_guardrail', 'text/plain')
}

function noteMasked(rewriter: i32, guards: i32): void {
  let made = 0
  for (let guard = 0; guard < guardCount(guardsOf(guards)); guard++) made += max(0, texts_count(rewriter, guard))
  if (made == 0) return
  count(metricMasked, made)
  clear(text)
  appendAscii(text, 'Mask')
  setProperty('sluice.guard', text)
}

// --- answer ------------------------------------------------------------------------------------

export function onResponseHeaders(exchange: Exchange, isEnd: bool): i32 {
  const rule = exchange.rule
  if (isNone(rule)) return CONTINUE
  changeHeaders(RESPONSE_HEADERS, rule.responseChanges)
  if (exchange.isAnswered) return CONTINUE
  writeLimit(exchange)
  readHeader(RESPONSE_HEADERS, ':status', text)
  exchange.isSuccess = text.used == 3 && load<u8>(text.data) == 50
  const isRead = rule.isModel && exchange.format != FORMAT_PASS && exchange.format != FORMAT_TOKEN_COUNT
  return !isRead || isEnd || !exchange.isSuccess ? CONTINUE : beginAnswer(exchange)
}

function writeLimit(exchange: Exchange): void {
  if (exchange.limit == 0) return
  setNumber('x-ratelimit-limit', exchange.limit)
  setNumber('x-ratelimit-remaining', exchange.remaining)
  setNumber('x-ratelimit-reset', exchange.reset)
}

function setNumber(name: string, value: i64): void {
  clear(text)
  appendNumber(text, max<i64>(value, 0))
  setHeader(RESPONSE_HEADERS, name, text)
}

function isEventStream(): bool {
  return readHeader(RESPONSE_HEADERS, 'content-type', text) && text.used >= 17 && isAscii(text.data, 17, 'text/event-stream')
}

function beginAnswer(exchange: Exchange): i32 {
  const guards = exchange.rule.responseGuards
  exchange.isStream = isEventStream()
  exchange.isHeld = guards > 0
  exchange.hasFailed = guards > 0 && isCoded(RESPONSE_HEADERS)
  if (!exchange.hasFailed) {
    exchange.answer = texts_new(guards, exchange.format, exchange.isStream ? TEXTS_STREAM : TEXTS_ANSWER, exchange.config.maxBody)
    exchange.hasFailed = exchange.answer <= 0
  }
  if (!exchange.isHeld) return CONTINUE
  removeHeader(RESPONSE_HEADERS, 'content-length')
  removeHeader(RESPONSE_HEADERS, 'etag')
  removeHeader(RESPONSE_HEADERS, 'content-md5')
  removeHeader(RESPONSE_HEADERS, 'digest')
  removeHeader(RESPONSE_HEADERS, 'content-digest')
  if (exchange.hasFailed) exchange.isStream = false
  return exchange.isStream || !exchange.config.holdsHeaders ? CONTINUE : PAUSE
}

export function onResponseBody(exchange: Exchange, size: i32, isEnd: bool): i32 {
  if (isNone(exchange.rule) || exchange.isAnswered || exchange.isOver) return CONTINUE
  if (!exchange.isHeld) {
    if (exchange.answer > 0 && readBuffer(RESPONSE_BODY, size, body)) push(exchange, isEnd)
    if (isEnd) finish(exchange)
    return CONTINUE
  }
  if (exchange.isSuccess && (exchange.answer > 0 || exchange.hasFailed)) return rewriteAnswer(exchange, size, isEnd)
  return CONTINUE
}

function push(exchange: Exchange, isEnd: bool): i32 {
  reserveSlack(body)
  return texts_push(exchange.answer, body.data, body.used, isEnd ? 1 : 0)
}

function rewriteAnswer(exchange: Exchange, size: i32, isEnd: bool): i32 {
  let length = 0
  if (!exchange.hasFailed) {
    length = readBuffer(RESPONSE_BODY, size, body) ? push(exchange, isEnd) : ERROR_MEMORY
    if (length < 0) return failAnswer(exchange, size, isEnd)
    if (isEnd) {
      noteMasked(exchange.answer, exchange.rule.responseGuards)
      finish(exchange)
    }
  } else if (isEnd && !exchange.isStream) return failAnswer(exchange, size, isEnd)
  if (!exchange.isStream && isEnd && exchange.config.holdsHeaders) setNumber('content-length', length)
  const isReplaced = replaceBuffer(RESPONSE_BODY, size, exchange.hasFailed ? 0 : texts_output(exchange.answer), length)
  if (!isReplaced) replaceBuffer(RESPONSE_BODY, size, 0, 0)
  return exchange.isStream || isEnd ? CONTINUE : PAUSE
}

/**
 * Ends an answer that cannot be judged: a stream with the error event of its format, anything else with 500, or with the
 * error alone if the headers are gone.
 */
function failAnswer(exchange: Exchange, size: i32, isEnd: bool): i32 {
  if (!exchange.hasFailed) count(metricFailed, 1)
  exchange.hasFailed = true
  clear(text)
  appendAscii(text, 'the guards cannot judge the answer')
  if (exchange.answer <= 0) exchange.answer = texts_new(0, exchange.format, TEXTS_ANSWER, 1)
  if (!exchange.isStream && !isEnd) {
    replaceBuffer(RESPONSE_BODY, size, 0, 0)
    return PAUSE
  }
  const length = exchange.answer > 0 ? texts_fail(exchange.answer, exchange.isStream ? 502 : 500, text.data, text.used) : 0
  if (!exchange.isStream && exchange.config.holdsHeaders) {
    clear(text)
    appendAscii(text, '500')
    setHeader(RESPONSE_HEADERS, ':status', text)
    clear(text)
    appendAscii(text, 'application/json')
    setHeader(RESPONSE_HEADERS, 'content-type', text)
    removeHeader(RESPONSE_HEADERS, 'content-encoding')
    setNumber('content-length', max(length, 0))
  }
  replaceBuffer(RESPONSE_BODY, size, texts_output(exchange.answer), max(length, 0))
  if (isEnd) finish(exchange)
  return CONTINUE
}

export function onResponseTrailers(exchange: Exchange): i32 {
  if (isNone(exchange.rule) || !exchange.isHeld || exchange.isStream || exchange.isOver || exchange.answer <= 0) return CONTINUE
  // The body is withheld, and cannot be put back before trailers.
  count(metricFailed, 1)
  return answerError(exchange, 500, 'an answer with trailers cannot be guarded', 'sluice_trailers')
}

// --- usage -------------------------------------------------------------------------------------

/** Estimated bytes of text in a token, if the answer reports no usage. */
const BYTES_OF_TOKEN: f64 = 4

/** Charges tokens and tells access logs about the exchange, once. */
export function finish(exchange: Exchange): void {
  if (exchange.isOver || isNone(exchange.rule)) return
  exchange.isOver = true
  if (!exchange.rule.isModel || exchange.isAnswered || exchange.format == FORMAT_TOKEN_COUNT) return
  const reader = exchange.answer > 0 ? rewriterOf(exchange.answer) : changetype<Rewriter>(0)
  const asked = exchange.request > 0 ? rewriterOf(exchange.request) : changetype<Rewriter>(0)
  noteModel(reader, asked)
  if (!exchange.isSuccess) return
  const isReported = !isNone(reader) && (reader.flags & (TEXTS_HAS_INPUT | TEXTS_HAS_OUTPUT)) != 0
  let input: f64 = 0
  let output: f64 = 0
  if (isReported) {
    input = reader.inputTokens + reader.cachedTokens
    output = reader.outputTokens + ceil(reader.uncounted / BYTES_OF_TOKEN)
  } else {
    input = isNone(asked) ? 0 : ceil(asked.textBytes / BYTES_OF_TOKEN)
    output = isNone(reader) ? 0 : ceil(reader.textBytes / BYTES_OF_TOKEN)
  }
  count(metricInput, <i64>input)
  count(metricOutput, <i64>output)
  noteNumber('sluice.input_tokens', <i64>input)
  noteNumber('sluice.output_tokens', <i64>output)
  for (let limit = exchange.rule.limits; !isNone(limit); limit = limit.next) {
    if (limit.countsTokens && !charge(limit, <i64>(input + output))) count(metricFailed, 1)
  }
}

function noteModel(reader: Rewriter, asked: Rewriter): void {
  const isAnswered = !isNone(reader) && reader.model.used > 0
  if (isAnswered) setProperty('sluice.model', reader.model)
  else if (!isNone(asked) && asked.model.used > 0) setProperty('sluice.model', asked.model)
}

function noteNumber(name: string, value: i64): void {
  clear(text)
  appendNumber(text, value)
  setProperty(name, text)
}

export function freeExchange(exchange: Exchange): void {
  if (exchange.request > 0) texts_free(exchange.request)
  if (exchange.answer > 0) texts_free(exchange.answer)
  freeRecord(changetype<usize>(exchange))
}

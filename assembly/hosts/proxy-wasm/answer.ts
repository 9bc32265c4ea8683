// The answer of the upstream: its guards, and what it shows of the limits.
import { ERROR_MEMORY } from '../../abi'
import { TEXTS_ANSWER, TEXTS_ERROR, TEXTS_STREAM } from '../../texts/abi'
import { appendAscii, appendNumber, Bytes, clear, isAscii } from '../../texts/bytes'
import { texts_fail, texts_new, texts_output, texts_push } from '../../texts/exports'
import { body, Exchange, isCoded, noteMasked, reserveSlack, text } from './exchange'
import {
  CONTINUE, count, PAUSE, readBuffer, readHeader, removeHeader, replaceBuffer, RESPONSE_BODY, RESPONSE_HEADERS, setHeader,
} from './host'
import { replyError } from './local-reply'
import { metricFailed } from './metrics'
import { changeHeaders, FORMAT_PASS, isNone } from './rules'
import { finish } from './usage'

export function onResponseHeaders(exchange: Exchange, isEnd: bool): i32 {
  const rule = exchange.rule
  if (isNone(rule)) return CONTINUE
  changeHeaders(RESPONSE_HEADERS, rule.responseChanges)
  if (exchange.isAnswered) return CONTINUE
  writeLimit(exchange)
  readHeader(RESPONSE_HEADERS, ':status', text)
  exchange.status = statusIn(text)
  exchange.isSuccess = exchange.status / 100 == 2
  if (!rule.isModel || exchange.format == FORMAT_PASS || isEnd) return CONTINUE
  // Errors may quote texts, so guards read them too.
  return exchange.isSuccess || rule.responseGuards > 0 ? beginAnswer(exchange) : CONTINUE
}

/** The status, 0 if it is no number of three digits. */
function statusIn(text: Bytes): i32 {
  let status = 0
  for (let i = 0; i < text.used; i++) {
    const digit = <u32>load<u8>(text.data + i) - 48
    if (digit > 9 || text.used != 3) return 0
    status = status * 10 + <i32>digit
  }
  return status
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
  exchange.isStream = exchange.isSuccess && isEventStream()
  exchange.isAnswerHeld = guards > 0
  exchange.hasFailed = guards > 0 && isCoded(RESPONSE_HEADERS)
  if (!exchange.hasFailed) {
    const kind = !exchange.isSuccess ? TEXTS_ERROR : exchange.isStream ? TEXTS_STREAM : TEXTS_ANSWER
    exchange.answer = texts_new(guards, exchange.format, kind, exchange.config.maxBody)
    exchange.hasFailed = exchange.answer <= 0
  }
  if (!exchange.isAnswerHeld) return CONTINUE
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
  if (!exchange.isAnswerHeld) {
    if (exchange.answer > 0 && readBuffer(RESPONSE_BODY, size, body)) push(exchange, isEnd)
    if (isEnd) finish(exchange)
    return CONTINUE
  }
  if (exchange.answer > 0 || exchange.hasFailed) return rewriteAnswer(exchange, size, isEnd)
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
 * Ends an answer that cannot be judged: a stream with the error event of its format, an error with its status, anything
 * else with 500, or with the error alone if the headers are gone.
 */
function failAnswer(exchange: Exchange, size: i32, isEnd: bool): i32 {
  if (!exchange.hasFailed) count(metricFailed, 1)
  exchange.hasFailed = true
  clear(text)
  appendAscii(text, 'the guards cannot judge the answer')
  const status = exchange.isSuccess ? 500 : max(exchange.status, 400)
  if (exchange.answer <= 0) exchange.answer = texts_new(0, exchange.format, TEXTS_ANSWER, 1)
  if (!exchange.isStream && !isEnd) {
    replaceBuffer(RESPONSE_BODY, size, 0, 0)
    return PAUSE
  }
  const length = exchange.answer > 0 ? texts_fail(exchange.answer, exchange.isStream ? 502 : status, text.data, text.used) : 0
  if (!exchange.isStream && exchange.config.holdsHeaders) {
    clear(text)
    appendNumber(text, status)
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
  if (isNone(exchange.rule) || !exchange.isAnswerHeld || exchange.isStream || exchange.isOver || exchange.answer <= 0) return CONTINUE
  // The body is withheld, and cannot be put back before trailers.
  count(metricFailed, 1)
  return replyError(exchange, 500, 'an answer with trailers cannot be guarded', 'sluice_trailers')
}

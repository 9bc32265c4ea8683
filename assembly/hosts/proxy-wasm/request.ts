// The request: its rule, limits and guards.
import { ERROR_MEMORY } from '../../abi'
import {
  TEXTS_COMPLETIONS, TEXTS_HIDDEN, TEXTS_MALFORMED, TEXTS_NOT_TEXT, TEXTS_OTHER_FORMAT, TEXTS_REQUEST, TEXTS_TOO_DEEP,
  TEXTS_TOO_LARGE,
} from '../../texts/abi'
import { appendNumber, Bytes, clear } from '../../texts/bytes'
import { texts_new, texts_output, texts_push } from '../../texts/exports'
import { rewriterOf } from '../../texts/rewriter'
import { body, Exchange, isCoded, noteMasked, reserveSlack, text } from './exchange'
import {
  CONTINUE, count, PAUSE, readBuffer, readHeader, removeHeader, replaceBuffer, REQUEST_BODY, REQUEST_HEADERS, setHeader,
} from './host'
import { admit, remaining, resetSeconds } from './limits'
import { replyError, replyLimited, replyRejected, replyUnmapped } from './local-reply'
import { metricRequests } from './metrics'
import { plainPath } from './paths'
import { changeHeaders, findRule, FORMAT_PASS, FORMAT_UNMAPPED, formatOf, isNone, Rule } from './rules'

const host: Bytes = changetype<Bytes>(memory.data(offsetof<Bytes>()))
const path: Bytes = changetype<Bytes>(memory.data(offsetof<Bytes>()))
const plain: Bytes = changetype<Bytes>(memory.data(offsetof<Bytes>()))
const method: Bytes = changetype<Bytes>(memory.data(offsetof<Bytes>()))

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
  if (isNone(exchange.config)) return replyError(exchange, 500, 'the filter has no configuration', 'sluice_unconfigured')
  readTarget()
  if (!plainPath(path.data, path.used, plain)) {
    return replyError(exchange, 400, 'the path has dot segments or control characters; send it without them', 'sluice_path')
  }
  let rule = findRule(exchange.config, host, path, method, false)
  const other = findRule(exchange.config, host, plain, method, true)
  if (isNone(rule)) rule = other
  // An upstream that reads the path in another way than this filter must not get around a rule.
  if (rule != other && !isNone(other)) {
    return replyError(exchange, 400, 'the path can be read in more than one way', 'sluice_path')
  }
  exchange.rule = rule
  if (isNone(rule)) return CONTINUE
  count(metricRequests, 1)
  if (rule.isUnusable) return replyError(exchange, 500, 'the policies of this route cannot be enforced', 'sluice_unusable')
  if (!takeLimits(exchange)) return PAUSE
  changeHeaders(REQUEST_HEADERS, rule.requestChanges)
  if (!rule.isModel) return CONTINUE
  exchange.format = formatOf(rule, plain)
  if (exchange.format == FORMAT_UNMAPPED) {
    // Another format has its texts in members that the guards do not read.
    if (isGuarded(rule)) return replyUnmapped(exchange, path, plain)
    exchange.format = TEXTS_COMPLETIONS
  }
  if (exchange.format == FORMAT_PASS) return CONTINUE
  // Compressed answers cannot be read.
  removeHeader(REQUEST_HEADERS, 'accept-encoding')
  return isEnd ? CONTINUE : beginRequest(exchange)
}

/** Charges a request to the limits, in order; false if one refuses and the request was answered. */
function takeLimits(exchange: Exchange): bool {
  for (let limit = exchange.rule.limits; !isNone(limit); limit = limit.next) {
    if (!admit(limit, 1, !limit.countsTokens)) {
      replyLimited(exchange, limit)
      return false
    }
    if (limit.countsTokens || (exchange.limit > 0 && remaining >= exchange.remaining)) continue
    exchange.limit = limit.capacity
    exchange.remaining = remaining
    exchange.reset = resetSeconds
  }
  return true
}

function isGuarded(rule: Rule): bool {
  return rule.requestGuards > 0 || rule.responseGuards > 0
}

function beginRequest(exchange: Exchange): i32 {
  const guards = exchange.rule.requestGuards
  if (guards > 0 && isCoded(REQUEST_HEADERS)) {
    return replyError(exchange, 415, 'a request with a content-encoding cannot be guarded', 'sluice_content_encoding')
  }
  exchange.request = texts_new(guards, exchange.format, TEXTS_REQUEST, exchange.config.maxBody)
  if (exchange.request <= 0) return replyError(exchange, 500, 'the filter has no memory left', 'sluice_memory')
  exchange.isRequestHeld = guards > 0
  if (!exchange.isRequestHeld) return CONTINUE
  removeHeader(REQUEST_HEADERS, 'content-length')
  return exchange.config.holdsHeaders ? PAUSE : CONTINUE
}

function refuseRequest(exchange: Exchange, code: i32): i32 {
  if (code == TEXTS_MALFORMED) return replyError(exchange, 400, 'the body is not a JSON object', 'sluice_malformed')
  if (code == TEXTS_TOO_DEEP) return replyError(exchange, 400, 'the body has too many levels', 'sluice_too_deep')
  if (code == TEXTS_TOO_LARGE) return replyError(exchange, 413, 'the body is too large', 'sluice_too_large')
  if (code == TEXTS_HIDDEN) {
    return replyError(exchange, 400, 'a name occurs twice, or in another case than it must have', 'sluice_hidden')
  }
  if (code == TEXTS_OTHER_FORMAT) {
    return replyError(exchange, 400, 'the body is not a request of the type that ai.routes maps to this path', 'sluice_other_format')
  }
  if (code == TEXTS_NOT_TEXT) return replyError(exchange, 400, 'only texts can be guarded', 'sluice_not_text')
  return replyError(exchange, 500, 'the guards cannot judge the request', 'sluice_guard_failed')
}

export function onRequestBody(exchange: Exchange, size: i32, isEnd: bool): i32 {
  if (exchange.request <= 0 || exchange.isAnswered) return exchange.isAnswered ? PAUSE : CONTINUE
  if (!readBuffer(REQUEST_BODY, size, body)) return refuseRequest(exchange, ERROR_MEMORY)
  reserveSlack(body)
  const code = texts_push(exchange.request, body.data, body.used, isEnd ? 1 : 0)
  if (!exchange.isRequestHeld) return CONTINUE
  if (code < 0) return refuseRequest(exchange, code)
  if (!isEnd) {
    replaceBuffer(REQUEST_BODY, size, 0, 0)
    return PAUSE
  }
  const rejected = rewriterOf(exchange.request).rejected
  if (rejected >= 0) return replyRejected(exchange, rejected)
  noteMasked(exchange.request, exchange.rule.requestGuards)
  if (exchange.config.holdsHeaders) {
    clear(text)
    appendNumber(text, code)
    setHeader(REQUEST_HEADERS, 'content-length', text)
  }
  if (replaceBuffer(REQUEST_BODY, size, texts_output(exchange.request), code)) return CONTINUE
  return refuseRequest(exchange, ERROR_MEMORY)
}

export function onRequestTrailers(exchange: Exchange): i32 {
  if (exchange.request <= 0 || !exchange.isRequestHeld || exchange.isAnswered) return exchange.isAnswered ? PAUSE : CONTINUE
  return replyError(exchange, 400, 'a request with trailers cannot be guarded', 'sluice_trailers')
}

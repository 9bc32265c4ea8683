// Replies that the filter sends instead of the upstream.
import { append, appendAscii, appendNumber, Bytes, clear } from '../../texts/bytes'
import { TEXTS_ANSWER, TEXTS_EMBEDDINGS } from '../../texts/abi'
import { texts_fail, texts_free, texts_new, texts_output } from '../../texts/exports'
import { body, Exchange, fields, text } from './exchange'
import { addField, clearFields, count, PAUSE, respond, setProperty } from './host'
import { Limit, remaining, resetSeconds, waitSeconds } from './limits'
import { metricFailed, metricLimited, metricRejected } from './metrics'
import { defaultFormatOf, refusalOf } from './rules'

function reply(exchange: Exchange, status: i32, details: string, type: string): i32 {
  clear(text)
  appendAscii(text, type)
  addField(fields, 'content-type', text)
  exchange.isAnswered = true
  respond(status, details, body, fields)
  return PAUSE
}

/** Answers with an error in the format of the client. */
export function replyError(exchange: Exchange, status: i32, message: string, details: string): i32 {
  clear(text)
  appendAscii(text, message)
  return replyText(exchange, status, details)
}

/** Refuses a request to a path that no type is mapped to. */
export function replyUnmapped(exchange: Exchange, path: Bytes, plain: Bytes): i32 {
  clear(text)
  let isPlain = true
  for (let i = 0; i < path.used && isPlain; i++) isPlain = <u32>load<u8>(path.data + i) - 32 < 95
  if (isPlain) append(text, path.data, min(path.used, PATH_SHOWN))
  else appendAscii(text, 'the path')
  appendAscii(text, ' is not mapped to a type that guards can read: set ai.routes')
  exchange.format = defaultFormatOf(plain)
  return replyText(exchange, 400, 'sluice_unmapped')
}

/** Bytes of a path that an error repeats at most. */
const PATH_SHOWN: i32 = 200

/** Replies with an error whose message is in `text`. */
function replyText(exchange: Exchange, status: i32, details: string): i32 {
  clearFields(fields)
  clear(body)
  const writer = texts_new(0, exchange.format > 0 ? exchange.format : TEXTS_EMBEDDINGS, TEXTS_ANSWER, 1)
  if (writer > 0) {
    const length = texts_fail(writer, status, text.data, text.used)
    append(body, texts_output(writer), length)
    texts_free(writer)
  }
  if (status >= 500) count(metricFailed, 1)
  return reply(exchange, status, details, 'application/json')
}

function addNumber(name: string, value: i64): void {
  clear(text)
  appendNumber(text, max<i64>(value, 0))
  addField(fields, name, text)
}

export function replyLimited(exchange: Exchange, limit: Limit): i32 {
  clearFields(fields)
  clear(body)
  appendAscii(body, 'rate limit exceeded')
  addNumber('x-ratelimit-limit', limit.capacity)
  addNumber('x-ratelimit-remaining', remaining)
  addNumber('x-ratelimit-reset', resetSeconds)
  addNumber('retry-after', waitSeconds)
  count(metricLimited, 1)
  return reply(exchange, 429, 'sluice_rate_limit', 'text/plain')
}

/** Replies with what the guard of that number says. */
export function replyRejected(exchange: Exchange, guard: i32): i32 {
  const refusal = refusalOf(exchange.rule, guard)
  clearFields(fields)
  clear(body)
  append(body, refusal.message.data, refusal.message.used)
  count(metricRejected, 1)
  clear(text)
  appendAscii(text, 'Reject')
  setProperty('sluice.guard', text)
  return reply(exchange, refusal.status, 'sluice_guardrail', 'text/plain')
}

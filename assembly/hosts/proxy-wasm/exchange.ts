// State of one request and its answer, and what both directions use.
import { appendAscii, appendByte, Bytes, clear, freeRecord, isAscii, newRecord } from '../../texts/bytes'
import { guardCount, guardsOf } from '../../texts/chain'
import { texts_count, texts_free } from '../../texts/exports'
import { count, Fields, newFields, readHeader, setProperty } from './host'
import { metricMasked } from './metrics'
import { Config, isNone, Rule } from './rules'

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
  /** The body of the request, or of the answer, is withheld until guards have judged it. */
  isRequestHeld: bool
  isAnswerHeld: bool
  isStream: bool
  hasFailed: bool
  isSuccess: bool
  /** Status of the answer. */
  status: i32
  isOver: bool
  /** The status of the limit with the fewest units left, which the client receives; limit 0 for none. */
  limit: i64
  remaining: i64
  reset: i64
}

/** Texts that are passed to the host, until the next one. */
export const text: Bytes = changetype<Bytes>(memory.data(offsetof<Bytes>()))
/** The part of a body that is read, or the body of a local reply. */
export const body: Bytes = changetype<Bytes>(memory.data(offsetof<Bytes>()))
/** Headers of a local reply. */
export let fields: Fields = changetype<Fields>(0)

export function newExchange(config: Config): Exchange {
  const exchange = changetype<Exchange>(newRecord(offsetof<Exchange>()))
  exchange.config = config
  if (!isNone(config)) config.users++
  if (isNone(fields)) fields = newFields()
  return exchange
}

export function freeExchange(exchange: Exchange): void {
  if (exchange.request > 0) texts_free(exchange.request)
  if (exchange.answer > 0) texts_free(exchange.answer)
  freeRecord(changetype<usize>(exchange))
}

export function isCoded(map: i32): bool {
  return readHeader(map, 'content-encoding', text) && text.used > 0 && !isAscii(text.data, text.used, 'identity')
}

/** Gives the buffer an address even if it is empty. */
export function reserveSlack(bytes: Bytes): void {
  if (bytes.capacity > 0) return
  appendByte(bytes, 0)
  bytes.used = 0
}

export function noteMasked(rewriter: i32, guards: i32): void {
  let made = 0
  for (let guard = 0; guard < guardCount(guardsOf(guards)); guard++) made += max(0, texts_count(rewriter, guard))
  if (made == 0) return
  count(metricMasked, made)
  clear(text)
  appendAscii(text, 'Mask')
  setProperty('sluice.guard', text)
}

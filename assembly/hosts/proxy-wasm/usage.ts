// Tokens of an exchange: charged to the limits, and shown to access logs.
import { appendNumber, clear } from '../../texts/bytes'
import { TEXTS_HAS_INPUT, TEXTS_HAS_OUTPUT, TEXTS_TOKEN_COUNT } from '../../texts/abi'
import { rewriterOf } from '../../texts/rewriter'
import { Rewriter } from '../../texts/state'
import { Exchange, text } from './exchange'
import { count, setProperty } from './host'
import { charge } from './limits'
import { metricFailed, metricInput, metricOutput } from './metrics'
import { isNone } from './rules'

/** Estimated bytes of text in a token, if the answer reports no usage. */
const BYTES_OF_TOKEN: f64 = 4

/** Charges tokens and tells access logs about the exchange, once. */
export function finish(exchange: Exchange): void {
  if (exchange.isOver || isNone(exchange.rule)) return
  exchange.isOver = true
  if (!exchange.rule.isModel || exchange.isAnswered || exchange.format == TEXTS_TOKEN_COUNT) return
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

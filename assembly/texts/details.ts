// Reads the model, the usage and whether a request asks for a stream.
import { TEXTS_HAS_INPUT, TEXTS_HAS_OUTPUT, TEXTS_IS_STREAM, TEXTS_MESSAGES, TEXTS_REQUEST, TEXTS_RESPONSES } from './abi'
import { append, clear } from './bytes'
import {
  CACHE_CREATION, CACHE_READ, COMPLETION_TOKENS, INPUT_TOKENS, MESSAGE, MODEL, OUTPUT_TOKENS, PROMPT_TOKENS, RESPONSE, STREAM,
  TOTAL_TOKENS, USAGE,
} from './names'
import { rw } from './state'
import { countOf, KIND_OBJECT, KIND_STRING, KIND_TRUE, member, memberOf, readText, textLength, textStart } from './tape'

const MODEL_LIMIT: i32 = 1024

/** Reads a whole document, or an event of a stream. */
export function readDetails(root: i32): void {
  if (rw.kind == TEXTS_REQUEST && memberOf(root, STREAM, KIND_TRUE) != 0) rw.flags |= TEXTS_IS_STREAM
  readAnswer(root)
  const inner = rw.format == TEXTS_MESSAGES ? MESSAGE : rw.format == TEXTS_RESPONSES ? RESPONSE : 0
  if (inner != 0 && rw.kind != TEXTS_REQUEST) readAnswer(memberOf(root, inner, KIND_OBJECT))
}

function readAnswer(object: i32): void {
  const model = memberOf(object, MODEL, KIND_STRING)
  if (model != 0) {
    readText(model)
    if (textLength <= MODEL_LIMIT) {
      clear(rw.model)
      append(rw.model, textStart, textLength)
    }
  }
  const usage = memberOf(object, USAGE, KIND_OBJECT)
  if (usage != 0 && rw.kind != TEXTS_REQUEST) readUsage(usage)
}

function readUsage(usage: i32): void {
  const isChat = rw.format != TEXTS_MESSAGES && rw.format != TEXTS_RESPONSES
  const input = countOf(member(usage, isChat ? PROMPT_TOKENS : INPUT_TOKENS))
  let output = countOf(member(usage, isChat ? COMPLETION_TOKENS : OUTPUT_TOKENS))
  const total = isChat ? countOf(member(usage, TOTAL_TOKENS)) : -1
  if (isChat && output < 0 && (input >= 0 || total >= 0)) output = max<i64>(0, max<i64>(total, 0) - max<i64>(input, 0))
  const read = countOf(member(usage, CACHE_READ))
  const created = countOf(member(usage, CACHE_CREATION))
  if (rw.format == TEXTS_MESSAGES && (read >= 0 || created >= 0)) rw.cachedTokens = <f64>(max<i64>(read, 0) + max<i64>(created, 0))
  if (input >= 0) {
    rw.inputTokens = <f64>input
    rw.flags |= TEXTS_HAS_INPUT
  }
  if (output >= 0) {
    rw.outputTokens = <f64>output
    rw.flags |= TEXTS_HAS_OUTPUT
  }
  if (input >= 0 || output >= 0) rw.uncounted = 0
}

/** Model vendors that bill each request by its tag, and notice texts that guards should have masked. */
import type { ServerResponse } from 'node:http'
import type { Random } from '../fuzz/support/random.ts'
import { tagsIn } from '../support/tagged-upstream.ts'
import { json, openStream, sendEvent, type VendorCall } from '../support/vendors/vendor.ts'
import { chunk, completion, failsA } from '../support/vendors/vendor-a.ts'
import type { Ledger } from './ledger.ts'

export interface Bill {
  readonly input: number
  readonly output: number
}

/** A text that guards mask in requests and responses of models whose names begin with `masked`. */
export const canary = (tag: string): string => `ann.${tag.slice(4, -1)}@mail.example`
const canaryPattern = /[\w.-]+@mail\.example/

/** What the model answers; the masked models put a canary in it. */
export const answerText = (tag: string, model: string): string =>
  `${tag} says hello${model.startsWith('masked') ? ` to ${canary(tag)} today` : ''}`

/** Bills of whole responses by tag. */
export type Bills = Map<string, Bill>

/** Different for each tag. */
const billOf = (tag: string): Bill => {
  const number = Number(/\d+/.exec(tag)?.[0])
  return { input: 11 + (number % 89), output: 3 + (number % 41) }
}

/** Reports what must not be in a request. Returns its tag. */
function checkCall({ text, body }: VendorCall, ledger: Ledger): string {
  const [tag = 'none', ...foreign] = tagsIn(text)
  if (foreign.length > 0) {
    const what = `the vendor receives ${[tag, ...foreign].join(' ')}`
    ledger.report({ invariant: 'isolation', exchange: tag, text: what, bytes: text })
  }
  const found = canaryPattern.exec(text)
  if (found !== null && String(body.model).startsWith('masked')) {
    const what = `the vendor receives ${found[0]}, which a guard masks`
    ledger.report({ invariant: 'protection', exchange: tag, text: what, bytes: text })
  }
  return tag
}

function cut(text: string, random: Random): string[] {
  const pieces: string[] = []
  for (let at = 0; at < text.length; ) {
    const size = 1 + random.below(9)
    pieces.push(text.slice(at, at + size))
    at += size
  }
  return pieces
}

type Answer = (call: VendorCall, response: ServerResponse) => void

/** Chat completions; one request in `failing` fails with 503 if that is not 0. */
export function completes(ledger: Ledger, bills: Bills, random: Random, failing = 0): Answer {
  return (call, response) => {
    const tag = checkCall(call, ledger)
    if (failing > 0 && random.oneIn(failing)) {
      failsA(503, 'busy')(call, response)
      return
    }
    const { input, output } = billOf(tag)
    const usage = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output }
    const model = String(call.body.model)
    const text = answerText(tag, model)
    response.on('finish', () => bills.set(tag, { input, output }))
    if (call.body.stream !== true) {
      json(response, 200, { ...completion(model, text), usage })
      return
    }
    openStream(response)
    sendEvent(response, chunk(model, { role: 'assistant', content: '' }))
    for (const content of cut(text, random)) sendEvent(response, chunk(model, { content }))
    sendEvent(response, chunk(model, {}, 'stop'))
    const { include_usage: isAsked } = (call.body.stream_options ?? {}) as Record<string, unknown>
    if (isAsked === true) sendEvent(response, { ...chunk(model, {}), choices: [], usage })
    sendEvent(response, '[DONE]')
    response.end()
  }
}

/** Messages. */
export function says(ledger: Ledger, bills: Bills, random: Random): Answer {
  return (call, response) => {
    const tag = checkCall(call, ledger)
    const { input, output } = billOf(tag)
    const model = String(call.body.model)
    const text = answerText(tag, model)
    response.on('finish', () => bills.set(tag, { input, output }))
    const message = (content: object[], stop_reason: string | null, output_tokens: number) => ({
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model,
      content,
      stop_reason,
      stop_sequence: null,
      usage: { input_tokens: input, output_tokens },
    })
    if (call.body.stream !== true) {
      json(response, 200, message([{ type: 'text', text }], 'end_turn', output))
      return
    }
    const send = (type: string, fields: object) => sendEvent(response, { type, ...fields }, type)
    openStream(response)
    send('message_start', { message: message([], null, 1) })
    send('content_block_start', { index: 0, content_block: { type: 'text', text: '' } })
    for (const piece of cut(text, random)) {
      send('content_block_delta', { index: 0, delta: { type: 'text_delta', text: piece } })
    }
    send('content_block_stop', { index: 0 })
    const delta = { stop_reason: 'end_turn', stop_sequence: null }
    send('message_delta', { delta, usage: { output_tokens: output } })
    send('message_stop', {})
    response.end()
  }
}

/** A simulator of vendorF: Converse, InvokeModel and CountTokens, signed or with a bearer key. */
import type { ServerResponse } from 'node:http'
import { EventStreamCodec } from '@smithy/core/event-streams'
import { type SigningKeys, signatureProblem } from './aws-signature.ts'
import { checkConverse } from './converse-rules.ts'
import { refusalOfConverse } from './model-rules.ts'
import { refusalOfConverseSchemas } from './schema-rules.ts'
import { json, type Refusal, startVendor, type Vendor, type VendorCall } from './vendor.ts'
import type { ToolCall } from './vendor-a.ts'
import { checkMessages, fields } from './vendor-c.ts'

export const usageF = {
  inputTokens: 12,
  outputTokens: 8,
  totalTokens: 24,
  cacheReadInputTokens: 4,
  cacheWriteInputTokens: 0,
}

interface Place {
  /** As it stood in the path, decoded. */
  readonly model: string
  readonly verb: string
}

export function placeOf(path: string): Place | undefined {
  const [, model, verb] =
    /^\/model\/([^/]+)\/(converse|converse-stream|invoke|invoke-with-response-stream|count-tokens)$/.exec(
      path,
    ) ?? []
  if (model === undefined || verb === undefined) return undefined
  return { model: decodeURIComponent(model), verb }
}

export interface VendorFOptions {
  /** The access keys whose signatures are accepted; any bearer key is accepted. */
  readonly keys: SigningKeys
  readonly region: string
}

function checkBody({ model, verb }: Place, body: Record<string, unknown>): Refusal {
  switch (verb) {
    case 'converse':
    case 'converse-stream':
      return (
        refusalOfConverse(model, body) ??
        refusalOfConverseSchemas(model, body) ??
        checkConverse(body)
      )
    case 'count-tokens': {
      const { invokeModel, converse } = (body.input ?? {}) as Record<string, { body?: string }>
      if ((invokeModel === undefined) === (converse === undefined)) return 'input: one member'
      const inner = JSON.parse(Buffer.from(invokeModel?.body ?? '', 'base64').toString()) as object
      return 'anthropic_version' in inner && 'max_tokens' in inner && !('model' in inner)
        ? undefined
        : 'invokeModel.body'
    }
    default:
      return checkInvoke(model, body)
  }
}

function checkInvoke(model: string, body: Record<string, unknown>): Refusal {
  if (model.includes('claude')) return checkInvokedMessages(model, body)
  const known = model.includes('cohere')
    ? ['texts', 'input_type', 'truncate', 'embedding_types', 'output_dimension', 'images']
    : model.includes('nova')
      ? ['schemaVersion', 'taskType', 'singleEmbeddingParams', 'segmentedEmbeddingParams']
      : ['inputText', 'dimensions', 'normalize', 'embeddingTypes']
  const unknown = Object.keys(body).find((name) => !known.includes(name))
  if (unknown !== undefined) return `extraneous key [${unknown}] is not permitted`
  return model.includes('cohere') && !Array.isArray(body.texts) ? 'required key [texts]' : undefined
}

const invokedFields = [...fields, 'anthropic_version', 'anthropic_beta']

/** Messages in InvokeModel have a version, and the path has the model and the wish for a stream. */
function checkInvokedMessages(model: string, body: Record<string, unknown>): Refusal {
  if (body.anthropic_version !== 'bedrock-2023-05-31') return 'anthropic_version: Field required'
  const extra = ['model', 'stream'].find((name) => name in body)
  if (extra !== undefined) return `${extra}: Extra inputs are not permitted`
  const searches = JSON.stringify(body.tools ?? []).includes('"type":"web_search_')
  if (searches) return 'tools.0: Input tag does not match any of the expected tags'
  return checkMessages({ model, ...body }, true, invokedFields)
}

const checker =
  ({ keys, region }: VendorFOptions) =>
  async (call: VendorCall): Promise<Refusal> => {
    const { method, path, headers, body } = call
    if (method !== 'POST') return `method ${method}`
    const place = placeOf(path)
    if (place === undefined) return { status: 404, message: `UnknownOperation: ${path}` }
    if (!/^Bearer \S+$/.test(headers.authorization ?? '')) {
      const problem = await signatureProblem(call, keys, { region, service: 'bedrock' })
      if (problem !== undefined) return { status: 403, message: problem }
    }
    if (headers['content-type'] !== 'application/json') return 'content-type'
    return checkBody(place, body)
  }

const codec = new EventStreamCodec(
  (bytes) => Buffer.from(bytes).toString('utf8'),
  (text) => Buffer.from(text, 'utf8'),
)

/** One frame; `kind` is the message type: `event` or `exception`. */
export function frame(type: string, payload: object, kind = 'event'): Uint8Array {
  const text = (value: string) => ({ type: 'string' as const, value })
  return codec.encode({
    headers: {
      [`:${kind}-type`]: text(type),
      ':content-type': text('application/json'),
      ':message-type': text(kind),
    },
    // Frames are padded, so that their length does not reveal the length of the text.
    body: Buffer.from(JSON.stringify({ ...payload, p: 'abcdefghij' })),
  })
}

export function openFrames(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/vnd.amazon.eventstream' })
  response.flushHeaders()
}

export interface Conversed {
  readonly texts?: readonly string[]
  readonly thoughts?: readonly string[]
  /** An encrypted thought, in base64. */
  readonly redacted?: string
  readonly call?: ToolCall
  readonly stopReason?: string
}

/** Frames of a streamed answer, in the documented order; texts have no start. */
function framesOf({
  texts = [],
  thoughts = [],
  redacted,
  call,
  stopReason,
}: Conversed): Uint8Array[] {
  const frames = [frame('messageStart', { role: 'assistant' })]
  let contentBlockIndex = 0
  const deltas = (all: readonly object[]) => {
    if (all.length === 0) return
    for (const delta of all) frames.push(frame('contentBlockDelta', { contentBlockIndex, delta }))
    frames.push(frame('contentBlockStop', { contentBlockIndex }))
    contentBlockIndex++
  }
  const signature = thoughts.length === 0 ? [] : [{ reasoningContent: { signature: 'c2ln' } }]
  deltas([...thoughts.map((text) => ({ reasoningContent: { text } })), ...signature])
  if (redacted !== undefined) deltas([{ reasoningContent: { redactedContent: redacted } }])
  deltas(texts.map((text) => ({ text })))
  if (call !== undefined) {
    const start = { toolUse: { toolUseId: call.id, name: call.name } }
    frames.push(frame('contentBlockStart', { contentBlockIndex, start }))
    const input = JSON.stringify(call.input)
    deltas([input.slice(0, 4), input.slice(4)].map((part) => ({ toolUse: { input: part } })))
  }
  frames.push(frame('messageStop', { stopReason: stopReason ?? stopOf(call) }))
  frames.push(frame('metadata', { usage: usageF, metrics: { latencyMs: 5 } }))
  return frames
}

const stopOf = (call: ToolCall | undefined): string =>
  call === undefined ? 'end_turn' : 'tool_use'

function whole({ texts = [], thoughts = [], redacted, call, stopReason }: Conversed): object {
  const content: object[] = []
  if (thoughts.length > 0) {
    const reasoningText = { text: thoughts.join(''), signature: 'c2ln' }
    content.push({ reasoningContent: { reasoningText } })
  }
  if (redacted !== undefined) content.push({ reasoningContent: { redactedContent: redacted } })
  if (texts.length > 0) content.push({ text: texts.join('') })
  if (call !== undefined) {
    content.push({ toolUse: { toolUseId: call.id, name: call.name, input: call.input } })
  }
  return {
    output: { message: { role: 'assistant', content } },
    stopReason: stopReason ?? stopOf(call),
    usage: usageF,
    metrics: { latencyMs: 5 },
  }
}

function invoked(
  model: string,
  { texts }: Record<string, unknown>,
  response: ServerResponse,
): void {
  response.setHeader('x-amzn-bedrock-input-token-count', '6')
  if (model.includes('cohere')) {
    const embeddings = (texts as string[]).map((_, at) => [0.125, at])
    json(response, 200, { id: 'x', texts, embeddings, response_type: 'embeddings_floats' })
  } else if (model.includes('nova')) {
    json(response, 200, { embeddings: [{ embeddingType: 'TEXT', embedding: [0.5, 1] }] })
  } else json(response, 200, { embedding: [0.75, 0.5], inputTextTokenCount: 5 })
}

/** Messages of vendorC, whole or in chunks. */
function invokedMessages({ texts = [], call }: Conversed, model: string, isStream: boolean) {
  const usage = { input_tokens: 12, output_tokens: 8 }
  const head = { id: 'msg_bdrk_1', type: 'message', role: 'assistant', model }
  const stop_reason = call === undefined ? 'end_turn' : 'tool_use'
  const tool = call && { type: 'tool_use', id: call.id, name: call.name, input: call.input }
  const text = texts.length === 0 ? [] : [{ type: 'text', text: texts.join('') }]
  const content = [...text, ...(tool ? [tool] : [])]
  if (!isStream) return { ...head, content, stop_reason, stop_sequence: null, usage }
  const started = { ...head, content: [], stop_reason: null, usage: { ...usage, output_tokens: 1 } }
  const events: object[] = [{ type: 'message_start', message: started }]
  for (const [index, block] of content.entries()) {
    const isTool = block === tool
    const content_block = isTool ? { ...tool, input: {} } : { type: 'text', text: '' }
    const deltas = isTool
      ? [{ type: 'input_json_delta', partial_json: JSON.stringify(call?.input) }]
      : texts.map((piece) => ({ type: 'text_delta', text: piece }))
    events.push({ type: 'content_block_start', index, content_block })
    events.push(...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })))
    events.push({ type: 'content_block_stop', index })
  }
  const last = { output_tokens: 8 }
  events.push({ type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage: last })
  events.push({ type: 'message_stop' })
  return events
}

export const chunkOf = (event: object): Uint8Array =>
  frame('chunk', { bytes: Buffer.from(JSON.stringify(event)).toString('base64') })

function sendFrames(response: ServerResponse, frames: readonly Uint8Array[]): void {
  openFrames(response)
  const bytes = Buffer.concat(frames)
  const middle = Math.floor(bytes.length / 2)
  response.write(bytes.subarray(0, middle), () => response.end(bytes.subarray(middle)))
}

/** Sends the given answer, whole or in frames that are split in the middle. */
export function converses(answer: Conversed) {
  return ({ path, body }: VendorCall, response: ServerResponse): void => {
    const { model = '', verb } = placeOf(path) ?? {}
    response.setHeader('x-amzn-requestid', '5f0b7a2e-sim')
    if (verb === 'invoke-with-response-stream') {
      const events = invokedMessages(answer, model, true) as readonly object[]
      sendFrames(response, events.map(chunkOf))
    } else if (verb === 'invoke' && model.includes('claude')) {
      json(response, 200, invokedMessages(answer, model, false))
    } else if (verb === 'invoke') invoked(model, body, response)
    else if (verb === 'count-tokens') json(response, 200, { inputTokens: 77 })
    else if (verb === 'converse') json(response, 200, whole(answer))
    else sendFrames(response, framesOf(answer))
  }
}

/** An error as vendorF words it. */
export function failsF(status: number, type: string, message: string) {
  return (_: VendorCall, response: ServerResponse): void => {
    response.setHeader('x-amzn-errortype', type)
    json(response, status, { message })
  }
}

export const startVendorF = (options: VendorFOptions, port?: number): Promise<Vendor> =>
  startVendor(
    checker(options),
    converses({ texts: ['Hello ', 'from F'] }),
    (message) => ({ message }),
    port,
  )

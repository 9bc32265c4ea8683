/** A vendor of models that bills: each answer costs tokens by its price list, whether or not the client gets it. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as after } from 'node:timers/promises'
import { json, openStream, sendEvent } from '../../support/vendors/vendor.ts'

/** Who a request belongs to, and the run of the proxy that it was sent through. */
export interface Payer {
  readonly team: string
  readonly proxy: string
  /** Number of times that the proxy was killed before. */
  readonly run: number
}

/** A line of the bill. */
export interface Billed extends Payer {
  /** Unix time in milliseconds at which the connection had taken the whole answer, or was gone. */
  endedAt: number
  readonly tokens: number
  /** 10⁻¹² USD. */
  readonly usd: bigint
}

/** The price list, in USD per million tokens. The gateway reads it as a catalog. */
const rates = { input: 3, output: 15, cacheRead: 1, cacheWrite: 4 } as const

export const models = { openai: 'paid-a', anthropic: 'paid-b' } as const

export const catalog = {
  providers: Object.fromEntries(
    Object.entries(models).map(([provider, model]) => {
      const texts = Object.entries(rates).map(([name, rate]) => [name, `${rate}`])
      return [provider, { models: { [model]: { rates: Object.fromEntries(texts) } } }]
    }),
  ),
}

/** The output limit that every client sends. */
export const maxTokens = 50

/** Names a payer in the field of a request that identifies the user. */
export const payerText = ({ team, proxy, run }: Payer): string => `${team}/${proxy}/${run}`

function payerOf(text: unknown): Payer {
  const [team = '', proxy = '', run] = `${text}`.split('/')
  return { team, proxy, run: Number(run) }
}

/** Counters that a request is billed for. None is more than the gateway has to reserve for it. */
interface Usage {
  readonly uncached: number
  readonly cacheRead: number
  readonly cacheWrite: number
  readonly output: number
}

function usageOf(bodyBytes: number, random: () => number): Usage {
  const input = 1 + Math.floor(random() * (bodyBytes / 6))
  const cacheRead = random() < 0.3 ? Math.floor(input / 2) : 0
  return {
    uncached: input - cacheRead,
    cacheRead,
    cacheWrite: 0,
    output: 1 + Math.floor(random() * maxTokens),
  }
}

const usdOf = ({ uncached, cacheRead, cacheWrite, output }: Usage): bigint =>
  BigInt(
    uncached * rates.input +
      cacheRead * rates.cacheRead +
      cacheWrite * rates.cacheWrite +
      output * rates.output,
  ) * 1_000_000n

export class BillingVendor {
  readonly bills: Billed[] = []
  readonly #server: Server
  readonly #random: () => number

  private constructor(random: () => number) {
    this.#random = random
    const onRequest = (request: IncomingMessage, response: ServerResponse) =>
      void this.#answer(request, response).catch(() => response.destroy())
    this.#server = createServer({ keepAliveTimeout: 0 }, onRequest)
  }

  static async start(random: () => number): Promise<BillingVendor> {
    const vendor = new BillingVendor(random)
    await new Promise<void>((resolve) => vendor.#server.listen(0, '127.0.0.1', resolve))
    return vendor
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const bytes = Buffer.concat(chunks)
    const body = JSON.parse(bytes.toString()) as Body
    const isMessages = request.url?.endsWith('/messages') === true
    const payer = payerOf(isMessages ? body.metadata?.user_id : body.user)
    const usage = usageOf(bytes.length, this.#random)
    // Most requests end at once; some go on while a process is killed.
    if (this.#random() < 0.2) await after(this.#random() * 50)
    // The work is done, so it is billed.
    const { uncached, cacheRead, cacheWrite, output } = usage
    const tokens = uncached + cacheRead + cacheWrite + output
    const billed = { ...payer, endedAt: Number.POSITIVE_INFINITY, tokens, usd: usdOf(usage) }
    this.bills.push(billed)
    response.once('close', () => {
      billed.endedAt = Date.now()
    })
    await (isMessages ? sendMessage(response, body, usage) : sendCompletion(response, body, usage))
  }
}

interface Body {
  readonly model: string
  readonly stream?: boolean
  readonly stream_options?: { readonly include_usage?: boolean }
  readonly user?: string
  readonly metadata?: { readonly user_id?: string }
}

/** Pause in the middle of a stream. */
const streamPauseMs = 5

async function sendCompletion(response: ServerResponse, body: Body, usage: Usage): Promise<void> {
  const { model, stream, stream_options: options } = body
  const input = usage.uncached + usage.cacheRead
  const reported = {
    prompt_tokens: input,
    completion_tokens: usage.output,
    total_tokens: input + usage.output,
    prompt_tokens_details: { cached_tokens: usage.cacheRead },
  }
  const common = { id: 'chatcmpl-1', created: 1, model }
  if (stream !== true) {
    const message = { role: 'assistant', content: 'Fine.', refusal: null }
    const choices = [{ index: 0, message, logprobs: null, finish_reason: 'stop' }]
    json(response, 200, { ...common, object: 'chat.completion', choices, usage: reported })
    return
  }
  const chunk = { ...common, object: 'chat.completion.chunk' }
  const choice = (delta: object, reason: string | null) => [
    { index: 0, delta, logprobs: null, finish_reason: reason },
  ]
  openStream(response)
  sendEvent(response, { ...chunk, choices: choice({ role: 'assistant', content: 'Fi' }, null) })
  await after(streamPauseMs)
  sendEvent(response, { ...chunk, choices: choice({ content: 'ne.' }, null) })
  sendEvent(response, { ...chunk, choices: choice({}, 'stop') })
  if (options?.include_usage === true)
    sendEvent(response, { ...chunk, choices: [], usage: reported })
  sendEvent(response, '[DONE]')
  response.end()
}

async function sendMessage(response: ServerResponse, body: Body, usage: Usage): Promise<void> {
  const { model, stream } = body
  const input = {
    input_tokens: usage.uncached,
    cache_read_input_tokens: usage.cacheRead,
    cache_creation_input_tokens: usage.cacheWrite,
  }
  const common = { id: 'msg_1', type: 'message', role: 'assistant', model, stop_sequence: null }
  if (stream !== true) {
    const content = [{ type: 'text', text: 'Fine.' }]
    const reported = { ...input, output_tokens: usage.output }
    json(response, 200, { ...common, content, stop_reason: 'end_turn', usage: reported })
    return
  }
  const event = (type: string, fields: object = {}) =>
    sendEvent(response, { type, ...fields }, type)
  const text = (part: string) =>
    event('content_block_delta', { index: 0, delta: { type: 'text_delta', text: part } })
  const start = { ...common, content: [], stop_reason: null, usage: { ...input, output_tokens: 1 } }
  openStream(response)
  event('message_start', { message: start })
  event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } })
  text('Fi')
  await after(streamPauseMs)
  text('ne.')
  event('content_block_stop', { index: 0 })
  const delta = { stop_reason: 'end_turn', stop_sequence: null }
  event('message_delta', { delta, usage: { output_tokens: usage.output } })
  event('message_stop')
  response.end()
}

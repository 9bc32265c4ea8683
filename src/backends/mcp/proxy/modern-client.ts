/** A client of the modern era: its requests are independent, and none belongs to a session. */
import { codes, errorText } from '../answers.ts'
import type { Envelope } from '../eras/envelope.ts'
import { legacyVersions } from '../eras/versions.ts'
import type { Era } from '../methods.ts'
import type { McpExchange } from './mcp-exchange.ts'
import type { McpTargetEntry } from './mcp-targets.ts'
import { json, TargetFailure, toFailure } from './refusals.ts'
import { modernWire, StreamableTransport } from './streamable.ts'
import { findEra, forgetEra, isRefusedByLegacy, knownEra } from './target-eras.ts'
import type { OnAbandon, Transport } from './transport.ts'
import type { Upstreams } from './upstreams.ts'

export class ModernClient implements Upstreams {
  readonly era = 'modern'
  readonly exchange: McpExchange
  readonly #envelope: Envelope
  readonly #id: string
  readonly #onAbandon: OnAbandon

  /** `id` is the id of the client's request. */
  constructor(exchange: McpExchange, envelope: Envelope, id: string, onAbandon: OnAbandon) {
    this.exchange = exchange
    this.#envelope = envelope
    this.#id = id
    this.#onAbandon = onAbandon
  }

  can(target: string): readonly string[] | undefined {
    const entry = this.exchange.backend.targets.find((one) => one.target.name === target)
    return entry && knownEra(entry)?.can
  }

  has(): boolean {
    return true
  }

  /** Modern servers return what they need in results; they send no requests. */
  mayAsk(): boolean {
    return false
  }

  async use<Result>(
    entry: McpTargetEntry,
    act: (transport: Transport) => Promise<Result>,
  ): Promise<Result> {
    let before = knownEra(entry)
    if (before?.era === 'legacy') {
      // The server may have been upgraded. Asking is better than refusing the request.
      forgetEra(entry)
      before = undefined
    }
    const { era } = before ?? (await this.#findEra(entry))
    try {
      return await act(this.#transport(entry, era))
    } catch (thrown) {
      const failure = toFailure(thrown)
      if (era === 'legacy' || before === undefined || !isRefusedByLegacy(failure)) throw failure
      // The server may have been replaced. It has refused the request, so the request may be repeated.
      forgetEra(entry)
      const now = await this.#findEra(entry)
      if (now.era === era) throw failure
      return act(this.#transport(entry, now.era))
    }
  }

  #findEra(entry: McpTargetEntry): ReturnType<typeof findEra> {
    return findEra(this.exchange, entry, this.#onAbandon)
  }

  #transport(entry: McpTargetEntry, era: Era): Transport {
    if (era === 'legacy') throw this.#unsupported()
    const { version } = this.#envelope
    return new StreamableTransport(this.exchange, entry, modernWire(version))
  }

  /** The client can fall back to a session. */
  #unsupported(): TargetFailure {
    const data = { supported: [...legacyVersions].reverse(), requested: this.#envelope.version }
    const message = 'Unsupported protocol version: the server speaks earlier versions only'
    const body = Buffer.from(errorText(this.#id, codes.unsupportedVersion, message, data))
    return new TargetFailure(message, { answer: { status: 400, headers: [json], body } })
  }
}

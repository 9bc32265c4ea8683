/** A service that sees MCP messages, and may change or refuse them (ExtMcp of agentgateway). */
import {
  create,
  type DescMessage,
  fromBinary,
  type JsonObject,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf'
import {
  type AuthorizationError,
  type HeaderMutation,
  McpRequestResultSchema,
  McpRequestSchema,
  McpResponseResultSchema,
  McpResponseSchema,
} from '../../../../../proto/gen/called/ext_mcp_pb.ts'
import { GatewayError } from '../../../../ground/errors/index.ts'
import { type Callouts, type Exchange, pathAndQuery } from '../../../../ground/exchange/exchange.ts'
import type { LearnedRecord } from '../../../../ground/exchange/learned.ts'
import { toObject } from '../../../policies/ext-auth/check-request.ts'
import { bindAll, evaluateAll, type Named } from '../../../policies/ext-auth/expressions.ts'
import type { ProcessorConfig } from './calls-config.ts'
import { phaseOf } from './processor-methods.ts'

/** Timeout of a call, unless a policy of the service sets another one. */
const timeoutMs = 2_000

/** A message for a service. */
export interface CheckedMessage {
  /** The request of the client, with the variables of expressions. */
  readonly exchange: Exchange
  /** Names of the targets. */
  readonly services: readonly string[]
  readonly method: string
  /** Params or result as JSON; undefined for a request without params. */
  readonly json: string | undefined
}

/** Changes of the headers that targets get. Names are as the service wrote them. */
export interface HeaderChanges {
  readonly set: readonly (readonly [name: string, value: string])[]
  readonly remove: readonly string[]
}

export type ProcessorResult =
  | {
      readonly kind: 'pass'
      /** The replacement as the service wrote it; undefined if nothing has changed. */
      readonly changed?: Uint8Array
      readonly headers?: HeaderChanges
      readonly metadata?: LearnedRecord
    }
  | { readonly kind: 'refused'; readonly error: AuthorizationError }
  | { readonly kind: 'failed'; readonly detail: string }

export class Processor {
  readonly failsOpen: boolean
  /** Whether the service gets results of any method. */
  readonly checksResponses: boolean
  readonly #config: ProcessorConfig
  readonly #callouts: Callouts
  readonly #metadata: Named

  constructor(config: ProcessorConfig, callouts: Callouts) {
    this.failsOpen = config.failsOpen
    this.checksResponses = Object.values(config.methods).some(
      (phase) => phase === 'Response' || phase === 'Full',
    )
    this.#config = config
    this.#callouts = callouts
    this.#metadata = bindAll(config.metadata)
  }

  /** Whether the service gets requests, or results, of the method. */
  checks(method: string, direction: 'Request' | 'Response'): boolean {
    const phase = phaseOf(this.#config.methods, method)
    return phase === direction || phase === 'Full'
  }

  async checkRequest(message: CheckedMessage): Promise<ProcessorResult> {
    const request = create(McpRequestSchema, {
      ...this.#contextOf(message),
      ...(message.json !== undefined && { mcpRequest: Buffer.from(message.json) }),
      headers: this.#headersOf(message.exchange),
    })
    const bytes = toBinary(McpRequestSchema, request)
    const answer = await this.#call('CheckRequest', message, bytes, McpRequestResultSchema)
    if (typeof answer === 'string') return { kind: 'failed', detail: answer }
    const { headerMutation, metadata } = answer
    const passed = readResult(answer)
    if (passed.kind !== 'pass') return passed
    return {
      ...passed,
      ...(headerMutation && { headers: headerChanges(headerMutation) }),
      ...(metadata && { metadata: metadata as LearnedRecord }),
    }
  }

  async checkResponse(message: CheckedMessage): Promise<ProcessorResult> {
    const response = create(McpResponseSchema, {
      ...this.#contextOf(message),
      mcpResponse: Buffer.from(message.json ?? '{}'),
    })
    const bytes = toBinary(McpResponseSchema, response)
    const answer = await this.#call('CheckResponse', message, bytes, McpResponseResultSchema)
    return typeof answer === 'string' ? { kind: 'failed', detail: answer } : readResult(answer)
  }

  #contextOf({ exchange, services, method }: CheckedMessage) {
    const metadataContext: JsonObject = toObject(evaluateAll(this.#metadata, exchange))
    return { serviceNames: [...services], method, metadataContext }
  }

  #headersOf({ request }: Exchange): { key: string; value: Uint8Array }[] {
    const { allowed, disallowed } = this.#config
    const all = [
      [':method', request.method],
      [':scheme', request.scheme],
      [':authority', request.authority],
      [':path', pathAndQuery(request)],
      ...request.headers.entries(),
    ] as const
    return all.flatMap(([name, value]) => {
      const key = name.toLowerCase()
      const isSent = !disallowed.includes(key) && (allowed?.includes(key) ?? true)
      return isSent ? { key, value: Buffer.from(value, 'latin1') } : []
    })
  }

  /** Resolves to the reason if the service does not answer, or if its answer cannot be decoded. */
  async #call<Answer extends DescMessage>(
    method: string,
    { exchange }: CheckedMessage,
    message: Uint8Array,
    answer: Answer,
  ): Promise<MessageShape<Answer> | string> {
    const { target } = this.#config
    const path = `/agentgateway.dev.ext_mcp.ExtMcp/${method}`
    let bytes: Uint8Array
    try {
      const subtype = 'Guardrail'
      bytes = await this.#callouts.grpc({ target, path, message, exchange, subtype, timeoutMs })
    } catch (error) {
      if (error instanceof GatewayError) return `the service failed: ${error.message}`
      throw error
    }
    try {
      return fromBinary(answer, bytes)
    } catch {
      return 'the answer of the service cannot be read'
    }
  }
}

type Result = MessageShape<typeof McpRequestResultSchema | typeof McpResponseResultSchema>

/** An answer without a known result could be a refusal of a later version of the protocol. */
function readResult({ result }: Result): ProcessorResult {
  switch (result.case) {
    case 'pass':
      return { kind: 'pass' }
    case 'mutated':
      return { kind: 'pass', changed: result.value }
    case 'error':
      return { kind: 'refused', error: result.value }
    default:
      return { kind: 'failed', detail: 'the answer of the service has no result' }
  }
}

const headerChanges = ({ set, remove }: HeaderMutation): HeaderChanges => ({
  set: set.map(({ key, value }) => [key, Buffer.from(value).toString('latin1')]),
  remove,
})

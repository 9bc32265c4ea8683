/**
 * One request of a client to an agent. Requests and responses are forwarded unchanged, except for cards.
 *
 * ```
 *   client ── read, authorize, check URLs ──► agent
 *          ◄── cards: check, record, rewrite ──┤
 *          ◄── others, streamed and watched ───┘
 * ```
 */
import { andThen } from '../../../../ground/base/and-then.ts'
import { GatewayError } from '../../../../ground/errors/index.ts'
import {
  type BufferedBody,
  type RespondVerdict,
  refuse,
} from '../../../../ground/exchange/exchange.ts'
import { isGrpc } from '../../../../ground/exchange/grpc.ts'
import { addNote } from '../../../../ground/exchange/notes.ts'
import type { BackendAccess } from '../../../proxy/config/backend-access.ts'
import type { BackendCall } from '../../../proxy/request/backend-call.ts'
import type { CompiledBackends } from '../../../proxy/request/backend-kind.ts'
import { usableAccess } from '../../../proxy/request/destinations.ts'
import type { ErrorWriter } from '../../../proxy/request/error-response.ts'
import { atFixedHost } from '../../../proxy/request/fixed-host.ts'
import type { RequestContext } from '../../../proxy/request/request-context.ts'
import type { GatewayRuntime } from '../../../proxy/request/runtime.ts'
import type { Destination } from '../../../proxy/upstream/destination.ts'
import { a2aStepOf } from '../policy/apply.ts'
import {
  type A2aRequest,
  RequestRefusal,
  readGrpc,
  readJsonRpc,
  readPath,
  withBody,
} from '../protocol/message.ts'
import { OutcomeReader } from '../protocol/outcome.ts'
import type { A2aBackend } from './backend.ts'
import { type CardCall, maxCard, receiveCard } from './card-response.ts'
import { errorWriterOf } from './errors.ts'
import { resolveAll } from './push-urls.ts'
import { A2aRecord } from './record.ts'

type Result = RespondVerdict | undefined

const step = 'backend.a2a'
/** Headers that could make a server send a card in a form that cannot be rewritten. */
const cardHeaders = ['accept-encoding', 'if-none-match', 'if-modified-since', 'range', 'if-range']
const jsonType = /^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i
const eventType = /^text\/event-stream\s*(?:;|$)/i

export class A2aCall implements BackendCall, CardCall {
  readonly context: RequestContext
  readonly runtime: GatewayRuntime
  readonly #backends: CompiledBackends<'a2a', A2aBackend>
  /** Name of the backend, as `namespace/name`. */
  readonly name: string
  /** Path that the agent gets. */
  agentPath = ''
  record: A2aRecord | undefined

  constructor(
    context: RequestContext,
    runtime: GatewayRuntime,
    backends: CompiledBackends<'a2a', A2aBackend>,
    name: string,
  ) {
    this.context = context
    this.runtime = runtime
    this.#backends = backends
    this.name = name
  }

  /** Throws `service_not_found`. */
  get backend(): A2aBackend {
    const found = this.#backends.find(this.name)
    if (found === undefined) throw new GatewayError('service_not_found', this.name)
    return found
  }

  get access(): BackendAccess {
    const { placement, backend } = this.context
    if (placement === undefined || backend === undefined) throw new GatewayError('no_backends')
    return usableAccess(placement, backend)
  }

  get request(): A2aRequest | undefined {
    return this.record?.request
  }

  resolve(): undefined | Promise<undefined> {
    const { request } = this.context.exchange
    const found = atFixedHost(this.runtime, this.backend.host, this.access, request, {})
    return andThen(found, (destination: Destination): undefined => {
      this.context.destination = destination
    })
  }

  authenticate(): Result | Promise<Result> {
    const { method, path, headers } = this.context.exchange.request
    try {
      if (isGrpc(headers.get('content-type'))) {
        return this.#withBytes((bytes) => this.#accept(readGrpc(path, bytes)))
      }
      const found = readPath(method, path)
      if (found !== undefined && method !== 'POST') return this.#accept(found)
      if (method === 'POST') {
        return this.#withBytes((bytes) =>
          this.#accept(found === undefined ? readJsonRpc(bytes) : withBody(found, bytes)),
        )
      }
      return this.#accept(undefined)
    } catch (error) {
      return refusalOf(error)
    }
  }

  #withBytes(read: (bytes: Uint8Array) => Result | Promise<Result>): Result | Promise<Result> {
    const { requestBody, bufferLimit } = this.context.exchange
    const readBody = (body: BufferedBody): Result | Promise<Result> => {
      if (!body.complete) throw new GatewayError('body_too_large')
      try {
        return read(body.bytes)
      } catch (error) {
        return refusalOf(error)
      }
    }
    return andThen(requestBody.read(bufferLimit), readBody)
  }

  /** Decides about a request that has been read; undefined if it is not an A2A request. */
  #accept(request: A2aRequest | undefined): Result | Promise<Result> {
    const { exchange } = this.context
    const { a2a: rules, verifier } = a2aStepOf(this.access.policies) ?? {}
    if (request === undefined) {
      // Other documents of the agent are served, unless this would bypass the rules.
      const isHarmless = exchange.request.method === 'GET' || exchange.request.method === 'HEAD'
      if (isHarmless && rules === undefined && verifier === undefined) return undefined
      return refuse(404, 'NotFound', 'this is not an A2A request')
    }
    this.record = new A2aRecord(request)
    const { method, binding, version, taskId, contextId, messageId, tenant } = request
    exchange.learned.a2a = {
      method,
      binding,
      version,
      agent: this.name,
      ...(taskId !== undefined && { taskId }),
      ...(contextId !== undefined && { contextId }),
      ...(messageId !== undefined && { messageId }),
      ...(tenant !== undefined && { tenant }),
    }
    const refusal = rules?.refusal(exchange)
    if (refusal !== undefined) return this.#refuse(403, 'Authorization', 'not allowed', refusal)
    if (method === 'GetExtendedAgentCard' && binding === 'GRPC') {
      return this.#refuse(404, 'InvalidRequest', 'the extended card is not available over gRPC')
    }
    if (this.isForCard) this.#prepareForCard()
    return request.pushUrls.length === 0 ? undefined : this.#checkPush(request.pushUrls)
  }

  #refuse(status: number, reason: string, text: string, detail: string = text): RespondVerdict {
    const policy = a2aStepOf(this.access.policies)
    addNote(this.context.exchange, step, detail, { step: policy, isResponse: true })
    return refuse(status, reason, text, detail)
  }

  async #checkPush(urls: readonly unknown[]): Promise<Result> {
    const { push } = this.backend
    for (const url of urls) {
      const problem = await push.problem(url, (host) => resolveAll(this.runtime, host))
      if (problem !== undefined) {
        const text = `the URL for push notifications is not allowed: ${problem}`
        return this.#refuse(400, 'InvalidRequest', text)
      }
    }
    return undefined
  }

  get isForCard(): boolean {
    const method = this.request?.method
    return method === 'GetAgentCard' || method === 'GetExtendedAgentCard'
  }

  #prepareForCard(): void {
    const { context } = this
    context.keepOriginal()
    for (const name of cardHeaders) context.exchange.request.headers.remove(name)
  }

  adaptHeaders(): void {
    // The path is final only now.
    this.agentPath = this.context.exchange.request.path
  }

  wholeResponseLimit(): number | undefined {
    const { response, request } = this.context.exchange
    const isWhole = response?.status === 200 && request.method !== 'HEAD'
    return this.isForCard && isWhole ? maxCard : undefined
  }

  receive(body: BufferedBody | undefined): Result | Promise<Result> {
    if (body !== undefined) return receiveCard(this, body)
    const { record, context } = this
    const { response, responseBody } = context.exchange
    if (record === undefined || response === undefined || responseBody === undefined) {
      return undefined
    }
    const type = response.headers.get('content-type') ?? ''
    const coding = response.headers.get('content-encoding') ?? 'identity'
    const isStream = eventType.test(type)
    if (coding !== 'identity' || !(isStream || jsonType.test(type))) return undefined
    const reader = new OutcomeReader(isStream, (outcome) => {
      record.outcome = { ...record.outcome, ...outcome }
    })
    responseBody.through(reader)
    return undefined
  }

  errorWriter(): ErrorWriter | undefined {
    return errorWriterOf(this.request)
  }
}

function refusalOf(error: unknown): RespondVerdict {
  if (error instanceof RequestRefusal) return refuse(error.status, 'InvalidRequest', error.message)
  throw error
}

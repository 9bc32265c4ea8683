/** One request to a backend of language models, over all its attempts. */
import { GatewayError } from '../../../errors/index.ts'
import type { ResponseHead } from '../../../exchange/exchange.ts'
import { tokenLimitsOf } from '../../../exchange/rate-limits.ts'
import type { AttemptDescription, BackendCall } from '../../../proxy/request/backend-call.ts'
import type { ErrorWriter } from '../../../proxy/request/error-response.ts'
import { nameRetry, type RequestContext } from '../../../proxy/request/request-context.ts'
import type { GatewayRuntime } from '../../../proxy/request/runtime.ts'
import type { Ejection } from '../../../proxy/telemetry/types.ts'
import { now } from '../../../proxy/upstream/choose.ts'
import type { AttemptOutcome } from '../../../proxy/upstream/endpoint.ts'
import {
  hasUntriedProvider,
  isProviderFailure,
  mayRepeat,
  providerOutcome,
  resolveProvider,
} from './choose-provider.ts'
import { ModelCall, operationOf } from './model-call.ts'
import { finishModelCall } from './model-facts.ts'
import type { ModelBackend } from './model-providers.ts'
import { ModelRecord } from './model-record.ts'
import { errorWriterFor } from './own-answers.ts'
import { prepareModelRequest } from './prepare.ts'
import { receiveAnswer } from './receive.ts'

export class AiCall implements BackendCall {
  readonly #context: RequestContext
  readonly #runtime: GatewayRuntime
  readonly #find: () => ModelBackend | undefined
  #call: ModelCall | undefined
  record: ModelRecord | undefined

  /** `find`: the backend as it is configured now. */
  constructor(
    context: RequestContext,
    runtime: GatewayRuntime,
    find: () => ModelBackend | undefined,
  ) {
    this.#context = context
    this.#runtime = runtime
    this.#find = find
  }

  resolve(): undefined | Promise<undefined> {
    const backend = this.#find()
    if (backend === undefined) throw new GatewayError('service_not_found')
    const { exchange } = this.#context
    if (this.#call === undefined) {
      this.#context.keepOriginal()
      tokenLimitsOf(exchange)?.note(exchange)
      this.#call = new ModelCall(exchange, mayRepeat(this.#context, backend))
    } else {
      this.#call.restore(exchange.request)
      nameRetry(this.#context)
    }
    return resolveProvider(this.#context, this.#call, this.#runtime, backend)
  }

  prepare() {
    return this.#call && prepareModelRequest(this.#context, this.#call, this.#find())
  }

  /** Vendors look for credentials in places of their own. */
  adaptHeaders(): void {
    const { headers, path } = this.#context.exchange.request
    this.#call?.provider?.vendor.adaptHeaders(headers, path)
  }

  hasAnother(failure: number | GatewayError): boolean {
    if (typeof failure === 'number' && !isProviderFailure(failure)) return false
    if (this.#call?.canTryMore !== true || !this.#context.exchange.isReplayable) return false
    return hasUntriedProvider(this.#call, this.#find())
  }

  outcomeOf(result: ResponseHead | GatewayError, latencyMs: number): AttemptOutcome {
    return providerOutcome(result, latencyMs)
  }

  ejection(reason: string): Ejection | undefined {
    const provider = this.#call?.provider
    if (provider === undefined) return undefined
    const { host, port, endpoint } = provider
    return {
      backend: this.#context.backend?.label ?? 'unknown',
      provider: provider.provider.name ?? `${host}:${port}`,
      reason,
      isOver: () => !endpoint.isEjected(now),
    }
  }

  receive() {
    return this.#call && receiveAnswer(this.#context, this.#call)
  }

  errorWriter(): ErrorWriter | undefined {
    if (this.#call === undefined) return undefined
    const { route, routeTypes } = this.#call
    const { path } = this.#context.exchange.request
    return errorWriterFor(route ?? routeTypes.typeOf(path) ?? 'Completions')
  }

  /** As OpenTelemetry wants calls of language models to be described. */
  describeAttempt(): AttemptDescription | undefined {
    const { asked, provider } = this.#call ?? {}
    if (asked === undefined || provider === undefined) return undefined
    const operation = operationOf(asked.route)
    return {
      name: `${operation} ${asked.model}`,
      attributes: [
        ['gen_ai.operation.name', operation],
        ['gen_ai.provider.name', provider.vendor.systemName],
        ['gen_ai.request.model', asked.model],
        ['server.address', provider.host],
        ['server.port', BigInt(provider.port)],
      ],
    }
  }

  finish(): void {
    if (this.#call === undefined) return
    this.record = new ModelRecord(finishModelCall(this.#context, this.#call))
  }
}

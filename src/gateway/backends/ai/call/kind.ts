/** The backend kind of language models, and the steps of a request to such a backend. */
import { vendorKeys } from '../../../../engines/auth/vendor-keys.ts'
import { GatewayError } from '../../../../ground/errors/index.ts'
import type { BufferedBody } from '../../../../ground/exchange/exchange.ts'
import { backendPolicies } from '../../../proxy/config/placement.ts'
import type { ConfigStore } from '../../../proxy/config/store.ts'
import type { AttemptDescription, BackendCall } from '../../../proxy/request/backend-call.ts'
import { type BackendKind, CompiledBackends } from '../../../proxy/request/backend-kind.ts'
import type { ErrorWriter } from '../../../proxy/request/error-response.ts'
import { nameRetry } from '../../../proxy/request/request-context.ts'
import type { GatewayRuntime } from '../../../proxy/request/runtime.ts'
import type { Ejection } from '../../../proxy/telemetry/types.ts'
import { now } from '../../../proxy/upstream/endpoint.ts'
import {
  hasUntriedProvider,
  isProviderFailure,
  providerOutcome,
  resolveProvider,
} from './choose-provider.ts'
import { ModelCall, routeTypesOf } from './model-call.ts'
import { finishModelCall } from './model-details.ts'
import { compileProviders, type ModelBackend, providerName } from './model-providers.ts'
import { ModelRecord } from './model-record.ts'
import { errorWriterAt, errorWriterFor, noRetryHeader } from './own-responses.ts'
import { prepareModelRequest } from './prepare.ts'
import { beginningOfResponse, receiveResponse, wholeResponseLimit } from './receive.ts'

export function aiKind(runtime: GatewayRuntime): BackendKind {
  const backends = new CompiledBackends<'ai', ModelBackend>('ai', (name, { groups }, before) =>
    compileProviders(name, groups, before),
  )
  return {
    type: 'ai',
    protocol: 'llm',
    onlyFor: 'only requests to a model can go there',
    clientKeys: vendorKeys,
    limitHeaders: [noRetryHeader],
    set: backends.set,
    remove: backends.remove,
    begin: (context, { name }) => new AiCall(new ModelCall(context, backends, name), runtime),
    errorWriter(context, placement, { name }) {
      const provider = backends.find(name)?.groups[0]?.[0]
      const access = provider && placement?.backend(provider.named, () => provider.part)
      return errorWriterAt(routeTypesOf(access), context.exchange.request.path)
    },
    warmUp({ namespace, name }) {
      const backend = backends.find(`${namespace}/${name}`)
      if (backend !== undefined) warmCredentials(backend, runtime.config)
    },
  }
}

/** Fetches cloud credentials in advance, unless policies of the backend itself set other credentials. */
function warmCredentials({ groups }: ModelBackend, { policies }: ConfigStore): void {
  for (const { credentials, named, part } of groups.flat()) {
    if (credentials === undefined) continue
    const { connection } = backendPolicies(policies, [], named, part)
    if (connection.credentials === undefined) credentials.prepare()
  }
}

/** The steps that the proxy runs for one request, whose state is in `ModelCall`. */
class AiCall implements BackendCall {
  readonly #call: ModelCall
  readonly #runtime: GatewayRuntime
  #isResolved = false
  record: ModelRecord | undefined

  constructor(call: ModelCall, runtime: GatewayRuntime) {
    this.#call = call
    this.#runtime = runtime
  }

  resolve(): undefined | Promise<undefined> {
    const { backend, context } = this.#call
    if (backend === undefined) throw new GatewayError('service_not_found')
    if (this.#isResolved) {
      this.#call.restoreHead()
      nameRetry(context)
    }
    this.#isResolved = true
    return resolveProvider(this.#call, this.#runtime, backend)
  }

  prepare() {
    return prepareModelRequest(this.#call)
  }

  /** Moves credentials, because vendors expect them in different headers. */
  adaptHeaders(): void {
    const { headers, path } = this.#call.context.exchange.request
    this.#call.provider?.vendor.adaptHeaders(headers, path)
  }

  hasAnother(failure: number | GatewayError): boolean {
    if (typeof failure === 'number' && !isProviderFailure(failure)) return false
    if (!this.#call.canTryMore || !this.#call.context.exchange.isReplayable) return false
    return hasUntriedProvider(this.#call)
  }

  readonly outcomeOf = providerOutcome

  namedProvider() {
    return this.#call.namedProvider()
  }

  ejection(reason: string): Ejection | undefined {
    const { provider, context } = this.#call
    if (provider === undefined) return undefined
    const { endpoint } = provider
    return {
      backend: context.backend?.label ?? 'unknown',
      provider: providerName(provider),
      reason,
      isOver: () => !endpoint.isEjected(now),
    }
  }

  wholeResponseLimit(): number | undefined {
    return wholeResponseLimit(this.#call)
  }

  beginningOfResponse() {
    return beginningOfResponse(this.#call)
  }

  receive(body: BufferedBody | undefined) {
    return receiveResponse(this.#call, body)
  }

  errorWriter(): ErrorWriter | undefined {
    const { route, routeTypes, context } = this.#call
    return route === undefined
      ? errorWriterAt(routeTypes, context.exchange.request.path)
      : errorWriterFor(route)
  }

  /** Describes an attempt by OpenTelemetry's conventions for calls of language models. */
  describeAttempt(): AttemptDescription | undefined {
    const { request, provider } = this.#call
    if (request === undefined || provider === undefined) return undefined
    const operation = request.format.operation
    return {
      name: `${operation} ${request.model}`,
      attributes: [
        ['gen_ai.operation.name', operation],
        ['gen_ai.provider.name', provider.vendor.systemName],
        ['gen_ai.request.model', request.model],
        ['server.address', provider.host],
        ['server.port', BigInt(provider.port)],
      ],
    }
  }

  finish(): void {
    const details = finishModelCall(this.#call)
    if (!this.#call.isProbe) this.record = new ModelRecord(details)
  }
}

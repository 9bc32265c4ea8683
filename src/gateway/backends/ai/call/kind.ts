/** The backend kind of language models, and the steps of a request to such a backend. */
import { vendorKeys } from '../../../../engines/auth/vendor-keys.ts'
import { FormBody } from '../../../../engines/messages/multipart/form-body.ts'
import { andThen } from '../../../../ground/base/and-then.ts'
import { GatewayError } from '../../../../ground/errors/index.ts'
import type { BufferedBody } from '../../../../ground/exchange/exchange.ts'
import { addNote } from '../../../../ground/exchange/notes.ts'
import { askedValues } from '../../../proxy/asked-answers.ts'
import { backendPolicies } from '../../../proxy/config/placement.ts'
import type { NamedTarget } from '../../../proxy/config/rules.ts'
import type { ConfigStore } from '../../../proxy/config/store.ts'
import type {
  AttemptDescription,
  BackendCall,
  EarlyResponse,
  Received,
} from '../../../proxy/request/backend-call.ts'
import { type BackendKind, CompiledBackends } from '../../../proxy/request/backend-kind.ts'
import { wholeBackend } from '../../../proxy/request/destinations.ts'
import type { ErrorWriter } from '../../../proxy/request/error-response.ts'
import { nameRetry } from '../../../proxy/request/request-context.ts'
import type { GatewayRuntime } from '../../../proxy/request/runtime.ts'
import type { Ejection } from '../../../proxy/telemetry/types.ts'
import { now } from '../../../proxy/upstream/endpoint.ts'
import { AnswerMemory } from '../answers/answer-memory.ts'
import { Flights } from '../answers/flights.ts'
import { RemoteAnswers } from '../answers/remote-answers.ts'
import { RespClient } from '../answers/resp-client.ts'
import { redisValues } from '../answers/shared-values.ts'
import { SimilarRequests } from '../answers/similar-requests.ts'
import { noRetryHeader } from '../policy/guard-refusal.ts'
import { keepAnswer } from './answers.ts'
import { providerOutcome, resolveProvider } from './choose-provider.ts'
import { BackendEmbedder } from './embed.ts'
import { isFailoverStatus } from './failover.ts'
import { ModelCall, routeTypesOf } from './model-call.ts'
import { finishModelCall } from './model-details.ts'
import { compileProviders, type EndpointsOf, type ModelBackend } from './model-providers.ts'
import { ModelRecord } from './model-record.ts'
import { moveOn } from './next-provider.ts'
import { errorWriterAt } from './own-responses.ts'
import { IdSeal } from './owned-ids.ts'
import { type Prepared, prepareModelRequest } from './prepare.ts'
import { providerName } from './provider-endpoint.ts'
import { beginningOfResponse, receiveResponse, wholeResponseLimit } from './receive.ts'
import { resolveSelected } from './select-model.ts'

/** Memory for embeddings of requests, as a fraction of the memory for answers. It is added to that memory. */
const vectorPart = 1 / 4

export function aiKind(runtime: GatewayRuntime): BackendKind {
  const { kinds } = runtime
  const endpointsOf: EndpointsOf = (server) =>
    server.target.type === 'service'
      ? runtime.config.services.endpoints(server.name, server.target.port)
      : (kinds.of(server)?.endpoints?.(server) ?? noEndpoints)
  const backends = new CompiledBackends<'ai', ModelBackend>('ai', (name, settings, before) =>
    compileProviders(name, settings, before, endpointsOf),
  )
  const ids = new IdSeal(runtime.sessionKey)
  const placeholders = new IdSeal(runtime.sessionKey, 'sluice placeholders of masked texts')
  const memory = new AnswerMemory(runtime.answerCacheBytes)
  const flights = new Flights()
  const similarRequests = new SimilarRequests(runtime.answerCacheBytes * vectorPart)
  const embedder = new BackendEmbedder((name) => backends.find(name), runtime)
  const { answerServer, sessionKey } = runtime
  const answers =
    answerServer === undefined
      ? memory
      : new RemoteAnswers(memory, valuesAt(answerServer), sessionKey)
  return {
    type: 'ai',
    protocol: 'llm',
    onlyFor: 'only requests to a model can go there',
    clientKeys: vendorKeys,
    limitHeaders: [noRetryHeader],
    set: backends.set,
    remove: backends.remove,
    begin: (context, { name }) =>
      new AiCall(
        new ModelCall(context, backends, name, {
          catalog: runtime.models.catalog,
          ids,
          placeholders,
          answers,
          flights,
          similarRequests,
          embedder,
        }),
        runtime,
      ),
    errorWriter(context, placement, { name }) {
      const { models, named, groups } = backends.find(name) ?? {}
      const provider = groups?.[0]?.[0]
      const access =
        models === undefined
          ? provider && placement?.backend(provider.named, () => provider.part)
          : named && placement?.backend(named, wholeBackend)
      return errorWriterAt(routeTypesOf(access), context.exchange.request.path)
    },
    warmUp({ namespace, name }) {
      memory.open()
      similarRequests.open()
      runtime.models.catalog.prepare()
      const backend = backends.find(`${namespace}/${name}`)
      if (backend !== undefined) warmCredentials(backend, runtime.config)
    },
  }
}

/** Each worker has its own connection to Redis. For NATS, workers ask the main thread. */
const valuesAt = (server: string) =>
  server.startsWith('redis') ? redisValues(new RespClient(new URL(server))) : askedValues

/** Keeps the response of the provider if the client gets it. */
function keepUnlessReplaced(received: Received, call: ModelCall): Received {
  if (received === undefined && !call.context.over) keepAnswer(call)
  return received
}

const noEndpoints = { preferred: [], all: [] }

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
  /** The request to the InferencePool that serves the model; undefined if none does. */
  #pool: BackendCall | undefined
  keepsRequest = false
  record: ModelRecord | undefined
  changeResponse: BackendCall['changeResponse']

  constructor(call: ModelCall, runtime: GatewayRuntime) {
    this.#call = call
    this.#runtime = runtime
  }

  resolve(): EarlyResponse | Promise<EarlyResponse> {
    const { backend, context } = this.#call
    if (backend === undefined) throw new GatewayError('service_not_found')
    if (this.keepsRequest && this.#pool !== undefined) return this.#pool.resolve()
    this.#leavePool()
    if (this.#isResolved) {
      this.#call.restoreHead()
      nameRetry(context)
    }
    this.#isResolved = true
    const { models, affinity } = backend
    return (models === undefined && affinity === undefined) || this.#call.selection !== undefined
      ? resolveProvider(this.#call, this.#runtime, backend)
      : resolveSelected(this.#call, this.#runtime, backend)
  }

  prepare() {
    const { provider } = this.#call
    const prepared = prepareModelRequest(this.#call)
    return provider?.pool === undefined ? prepared : this.#toPool(provider.pool, prepared)
  }

  /** Lets the pool choose the endpoint for the request as that endpoint gets it. */
  async #toPool(pool: NamedTarget, pending: Prepared | Promise<Prepared>): Promise<Prepared> {
    const { context, access, failover } = this.#call
    const prepared = await pending
    if (prepared !== undefined || context.over) return prepared
    try {
      const call = this.#runtime.kinds.callOf(context, pool, access)
      this.#pool = call
      this.changeResponse = (exchange) => call.changeResponse?.(exchange)
      const response = await call.resolve()
      if (response === undefined || !isFailoverStatus(failover, response.status, undefined)) {
        return response
      }
      return this.#movesOn(response.status) ? 'askAnother' : response
    } catch (error) {
      if (error instanceof GatewayError && this.#movesOn(undefined)) return 'askAnother'
      throw error
    }
  }

  /** Returns whether another provider may serve a request for which the pool chooses no endpoint. */
  #movesOn(status: number | undefined): boolean {
    const call = this.#call
    if (call.context.over || !call.canTryMore || !moveOn(call, status)) return false
    const text = 'asks the next provider: the InferencePool has chosen no endpoint'
    addNote(call.context.exchange, 'backend.ai', text, { step: call.policy })
    return true
  }

  #leavePool(): void {
    this.#pool?.finish?.()
    this.#pool = undefined
    this.changeResponse = undefined
  }

  /** Moves credentials, because vendors expect them in different headers. */
  adaptHeaders(): void {
    const { headers, path } = this.#call.context.exchange.request
    this.#call.provider?.vendor.adaptHeaders(headers, path)
  }

  hasAnother(failure: number | GatewayError): boolean {
    this.keepsRequest = this.#pool?.hasAnother?.(failure) === true
    if (this.keepsRequest) return true
    const isMoving = this.#hasAnotherProvider(failure)
    // Retries of the route try the next endpoints of the pool.
    this.keepsRequest = !isMoving && this.#pool !== undefined
    return isMoving
  }

  #hasAnotherProvider(failure: number | GatewayError): boolean {
    const call = this.#call
    const { exchange } = call.context
    if (typeof failure === 'number' && call.reason === undefined) {
      if (!isFailoverStatus(call.failover, failure, exchange.response)) return false
    }
    if (!call.canTryMore || !exchange.isReplayable) return false
    return moveOn(call, call.reason ?? (typeof failure === 'number' ? failure : undefined))
  }

  firstEventTimeouts() {
    const { failover, request, canTryMore } = this.#call
    const { firstTokenMs, idleMs } = failover ?? {}
    if (request?.isStream !== true || !canTryMore) return undefined
    if (firstTokenMs === undefined && idleMs === undefined) return undefined
    return { responseTimeoutMs: firstTokenMs, idleTimeoutMs: idleMs }
  }

  readonly outcomeOf = providerOutcome

  namedProvider() {
    return this.#call.namedProvider()
  }

  ejection(reason: string): Ejection | undefined {
    const { provider, context } = this.#call
    if (provider === undefined) return undefined
    const endpoint = context.attempt?.endpoint ?? provider.endpoint
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
    return andThen(receiveResponse(this.#call, body), keepUnlessReplaced, this.#call)
  }

  errorWriter(): ErrorWriter | undefined {
    const { path, routeTypes, context, clientBody } = this.#call
    const writer = errorWriterAt(routeTypes, path ?? context.exchange.request.path)
    const problem = clientBody instanceof FormBody ? clientBody.problem : undefined
    return writer && problem ? (status) => writer(status, problem.message) : writer
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
    this.#pool?.finish?.()
    if (!this.#call.isProbe || details.batch !== undefined)
      this.record = new ModelRecord(details, this.#pool?.record)
  }
}

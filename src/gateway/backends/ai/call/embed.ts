/** Calls a backend for the embedding of a text, which finds stored answers to similar requests. */
import type { ModelCatalog } from '../../../../engines/messages/catalog/catalog.ts'
import type { Usage } from '../../../../engines/messages/chat.ts'
import type { Cost } from '../../../../engines/messages/cost/cost.ts'
import { invokeTokensHeader } from '../../../../engines/messages/formats/embeddings/embeddings.ts'
import { embeddings } from '../../../../engines/messages/formats/embeddings/index.ts'
import { embeddingsFormats } from '../../../../engines/messages/formats/index.ts'
import { parseJson, utf8Text } from '../../../../engines/messages/json/json.ts'
import { LlmError } from '../../../../engines/messages/llm-error.ts'
import {
  type OutgoingRequest,
  outgoingRequest,
} from '../../../../engines/messages/request/outgoing.ts'
import { GatewayError } from '../../../../ground/errors/index.ts'
import { forwardingExtensions } from '../../../../ground/exchange/forwarding.ts'
import { type BackendAccess, httpAccess } from '../../../proxy/config/backend-access.ts'
import { backendPolicies } from '../../../proxy/config/placement.ts'
import type { RequestContext } from '../../../proxy/request/request-context.ts'
import type { GatewayRuntime } from '../../../proxy/request/runtime.ts'
import { chooseEndpoint, now } from '../../../proxy/upstream/endpoint.ts'
import { unitVector } from '../answers/similar-requests.ts'
import { ServiceExchange } from '../guards/service-connection.ts'
import type { AiStep } from '../policy/apply.ts'
import type { SemanticConfig } from '../policy/config.ts'
import { costOfCall } from './call-cost.ts'
import { chooseProvider, type ModelBackend } from './model-providers.ts'
import { type ProviderEndpoint, providerName } from './provider-endpoint.ts'

/** What an embedding has used. */
export interface EmbeddingUse {
  /** `gen_ai.provider.name`, such as `openai`. */
  readonly provider: string
  readonly model: string
  readonly usage: Usage
  readonly cost: Cost
}

interface Embedding {
  /** A unit vector. */
  readonly vector: Float32Array
  readonly use: EmbeddingUse
}

/** The parts of a model call that an embedding needs. */
interface EmbeddingCall {
  readonly catalog: ModelCatalog
  readonly context: RequestContext
  readonly policy: AiStep | undefined
}

/** Makes embeddings. */
export interface Embedder {
  /** Never rejects: resolves to the reason if there is no embedding. */
  embed(call: EmbeddingCall, config: SemanticConfig, text: string): Promise<Embedding | string>
}

/** A vector of 8,192 numbers has about 180 kB. */
const maxResponseBytes = 1024 * 1024
/** With these statuses, a backend refuses one text, for example by a content filter. It may accept the next one. */
const statusesOfText: ReadonlySet<number> = new Set([400, 413, 422])
/** First and longest pause after failures, during which a backend is not called. */
const firstPauseMs = 100
const maxPauseMs = 10_000

interface Pause {
  readonly until: number
  readonly lengthMs: number
}

interface KnownAccess {
  readonly generation: number
  readonly access: BackendAccess
}

export class BackendEmbedder implements Embedder {
  readonly #find: (name: string) => ModelBackend | undefined
  readonly #runtime: GatewayRuntime
  /** By backend. */
  readonly #pauses = new Map<string, Pause>()
  readonly #access = new WeakMap<ProviderEndpoint, KnownAccess>()

  /** `find` returns a backend by `namespace/name`. */
  constructor(find: (name: string) => ModelBackend | undefined, runtime: GatewayRuntime) {
    this.#find = find
    this.#runtime = runtime
  }

  async embed(
    call: EmbeddingCall,
    config: SemanticConfig,
    text: string,
  ): Promise<Embedding | string> {
    const { target } = config
    if (target.type === 'invalid') return target.message
    const name = `${target.namespace}/${target.name}`
    const pause = this.#pauses.get(name)
    if (pause !== undefined && now() < pause.until)
      return 'the embeddings backend failed shortly before'
    try {
      const found = await this.#ask(call, name, config, text)
      this.#pauses.delete(name)
      return found
    } catch (error) {
      if (!(error instanceof GatewayError || error instanceof LlmError)) throw error
      if (error instanceof LlmError && error.status === 400) return error.message
      const lengthMs = Math.min(maxPauseMs, pause === undefined ? firstPauseMs : pause.lengthMs * 2)
      this.#pauses.set(name, { until: now() + lengthMs, lengthMs })
      return error.message
    }
  }

  /** @throws GatewayError, or LlmError if the provider makes no embeddings or its response cannot be read */
  async #ask(
    call: EmbeddingCall,
    name: string,
    config: SemanticConfig,
    text: string,
  ): Promise<Embedding> {
    const backend = this.#find(name)
    if (backend === undefined) throw new LlmError(502, `${name} is not a backend of type ai`)
    if (backend.models !== undefined) throw new LlmError(502, `${name} serves certain models only`)
    const provider = this.#choose(backend)
    const outgoing = outgoingFor(call, provider, config, text)
    const { status, headers, body } = await this.#send(call, provider, outgoing, config.timeoutMs)
    if (status !== 200) {
      const isOfText = statusesOfText.has(status)
      throw new LlmError(isOfText ? 400 : 502, `${providerName(provider)} answered ${status}`)
    }
    const counted = Number(headers.find(([key]) => key.toLowerCase() === invokeTokensHeader)?.[1])
    return readEmbedding(call, provider, outgoing, utf8Text(body), counted)
  }

  #choose({ groups }: ModelBackend): ProviderEndpoint {
    const { random } = this.#runtime
    const provider = chooseProvider(
      { groups, tried: [], suits: undefined, session: undefined },
      { random, now },
    )
    if (provider === undefined) throw new GatewayError('no_endpoints')
    if (provider.pool !== undefined)
      throw new LlmError(502, 'an InferencePool cannot make embeddings')
    return provider
  }

  /** Sends a request with the policies that target the backend. */
  async #send(
    { context, policy }: EmbeddingCall,
    provider: ProviderEndpoint,
    { plan, body }: OutgoingRequest,
    timeoutMs: number,
  ) {
    const { policies, profiles, steps, problem } = this.#accessTo(provider)
    if (problem !== undefined) throw new GatewayError(problem.code, problem.detail)
    const { random, callouts } = this.#runtime
    const pod = provider.pods && chooseEndpoint(provider.pods(), { random, now })
    if (provider.pods !== undefined && pod === undefined) throw new GatewayError('no_endpoints')
    const { host, port } = pod?.address ?? provider
    const authority = provider.authority[profiles.of(provider.host).scheme]
    const path = provider.provider.path ?? plan.path
    const bytes = Buffer.from(JSON.stringify(body))
    const call = new ServiceExchange(context.exchange, authority, path, bytes)
    const scope = provider.vendor.signingScope?.(provider.provider.config)
    if (scope !== undefined) call.extensions.set(forwardingExtensions.signingScope, scope)
    for (const step of steps) {
      if (step === policy) continue
      const verdict = await step.onRequest?.(call)
      if (verdict?.kind === 'respond') throw new LlmError(502, 'a policy has refused the call')
    }
    provider.vendor.adaptHeaders(call.request.headers, call.request.path)
    return callouts.http({
      target: { type: 'server', host, port, settings: policies.connection },
      method: 'POST',
      path,
      headers: [['host', authority], ...call.request.headers.entries()],
      body: bytes,
      timeoutMs,
      maxResponseBytes,
      exchange: context.exchange,
    })
  }

  #accessTo(provider: ProviderEndpoint): BackendAccess {
    const { policies } = this.#runtime.config
    const { generation } = policies
    const known = this.#access.get(provider)
    if (known?.generation === generation) return known.access
    const { named, part } = provider
    const access = httpAccess(backendPolicies(policies, [], named, part), part)
    this.#access.set(provider, { generation, access })
    return access
  }
}

/** @throws LlmError 400 if the provider makes no embeddings */
function outgoingFor(
  call: EmbeddingCall,
  { vendor, provider, catalogId }: ProviderEndpoint,
  { model: configured, dimensions }: SemanticConfig,
  text: string,
): OutgoingRequest & { readonly body: object } {
  const model = provider.config.model ?? provider.config.deploymentName ?? configured
  const asked = { model, input: text, ...(dimensions !== undefined && { dimensions }) }
  const settled = { body: asked, model, asked: undefined, isChanged: true }
  const outgoing = outgoingRequest(settled, embeddings, {
    ...{ vendor, provider: provider.config, catalog: call.catalog, catalogId },
    isPathFixed: provider.path !== undefined,
    settings: undefined,
    headers: call.context.exchange.request.headers,
    path: '/v1/embeddings',
    newId: () => '',
  })
  if ('count' in outgoing) throw new Error('an embeddings request must not become a token count')
  return { ...outgoing, body: outgoing.body ?? asked }
}

/** `counted` is the number of tokens that a header reports; NaN without one. @throws LlmError 502 if there is no vector */
function readEmbedding(
  { catalog, context }: EmbeddingCall,
  provider: ProviderEndpoint,
  outgoing: OutgoingRequest,
  text: string,
  counted: number,
): Embedding {
  const { plan, model } = outgoing
  const format = plan.kind === 'embeddings' ? plan.format : 'vectors'
  const inHeader = counted > 0 ? counted : undefined
  const found = embeddingsFormats[format].readResponse(parseJson(text), model, inHeader)
  const vector = unitVector(found.vectors[0] ?? [])
  if (vector === undefined) throw new LlmError(502, 'the response has no vector')
  const input = found.tokens ?? inHeader ?? 0
  const usage = { input, uncachedInput: input, output: 0 }
  const cost = costOfCall({ catalog, details: { model }, provider, outgoing, context }, usage)
  return { vector, use: { provider: provider.vendor.systemName, model, usage, cost } }
}

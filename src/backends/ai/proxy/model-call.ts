/** What the data plane knows of one request to a language model, over all its attempts. */
import type { ServerExchange } from '../../../engine/contracts/requests.ts'
import type { RequestHead } from '../../../exchange/exchange.ts'
import type { BackendAccess } from '../../../proxy/config/backend-access.ts'
import { now } from '../../../proxy/upstream/choose.ts'
import { laterUsage } from '../chat.ts'
import type { GuardCheck } from '../guards/guard-check.ts'
import type { JsonObject } from '../json.ts'
import type { RouteType } from '../policy/schema.ts'
import { AiStep } from '../policy/step.ts'
import type { ReadRouteType } from '../providers/provider.ts'
import { defaultRouteTypes, type RouteTypes } from '../request/route-type.ts'
import type { OutgoingRequest } from '../serve/request.ts'
import type { Said } from '../serve/said.ts'
import type { AnswerFacts } from '../serve/usage.ts'
import { ClientCredentials } from './client-credentials.ts'
import type { ProviderEndpoint } from './model-providers.ts'

/** Providers that one request asks at most. */
const mostAttempts = 8

export class ModelCall {
  /** What the client has sent as credentials; the request no longer has it. */
  readonly credentials: ClientCredentials
  /** The head before anything was done for a provider: every attempt begins with it. */
  readonly #head: HeadCopy | undefined
  /** Asked already, in this order. */
  readonly tried = new Set<ProviderEndpoint>()
  /** How many of those could not carry the request, so that nothing was sent to them. */
  unsuited = 0
  provider: ProviderEndpoint | undefined
  #access: BackendAccess | undefined
  route: RouteType | undefined
  /** The body as the client sent it, decoded. */
  clientBytes: Uint8Array | undefined
  clientBody: JsonObject | undefined
  /** What is asked, in the client's format, as guards have left it; undefined until that is known. */
  asked: AskedOfModel | undefined
  /** Expressions can ask about it. */
  isDescribed = false
  /** What was sent; undefined for what is not looked into. */
  outgoing: OutgoingRequest | undefined
  /** What request guards have made of the body, for requests under this policy. */
  guarded: GuardedBody | undefined
  /** Decisions of guards, in order. */
  readonly checks: GuardCheck[] = []
  /** The answer on its way; holds memory of the core. */
  stream: { dispose(): void } | undefined
  /** What the model has said; undefined where nobody writes it down. */
  said: Said | undefined
  facts: AnswerFacts = {}
  /** Bytes of content that came after the provider last told what was used. */
  uncountedBytes = 0
  /** Of the first piece of the answer and of the last, in milliseconds of `performance.now()`. */
  firstContentAt: number | undefined
  lastContentAt: number | undefined

  /** `mayRepeat`: there may be another attempt; without it none is made. */
  constructor(exchange: ServerExchange, mayRepeat: boolean) {
    this.credentials = new ClientCredentials(exchange)
    this.#head = mayRepeat ? copyHead(exchange.request) : undefined
  }

  /** What holds for the provider that is being asked. */
  get access(): BackendAccess | undefined {
    return this.#access
  }

  set access(access: BackendAccess | undefined) {
    const before = this.policy
    this.#access = access
    this.policy?.retain()
    before?.release()
  }

  /** The exchange is over, however it ended: memory of the core is given back. */
  end(): void {
    this.stream?.dispose()
    this.access = undefined
  }

  /** Settings of the provider that is being asked. */
  get policy(): AiStep | undefined {
    return aiStepOf(this.#access)
  }

  get routeTypes(): RouteTypes {
    return routeTypesOf(this.#access)
  }

  /** The head can be brought back to what it was before the first provider. */
  get canRestore(): boolean {
    return this.#head !== undefined
  }

  get canTryMore(): boolean {
    return this.canRestore && this.tried.size - this.unsuited < mostAttempts
  }

  /** What was made of the head for the provider before is undone. */
  restore(request: RequestHead): void {
    if (this.#head !== undefined) restoreHead(request, this.#head)
  }

  /** A piece of the answer's content has come. */
  hear(piece: string): void {
    this.lastContentAt = now()
    this.firstContentAt ??= this.lastContentAt
    this.uncountedBytes += Buffer.byteLength(piece)
  }

  learn(facts: AnswerFacts): void {
    if (facts.usage !== undefined) this.uncountedBytes = 0
    const usage = facts.usage && laterUsage(this.facts.usage, facts.usage)
    this.facts = { ...this.facts, ...facts, ...(usage && { usage }) }
  }
}

const aiStepOf = (access: BackendAccess | undefined): AiStep | undefined =>
  access?.policies.steps.find((step): step is AiStep => step instanceof AiStep)

/** What the policies of a provider say about paths. */
export const routeTypesOf = (access: BackendAccess | undefined): RouteTypes =>
  aiStepOf(access)?.routeTypes ?? defaultRouteTypes

interface AskedOfModel {
  readonly route: ReadRouteType
  readonly model: string
  readonly isStream: boolean
  readonly body: JsonObject
}

interface GuardedBody {
  readonly policy: AiStep | undefined
  readonly route: ReadRouteType
  /** Undefined: they have changed nothing. */
  readonly body: JsonObject | undefined
}

interface HeadCopy {
  readonly method: string
  readonly authority: string
  readonly path: string
  readonly query: string | undefined
  readonly headers: readonly (readonly [string, string])[]
}

function copyHead({ method, authority, path, query, headers }: RequestHead): HeadCopy {
  return { method, authority, path, query, headers: [...headers.entries()] }
}

function restoreHead(request: RequestHead, copy: HeadCopy): void {
  const { headers } = request
  for (const [name] of [...headers.entries()]) headers.remove(name)
  for (const [name, value] of copy.headers) headers.add(name, value)
  request.method = copy.method
  request.path = copy.path
  request.query = copy.query
  request.authority = copy.authority
}

const operations = {
  Completions: 'chat',
  Messages: 'chat',
  Responses: 'chat',
  Embeddings: 'embeddings',
  VendorCTokenCount: 'count_tokens',
} as const

/** By the names that OpenTelemetry has for them, where it has any. */
export function operationOf(route: ReadRouteType): (typeof operations)[ReadRouteType] {
  return operations[route]
}

/** The state of one request to a language model, across all its attempts. */

import type { ModelCatalog } from '../../../../engines/messages/catalog/catalog.ts'
import { laterUsage, type Usage } from '../../../../engines/messages/chat.ts'
import type { ResponseDetails } from '../../../../engines/messages/common/response-details.ts'
import type { Cost } from '../../../../engines/messages/cost/cost.ts'
import type { ClientFormat } from '../../../../engines/messages/format.ts'
import type { RouteType } from '../../../../engines/messages/formats/index.ts'
import type { JsonObject } from '../../../../engines/messages/json/json.ts'
import type { StreamAudits } from '../../../../engines/messages/mask/stream-audits.ts'
import type { FormBody } from '../../../../engines/messages/multipart/form-body.ts'
import type { ClientBody, RequestBody } from '../../../../engines/messages/request/client-body.ts'
import type { OutgoingRequest } from '../../../../engines/messages/request/outgoing.ts'
import type { Completeness } from '../../../../engines/messages/response/completeness.ts'
import type { ModelOutput } from '../../../../engines/messages/response/model-output.ts'
import type { ModelResponseStream } from '../../../../engines/messages/response/stream.ts'
import { budgetsOf } from '../../../../ground/exchange/budgets.ts'
import type { RequestHead } from '../../../../ground/exchange/exchange.ts'
import { forwardingExtensions } from '../../../../ground/exchange/forwarding.ts'
import { tokenLimitsOf } from '../../../../ground/exchange/rate-limits.ts'
import type { FailoverRules, ProviderConfig } from '../../../../ground/model/model-providers.ts'
import type { BackendAccess } from '../../../proxy/config/backend-access.ts'
import type { NamedProvider } from '../../../proxy/request/backend-call.ts'
import type { RequestContext } from '../../../proxy/request/request-context.ts'
import { now } from '../../../proxy/upstream/endpoint.ts'
import type { AnswerStore } from '../answers/answer-memory.ts'
import type { AnswerUse } from '../answers/answer-use.ts'
import type { FlightMember, Flights } from '../answers/flights.ts'
import type { SimilarRequests } from '../answers/similar-requests.ts'
import type { GuardCheck } from '../guards/guard-call.ts'
import { AiStep } from '../policy/apply.ts'
import type { PlacedGuard } from '../policy/bind-guard.ts'
import type { BackendAiConfig } from '../policy/config.ts'
import { defaultRouteTypes, type RouteTypes } from '../policy/route-types.ts'
import type { BatchResults } from './batch-results.ts'
import { costOfCall } from './call-cost.ts'
import { ClientCredentials } from './client-credentials.ts'
import type { Comparison } from './comparison.ts'
import type { Embedder } from './embed.ts'
import type { FailoverReason } from './failover.ts'
import type { FirstEvent } from './first-event.ts'
import type { ModelBackend } from './model-providers.ts'
import { type IdSeal, OwnedIds } from './owned-ids.ts'
import type { PlaceholderRestorer } from './placeholders.ts'
import type { ProviderEndpoint, Suits } from './provider-endpoint.ts'
import type { ModelSelection } from './served-models.ts'
import type { Affinity } from './session-affinity.ts'

const noDetails: ResponseDetails = {}
const noProviders: readonly ProviderEndpoint[] = []
const noGroups: ModelBackend['groups'] = []

/** Maximum number of providers that one request is sent to. */
const maxAttempts = 8

/** The backends with their current configuration. */
interface Backends {
  find(name: string): ModelBackend | undefined
}

type HeadCopy = Pick<RequestHead, 'method' | 'authority' | 'path' | 'query'> & {
  readonly headers: readonly (readonly [string, string])[]
}

/** What calls of one thread share. */
interface CallServices {
  readonly catalog: ModelCatalog
  readonly ids: IdSeal
  readonly placeholders: IdSeal
  readonly answers: AnswerStore
  readonly flights: Flights
  readonly similarRequests: SimilarRequests
  readonly embedder: Embedder
}

export class ModelCall {
  readonly context: RequestContext
  readonly #backends: Backends
  readonly #name: string
  /** The catalog of models in force when the request began. */
  readonly catalog: ModelCatalog
  /** The credentials of the client, which were removed from the request. */
  readonly credentials: ClientCredentials
  /** Answers that may be served again. */
  readonly answers: AnswerStore
  /** Equal requests that are under way. */
  readonly flights: Flights
  /** Requests with stored answers, for similar ones. */
  readonly similarRequests: SimilarRequests
  readonly embedder: Embedder
  /** The comparison with similar requests; undefined if there was none. */
  comparison: Comparison | undefined
  readonly #ids: IdSeal
  /** Seals the texts of placeholders (reversible masks). */
  readonly placeholders: IdSeal
  #ownedIds: OwnedIds | undefined
  /** A request for something that the provider stores; undefined for requests to a model. */
  stored: StoredCall | undefined
  /** The results of a batch, while they are relayed. */
  batch: BatchResults | undefined
  /** The original request head, which each attempt starts from; undefined if there is only one attempt. */
  #head: HeadCopy | undefined
  /** The providers that were chosen, in order. */
  tried: readonly ProviderEndpoint[] = noProviders
  /** Number of tried providers that do not support the request, so that nothing was sent to them. */
  unsuited = 0
  provider: ProviderEndpoint | undefined
  /** The model that the client asked for, if the backend serves certain models only. */
  selection: ModelSelection | undefined
  /** The session of the request, if an expression names one. */
  session: Affinity | undefined
  /** Which providers may succeed after the failures so far; undefined if all others may. */
  suits: Suits | undefined
  /** Why the content of the last response leads to another provider. */
  reason: FailoverReason | undefined
  /** Ejected providers that were skipped; undefined if there are none. */
  skipped: readonly ProviderEndpoint[] | undefined
  #access: BackendAccess | undefined
  /** The AI settings for the current provider. Set with `access`. */
  policy: AiStep | undefined
  route: RouteType | undefined
  /** The path after rewrites of the route, by which the format of the client is known; undefined until then. */
  path: string | undefined
  /** True for requests without a body, such as probes of clients, which are no calls of a model. */
  isProbe = false
  /** True if token limits have admitted the request, which includes its later attempts. */
  isAdmitted = false
  /** The attempt that limits and budgets have judged. */
  judged: OutgoingRequest | undefined
  /** Size of the body of the current attempt. */
  bodyBytes = 0
  /** The decoded body of the client. */
  clientBody: ReadBody | undefined
  /** The request in the client's format after guards; undefined until then. */
  request: ModelRequest | undefined
  /** True if the details are available to expressions. */
  isDescribed = false
  /** The request to the provider; undefined for route types whose requests the gateway does not read. */
  outgoing: OutgoingRequest | undefined
  /** The result of the request guards, reused for providers with the same policy. */
  guarded: GuardedBody | undefined
  #restorer: PlaceholderRestorer | undefined
  /** Identifies the request by its bytes for the cache of answers; undefined if its whole body is read. */
  repetition: string | undefined
  /** What the cache of answers does for the request; undefined if there is no cache. */
  answer: AnswerUse | undefined
  /** The request as a member of a flight of equal requests; undefined if it is in none. */
  flightMember: FlightMember | undefined
  /** Judges the response for the cache; undefined if it is not kept. */
  completeness: Completeness | undefined
  /** The policy whose audits have read the request; undefined before that. */
  audited: AiStep | undefined
  /** The guards of the response, after the choice of audits. */
  sampled:
    | { readonly policy: AiStep | undefined; readonly guards: readonly PlacedGuard[] }
    | undefined
  /** Decisions of guards, in order. */
  readonly checks: GuardCheck[] = []
  /** Watches the beginning of the streamed response that is being received; undefined if nothing does. */
  firstEvent: FirstEvent | undefined
  /** The transform of a streamed response; it holds memory of the core. */
  stream: ModelResponseStream | undefined
  /** The audits of a streamed response; they hold memory of the core. */
  audits: StreamAudits<PlacedGuard> | undefined
  /** Results of guards that check a streamed response in windows. */
  windows: { note(call: ModelCall): void } | undefined
  /** The texts and tool calls of the response; undefined if they are not recorded. */
  output: ModelOutput | undefined
  details: ResponseDetails = noDetails
  /** Set at the end if the provider did not report all of the usage. */
  estimatedUsage: Usage | undefined
  /** The cost of the reported usage; computed again only if the provider reports another usage. */
  #cost: Cost | undefined
  /** Bytes of content that arrived after the provider's last usage report. */
  uncountedBytes = 0
  /** Time of the first piece of content, in milliseconds of `performance.now()`. */
  firstContentAt: number | undefined
  /** Time of the last piece of content, in milliseconds of `performance.now()`. */
  lastContentAt: number | undefined

  constructor(context: RequestContext, backends: Backends, name: string, services: CallServices) {
    this.context = context
    this.catalog = services.catalog
    this.#ids = services.ids
    this.placeholders = services.placeholders
    this.answers = services.answers
    this.flights = services.flights
    this.similarRequests = services.similarRequests
    this.embedder = services.embedder
    this.#backends = backends
    this.#name = name
    const { exchange } = context
    // Logs and token limits use the request as the client sent it, with its credentials.
    context.keepOriginal()
    tokenLimitsOf(exchange)?.note(exchange)
    budgetsOf(exchange)?.note(exchange)
    this.credentials = new ClientCredentials(exchange)
    if (mayRepeat(context, this.backend)) this.#head = copyHead(exchange.request)
  }

  get backend(): ModelBackend | undefined {
    return this.#backends.find(this.#name)
  }

  /** The providers that the request may be sent to, by priority. */
  get groups(): ModelBackend['groups'] {
    return this.selection?.groups ?? this.backend?.groups ?? noGroups
  }

  /** The failures after which another provider is tried; undefined for the usual ones. */
  get failover(): FailoverRules | undefined {
    const { selection, provider } = this
    return selection === undefined ? this.backend?.failover : selection.model.failoverOf(provider)
  }

  /** The settings of the current provider, with the model that it gets. */
  get config(): ProviderConfig | undefined {
    const config = this.provider?.provider.config
    const sent = this.selection?.sent
    return config === undefined || sent === undefined || config.model !== undefined
      ? config
      : { ...config, model: sent }
  }

  /** The settings for requests. If the client asked for a served model, aliases were applied to its name. */
  get settings(): BackendAiConfig | undefined {
    return this.selection === undefined ? this.policy?.config : this.policy?.configWithoutAliases
  }

  /** Settles which providers may serve the request. Called before the first attempt. */
  select(selection: ModelSelection): void {
    this.selection = selection
    this.session = selection.affinity
    const { groups } = selection
    const hasSeveral = groups.length > 1 || (groups[0]?.length ?? 0) > 1
    if (hasSeveral) this.keepHead()
  }

  /** The ids of what the client owns at this backend. @throws LlmError 503 until the key has arrived */
  get ownedIds(): OwnedIds {
    this.#ownedIds ??= new OwnedIds(this.#ids, this.#name, this.context.exchange)
    return this.#ownedIds
  }

  /** Keeps the head, so that another provider can get the request. Called before anything in it is changed for one. */
  keepHead(): void {
    this.#head ??= copyHead(this.context.exchange.request)
  }

  /** Returns the name and the group of the current provider; undefined if it has no name. */
  namedProvider(): NamedProvider | undefined {
    const { provider } = this
    const name = provider?.provider.name
    if (provider === undefined || name === undefined) return undefined
    const group = this.groups.findIndex((one) => one.includes(provider))
    return { name, group: group + 1 }
  }

  /** The policies for the current provider. The call retains the AI policy among them until it ends. */
  get access(): BackendAccess | undefined {
    return this.#access
  }

  set access(access: BackendAccess | undefined) {
    const before = this.policy
    this.#access = access
    this.policy = aiStepOf(access)
    this.policy?.retain()
    before?.release()
  }

  /** Called at the end of the exchange; releases memory of the core. */
  end(): void {
    this.stream?.dispose()
    this.flightMember?.leave()
    this.restorer = undefined
    this.access = undefined
  }

  /**
   * Puts the texts of placeholders back into the response; undefined if the request that the current provider gets has
   * no placeholder. It may be kept for another attempt with its policy.
   */
  get restorer(): PlaceholderRestorer | undefined {
    return this.#restorer?.policy === this.policy ? this.#restorer : undefined
  }

  set restorer(restorer: PlaceholderRestorer | undefined) {
    this.#restorer?.dispose()
    this.#restorer = restorer
  }

  get routeTypes(): RouteTypes {
    return this.policy?.routeTypes ?? defaultRouteTypes
  }

  /** True if `restoreHead` can undo the changes for a provider. */
  get canRestore(): boolean {
    return this.#head !== undefined
  }

  get canTryMore(): boolean {
    return this.canRestore && this.tried.length - this.unsuited < maxAttempts
  }

  /** Undoes the changes to the request head for the previous provider. */
  restoreHead(): void {
    if (this.#head === undefined) return
    const { request } = this.context.exchange
    const { headers, ...fields } = this.#head
    for (const [name] of [...request.headers.entries()]) request.headers.remove(name)
    for (const [name, value] of headers) request.headers.add(name, value)
    Object.assign(request, fields)
  }

  /** Replaces path and query if the provider has a `path`. */
  overridePath(): boolean {
    const path = this.provider?.provider.path
    if (path === undefined) return false
    const { request } = this.context.exchange
    const [only = '', ...query] = path.split('?')
    request.path = only.startsWith('/') ? only : `/${only}`
    request.query = query.length === 0 ? undefined : query.join('?')
    return true
  }

  /** Records the arrival of a piece of the response's content by its size. */
  noteContent(bytes: number): void {
    this.lastContentAt = now()
    this.firstContentAt ??= this.lastContentAt
    this.uncountedBytes += bytes
  }

  /** What the usage has cost that the provider has reported so far; undefined if it has reported none. */
  get cost(): Cost | undefined {
    const usage = this.estimatedUsage ?? this.details.usage
    if (usage === undefined) return undefined
    if (this.#cost?.usage !== usage) this.#cost = costOfCall(this, usage)
    return this.#cost
  }

  addDetails(details: ResponseDetails): void {
    if (details.usage !== undefined) this.uncountedBytes = 0
    const before = this.details
    const usage = details.usage && laterUsage(before.usage, details.usage)
    this.details =
      before === noDetails ? details : { ...before, ...details, ...(usage && { usage }) }
  }
}

/** Query parameter with vendor B's API version, which vendor B's SDK sends to every provider. */
export const apiVersion = 'api-version'

const isAiStep = (step: unknown): step is AiStep => step instanceof AiStep

const aiStepOf = (access: BackendAccess | undefined): AiStep | undefined =>
  access?.policies.steps.find(isAiStep)

/** Returns the route types of paths that the policies of a provider define. */
export const routeTypesOf = (access: BackendAccess | undefined): RouteTypes =>
  aiStepOf(access)?.routeTypes ?? defaultRouteTypes

/** The body of a client, as far as it is read before the request is sent. */
export type ReadBody = ClientBody | FormBody

/** A request for something that the provider stores. */
interface StoredCall {
  /** Seals the ids in a response; `relay` if it has none, undefined if it is one of the model. */
  readonly seal: ((body: JsonObject) => JsonObject) | 'relay' | undefined
  /** Identifies the batch or the file that may have its results; undefined for others. */
  readonly results: string | undefined
}

interface ModelRequest {
  readonly format: ClientFormat
  readonly model: string
  readonly isStream: boolean
  readonly body: RequestBody
}

export interface GuardedBody {
  readonly policy: AiStep | undefined
  readonly format: ClientFormat
  /** Undefined if the guards changed nothing. */
  readonly body: JsonObject | undefined
  /** True if no parser can read other texts in the client's bytes than the guards did. */
  readonly isUnambiguous: boolean
}

/** Returns true if there may be several attempts. This is rare, so most request heads are not copied. */
function mayRepeat({ exchange }: RequestContext, backend: ModelBackend | undefined): boolean {
  const groups = backend?.models === undefined ? (backend?.groups ?? noGroups) : noGroups
  const hasSeveral = groups.length > 1 || (groups[0]?.length ?? 0) > 1
  return hasSeveral || exchange.extensions.has(forwardingExtensions.retry)
}

function copyHead({ method, authority, path, query, headers }: RequestHead): HeadCopy {
  return { method, authority, path, query, headers: [...headers.entries()] }
}

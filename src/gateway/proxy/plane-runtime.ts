/** The objects that all requests of a data plane share. */
import type { HeadRecord } from '../../engines/core/head-record.ts'
import type { IoCore } from '../../engines/core/io-core.ts'
import type { CallListener, CallRequest, OpenCall } from '../../engines/http/contracts/calls.ts'
import { TicketKeyring } from '../../engines/http/tls/session-tickets.ts'
import { shippedCatalog } from '../../engines/messages/catalog/shipped.ts'
import {
  addressRanges,
  clientDestinationFilter,
  type DestinationRules,
  destinationFilter,
} from '../../ground/base/destination-rules.ts'
import type { ForwardProxies } from '../../ground/base/forward-proxies.ts'
import type { BudgetHost } from '../../ground/exchange/budgets.ts'
import { type Callouts, type Exchange, next, type Verdict } from '../../ground/exchange/exchange.ts'
import type { ReportList } from '../../ground/model/mcp-lists.ts'
import { sessionKeyRef } from '../../ground/model/mcp-targets.ts'
import { defaultClusterDomain } from '../../ground/model/service-host.ts'
import { addBackendKinds } from '../backends/registry.ts'
import { environmentProxies } from '../policies/backend-simple/tunnel/environment-proxies.ts'
import type { Step } from '../policies/define.ts'
import { CalloutClient } from './callouts/client.ts'
import type { PolicyAppliers } from './config/policies.ts'
import { ConfigStore } from './config/store.ts'
import { RateBuckets } from './rate-buckets.ts'
import { BackendKinds } from './request/backend-kind.ts'
import type { DestinationResolver } from './request/destinations.ts'
import type { AmbiguousPaths } from './request/request-path.ts'
import { MatchableHeads } from './request/route.ts'
import type { GatewayRuntime, RequestMaker, StdioHostSettings } from './request/runtime.ts'
import { SessionTokens } from './request/session-tokens.ts'
import { TunnelCounts } from './request/tunnels.ts'
import type { Telemetry } from './telemetry/types.ts'
import { Circuits } from './upstream/circuits.ts'
import { now } from './upstream/endpoint.ts'
import type { HealthSlots } from './upstream/health-slots.ts'
import { HostResolver } from './upstream/host-resolver.ts'
import { type Lookup, machineLookup } from './upstream/lookup.ts'
import type { RequestCap } from './upstream/request-cap.ts'
import type { Locality } from './upstream/services.ts'

export interface DataPlaneSettings {
  /** Decides which addresses may be connected to if clients, or URLs of other servers, name them. */
  readonly destinations: DestinationRules
  /** Version of the gateway software, for spans. */
  readonly version?: string
  /** Last part of the host names of Services; `cluster.local` if omitted. */
  readonly clusterDomain?: string
  /** DNS servers to use instead of the machine's. */
  readonly nameServers?: readonly string[]
  /** Addresses and CIDRs of proxies whose X-Forwarded-For is trusted. */
  readonly trustedProxies?: readonly string[]
  /** How to handle paths that servers may interpret in different ways. If omitted, they are kept. */
  readonly ambiguousPaths?: AmbiguousPaths
  /** Maximum number of concurrent requests to one address of a backend; no limit if omitted. */
  readonly requestCap?: RequestCap
  /** Counts of circuit breakers, which workers share; this thread's own if omitted. */
  readonly circuits?: Circuits
  /** Results of active health checks, which workers share; this thread's own if omitted. */
  readonly healthSlots?: HealthSlots
  /** Zone and node of the process, if known. */
  readonly locality?: Locality
  /** Returns random numbers, uniform in [0, 1); Math.random if omitted. */
  readonly random?: () => number
  /** Encrypts sessions of MCP and session persistence. If omitted, the control plane's key is used. */
  readonly sessionKey?: Uint8Array
  /** Memory for answers of models that are served again, in bytes; 64 MiB if omitted. */
  readonly answerCacheBytes?: number
  /** URL of the server that keeps such answers for several proxies; none if omitted. */
  readonly answerServer?: string
  /** The proxies of the environment for hosts that the configuration names; none if omitted. */
  readonly forwardProxies?: ForwardProxies | undefined
  /** Resolves host names; the machine's resolver if omitted. */
  readonly lookup?: Lookup
  /** Where commands of MCP targets run; nowhere if omitted. */
  readonly stdio?: StdioHostSettings
  /** Session-ticket keys shared by all workers. If omitted, each listener uses its own. */
  readonly tickets?: TicketKeyring
}

export interface RuntimeParts {
  readonly core: IoCore
  /** The record into which the engine reads request heads; routes are matched against it. */
  readonly head: HeadRecord
  /** Sends the requests that the gateway makes itself. */
  readonly engine: RequestMaker
  readonly telemetry: Telemetry
  /** Rate-limit buckets; this thread's own if omitted. */
  readonly buckets?: Pick<RateBuckets, 'bucket'>
  /** The budgets of this proxy; undefined in simulations, which spend nothing. */
  readonly budgets?: BudgetHost
  readonly settings: DataPlaneSettings
  /** Runs each step of a policy; if omitted, by calling it. */
  readonly runStep?: GatewayRuntime['runStep']
  /** Makes calls of policies; over the engine if omitted. */
  readonly callouts?: Callouts
  readonly reportList?: ReportList
  /** Changes how policies are bound. */
  readonly wrapAppliers?: (appliers: PolicyAppliers) => PolicyAppliers
}

const defaultAnswerBytes = 64 * 1024 * 1024

const callStep: GatewayRuntime['runStep'] = (step, exchange) => step.onRequest?.(exchange) ?? next

export class PlaneRuntime implements GatewayRuntime {
  readonly kinds = new BackendKinds()
  readonly tunnels = new TunnelCounts()
  readonly models: GatewayRuntime['models'] = { catalog: shippedCatalog }
  readonly callouts: Callouts
  readonly config: ConfigStore
  readonly resolver: DestinationResolver
  readonly heads: MatchableHeads
  readonly sessionKey: () => Uint8Array | undefined
  readonly sessions: SessionTokens
  readonly ambiguousPaths: AmbiguousPaths
  readonly isTrustedProxy: ((address: string) => boolean) | undefined
  readonly random: () => number
  readonly cap: RequestCap | undefined
  readonly circuits: Circuits
  readonly version: string
  readonly answerCacheBytes: number
  readonly answerServer: string | undefined
  readonly runStep: (step: Step, exchange: Exchange) => Verdict | Promise<Verdict>
  readonly reportList: ReportList | undefined
  readonly stdio: StdioHostSettings | undefined
  readonly #engine: RequestMaker

  constructor(parts: RuntimeParts, appliers: PolicyAppliers) {
    const { core, head, engine, telemetry, settings } = parts
    const { trustedProxies = [], ambiguousPaths = 'keep', random = Math.random } = settings
    this.#engine = engine
    this.callouts = parts.callouts ?? new CalloutClient(this, telemetry)
    this.sessionKey = () => settings.sessionKey ?? this.config.secret(sessionKeyRef.digest)
    this.isTrustedProxy = trustedProxies.length > 0 ? addressRanges(trustedProxies) : undefined
    this.config = openConfig(parts, appliers, this)
    this.resolver = openResolver(parts)
    this.sessions = new SessionTokens(this.sessionKey)
    this.heads = new MatchableHeads(core, head)
    this.ambiguousPaths = ambiguousPaths
    this.random = random
    this.cap = settings.requestCap
    this.circuits = settings.circuits ?? new Circuits()
    this.version = settings.version ?? '0'
    this.answerCacheBytes = settings.answerCacheBytes ?? defaultAnswerBytes
    this.answerServer = settings.answerServer
    this.runStep = parts.runStep ?? callStep
    this.reportList = parts.reportList
    this.stdio = settings.stdio
    addBackendKinds(this)
  }

  call(request: CallRequest, listener: CallListener): OpenCall {
    return this.#engine.call(request, listener)
  }
}

/** Creates the store of the configuration, which binds policies to what they use. */
function openConfig(
  { core, settings, wrapAppliers, budgets, buckets = new RateBuckets(undefined) }: RuntimeParts,
  appliers: PolicyAppliers,
  { callouts, kinds, sessionKey, isTrustedProxy }: PlaneRuntime,
): ConfigStore {
  const { locality, tickets = new TicketKeyring() } = settings
  const bucket = buckets.bucket.bind(buckets)
  const services = { callouts, bucket, budgets, sessionKey, isTrustedProxy }
  const options = { locality, tickets, backends: kinds }
  return new ConfigStore(core, wrapAppliers?.(appliers) ?? appliers, services, options)
}

function openResolver({ settings, telemetry }: RuntimeParts): DestinationResolver {
  const { forwardProxies } = settings
  return {
    hosts: new HostResolver({
      lookup: settings.lookup ?? machineLookup(settings.nameServers),
      now,
      onLookup: (result) => telemetry.onLookup(result),
    }),
    isAllowed: destinationFilter(settings.destinations),
    mayClientsReach: clientDestinationFilter(settings.destinations),
    clusterDomain: settings.clusterDomain ?? defaultClusterDomain,
    proxyFor: forwardProxies && environmentProxies(forwardProxies),
  }
}

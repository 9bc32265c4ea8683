/** The data plane: takes configuration in, and makes what answers the engine's callbacks. */
import { addBackendKinds } from '../backends/registry.ts'
import type { HeadRecord } from '../core/head-record.ts'
import type { IoCore } from '../core/io-core.ts'
import type { PortChange } from '../engine/contracts/engine.ts'
import type { RequestHandler } from '../engine/contracts/requests.ts'
import type { StreamHandler } from '../engine/contracts/streams.ts'
import { TicketKeyring } from '../engine/tls/session-tickets.ts'
import type { TlsChoice } from '../engine/tls/tls-choice.ts'
import { GatewayError } from '../errors/index.ts'
import type { RateLimitSpec } from '../exchange/rate-limits.ts'
import { sessionKeyRef } from '../model/mcp-targets.ts'
import type { DesiredDelta } from '../model/resources.ts'
import { defaultClusterDomain } from '../model/service-host.ts'
import { addressRanges } from './address-ranges.ts'
import { openCallouts } from './callouts/callouts.ts'
import { createExporters } from './collectors.ts'
import { portChangeOf } from './config/client-limits.ts'
import type { PortUse } from './config/listener-tables.ts'
import { loadPolicyAppliers } from './config/policies.ts'
import { type ApplyResult, ConfigStore } from './config/store.ts'
import { PhaseRunner } from './phase-runner.ts'
import { RateBuckets } from './rate-buckets.ts'
import { BackendKinds } from './request/backend-kind.ts'
import type { AmbiguousPaths } from './request/request-path.ts'
import { MatchableHeads } from './request/route.ts'
import type { GatewayRuntime, RequestMaker } from './request/runtime.ts'
import { SessionTokens } from './request/session/tokens.ts'
import { StreamForwarder } from './streams.ts'
import type { Telemetry } from './telemetry/types.ts'
import { now } from './upstream/choose.ts'
import { type DestinationRules, destinationFilter } from './upstream/destination-rules.ts'
import { HostResolver } from './upstream/host-resolver.ts'
import type { Locality } from './upstream/locality.ts'
import { type Lookup, machineLookup } from './upstream/lookup.ts'
import type { RequestCap } from './upstream/request-cap.ts'

export interface DataPlaneSettings {
  /** What a dynamic forward proxy may reach. */
  readonly destinations: DestinationRules
  /** Of the product, for spans. */
  readonly version?: string
  /** Last part of the names of Services; `cluster.local` where absent. */
  readonly clusterDomain?: string
  /** DNS servers that are asked in place of the machine's. */
  readonly nameServers?: readonly string[]
  /** Addresses and CIDRs of proxies whose X-Forwarded-For is believed. */
  readonly trustedProxies?: readonly string[]
  /** What happens to paths that servers may read in different ways; kept if omitted. */
  readonly ambiguousPaths?: AmbiguousPaths
  /** Of requests under way to one address of a backend; no limit where absent. */
  readonly requestCap?: RequestCap
  /** Where the process runs; unknown where absent. */
  readonly locality?: Locality
  /** Uniform in [0, 1); Math.random where absent. */
  readonly random?: () => number
  /** Of sessions; that of the control plane where absent. */
  readonly sessionKey?: Uint8Array
  /** Looks host names up; as the machine does where absent. */
  readonly lookup?: Lookup
  /** With which TLS sessions are taken up again; those of each listener stand alone where absent. */
  readonly tickets?: TicketKeyring
}

interface DataPlaneParts {
  readonly core: IoCore
  /** The record into which the engine reads request heads: routes are matched against it. */
  readonly head: HeadRecord
  readonly telemetry: Telemetry
  /** Of rate limits; this thread's own where absent. */
  readonly buckets?: RateBuckets
  readonly settings: DataPlaneSettings
}

export interface DataPlane {
  /** Takes a change set in; the next request sees it, requests under way keep what they have. */
  apply(delta: DesiredDelta): ApplyResult
  readonly handler: RequestHandler
  readonly streamHandler: StreamHandler
  /** Which listener of a port a TLS handshake is for; undefined where it must fail. */
  chooseTls(port: number, serverName: string | undefined): TlsChoice | 'close' | undefined
  /** What policies settle for connections on a port. */
  portSettings(port: number, use: PortUse): PortChange
  /** Gives the plane the engine, for requests of its own. */
  useEngine(engine: RequestMaker): void
  /** Ends streams to clients; for the end of the process. */
  stop(): void
  /** Sends what waits to be sent elsewhere (spans); for the end of the process. */
  flush(): Promise<void>
}

/** Loads what policies need on requests, once, and makes a data plane without configuration. */
export async function createDataPlane(parts: DataPlaneParts): Promise<DataPlane> {
  const { destinations, clusterDomain, random, lookup, locality } = parts.settings
  const { trustedProxies = [], ambiguousPaths = 'keep' } = parts.settings
  // Nothing runs before the context is there.
  const callouts = openCallouts(() => runtime, parts.telemetry)
  const buckets = parts.buckets ?? new RateBuckets(undefined)
  const services = {
    callouts,
    bucket: (name: string, spec: RateLimitSpec) => buckets.bucket(name, spec),
  }
  const { tickets = new TicketKeyring() } = parts.settings
  const kinds = new BackendKinds()
  const options = { locality, tickets, backends: kinds }
  const config = new ConfigStore(parts.core, await loadPolicyAppliers(), services, options)
  const hosts = new HostResolver({
    lookup: lookup ?? machineLookup(parts.settings.nameServers),
    now,
    onLookup: (result) => parts.telemetry.onLookup(result),
  })
  let engine: RequestMaker | undefined
  const sessionKey = () => parts.settings.sessionKey ?? config.secret(sessionKeyRef.digest)
  const runtime: GatewayRuntime = {
    config,
    ambiguousPaths,
    ...(trustedProxies.length > 0 && { isTrustedProxy: addressRanges(trustedProxies) }),
    heads: new MatchableHeads(parts.core, parts.head),
    random: random ?? Math.random,
    ...(parts.settings.requestCap && { cap: parts.settings.requestCap }),
    version: parts.settings.version ?? '0',
    kinds,
    call(request, listener) {
      if (engine === undefined) throw new GatewayError('bug', 'there is no engine yet')
      return engine.call(request, listener)
    },
    sessionKey,
    sessions: new SessionTokens(sessionKey),
    callouts,
    resolver: {
      hosts,
      isAllowed: destinationFilter(destinations),
      clusterDomain: clusterDomain ?? defaultClusterDomain,
    },
  }
  addBackendKinds(runtime)
  const exporters = createExporters(runtime, parts.telemetry, parts.settings.version)
  return {
    apply: (delta) => {
      const result = config.apply(delta)
      runtime.kinds.applied(delta)
      return result
    },
    chooseTls: (port, serverName) => config.chooseTls(port, serverName),
    portSettings: (port, use) => portChangeOf(config.clientSettings(port, use)),
    handler: new PhaseRunner(runtime, parts.telemetry, exporters),
    flush: () => exporters.flush(),
    useEngine: (given) => {
      engine = given
    },
    stop: () => {
      for (const kind of runtime.kinds.all()) kind.stop?.()
    },
    streamHandler: new StreamForwarder(runtime, parts.telemetry),
  }
}

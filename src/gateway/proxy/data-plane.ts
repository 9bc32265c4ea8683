/** The data plane applies configuration, and handles the requests and connections of the engine. */

import type { HeadRecord } from '../../engines/core/head-record.ts'
import type { IoCore } from '../../engines/core/io-core.ts'
import type { PortChange } from '../../engines/http/contracts/engine.ts'
import { defaultHttp2Limits, type EngineLimits } from '../../engines/http/limits/engine-limits.ts'
import { TicketKeyring } from '../../engines/http/tls/session-tickets.ts'
import { GatewayError } from '../../ground/errors/index.ts'
import type { ClientSettings } from '../../ground/exchange/connection.ts'
import { type Callouts, next } from '../../ground/exchange/exchange.ts'
import type { RateLimitSpec } from '../../ground/exchange/rate-limits.ts'
import { sessionKeyRef } from '../../ground/model/mcp-targets.ts'
import type { DesiredDelta, DirectTarget } from '../../ground/model/resources.ts'
import { defaultClusterDomain } from '../../ground/model/service-host.ts'
import { addBackendKinds } from '../backends/registry.ts'
import { callGrpc, streamGrpc } from './callouts/grpc.ts'
import { callHttp } from './callouts/http.ts'
import { CalloutOpener } from './callouts/opener.ts'
import type { HeaderReferences } from './config/header-references.ts'
import type { PortUse } from './config/listener-tables.ts'
import type { ListenerPlacement } from './config/placement.ts'
import { loadPolicyAppliers, type PolicyAppliers } from './config/policies.ts'
import { nameTarget } from './config/rules.ts'
import { type ApplyResult, ConfigStore } from './config/store.ts'
import type { DecisionRecorder } from './decisions/recorder.ts'
import { PhaseRunner } from './phase-runner.ts'
import { RateBuckets } from './rate-buckets.ts'
import { BackendKinds } from './request/backend-kind.ts'
import type { AmbiguousPaths } from './request/request-path.ts'
import { MatchableHeads } from './request/route.ts'
import type { GatewayRuntime, RequestMaker } from './request/runtime.ts'
import { SessionTokens } from './request/session-tokens.ts'
import { StreamForwarder } from './streams.ts'
import { SpanExporters } from './telemetry/otlp/exporter.ts'
import type { Telemetry } from './telemetry/types.ts'
import { now } from './upstream/choose.ts'
import {
  addressRanges,
  type DestinationRules,
  destinationFilter,
} from './upstream/destination-rules.ts'
import { HostResolver } from './upstream/host-resolver.ts'
import { type Lookup, machineLookup } from './upstream/lookup.ts'
import type { RequestCap } from './upstream/request-cap.ts'
import type { Locality } from './upstream/services.ts'

export interface DataPlaneSettings {
  /** Decides which addresses a dynamic forward proxy may connect to. */
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
  /** Zone and node of the process, if known. */
  readonly locality?: Locality
  /** Returns random numbers, uniform in [0, 1); Math.random if omitted. */
  readonly random?: () => number
  /** Encrypts sessions of MCP and session persistence. If omitted, the control plane's key is used. */
  readonly sessionKey?: Uint8Array
  /** Resolves host names; the machine's resolver if omitted. */
  readonly lookup?: Lookup
  /** Session-ticket keys shared by all workers. If omitted, each listener uses its own. */
  readonly tickets?: TicketKeyring
}

interface DataPlaneParts {
  readonly core: IoCore
  /** The record into which the engine reads request heads; routes are matched against it. */
  readonly head: HeadRecord
  readonly telemetry: Telemetry
  /** Rate-limit buckets; this thread's own if omitted. */
  readonly buckets?: Pick<RateBuckets, 'bucket'>
  readonly settings: DataPlaneSettings
  /** Makes the recorder of decisions; if omitted, nothing is recorded. */
  readonly recorder?: (headers: HeaderReferences) => DecisionRecorder
  /** Runs each step of a policy; if omitted, by calling it. */
  readonly runStep?: GatewayRuntime['runStep']
  /** Makes calls of policies; over the engine if omitted. */
  readonly callouts?: Callouts
  /** Changes how policies are bound. */
  readonly wrapAppliers?: (appliers: PolicyAppliers) => PolicyAppliers
}

const runStep: GatewayRuntime['runStep'] = (step, exchange) => step.onRequest?.(exchange) ?? next

export type DataPlane = Awaited<ReturnType<typeof createDataPlane>>

/** Loads the code of all policies, and creates a data plane without configuration. */
export async function createDataPlane(parts: DataPlaneParts) {
  const { destinations, clusterDomain, random } = parts.settings
  const { trustedProxies = [], ambiguousPaths = 'keep' } = parts.settings
  const opener = new CalloutOpener(() => runtime, parts.telemetry)
  const callouts = parts.callouts ?? calloutsOver(opener)
  const kinds = new BackendKinds()
  const config = await openConfig(parts, kinds, callouts)
  let engine: RequestMaker | undefined
  const sessionKey = () => parts.settings.sessionKey ?? config.secret(sessionKeyRef.digest)
  const runtime: GatewayRuntime = {
    config,
    ambiguousPaths,
    isTrustedProxy: trustedProxies.length > 0 ? addressRanges(trustedProxies) : undefined,
    heads: new MatchableHeads(parts.core, parts.head),
    random: random ?? Math.random,
    cap: parts.settings.requestCap,
    version: parts.settings.version ?? '0',
    kinds,
    call(request, listener) {
      if (engine === undefined) throw new GatewayError('bug', 'there is no engine yet')
      return engine.call(request, listener)
    },
    sessionKey,
    sessions: new SessionTokens(sessionKey),
    callouts,
    runStep: parts.runStep ?? runStep,
    resolver: {
      hosts: hostResolver(parts),
      isAllowed: destinationFilter(destinations),
      clusterDomain: clusterDomain ?? defaultClusterDomain,
    },
  }
  addBackendKinds(runtime)
  const exporters = spanExporters(kinds, parts)
  return {
    /** Applies a change set. Only new requests see it. */
    apply(delta: DesiredDelta): ApplyResult {
      const result = config.apply(delta)
      kinds.applied(delta)
      return result
    },
    /** Sets the position in the event log of the configuration in force. */
    set position(position: number) {
      config.position = position
    },
    /** Finds the TLS settings for a handshake; undefined if the handshake must fail. */
    chooseTls: (port: number, serverName: string | undefined) => config.chooseTls(port, serverName),
    /** Finds the listener for a server name on a port with TLS. */
    tlsListener: (port: number, serverName: string) =>
      config.streamListener(port, 'tls', serverName),
    /** Returns the settings of client connections on a port, from policies. */
    portSettings: (port: number, use: PortUse) => portChangeOf(config.clientSettings(port, use)),
    handler: new PhaseRunner(runtime, parts.telemetry, exporters, parts.recorder?.(config.headers)),
    streamHandler: new StreamForwarder(runtime, parts.telemetry),
    /** Sets the engine that sends requests of the gateway itself. */
    useEngine(given: RequestMaker): void {
      engine = given
    },
    /** Ends streams to clients before the process ends. */
    stop(): void {
      for (const kind of kinds.all()) kind.stop?.()
    },
    /** Sends waiting spans before the process ends. */
    flush: () => exporters.flush(),
  }
}

/** Creates the store of the configuration, which binds policies to what they use. */
async function openConfig(
  { core, settings, wrapAppliers, buckets = new RateBuckets(undefined) }: DataPlaneParts,
  backends: BackendKinds,
  callouts: Callouts,
): Promise<ConfigStore> {
  const bucket = (name: string, spec: RateLimitSpec) => buckets.bucket(name, spec)
  const { locality, tickets = new TicketKeyring() } = settings
  const options = { locality, tickets, backends }
  const loaded = await loadPolicyAppliers()
  const appliers = wrapAppliers?.(loaded) ?? loaded
  return new ConfigStore(core, appliers, { callouts, bucket }, options)
}

function hostResolver({ settings, telemetry }: DataPlaneParts): HostResolver {
  return new HostResolver({
    lookup: settings.lookup ?? machineLookup(settings.nameServers),
    now,
    onLookup: (result) => telemetry.onLookup(result),
  })
}

function spanExporters(
  kinds: BackendKinds,
  { settings, telemetry }: DataPlaneParts,
): SpanExporters<ListenerPlacement> {
  return new SpanExporters({
    version: settings.version ?? 'unknown',
    onSpans: (exported, dropped) => telemetry.onSpans(exported, dropped),
    // A collector is resolved like any other backend, so the same policies apply.
    resolve: async ({ target }, listener) => {
      const named = nameTarget(target as DirectTarget)
      return kinds.resolve(listener, named, { authority: '', scheme: 'http' })
    },
  })
}

const calloutsOver = (opener: CalloutOpener): Callouts => ({
  http: (call) => callHttp(opener, call),
  grpc: (call) => callGrpc(opener, call),
  stream: (call) => streamGrpc(opener, call),
})

/** Default limits of a head: number of fields, and bytes. */
const defaultFields = 100
const defaultHeadBytes = 16 * 1024
/** Maximum number of bytes of a head, which is read at once. */
const headBytesLimit = 64 * 1024 - 1

/** Converts the settings of frontend policies to the engine's limits for a port. */
function portChangeOf({ keepalive, tls, http }: ClientSettings): PortChange {
  const limits: Partial<EngineLimits> = {
    ...(http?.maxHeaders !== undefined && headLimits(http.maxHeaders)),
    ...(http?.idleTimeoutMs !== undefined && { idleTimeoutMs: http.idleTimeoutMs }),
    ...(http?.http2 !== undefined && { http2: { ...defaultHttp2Limits, ...http.http2 } }),
    ...(tls?.handshakeTimeoutMs !== undefined && { handshakeTimeoutMs: tls.handshakeTimeoutMs }),
  }
  return { limits, ...(keepalive && { keepalive }) }
}

/** Returns the limits for a number of fields. The bytes grow with the number of fields. */
function headLimits(maxHeaders: number): Partial<EngineLimits> {
  const wanted = Math.ceil(maxHeaders / defaultFields) * defaultHeadBytes
  return { maxHeaders, maxHeadBytes: Math.min(wanted, headBytesLimit) }
}

/** The data plane applies configuration, and handles the requests and connections of the engine. */
import { portChangeOf } from '../../engines/http/limits/port-change.ts'
import type { ModelCatalog } from '../../engines/messages/catalog/catalog.ts'
import type { DesiredDelta } from '../../ground/model/resources.ts'
import { Collectors } from './collectors.ts'
import type { HeaderReferences } from './config/header-references.ts'
import type { PortUse } from './config/listener-tables.ts'
import { loadPolicyAppliers } from './config/policies.ts'
import type { ApplyResult } from './config/store.ts'
import type { DecisionRecorder } from './decisions/recorder.ts'
import { ActiveChecks } from './health/active-checks.ts'
import { HealthChecks } from './health/checked-rules.ts'
import { PhaseRunner } from './phase-runner.ts'
import { PlaneRuntime, type RuntimeParts } from './plane-runtime.ts'
import type { JudgedUse, RecordedUse } from './request/backend-kind.ts'
import type { RequestContext } from './request/request-context.ts'
import { StreamForwarder } from './streams.ts'
import { circuitSeries } from './telemetry/circuit-series.ts'
import { HealthSlots } from './upstream/health-slots.ts'

interface DataPlaneParts extends RuntimeParts {
  /** Makes the recorder of decisions; if omitted, nothing is recorded. */
  readonly recorder?: (headers: HeaderReferences) => DecisionRecorder
}

export type DataPlane = Awaited<ReturnType<typeof createDataPlane>>

/** Loads the code of all policies, and creates a data plane without configuration. */
export async function createDataPlane(parts: DataPlaneParts) {
  const runtime = new PlaneRuntime(parts, await loadPolicyAppliers())
  const { config, kinds } = runtime
  const collectors = new Collectors(runtime, parts.telemetry)
  const recorder = parts.recorder?.(config.headers)
  const checks = new ActiveChecks({
    engine: parts.engine,
    slots: parts.settings.healthSlots ?? new HealthSlots(),
    random: runtime.random,
    onChange: (change) => parts.telemetry.onHealthChange(change),
  })
  const health = new HealthChecks(runtime, checks)
  return {
    handler: new PhaseRunner(runtime, parts.telemetry, collectors, recorder),
    streamHandler: new StreamForwarder(runtime, parts.telemetry),
    /** Applies a change set. Only new requests see it. */
    apply(delta: DesiredDelta): ApplyResult {
      const result = config.apply(delta)
      kinds.applied(delta)
      health.onConfigChange()
      return result
    },
    /** Sets the position in the event log of the configuration in force. */
    set position(position: number) {
      config.position = position
    },
    /** Replaces the catalog of language models. Only new requests see it. */
    set catalog(catalog: ModelCatalog) {
      runtime.models.catalog = catalog
    },
    /** Finds the TLS settings for a handshake; undefined if the handshake must fail. */
    chooseTls: (port: number, serverName: string | undefined) => config.chooseTls(port, serverName),
    /** Finds the listener for a server name on a port with TLS. */
    tlsListener: (port: number, serverName: string) =>
      config.streamListener(port, 'tls', serverName),
    /** Returns the settings of client connections on a port, from policies. */
    portSettings: (port: number, use: PortUse) => portChangeOf(config.clientSettings(port, use)),
    /** Returns the policies that have no effect on a port that several Gateways share. */
    portConflicts: () => config.portConflicts,
    /** For simulations: judges what a recorded request has used. */
    judgeUse(context: RequestContext, use: RecordedUse): JudgedUse | undefined {
      return context.backend && kinds.of(context.backend)?.judgeUse?.(context, use)
    },
    /** Ends streams to clients before the process ends. */
    stop(): void {
      for (const kind of kinds.all()) kind.stop?.()
      checks.stop()
    },
    /** Metrics of health checks and circuit breakers. */
    upstreamMetrics: () => ({ ...checks.metrics(), ...circuitSeries(runtime.circuits) }),
    /** Sends what waits for collectors, before the process ends. */
    flush: () => collectors.flush(),
  }
}

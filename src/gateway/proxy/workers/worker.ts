/**
 * The entry of a worker thread. Its first message is its settings, with which it makes its WASM core, engine,
 * data plane and telemetry.
 */
import { parentPort } from 'node:worker_threads'
import { createIoCore, type IoCore } from '../../../engines/core/index.ts'
import { Engine } from '../../../engines/http/engine.ts'
import { ConnectionCap } from '../../../engines/http/sockets/connection-cap.ts'
import { TicketKeyring } from '../../../engines/http/tls/session-tickets.ts'
import { addressRanges } from '../../../ground/base/destination-rules.ts'
import { trimWhenIdle } from '../../../ground/base/idle-trim.ts'
import { askGrantsAt } from '../../consent/store.ts'
import { reportEndedTo } from '../../tokens/refused.ts'
import { askAnswersAt } from '../asked-answers.ts'
import { WorkerBudgets } from '../budgets/worker-budgets.ts'
import { createDataPlane } from '../data-plane.ts'
import { RateBuckets } from '../rate-buckets.ts'
import { AccessLog } from '../telemetry/access-log.ts'
import { OutputLock } from '../telemetry/output-lock.ts'
import { Circuits } from '../upstream/circuits.ts'
import { HealthSlots } from '../upstream/health-slots.ts'
import { RequestCap } from '../upstream/request-cap.ts'
import { WorkerRecords } from './decision-records.ts'
import { WorkerTelemetry } from './telemetry.ts'
import type { FromWorker, ToWorker } from './worker-messages.ts'
import { WorkerSession } from './worker-session.ts'
import type { WorkerSettings } from './worker-settings.ts'

/** Memory pages of the core: 64 MiB for routes, heads and read buffers. The memory does not grow. */
const memoryPages = 1_024
/** Maximum number of fields in a head that can be configured. */
const maxFields = 4_096
/** Maximum size of the text of a head. */
const headTextBytes = 65_536
/** Exit code of the thread after a trap of the core: internal software error (sysexits.h). */
const trapExitCode = 70

/** Starts the worker. Resolves to the function that receives the messages after the settings. */
async function startWorker(
  port: NonNullable<typeof parentPort>,
  settings: WorkerSettings,
): Promise<(message: ToWorker) => void> {
  const { bindAddress, reusePort, streamLimits, limits, counts, index } = settings
  const { accessLogFormat = 'text', maxBackendRequests: most } = settings
  const { maxConnections, sessionKey } = settings.edge ?? {}
  const { trustedProxies = [], proxyProtocolFrom = [], ambiguousPaths } = settings.edge ?? {}
  const send = (message: FromWorker) => port.postMessage(message)
  const log = openAccessLog(settings)
  const onBug = (text: string) => send({ type: 'fault', message: `request: ${text}` })
  const telemetry = new WorkerTelemetry({ log, format: accessLogFormat, onBug, send })
  const core = createIoCore({ memoryPages })
  const head = core.createHead({ maxFields, textBytes: headTextBytes })
  const buckets = new RateBuckets(settings.rateMemory)
  const budgets = new WorkerBudgets(send)
  askGrantsAt(send)
  askAnswersAt(send)
  reportEndedTo((report) => send({ type: 'ended', report }))
  const tickets = new TicketKeyring([], settings.tlsSessionSeconds)
  const records = openRecords(settings, core, send)
  const engine = new Engine({
    core,
    head,
    streamLimits,
    limits,
    connectionCap:
      maxConnections === undefined
        ? undefined
        : new ConnectionCap(maxConnections, counts.connections, index),
    expectsProxyHeader: proxyProtocolFrom.length > 0 ? addressRanges(proxyProtocolFrom) : undefined,
    bindAddress,
    reusePort,
    onUpstreamConnected: (seconds) => telemetry.onUpstreamConnected(seconds),
    onTlsHandshake: (port, { place }, seconds) => telemetry.onTlsHandshake(port, place, seconds),
  })
  const plane = await createDataPlane({
    core,
    head,
    engine,
    telemetry,
    buckets,
    budgets,
    reportList: (report) => send({ type: 'list', report }),
    recorder: records && ((headers) => records.recorder(headers)),
    settings: {
      ...settings,
      tickets,
      trustedProxies,
      ambiguousPaths,
      sessionKey,
      circuits: new Circuits(counts.circuits, index),
      healthSlots: new HealthSlots(counts.health, index),
      requestCap: most === undefined ? undefined : new RequestCap(most, counts.requests, index),
    },
  })
  engine.serve(plane)
  const parts = { engine, plane, telemetry, tickets, log, records, budgets, send }
  const session = new WorkerSession(parts)
  exitOnTrap(core, session)
  let changeSets = 0
  trimWhenIdle({ taken: () => changeSets, carried: () => carriedBytes(engine) })
  send({ type: 'started', rateOwners: buckets.owners })
  return (message) => {
    if (message.type === 'config') changeSets++
    session.receive(message)
  }
}

function openAccessLog({ accessLogFd = 1, reusePort, counts, index }: WorkerSettings): AccessLog {
  const lock = reusePort ? new OutputLock(counts.output, index) : undefined
  const log = new AccessLog({ fd: accessLogFd, lock })
  // This runs even if an uncaught error ends the thread. Asynchronous work would not complete.
  process.on('exit', () => log.flushSync())
  return log
}

/** Opens the store of decision records. If that fails, the worker serves without it. */
function openRecords(
  { record, index }: WorkerSettings,
  core: IoCore,
  send: (message: FromWorker) => void,
): WorkerRecords | undefined {
  if (record === undefined) return undefined
  try {
    return new WorkerRecords(record, index, core, (block, isSample) =>
      send({ type: 'decisions', block, isSample }),
    )
  } catch (error) {
    send({ type: 'fault', message: `decisions are not recorded: ${String(error)}` })
    return undefined
  }
}

/** A worker cannot serve without its core. Requests of this event-loop turn still get their responses. */
function exitOnTrap(core: IoCore, session: WorkerSession): void {
  core.onTrap = (trap) => {
    setImmediate(() => {
      session.trapped(trap)
      process.exit(trapExitCode)
    })
  }
}

/** Returns a number that changes with all traffic. */
function carriedBytes({ counters, streamCounters }: Engine): number {
  const { received, sent } = streamCounters
  const streams = [received, sent].flatMap((bytes) => Object.values(bytes))
  const requests = counters.receivedBytes + counters.sentBytes + counters.connectionsTotal
  return streams.reduce((sum, bytes) => sum + bytes, requests)
}

if (parentPort === null) throw new Error('this file runs as a worker of the proxy only')
const port = parentPort
let started: ReturnType<typeof startWorker> | undefined
port.on('message', (message: WorkerSettings | ToWorker) => {
  if (started === undefined) started = startWorker(port, message as WorkerSettings)
  else started.then((receive) => receive(message as ToWorker))
})

/**
 * The entry of a worker thread. Everything that carries traffic is made here, once a thread: the
 * WASM core, the engine on its sockets, the data plane on its configuration, the telemetry.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { createIoCore } from '../../core/index.ts'
import type { Engine } from '../../engine/contracts/engine.ts'
import { createEngine } from '../../engine/engine.ts'
import { ConnectionCap } from '../../engine/sockets/connection-cap.ts'
import { TicketKeyring } from '../../engine/tls/session-tickets.ts'
import { addressRanges } from '../address-ranges.ts'
import { createDataPlane } from '../data-plane.ts'
import { RateBuckets } from '../rate-buckets.ts'
import { AccessLog } from '../telemetry/access-log.ts'
import { RequestCap } from '../upstream/request-cap.ts'
import { trimWhenIdle } from './idle-trim.ts'
import { createTelemetry } from './telemetry.ts'
import type { FromWorker, ToWorker, WorkerSettings } from './worker-messages.ts'
import { WorkerSession } from './worker-session.ts'

/** Memory of the core, which never grows: 64 MiB of routes, heads and read buffers. */
const memoryPages = 1_024
/** Fields of a head, the most that Gateway configuration can ask for, and bytes to assign one. */
const mostFields = 4_096
const headTextBytes = 65_536
/** Of the thread, not the process: an internal software error (sysexits.h). */
const trapExitCode = 70

async function startWorker(port: NonNullable<typeof parentPort>, settings: WorkerSettings) {
  const { bindAddress, reusePort, accessLog, streamLimits, counts, index } = settings
  const { maxBackendRequests: most, limits } = settings
  const { maxConnections, sessionKey } = settings.edge ?? {}
  const { trustedProxies = [], proxyProtocolFrom = [], ambiguousPaths } = settings.edge ?? {}
  const send = (message: FromWorker) => port.postMessage(message)
  const log = new AccessLog({ fd: accessLog.fd, isShared: reusePort })
  // Runs even when an uncaught error ends the thread; nothing asynchronous gets a turn any more.
  process.on('exit', () => log.flushSync())
  const onBug = (text: string) => send({ type: 'fault', message: `request: ${text}` })
  const telemetry = createTelemetry({ log, format: accessLog.format, onBug })
  const core = createIoCore({ memoryPages })
  const head = core.createHead({ maxFields: mostFields, textBytes: headTextBytes })
  const buckets = new RateBuckets(settings.rateMemory)
  const tickets = new TicketKeyring([], settings.tlsSessionSeconds)
  const plane = await createDataPlane({
    core,
    head,
    telemetry,
    buckets,
    settings: {
      ...settings,
      tickets,
      trustedProxies,
      ...(ambiguousPaths && { ambiguousPaths }),
      ...(sessionKey && { sessionKey }),
      ...(most !== undefined && { requestCap: new RequestCap(most, counts.requests, index) }),
    },
  })
  const engine = createEngine({
    core,
    head,
    handler: plane.handler,
    streamHandler: plane.streamHandler,
    ...(streamLimits !== undefined && { streamLimits }),
    ...(limits !== undefined && { limits }),
    ...(maxConnections !== undefined && {
      connectionCap: new ConnectionCap(maxConnections, counts.connections, index),
    }),
    ...(proxyProtocolFrom.length > 0 && { expectsProxyHeader: addressRanges(proxyProtocolFrom) }),
    bindAddress,
    reusePort,
    onUpstreamConnected: (seconds) => telemetry.onUpstreamConnected(seconds),
    onTlsHandshake: (port, { place }, seconds) => telemetry.onTlsHandshake(port, place, seconds),
  })
  plane.useEngine(engine)
  const session = new WorkerSession({ engine, plane, telemetry, tickets, log, send })
  // Without its core a worker can only refuse. Requests of this turn still get their answers.
  core.onTrap = (trap) => {
    setImmediate(() => {
      session.trapped(trap)
      process.exit(trapExitCode)
    })
  }
  let changeSets = 0
  port.on('message', (message: ToWorker) => {
    if (message.type === 'config') changeSets++
    session.receive(message)
  })
  trimWhenIdle({ taken: () => changeSets, carried: () => carriedBytes(engine) })
  send({ type: 'started', rateOwner: buckets.owner })
}

/** Changes with everything that is sent or received. */
function carriedBytes({ counters, streamCounters }: Engine): number {
  const { received, sent } = streamCounters
  const streams = [received, sent].flatMap((bytes) => Object.values(bytes))
  const requests = counters.receivedBytes + counters.sentBytes + counters.connectionsTotal
  return streams.reduce((sum, bytes) => sum + bytes, requests)
}

if (parentPort === null) throw new Error('this file runs as a worker of the proxy only')
await startWorker(parentPort, workerData as WorkerSettings)

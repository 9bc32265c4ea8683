import {
  DiscardPolicy,
  JetStreamApiError,
  type JetStreamClient,
  type JetStreamManager,
  jetstream,
  jetstreamManager,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
  type StreamInfo,
} from '@nats-io/jetstream'
import { connect, type NatsConnection } from '@nats-io/transport-node'
import { Arrivals } from './arrivals.ts'
import { LogError } from './log.ts'

export interface NatsLogOptions {
  /** `nats://[user:password@]host:port` or `tls://…`; several servers of one cluster. */
  readonly servers: string | readonly string[]
  /** Default `SLUICE_EVENTS`. It takes all subjects below `sluice.`. */
  readonly stream?: string
  /** Copies that the servers of a cluster keep; used when the stream is made. Default 1. */
  readonly replicas?: number
  /** Make the stream where there is none; otherwise that is an error. Default true. */
  readonly create?: boolean
  /** How long a call may wait for a server that does not answer, in milliseconds. Default 30 s. */
  readonly patienceMs?: number
  /** How long an unfinished batch of another writer is waited for, in milliseconds. Default 500. */
  readonly graceMs?: number
}

/** A connection to a server that is fit to keep the log. */
export interface Link {
  readonly connection: NatsConnection
  readonly client: JetStreamClient
  readonly manager: JetStreamManager
  readonly stream: string
  readonly replicas: number
  /** Bytes of body that a message may have, headers and a reserve taken off. */
  readonly maxFrameBytes: number
  /** Announces every reconnect. */
  readonly reconnects: Arrivals
  isConnected(): boolean
}

const defaultStream = 'SLUICE_EVENTS'
const subjects = 'sluice.>'
/** Debian ships 2.9; before it there are no ordered consumers that pull. */
const oldestServer = [2, 9] as const
const headerReserve = 8 * 1024
const largestFrame = 512 * 1024
const smallestPayload = 64 * 1024
/** An answer that takes longer is asked for again; in milliseconds. */
const answerTimeoutMs = 2000

/**
 * Connects, and checks that the server can keep the log.
 * @throws LogError `unsupported` where it cannot, `storage` where it does not answer, `foreign`
 *   where the stream is set up so that events would be lost.
 */
export async function openLink(options: NatsLogOptions): Promise<Link> {
  const servers = typeof options.servers === 'string' ? [options.servers] : options.servers
  const connection = await connectTo(servers)
  const stream = options.stream ?? defaultStream
  const reconnects = new Arrivals()
  let connected = true
  void (async () => {
    for await (const { type } of connection.status()) {
      if (type === 'disconnect') connected = false
      if (type === 'reconnect') {
        connected = true
        reconnects.announce()
      }
    }
  })()
  try {
    const maxPayload = checkServer(connection)
    const manager = await openManager(connection)
    const replicas = options.replicas ?? 1
    await ensureStream(manager, stream, replicas, options.create ?? true)
    return {
      connection,
      client: jetstream(connection, { timeout: answerTimeoutMs }),
      manager,
      stream,
      replicas,
      maxFrameBytes: Math.min(largestFrame, maxPayload - headerReserve),
      reconnects,
      isConnected: () => connected,
    }
  } catch (error) {
    await connection.close()
    throw error
  }
}

/** The address of a server without user and password. */
export const placeOf = (server: string): string => server.replace(/\/\/[^/@]*@/, '//')

/** @throws LogError `storage` */
export async function connectTo(servers: readonly string[]): Promise<NatsConnection> {
  const [, user, pass] = /^\w+:\/\/([^/@:]+)(?::([^/@]*))?@/.exec(servers[0] ?? '') ?? []
  try {
    return await connect({
      name: 'sluice',
      servers: servers.map(placeOf),
      ...(user !== undefined && pass === undefined && { token: decodeURIComponent(user) }),
      ...(user !== undefined &&
        pass !== undefined && { user: decodeURIComponent(user), pass: decodeURIComponent(pass) }),
      ...(servers.some((server) => server.startsWith('tls://')) && { tls: {} }),
      maxReconnectAttempts: -1,
      reconnectTimeWait: 250,
      timeout: 5000,
      pingInterval: 10_000,
    })
  } catch (cause) {
    const reason = messageOf(cause)
    const places = servers.map(placeOf).join(', ')
    throw new LogError('storage', `cannot connect to ${places}: ${reason}`, { cause })
  }
}

/** Gives the largest payload that the server takes. */
function checkServer({ info }: NatsConnection): number {
  const version = info?.version ?? ''
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const [oldestMajor, oldestMinor] = oldestServer
  if (major < oldestMajor || (major === oldestMajor && minor < oldestMinor)) {
    throw new LogError(
      'unsupported',
      `the NATS server has version ${version || 'unknown'}; ${oldestServer.join('.')} or newer is needed`,
    )
  }
  if (info?.headers !== true) {
    throw new LogError('unsupported', 'the NATS server takes no message headers')
  }
  const { max_payload: maxPayload } = info
  if (maxPayload < smallestPayload) {
    throw new LogError(
      'unsupported',
      `the NATS server takes messages of ${maxPayload} bytes; max_payload must be ${smallestPayload} or more`,
    )
  }
  return maxPayload
}

async function openManager(connection: NatsConnection): Promise<JetStreamManager> {
  try {
    return await jetstreamManager(connection, { timeout: answerTimeoutMs })
  } catch (cause) {
    throw new LogError('unsupported', 'the NATS server has no JetStream for this account', {
      cause,
    })
  }
}

async function ensureStream(
  manager: JetStreamManager,
  stream: string,
  replicas: number,
  create: boolean,
): Promise<void> {
  const found = await findStream(manager, stream)
  if (found !== undefined) return checkStream(found.config)
  if (!create) throw new LogError('foreign', `the NATS server has no stream ${stream}`)
  const made = await manager.streams
    .add({
      name: stream,
      subjects: [subjects],
      retention: RetentionPolicy.Limits,
      storage: StorageType.File,
      num_replicas: replicas,
      // A full stream refuses events in place of dropping the oldest.
      discard: DiscardPolicy.New,
      deny_delete: true,
    })
    .catch(async (cause) => {
      // Another process may have made it meanwhile.
      const other = await findStream(manager, stream)
      if (other !== undefined) return other
      throw new LogError('storage', `cannot make the stream ${stream}: ${messageOf(cause)}`, {
        cause,
      })
    })
  checkStream(made.config)
}

export async function findStream(
  manager: JetStreamManager,
  stream: string,
): Promise<StreamInfo | undefined> {
  try {
    return await manager.streams.info(stream)
  } catch (error) {
    if (error instanceof JetStreamApiError && error.status === 404) return undefined
    throw error
  }
}

/** @throws LogError `foreign` where a limit of the stream would make holes in the log. */
function checkStream(config: StreamConfig): void {
  const wrong = [
    config.retention !== RetentionPolicy.Limits && `retention is ${config.retention}`,
    config.discard !== DiscardPolicy.New && 'it discards old messages',
    config.max_age > 0 && 'max_age is set',
    config.max_msgs > 0 && config.discard !== DiscardPolicy.New && 'max_msgs is set',
    config.max_msgs_per_subject > 0 && 'max_msgs_per_subject is set',
    config.sealed && 'it is sealed',
    config.no_ack && 'it gives no acknowledgements',
    !config.subjects?.includes(subjects) && `it does not take ${subjects}`,
  ].filter((reason) => typeof reason === 'string')
  if (wrong.length > 0) {
    throw new LogError(
      'foreign',
      `the stream ${config.name} cannot hold a log: ${wrong.join('; ')}`,
    )
  }
}

export const messageOf = (cause: unknown): string =>
  cause instanceof Error ? cause.message : String(cause)

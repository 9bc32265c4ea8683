import {
  DiscardPolicy,
  JetStreamApiError,
  type JetStreamClient,
  type JetStreamManager,
  jetstream,
  jetstreamManager,
  RetentionPolicy,
  StorageType,
  StoreCompression,
  type StreamConfig,
  type StreamInfo,
  type StreamState,
} from '@nats-io/jetstream'
import { Objm } from '@nats-io/obj'
import { connect, type NatsConnection } from '@nats-io/transport-node'
import { Arrivals } from './arrivals.ts'
import { LogError } from './log.ts'

/** For modules that load this one on demand: bundles keep no names of a CommonJS package that is imported so. */
export { DiscardPolicy, JetStreamApiError, jetstream, jetstreamManager }

/** The stream of a log, and the first token of the subjects that it takes. */
interface LogStream {
  readonly name: string
  readonly prefix: string
}

/** Streams of all logs. Subjects of events begin with `sluice` whatever their stream. */
export const logStreams = {
  events: { name: 'SLUICE_EVENTS', prefix: 'sluice' },
  ledger: { name: 'SLUICE_LEDGER', prefix: 'sluice-ledger' },
} as const satisfies Record<string, LogStream>

/** Returns the subject under which a stream takes an event. */
export const subjectIn = ({ prefix }: LogStream, subject: string): string =>
  prefix + subject.slice(logStreams.events.prefix.length)

/** Returns the subject of an event in a stream. */
export const subjectFrom = ({ prefix }: LogStream, subject: string): string =>
  logStreams.events.prefix + subject.slice(prefix.length)

export interface NatsLogOptions {
  /** Which log it is. Default: the events of the configuration. */
  readonly log?: keyof typeof logStreams
  /** `nats://[user:password@]host:port` or `tls://…`; commas separate the servers of a cluster. */
  readonly servers: string
  /** Whether to create the stream if it does not exist; if false, that is an error. Default true. */
  readonly create?: boolean
  /** How long a call may wait for a server that does not answer, in milliseconds. Default 30 s. */
  readonly patienceMs?: number
  /** How long to wait for an unfinished batch of another writer, in milliseconds. Default 500. */
  readonly graceMs?: number
  /** Opens the connection. Default `openLink`, which connects over TCP. */
  readonly connect?: (options: NatsLogOptions) => Promise<Link>
}

/** A connection to a server that has passed its checks. */
export interface Link {
  readonly connection: NatsConnection
  readonly client: JetStreamClient
  readonly manager: JetStreamManager
  readonly stream: LogStream
  /** The object stores for snapshots and the index of the stream. */
  readonly objects: Pick<Objm, 'create' | 'open'>
  /** Maximum bytes of a message's body, which leaves room for headers. */
  readonly maxFrameBytes: number
  /** Announces every reconnect. */
  readonly reconnects: Arrivals
  isConnected(): boolean
}

/** Number of replicas of a stream, unless an operator has created it with more. */
export const replicas = 1
/** Minimum version of the server: the first with ordered pull consumers, and the one that Debian ships. */
const oldestServer = [2, 9] as const
const headerReserve = 8 * 1024
const largestFrame = 512 * 1024
const smallestPayload = 64 * 1024
const retryMs = 100
/** Time after which a request without an answer is repeated, in milliseconds. */
const responseTimeoutMs = 2000

/**
 * Connects, and checks that the server can keep the log.
 * @throws LogError `unsupported` if it cannot, `storage` if it does not answer, `foreign` if the
 *   configuration of the stream would lose events
 */
export async function openLink(options: NatsLogOptions): Promise<Link> {
  const connection = await connectTo(options.servers)
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
    const stream = logStreams[options.log ?? 'events']
    const { max_msg_size: maxMessage } = await ensureStream(manager, stream, {
      create: options.create ?? true,
      canCompress: isAtLeast(connection, [2, 10]),
    })
    const client = jetstream(connection, { timeout: responseTimeoutMs })
    // -1 and 0 mean that only the limit of the server applies.
    const maxBytes = maxMessage > 0 ? Math.min(maxPayload, maxMessage) : maxPayload
    return {
      connection,
      client,
      manager,
      stream,
      objects: new Objm(client),
      maxFrameBytes: Math.min(largestFrame, maxBytes - headerReserve),
      reconnects,
      isConnected: () => connected,
    }
  } catch (error) {
    await connection.close()
    throw error
  }
}

/** Removes user and password from the addresses of servers. */
export const withoutPasswords = (servers: string): string =>
  servers.replace(/(^|,)(\s*(?:\w+:\/\/)?)[^,]*@/g, '$1$2')

/** @throws LogError `storage` */
export async function connectTo(servers: string): Promise<NatsConnection> {
  const [, user, pass] = /^(?:\w+:\/\/)?([^@:,]+)(?::([^,]*))?@/.exec(servers) ?? []
  const addresses = withoutPasswords(servers)
  try {
    return await connect({
      name: 'sluice',
      servers: addresses.split(','),
      // Each user gets replies under a subject that permissions can reserve for it. A token is no user.
      ...(pass !== undefined && /^[\w-]+$/.test(user ?? '') && { inboxPrefix: `_INBOX.${user}` }),
      ...(user !== undefined && pass === undefined && { token: decodeURIComponent(user) }),
      ...(user !== undefined &&
        pass !== undefined && { user: decodeURIComponent(user), pass: decodeURIComponent(pass) }),
      ...(addresses.includes('tls://') && { tls: {} }),
      maxReconnectAttempts: -1,
      reconnectTimeWait: 250,
      timeout: 5000,
      pingInterval: 10_000,
    })
  } catch (cause) {
    const places = addresses.replaceAll(',', ', ')
    throw new LogError('storage', `cannot connect to ${places}: ${messageOf(cause)}`, { cause })
  }
}

/** Returns the largest payload that the server accepts. */
function checkServer(connection: NatsConnection): number {
  const { info } = connection
  if (!isAtLeast(connection, oldestServer)) {
    throw new LogError(
      'unsupported',
      `the NATS server has version ${info?.version || 'unknown'}; ${oldestServer.join('.')} or newer is needed`,
    )
  }
  if (info?.headers !== true) {
    throw new LogError('unsupported', 'the NATS server does not support message headers')
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

function isAtLeast({ info }: NatsConnection, [major, minor]: readonly [number, number]): boolean {
  const [actualMajor = 0, actualMinor = 0] = (info?.version ?? '').split('.').map(Number)
  return actualMajor > major || (actualMajor === major && actualMinor >= minor)
}

/** @throws LogError `unsupported` */
export async function openManager(connection: NatsConnection): Promise<JetStreamManager> {
  try {
    return await jetstreamManager(connection, { timeout: responseTimeoutMs })
  } catch (cause) {
    throw new LogError('unsupported', 'the NATS server has no JetStream for this account', {
      cause,
    })
  }
}

interface StreamOptions {
  readonly create: boolean
  /** Whether the server can compress what it stores. */
  readonly canCompress: boolean
}

async function ensureStream(
  manager: JetStreamManager,
  { name, prefix }: LogStream,
  { create, canCompress }: StreamOptions,
): Promise<StreamConfig> {
  if (!create && (await findStream(manager, name)) === undefined) {
    throw new LogError('missing', `the NATS server has no stream ${name}`)
  }
  const compressed = canCompress ? { compression: StoreCompression.S2 } : {}
  const subjects = `${prefix}.>`
  const wanted = { name, subjects: [subjects], ...compressed }
  const { config } = await findOrCreateStream(manager, wanted)
  checkStream(config, subjects)
  if (create && canCompress && config.compression !== StoreCompression.S2) {
    // An account that may not change the stream keeps it as it is: the log only takes more space.
    await manager.streams.update(name, compressed).catch(() => undefined)
  }
  return config
}

/** @throws LogError `storage` if the server refuses to create the stream */
export async function findOrCreateStream(
  manager: JetStreamManager,
  config: Partial<StreamConfig> & { readonly name: string },
): Promise<StreamInfo> {
  const { name } = config
  const known = await findStream(manager, name)
  if (known !== undefined) return known
  const create = manager.streams.add({
    retention: RetentionPolicy.Limits,
    storage: StorageType.File,
    num_replicas: replicas,
    // A full stream refuses messages instead of dropping the oldest.
    discard: DiscardPolicy.New,
    deny_delete: true,
    ...config,
  })
  return create.catch(async (cause) => {
    // Another process may have created it in the meantime.
    const other = await findStream(manager, name)
    if (other !== undefined) return other
    const message = `cannot create the stream ${name}: ${messageOf(cause)}`
    throw new LogError('storage', message, { cause })
  })
}

export async function findStream(
  manager: JetStreamManager,
  name: string,
): Promise<StreamInfo | undefined> {
  try {
    return await manager.streams.info(name)
  } catch (error) {
    if (error instanceof JetStreamApiError && error.status === 404) return undefined
    throw error
  }
}

/** @throws LogError `foreign` if a limit of the stream would remove events from the log */
function checkStream(config: StreamConfig, subjects: string): void {
  const wrong = [
    config.retention !== RetentionPolicy.Limits && `retention is ${config.retention}`,
    config.discard !== DiscardPolicy.New && 'it discards old messages',
    config.max_age > 0 && 'max_age is set',
    config.max_msgs > 0 && config.discard !== DiscardPolicy.New && 'max_msgs is set',
    config.max_msgs_per_subject > 0 && 'max_msgs_per_subject is set',
    config.max_msg_size > 0 &&
      config.max_msg_size < smallestPayload &&
      `max_msg_size is ${config.max_msg_size}, and must be ${smallestPayload} or more, or -1`,
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

/** When to give up, on the clock of `performance.now()`. */
export type Deadline = number

/**
 * Repeats a request until the server answers or the deadline has passed. An error is an answer too, unless it
 * says that the server is not ready.
 * @throws LogError `storage`, with the server's error as its cause.
 */
export async function persist<Result>(
  attempt: () => Promise<Result>,
  deadline: Deadline,
): Promise<Result> {
  for (;;) {
    try {
      return await attempt()
    } catch (cause) {
      if (cause instanceof LogError) throw cause
      const isRefused = cause instanceof JetStreamApiError && cause.status < 500
      const isFinal = isRefused || (cause instanceof JetStreamApiError && !isPassing(cause.code))
      if (isFinal || performance.now() > deadline) {
        throw new LogError('storage', `the NATS server failed: ${messageOf(cause)}`, { cause })
      }
      await new Promise((resolve) => setTimeout(resolve, retryMs))
    }
  }
}

/** Errors of a server that starts, or that has no leader yet: system unavailable, no peers, offline. */
const isPassing = (code: number): boolean => [10008, 10009, 10118, 10074].includes(code)

/** Knows which messages the stream has: its first and last one, and the holes left by external removals. */
export class StreamExtent {
  readonly #link: Link
  /** Creation time of the stream. If it was replaced by a new stream of its name, that has another time. */
  #created: string | undefined
  /** Sequences of removed messages between remaining ones, as last read; in order. */
  #holes: readonly number[] = []

  constructor(link: Link) {
    this.#link = link
  }

  /** @throws LogError `corrupt` if the stream was deleted or replaced since the first call. */
  async info(deadline: Deadline): Promise<StreamInfo> {
    const { manager, stream } = this.#link
    const info = await persist(() => findStream(manager, stream.name), deadline)
    this.#created ??= info?.created
    if (info !== undefined && info.created === this.#created) return info
    const what = info === undefined ? 'was deleted' : 'was replaced by another one'
    throw new LogError('corrupt', `the stream ${what}; open the log again`)
  }

  /** Sequences of messages that were removed while earlier ones remain; in order. */
  async holes(state: StreamState, deadline: Deadline): Promise<readonly number[]> {
    if ((state.num_deleted ?? 0) === this.#holes.length) return this.#holes
    const { manager, stream } = this.#link
    const ask = () => manager.streams.info(stream.name, { deleted_details: true })
    const info = await persist(ask, deadline)
    this.#holes = info.state.deleted ?? []
    return this.#holes
  }
}

/** Returns the sequence of the last message that was not removed. */
export function lastPresent(last: number, holes: readonly number[]): number {
  let end = last
  for (let at = holes.length - 1; at >= 0 && holes[at] === end; at--) end--
  return end
}

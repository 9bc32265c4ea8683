/**
 * The configuration server for remote proxies; workers of the same process use `InProcessChannel`
 * instead. The control plane starts it before the first listing, publishes every change set to it,
 * and records what proxies acknowledge:
 *
 * ```ts
 * const xds = new XdsServer({ address: ':9978', reports: plane.recorder, verify, tls })
 * await xds.start()
 * xds.publish(delta)             // with the secret values that its resources refer to
 * xds.expect(proxiesOfTheFold)   // after a restart: proxies that do not return are recorded as gone
 * ```
 *
 * Before the first change set streams are refused with UNAVAILABLE, so that no proxy takes "nothing
 * listed yet" for "nothing there". Any replica can serve any proxy: versions are content hashes.
 */
import { randomUUID } from 'node:crypto'
import { status } from '@grpc/grpc-js'
import type { ConnectLedger } from '../../ground/model/budgets.ts'
import type { Diversion } from '../../ground/model/diversion.ts'
import type { EndedEntry, EndedReport } from '../../ground/model/ended-sessions.ts'
import type { ListReport } from '../../ground/model/mcp-lists.ts'
import type { RecordReport } from '../../ground/model/record-report.ts'
import type { DesiredDelta, ResourceKey } from '../../ground/model/resources.ts'
import type { ConnectSeries, SeriesConnection } from '../../ground/model/series.ts'
import {
  type DeltaRequest,
  decodeRequest,
  encodeSeriesResponse,
  type ProxyNode,
  resourceTypeUrl,
} from '../wire/discovery.ts'
import type { TlsSource } from './credentials.ts'
import type { ProxyReports } from './delivery-recorder.ts'
import { EndedSender } from './ended-sender.ts'
import { type Listen, listenOverGrpc, type StreamCall } from './listener.ts'
import { writeXdsMetrics, XdsCounters } from './metrics.ts'
import { bearerToken, otherOwner, peerOf, tokenProblem } from './peer.ts'
import { ProxyHolders } from './proxy-holders.ts'
import { ProxyStates } from './proxy-states.ts'
import { ProxySession } from './session.ts'
import { isAccountOf, type ProxyIdentity, type VerifyProxy, verifyLoopback } from './verifier.ts'

export interface XdsServerOptions {
  /** `host:port` or `:port` (all addresses); port 0 takes a free one. */
  readonly address: string
  readonly reports: ProxyReports
  /** If omitted, only proxies on the same machine are served, and they need no token. */
  readonly verify?: VerifyProxy
  /** If omitted, streams are plaintext. */
  readonly tls?: TlsSource
  /** How streams are received. If omitted, over gRPC. */
  readonly listen?: Listen
  /** Whether this replica is behind a position that a proxy has. Such a proxy is refused. If omitted, none is. */
  readonly isBehind?: (position: number) => Promise<boolean>
  /** The ledger of budgets. If omitted, proxies get no allowances. */
  readonly ledger?: ConnectLedger
  /** These receive what MCP servers list, which sessions of users have ended, and decision records. */
  readonly onList?: (proxy: string, report: ListReport) => void
  readonly onEnded?: (proxy: string, report: EndedReport) => void
  readonly onRecords?: (proxy: string, gateway: string, report: RecordReport) => void
  /** Returns who stores the time series of the proxy `namespace/gateway/name`. If omitted, they are not stored. */
  readonly series?: (proxy: string) => ConnectSeries
  /** How long a proxy may take to acknowledge a change before its stream is closed. Default 30 s. */
  readonly ackTimeoutMs?: number
  /** How long proxies that `expect` names may take to reconnect. Default 30 s. */
  readonly returnLimitMs?: number
  /** Bytes of resources after which a response is sent in parts. Default 1 MiB. */
  readonly partBytes?: number
  /** Called with notices for operators: which proxy was dropped or refused, and why. */
  readonly onNotice?: (text: string) => void
}

interface Connected {
  readonly session: ProxySession
  readonly holders: ProxyHolders
  readonly node: ProxyNode
  readonly call: StreamCall
  /** Set once the proxy has reported time series. */
  series?: SeriesConnection | undefined
}

/** Stands for the proxy in rejections of resources that cannot be encoded. */
const publisher = 'publisher'
const defaultLimitMs = 30_000
const defaultPartBytes = 1 << 20
/** How often the server looks for proxies that do not respond. */
const checkIntervalMs = 1_000

export class XdsServer {
  readonly #options: XdsServerOptions
  readonly #states: ProxyStates<Connected>
  readonly #counters = new XdsCounters()
  /** Connections by proxy name. A new stream of a proxy process replaces its older one. */
  readonly #connected = new Map<string, Connected>()
  /** Names of connected proxies that others were refused for, so that each is reported once. */
  readonly #duplicates = new Set<string>()
  readonly #expected = new Set<string>()
  readonly #ended = new EndedSender()
  #listener: Awaited<ReturnType<Listen>> | undefined
  #watch: NodeJS.Timeout | undefined
  #isClosing = false

  constructor(options: XdsServerOptions) {
    this.#options = options
    this.#states = new ProxyStates({
      onUnencodable: (key, sequence, error) =>
        options.reports.onReject(publisher, sequence, key, 'bug', `cannot be encoded: ${error}`),
      onError: ({ call }, error) => this.#fail(call, status.INTERNAL, messageOf(error)),
    })
  }

  /** The bound address, `host:port`. */
  get address(): string {
    return this.#listener?.address ?? ''
  }

  /**
   * Resolves when the server listens. Rejects with `port_in_use` or `address_unusable` if the address
   * cannot be bound, and if TLS is configured and the certificate cannot be used.
   */
  async start(): Promise<this> {
    const { address, tls, onNotice, listen = listenOverGrpc({ tls, onNotice }) } = this.#options
    this.#listener = await listen(address, (call) => this.#open(call))
    this.#watch = setInterval(() => this.#dropSilent(), checkIntervalMs).unref()
    return this
  }

  /**
   * Publishes a change set with its secrets, and sends each proxy its part. The proxies that `diversion` names get its
   * state instead; if it is null, none do, and if omitted, the same as before.
   */
  publish(delta: DesiredDelta, diversion?: Diversion | null): void {
    this.#states.publish(delta, diversion, [...this.#connected.values()])
  }

  /** Sends sessions and tokens that are refused to every proxy. */
  endSessions(entries: readonly EndedEntry[]): void {
    this.#ended.add(entries, this.#connected.values())
  }

  /**
   * Waits for proxies that were connected to an earlier run of this process. Those that have not reconnected
   * after the limit are recorded as gone.
   */
  expect(proxies: readonly string[]): void {
    for (const proxy of proxies) if (!this.#connected.has(proxy)) this.#expected.add(proxy)
    const limit = this.#options.returnLimitMs ?? defaultLimitMs
    setTimeout(() => this.#forget(proxies), limit).unref()
  }

  #forget(proxies: readonly string[]): void {
    if (this.#isClosing) return
    for (const proxy of proxies) {
      if (!this.#expected.delete(proxy)) continue
      this.#options.reports.disconnected(proxy, 'it has not reconnected')
      this.#options.onNotice?.(`proxy ${proxy} has not reconnected`)
    }
  }

  /** Returns all metrics in Prometheus text format. */
  metrics(): string {
    const sessions = [...this.#connected.values()]
    return writeXdsMetrics(this.#counters, {
      proxies: sessions.length,
      published: this.#states.published.size,
      sequence: this.#states.published.sequence,
      rejected: sessions.reduce((sum, { session }) => sum + session.rejections, 0),
    })
  }

  /** Serves a new stream. After authentication, its requests are handled one after the other. */
  #open(call: StreamCall): void {
    this.#counters.streams++
    let identity: ProxyIdentity | undefined
    let connected: Connected | undefined
    let isOver = false
    let queue: Promise<void> = this.#identify(call).then((known) => {
      identity = known
    })
    const take = async (bytes: Uint8Array) => {
      if (identity === undefined || isOver) return
      const request = decodeRequest(bytes)
      if (connected !== undefined) {
        await this.#receive(connected, request)
        return
      }
      const isBehind = await this.#isBehind(request)
      if (isOver) return
      connected = isBehind
        ? this.#fail(call, status.UNAVAILABLE, 'this replica has not read that far yet')
        : this.#greet(call, identity, request)
    }
    const onError = (error: unknown) => {
      this.#fail(call, status.INVALID_ARGUMENT, messageOf(error))
    }
    queue = queue.catch(onError)
    call.on('data', (bytes: Uint8Array) => {
      queue = queue.then(() => take(bytes)).catch(onError)
    })
    const leave = (why: string) => {
      isOver = true
      if (connected !== undefined) this.#leave(connected, why)
      connected = undefined
    }
    call.on('error', (error: Error) => leave(error.message))
    call.on('cancelled', () => leave('the proxy closed the stream'))
    call.on('close', () => leave('the stream ended'))
    call.on('end', () => {
      leave('the proxy ended the stream')
      call.end()
    })
  }

  /** Takes a message of a proxy whose first request was accepted: a report, or an acknowledgement. */
  async #receive(connected: Connected, request: DeltaRequest): Promise<void> {
    const { session, holders, node } = connected
    const { ledger, list, series, ended, records, isLeaving } = request
    // Lists and endings are only taken if they are about the proxy's own Gateway.
    if (ledger !== undefined) holders.report(ledger)
    else if (list !== undefined) {
      if (session.has(`backend/${list.backend}`)) this.#options.onList?.(node.name, list)
    } else if (ended !== undefined) {
      if (session.signsInAt(ended)) this.#options.onEnded?.(node.name, ended)
    } else if (series !== undefined) {
      connected.series ??= this.#connectSeries(connected)
      connected.series?.report(series)
    } else if (records !== undefined) {
      const { namespace, name } = node.gateway
      this.#options.onRecords?.(node.name, `${namespace}/${name}`, records)
    } else if (isLeaving === true) this.#retire(connected, 'the proxy is shutting down')
    else await session.acknowledged(request)
  }

  /** Authenticates a proxy. If this fails, ends the call and returns undefined. */
  async #identify(call: StreamCall): Promise<ProxyIdentity | undefined> {
    if (this.#isClosing) return this.#fail(call, status.UNAVAILABLE, 'shutting down')
    const peer = peerOf(call)
    const token = bearerToken(call.metadata)
    const verify = this.#options.verify ?? verifyLoopback
    this.#counters.authRequests++
    let identity: ProxyIdentity | undefined
    try {
      identity = await verify({ token, peer })
    } catch (error) {
      this.#counters.authFailures++
      this.#options.onNotice?.(`the token of ${peer} cannot be checked: ${messageOf(error)}`)
      return this.#fail(call, status.UNAVAILABLE, 'the token cannot be checked now')
    }
    if (identity !== undefined) return identity
    this.#counters.authFailures++
    this.#options.onNotice?.(`a proxy at ${peer} was refused: ${tokenProblem(token)}`)
    return this.#fail(call, status.UNAUTHENTICATED, tokenProblem(token))
  }

  async #isBehind({ position }: DeltaRequest): Promise<boolean> {
    const { isBehind } = this.#options
    return position !== undefined && isBehind !== undefined && (await isBehind(position))
  }

  #greet(call: StreamCall, identity: ProxyIdentity, request: DeltaRequest): Connected | undefined {
    const { node, typeUrl, versions } = request
    if (node === undefined) {
      const text = 'the first request must have a node with metadata NAME and role'
      return this.#fail(call, status.INVALID_ARGUMENT, text)
    }
    if (typeUrl !== '' && typeUrl !== resourceTypeUrl) {
      return this.#fail(call, status.INVALID_ARGUMENT, `only ${resourceTypeUrl} is served`)
    }
    const { gateway } = node
    const name = `${gateway.namespace}/${gateway.name}`
    const own = identity.gateway
    if (own !== undefined && !isAccountOf(own, gateway)) {
      const text = `this token is for Gateway ${own.namespace}/${own.name}, not ${name}`
      this.#options.onNotice?.(`proxy ${node.name} was refused: ${text}`)
      return this.#fail(call, status.PERMISSION_DENIED, text)
    }
    if (this.#states.published.sequence < 0) {
      return this.#fail(call, status.UNAVAILABLE, 'not everything is listed yet')
    }
    const older = this.#connected.get(node.name)
    const owner = older && otherOwner(older.node, node)
    if (owner === undefined) return this.#connect(call, node, versions, older)
    const text = `${owner} has the name ${node.name}; set SLUICE_PROXY_NAME to a unique name`
    if (!this.#duplicates.has(node.name)) this.#options.onNotice?.(text)
    this.#duplicates.add(node.name)
    return this.#fail(call, status.ALREADY_EXISTS, text)
  }

  #connect(
    call: StreamCall,
    node: ProxyNode,
    versions: ReadonlyMap<ResourceKey, string>,
    older: Connected | undefined,
  ): Connected {
    const session = new ProxySession({
      node,
      state: this.#states.of(node.name),
      acks: this.#options.reports,
      counters: this.#counters,
      partBytes: this.#options.partBytes ?? defaultPartBytes,
      write: (bytes) => new Promise((sent) => call.write(bytes, () => sent())),
    })
    const holders = new ProxyHolders(node.name, this.#options.ledger, (bytes) => call.write(bytes))
    const connected = { session, holders, node, call }
    this.#connected.set(node.name, connected)
    this.#expected.delete(node.name)
    if (older !== undefined) this.#replace(older, call)
    const [address] = node.addresses
    this.#options.reports.connected(node.name, {
      gateway: `${node.gateway.namespace}/${node.gateway.name}`,
      stream: randomUUID(),
      ...(address !== undefined && { address }),
      ...(node.version !== '' && { version: node.version }),
    })
    // Before the configuration, so that no session is accepted that has ended.
    this.#ended.sendAll(connected)
    session.greet(versions).catch((error) => this.#fail(call, status.INTERNAL, messageOf(error)))
    return connected
  }

  #replace(older: Connected, by: StreamCall): void {
    const { session, holders, node, call } = older
    session.close()
    holders.close()
    older.series?.close()
    const closed = `closed the old stream from ${peerOf(call)}`
    const advice = 'If this repeats, two proxies share the name: set SLUICE_PROXY_NAME.'
    this.#options.onNotice?.(
      `Proxy ${node.name} reconnected from ${peerOf(by)}; ${closed}. ${advice}`,
    )
    this.#fail(call, status.ABORTED, 'the proxy has opened another stream')
  }

  #connectSeries({ node, call }: Connected): SeriesConnection | undefined {
    const { namespace, name } = node.gateway
    const connect = this.#options.series?.(`${namespace}/${name}/${node.name}`)
    return connect?.((stored) => call.write(encodeSeriesResponse(stored)))
  }

  #leave(connected: Connected, why: string): void {
    connected.holders.close()
    connected.series?.close()
    connected.series = undefined
    this.#retire(connected, why)
  }

  /** Ends the session. What the proxy still reports of budgets and time series is taken until its stream ends. */
  #retire({ session, node }: Connected, why: string): void {
    session.close()
    if (this.#connected.get(node.name)?.session !== session) return
    this.#connected.delete(node.name)
    this.#duplicates.delete(node.name)
    this.#options.reports.disconnected(node.name, why)
  }

  #dropSilent(): void {
    const limit = this.#options.ackTimeoutMs ?? defaultLimitMs
    for (const connected of [...this.#connected.values()]) {
      const { session, node, call } = connected
      if (session.silentMs <= limit) continue
      const text = `it has not answered for ${Math.round(session.silentMs / 1_000)} s`
      this.#counters.dropped++
      this.#options.onNotice?.(`proxy ${node.name} was dropped: ${text}`)
      this.#leave(connected, text)
      this.#fail(call, status.DEADLINE_EXCEEDED, text)
    }
  }

  /** Ends a call with an error. */
  #fail(call: StreamCall, code: status, details: string): undefined {
    if (!call.destroyed) call.emit('error', Object.assign(new Error(details), { code, details }))
  }

  /** Ends every stream, so that proxies connect to another replica, and stops listening. */
  async close(): Promise<void> {
    this.#isClosing = true
    clearInterval(this.#watch)
    for (const connected of [...this.#connected.values()]) {
      this.#leave(connected, 'the controller was stopped')
      this.#fail(connected.call, status.UNAVAILABLE, 'shutting down')
    }
    await this.#listener?.close()
  }
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error))

/**
 * One stream of a proxy: the resources that it has or still needs, and what it acknowledges. Independent of gRPC.
 *
 * ```
 *            changes                       changes: collected, not sent
 *   idle ──────────────► pushing ── last part written ──► waiting ── last ack ─────► idle
 *    ▲                      ▲                                            │
 *    │                      └─────────── if changes were collected ──────┘
 *    └── a change does not concern this Gateway: the watermark rises at once
 * ```
 *
 * At most one push is under way, so that a slow proxy costs only the keys that wait.
 */
import type { ResourceKey } from '../../ground/model/resources.ts'
import {
  assembleResponse,
  type ChangeSetRefusal,
  type DeltaRequest,
  type DiscoveryPiece,
  type ProxyNode,
} from '../wire/discovery.ts'
import type { AckHandler } from './delivery-recorder.ts'
import type { XdsCounters } from './metrics.ts'
import type { GatewayState, PublishedState } from './published-state.ts'

interface ProxySessionOptions {
  readonly node: ProxyNode
  readonly state: PublishedState
  readonly acks: AckHandler
  /** Sends bytes. Resolves once they are sent, which takes long if the proxy does not read. */
  readonly write: (bytes: Uint8Array) => Promise<void>
  readonly counters: XdsCounters
  /** Maximum bytes of resources in a part, unless it has only one; gRPC accepts 4 MiB by default. */
  readonly partBytes: number
}

/** The push under way. */
interface Push {
  readonly sequence: number
  readonly startedAt: number
  /** Nonce of the last part; undefined until it is written. */
  last?: string
}

/** Types in the order in which they are sent, so that a resource comes after those that it refers to. */
const order = ['secret', 'service', 'workload', 'backend', 'policy', 'listener']

function rank(key: ResourceKey): number {
  const place = order.indexOf(key.slice(0, key.indexOf('/')))
  return place < 0 ? order.length : place
}

export class ProxySession {
  readonly proxy: string
  readonly #options: ProxySessionOptions
  #state: PublishedState
  #gateway: GatewayState
  /** Resources that the proxy was sent, or has reported to have. */
  readonly #sent = new Set<ResourceKey>()
  /** Resources to check in the next push. */
  #waiting = new Set<ResourceKey>()
  #push: Push | undefined
  /** Nonces of parts that the proxy has not acknowledged. */
  readonly #pendingNonces = new Set<string>()
  #lastAckAt = performance.now()
  #nonce = 0
  #rejected = new Map<ResourceKey, string>()
  #isClosed = false
  #isGreeted = false

  constructor(options: ProxySessionOptions) {
    this.#options = options
    this.proxy = options.node.name
    this.#state = options.state
    this.#gateway = options.state.openGateway(options.node.gateway)
  }

  /** During a push, milliseconds since it began or since the last acknowledgement; otherwise 0. */
  get silentMs(): number {
    return this.#push === undefined ? 0 : performance.now() - this.#lastAckAt
  }

  /** Number of resources that the proxy rejects. */
  get rejections(): number {
    return this.#rejected.size
  }

  /** Whether the resource is one of this Gateway. */
  has(key: ResourceKey): boolean {
    return this.#gateway.version(key) !== undefined
  }

  /** Whether a policy of this Gateway signs users in at this client of an issuer. */
  signsInAt({ issuer, clientId }: { readonly issuer: string; readonly clientId: string }): boolean {
    for (const key of this.#gateway.keys()) {
      const resource = key.startsWith('policy/') ? this.#gateway.resource(key) : undefined
      if (resource?.type !== 'policy' || resource.field !== 'oidc') continue
      const config = JSON.parse(resource.config) as Record<string, unknown>
      if (config.issuer === issuer && config.clientId === clientId) return true
    }
    return false
  }

  /** Begins the session: sends what differs from the versions that the proxy has, or an empty response. */
  greet(versions: ReadonlyMap<ResourceKey, string>): Promise<void> {
    for (const [key, version] of versions) {
      this.#sent.add(key)
      if (this.#gateway.version(key) !== version) this.#waiting.add(key)
    }
    for (const key of this.#gateway.keys()) if (!versions.has(key)) this.#waiting.add(key)
    this.#isGreeted = true
    return this.#begin()
  }

  /** Called after each change set, with the keys to check; undefined if it does not concern this Gateway. */
  changed(keys: ReadonlySet<ResourceKey> | undefined): Promise<void> {
    for (const key of keys ?? []) this.#waiting.add(key)
    if (!this.#isGreeted || this.#push !== undefined) return Promise.resolve()
    if (this.#waiting.size > 0) return this.#begin()
    this.#options.acks.onAck(this.proxy, this.#state.sequence)
    return Promise.resolve()
  }

  /** The state that the proxy gets. */
  get state(): PublishedState {
    return this.#state
  }

  /** From now on, the proxy gets another state. Sends what differs, and `touched`, which it may have in older versions. */
  moveTo(state: PublishedState, touched: ReadonlySet<ResourceKey> | undefined): Promise<void> {
    const before = this.#gateway
    const after = state.openGateway(this.#options.node.gateway)
    const keys = new Set([...before.keys(), ...after.keys()])
    const differing = [...keys].filter((key) => before.version(key) !== after.version(key))
    this.#state = state
    this.#gateway = after
    before.close()
    return this.changed(new Set([...(touched ?? []), ...differing]))
  }

  /** Handles an acknowledgement or rejection (ACK, NACK). Those of unknown or settled parts are ignored. */
  acknowledged({ nonce, rejected }: DeltaRequest): Promise<void> {
    const isCurrent = nonce !== '' && nonce === String(this.#nonce)
    const isDue = this.#pendingNonces.delete(nonce)
    if (!isDue && !isCurrent) return Promise.resolve()
    this.#lastAckAt = performance.now()
    const push = this.#push
    if (push === undefined) {
      this.#settle(rejected, this.#state.sequence)
      return Promise.resolve()
    }
    // Acknowledgements of earlier parts of a push only show that the proxy still reads.
    if (push.last !== nonce) return Promise.resolve()
    this.#options.counters.pushed((performance.now() - push.startedAt) / 1_000)
    this.#push = undefined
    const isNext = this.#waiting.size > 0
    this.#settle(rejected, isNext ? push.sequence : this.#state.sequence)
    return isNext ? this.#begin() : Promise.resolve()
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#gateway.close()
  }

  /** Reports rejections first, so that a rejected resource never counts as programmed in between. */
  #settle(refusal: ChangeSetRefusal | undefined, sequence: number): void {
    const { acks, counters } = this.#options
    const before = this.#rejected
    this.#rejected = new Map()
    if (refusal === undefined) counters.acks++
    else counters.nacks++
    for (const { key, code, message } of refusalsOf(refusal, this.#options.node)) {
      this.#rejected.set(key, `${code}\0${message}`)
      if (before.get(key) === `${code}\0${message}`) continue
      counters.rejects++
      acks.onReject(this.proxy, sequence, key, code, message)
    }
    for (const key of before.keys()) {
      if (!this.#rejected.has(key)) acks.onRecover(this.proxy, sequence, key)
    }
    acks.onAck(this.proxy, sequence)
  }

  async #begin(): Promise<void> {
    const push: Push = { sequence: this.#state.sequence, startedAt: performance.now() }
    this.#push = push
    this.#lastAckAt = push.startedAt
    const keys = [...this.#waiting].sort((a, b) => rank(a) - rank(b))
    this.#waiting = new Set()
    const pieces: DiscoveryPiece[] = []
    const removed: ResourceKey[] = []
    let bytes = 0
    for (const key of keys) {
      const piece = this.#gateway.piece(key)
      if (piece === undefined) {
        // If a resource cannot be encoded, the proxy keeps the version that it has.
        if (this.#gateway.version(key) === undefined && this.#sent.delete(key)) removed.push(key)
        continue
      }
      if (pieces.length > 0 && bytes + piece.length > this.#options.partBytes) {
        await this.#write(push, pieces.splice(0), [], true)
        if (this.#isClosed) return
        bytes = 0
      }
      this.#sent.add(key)
      pieces.push(piece)
      bytes += piece.length
    }
    // Removals come last, after their replacements.
    await this.#write(push, pieces, removed, false)
  }

  async #write(
    push: Push,
    pieces: readonly DiscoveryPiece[],
    removed: readonly ResourceKey[],
    isPartial: boolean,
  ): Promise<void> {
    const { counters, write } = this.#options
    const nonce = String(++this.#nonce)
    const position = push.sequence
    const bytes = assembleResponse({ position, nonce, pieces, removed, isPartial })
    if (!isPartial) push.last = nonce
    this.#pendingNonces.add(nonce)
    counters.responses++
    counters.bytes += bytes.length
    counters.resources += pieces.length + removed.length
    await write(bytes)
  }
}

/** Returns the rejections in a NACK. If it names no resource, it is about the whole Gateway. */
function refusalsOf(refusal: ChangeSetRefusal | undefined, { gateway }: ProxyNode) {
  if (refusal === undefined) return []
  const { rejections, message } = refusal
  if (rejections.length > 0) return rejections
  const key = `gateway/${gateway.namespace}/${gateway.name}`
  return [{ key, code: 'resource_unreadable', message }]
}

/**
 * One stream of one proxy: what it has, what it still has to get, what it answers. Knows nothing of
 * gRPC.
 *
 * ```
 *            changes                       changes: gathered, not sent
 *   idle ──────────────► pushing ── last part written ──► waiting ── last answer ──► idle
 *    ▲                      ▲                                            │
 *    │                      └────────── where something was gathered ────┘
 *    └── nothing of a change concerns this Gateway: the watermark rises at once
 * ```
 *
 * At most one push is under way, so a slow proxy costs the keys that wait and no copies of anything.
 */
import type { ResourceKey } from '../model/resources.ts'
import {
  assembleResponse,
  type DeltaRequest,
  type DiscoveryPiece,
  type ProxyNode,
  type Refusal,
} from '../wire/discovery.ts'
import type { ChannelAnswers } from './answers.ts'
import type { XdsCounters } from './metrics.ts'
import type { PublishedState, View } from './published-state.ts'

/** The way to the proxy. */
interface Wire {
  /** Resolves once the bytes are on their way: a proxy that does not read holds this up. */
  write(bytes: Uint8Array): Promise<void>
}

interface SessionOptions {
  readonly node: ProxyNode
  readonly state: PublishedState
  readonly answers: ChannelAnswers
  readonly wire: Wire
  readonly counters: XdsCounters
  /** Bytes of resources after which a part ends; far below what gRPC takes by default (4 MiB). */
  readonly partBytes: number
  /** Milliseconds, monotonic. */
  readonly now: () => number
}

/** What is under way. */
interface Push {
  readonly sequence: number
  readonly startedAt: number
  /** Nonce of the last part; undefined until it is written. */
  last?: string
}

/** Later types lead to earlier ones: what is referred to comes before what refers to it. */
const order = ['secret', 'service', 'workload', 'backend', 'policy', 'listener']

function rank(key: ResourceKey): number {
  const place = order.indexOf(key.slice(0, key.indexOf('/')))
  return place < 0 ? order.length : place
}

export class Session {
  readonly proxy: string
  readonly #options: SessionOptions
  readonly #view: View
  /** What the proxy has been sent, or has told that it has. */
  readonly #sent = new Set<ResourceKey>()
  /** What is to be looked at in the next push. */
  #waiting = new Set<ResourceKey>()
  #push: Push | undefined
  /** Nonces of parts that the proxy has not answered. */
  readonly #unanswered = new Set<string>()
  #lastHeard: number
  #nonce = 0
  #rejected = new Map<ResourceKey, string>()
  #isClosed = false
  #isGreeted = false

  constructor(options: SessionOptions) {
    this.#options = options
    this.proxy = options.node.name
    this.#view = options.state.view(options.node.gateway)
    this.#lastHeard = options.now()
  }

  /** Milliseconds for which the proxy owes an answer; 0 where it owes none. */
  get silentMs(): number {
    return this.#push === undefined ? 0 : this.#options.now() - this.#lastHeard
  }

  /** Number of resources that the proxy refuses. */
  get rejections(): number {
    return this.#rejected.size
  }

  /** Begins: sends what differs from the versions that the proxy has; an answer comes in any case. */
  greet(versions: ReadonlyMap<ResourceKey, string>): Promise<void> {
    for (const [key, version] of versions) {
      this.#sent.add(key)
      if (this.#view.version(key) !== version) this.#waiting.add(key)
    }
    for (const key of this.#view.keys()) if (!versions.has(key)) this.#waiting.add(key)
    this.#isGreeted = true
    return this.#begin()
  }

  /** Takes in that resources have changed, or that a new position changes nothing here. */
  changed(keys: ReadonlySet<ResourceKey> | undefined): Promise<void> {
    for (const key of keys ?? []) this.#waiting.add(key)
    if (!this.#isGreeted || this.#push !== undefined) return Promise.resolve()
    if (this.#waiting.size > 0) return this.#begin()
    this.#options.answers.onAck(this.proxy, this.#options.state.sequence)
    return Promise.resolve()
  }

  /** Takes an answer in. One to a part of long ago says nothing any more. */
  answered({ nonce, rejected }: DeltaRequest): Promise<void> {
    const isCurrent = nonce !== '' && nonce === String(this.#nonce)
    const isDue = this.#unanswered.delete(nonce)
    if (!isDue && !isCurrent) return Promise.resolve()
    this.#lastHeard = this.#options.now()
    const push = this.#push
    if (push === undefined) {
      this.#settle(rejected, this.#options.state.sequence)
      return Promise.resolve()
    }
    // Answers to all but the last part only say that the proxy reads.
    if (push.last !== nonce) return Promise.resolve()
    this.#options.counters.pushed((this.#options.now() - push.startedAt) / 1_000)
    this.#push = undefined
    const isNext = this.#waiting.size > 0
    this.#settle(rejected, isNext ? push.sequence : this.#options.state.sequence)
    return isNext ? this.#begin() : Promise.resolve()
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#view.close()
  }

  /** Rejections first, so that nobody takes a refused resource for a programmed one in between. */
  #settle(refusal: Refusal | undefined, sequence: number): void {
    const { answers, counters } = this.#options
    const before = this.#rejected
    this.#rejected = new Map()
    if (refusal === undefined) counters.acks++
    else counters.nacks++
    for (const { key, code, message } of refusalsOf(refusal, this.#options.node)) {
      this.#rejected.set(key, `${code}\0${message}`)
      if (before.get(key) === `${code}\0${message}`) continue
      counters.rejects++
      answers.onReject(this.proxy, sequence, key, code, message)
    }
    for (const key of before.keys()) {
      if (!this.#rejected.has(key)) answers.onRecover(this.proxy, sequence, key)
    }
    answers.onAck(this.proxy, sequence)
  }

  async #begin(): Promise<void> {
    const { state, now } = this.#options
    const push: Push = { sequence: state.sequence, startedAt: now() }
    this.#push = push
    this.#lastHeard = push.startedAt
    const keys = [...this.#waiting].sort((a, b) => rank(a) - rank(b))
    this.#waiting = new Set()
    const pieces: DiscoveryPiece[] = []
    const removed: ResourceKey[] = []
    let bytes = 0
    for (const key of keys) {
      const piece = this.#view.piece(key)
      if (piece === undefined) {
        // What cannot be encoded keeps the version that the proxy has.
        if (this.#view.version(key) === undefined && this.#sent.delete(key)) removed.push(key)
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
    // Removals come last: something that replaces what goes is there before.
    await this.#write(push, pieces, removed, false)
  }

  async #write(
    push: Push,
    pieces: readonly DiscoveryPiece[],
    removed: readonly ResourceKey[],
    isPartial: boolean,
  ): Promise<void> {
    const { counters, wire } = this.#options
    const nonce = String(++this.#nonce)
    const position = push.sequence
    const bytes = assembleResponse({ position, nonce, pieces, removed, isPartial })
    if (!isPartial) push.last = nonce
    this.#unanswered.add(nonce)
    counters.responses++
    counters.bytes += bytes.length
    counters.resources += pieces.length + removed.length
    await wire.write(bytes)
  }
}

/** A foreign proxy may refuse without saying what: then it is said of its whole Gateway. */
function refusalsOf(refusal: Refusal | undefined, { gateway }: ProxyNode) {
  if (refusal === undefined) return []
  const { rejections, message } = refusal
  if (rejections.length > 0) return rejections
  const key = `gateway/${gateway.namespace}/${gateway.name}`
  return [{ key, code: 'resource_unreadable', message }]
}

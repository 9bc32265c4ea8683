/**
 * The in-process channel: what a configuration stream does for proxies elsewhere, for the workers
 * of the same process. It keeps the bytes of the current state by key, so that a resource is
 * encoded once per version, and one change set or full state is one piece of shared memory however
 * many workers read it.
 */
import type { DesiredDelta, ResourceKey, VersionedResource } from '../model/resources.ts'
import type { ConfigChannel, ConfigUpdate, Rejection } from '../wire/channel.ts'
import { assembleDelta, type EncodedResource, encodeResource } from '../wire/encode.ts'
import type { ChannelAnswers } from './answers.ts'

export interface Channel extends ConfigChannel {
  /** Adds a change set and sends it to every subscriber. An empty one still asks for an ack. */
  publish(delta: DesiredDelta): void
  /** The full state; undefined before the first publish. */
  current(): ConfigUpdate | undefined
}

interface Entry {
  readonly version: string
  readonly bytes: EncodedResource
}

/** The name under which resources are rejected that cannot even be encoded. */
const publisher = 'publisher'

function share(sequence: number, bytes: Uint8Array): ConfigUpdate {
  const shared = new Uint8Array(new SharedArrayBuffer(bytes.byteLength))
  shared.set(bytes)
  return { sequence, bytes: shared }
}

class InProcessChannel implements Channel {
  readonly #answers: ChannelAnswers
  readonly #entries = new Map<ResourceKey, Entry>()
  readonly #subscribers = new Set<(update: ConfigUpdate) => void>()
  #sequence: number | undefined
  #full: ConfigUpdate | undefined

  constructor(answers: ChannelAnswers) {
    this.#answers = answers
  }

  publish(delta: DesiredDelta): void {
    this.#sequence = delta.sequence
    this.#full = undefined
    const pieces: EncodedResource[] = []
    for (const versioned of delta.upserted) {
      const bytes = this.#encode(delta.sequence, versioned)
      if (bytes !== undefined) pieces.push(bytes)
    }
    for (const key of delta.removed) this.#entries.delete(key)
    if (this.#subscribers.size === 0) return
    const update = share(delta.sequence, assembleDelta(delta.sequence, pieces, delta.removed))
    for (const receive of [...this.#subscribers]) receive(update)
  }

  /** A resource that cannot be encoded is a bug; it must not keep the others from being served. */
  #encode(sequence: number, versioned: VersionedResource): EncodedResource | undefined {
    const { key } = versioned.resource
    const known = this.#entries.get(key)
    if (known?.version === versioned.version) return known.bytes
    try {
      const bytes = encodeResource(versioned)
      this.#entries.set(key, { version: versioned.version, bytes })
      return bytes
    } catch (error) {
      this.#answers.onReject(publisher, sequence, key, 'bug', `cannot be encoded: ${error}`)
      return undefined
    }
  }

  current(): ConfigUpdate | undefined {
    if (this.#sequence === undefined) return undefined
    this.#full ??= share(this.#sequence, assembleDelta(this.#sequence, this.#pieces(), []))
    return this.#full
  }

  *#pieces(): Iterable<EncodedResource> {
    for (const { bytes } of this.#entries.values()) yield bytes
  }

  subscribe(receive: (update: ConfigUpdate) => void): () => void {
    // A subscriber of its own for each call: the same function may subscribe twice.
    const subscriber = (update: ConfigUpdate) => receive(update)
    this.#subscribers.add(subscriber)
    const full = this.current()
    if (full !== undefined) receive(full)
    return () => this.#subscribers.delete(subscriber)
  }

  ack(proxy: string, sequence: number): void {
    this.#answers.onAck(proxy, sequence)
  }

  reject(proxy: string, sequence: number, { key, code, message }: Rejection): void {
    this.#answers.onReject(proxy, sequence, key, code, message)
  }

  recover(proxy: string, sequence: number, key: ResourceKey): void {
    this.#answers.onRecover(proxy, sequence, key)
  }
}

/** A channel with nothing published yet. */
export function createChannel(answers: ChannelAnswers): Channel {
  return new InProcessChannel(answers)
}

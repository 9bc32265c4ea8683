/**
 * The in-process channel sends configuration to the workers of the same process, as a stream does to remote
 * proxies. All workers read a change set or the full state from the same shared memory. The full state is only
 * encoded for a worker that starts, and is not kept: the resources are in memory anyway.
 */
import type { DesiredDelta, ResourceKey, VersionedResource } from '../model/resources.ts'
import type { ConfigChannel, ConfigUpdate, Rejection } from '../wire/channel.ts'
import { assembleDelta, type EncodedResource, encodeResource } from '../wire/encode.ts'
import type { ChannelAnswers } from './delivery-recorder.ts'

/** Stands for the proxy in rejections of resources that cannot be encoded. */
const publisher = 'publisher'

function share(sequence: number, bytes: Uint8Array): ConfigUpdate {
  const shared = new Uint8Array(new SharedArrayBuffer(bytes.byteLength))
  shared.set(bytes)
  return { sequence, bytes: shared }
}

export class InProcessChannel implements ConfigChannel {
  readonly #answers: ChannelAnswers
  readonly #resources = new Map<ResourceKey, VersionedResource>()
  readonly #subscribers = new Set<(update: ConfigUpdate) => void>()
  #sequence: number | undefined
  #full: ConfigUpdate | undefined

  constructor(answers: ChannelAnswers) {
    this.#answers = answers
  }

  /** Applies a change set and sends it to every subscriber, even an empty one, which must be acknowledged. */
  publish(delta: DesiredDelta): void {
    this.#sequence = delta.sequence
    this.#full = undefined
    const pieces: EncodedResource[] = []
    for (const versioned of delta.upserted) {
      const bytes = this.#encode(delta.sequence, versioned)
      if (bytes === undefined) continue
      this.#resources.set(versioned.resource.key, versioned)
      pieces.push(bytes)
    }
    for (const key of delta.removed) this.#resources.delete(key)
    if (this.#subscribers.size === 0) return
    const update = share(delta.sequence, assembleDelta(delta.sequence, pieces, delta.removed))
    for (const receive of [...this.#subscribers]) receive(update)
  }

  /** Encodes a resource. If this fails, it is a bug that must not prevent the others from being served. */
  #encode(sequence: number, versioned: VersionedResource): EncodedResource | undefined {
    try {
      return encodeResource(versioned)
    } catch (error) {
      const { key } = versioned.resource
      this.#answers.onReject(publisher, sequence, key, 'bug', `cannot be encoded: ${error}`)
      return undefined
    }
  }

  /** The full state; undefined before the first publish. */
  current(): ConfigUpdate | undefined {
    if (this.#sequence === undefined) return undefined
    this.#full ??= share(this.#sequence, assembleDelta(this.#sequence, this.#pieces(), []))
    return this.#full
  }

  *#pieces(): Iterable<EncodedResource> {
    for (const versioned of this.#resources.values()) yield encodeResource(versioned)
  }

  subscribe(receive: (update: ConfigUpdate) => void): () => void {
    // A new function for each call, since the same function may subscribe twice.
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

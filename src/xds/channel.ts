/**
 * The in-process channel sends configuration to the workers of the same process, as a stream does to remote
 * proxies. All workers read a change set or the full state from the same shared memory. The full state is only
 * encoded for a worker that starts, and is not kept: the resources are in memory anyway.
 */
import type { DesiredDelta, ResourceKey, VersionedResource } from '../model/resources.ts'
import type { ConfigChannel, ConfigUpdate, Rejection } from '../wire/channel.ts'
import { assembleSharedDelta, type EncodedResource, encodeResource } from '../wire/encode.ts'
import type { ChannelAnswers } from './delivery-recorder.ts'

/** Stands for the proxy in rejections of resources that cannot be encoded. */
const publisher = 'publisher'

/** Number of routes in a part of the first state. Workers apply a part while the next one is encoded. */
const partRoutes = 500

interface Encoded extends Pick<ConfigUpdate, 'isPart'> {
  readonly pieces: readonly EncodedResource[]
  readonly removed: readonly ResourceKey[]
}

/** Splits a state. The first part has everything that routes depend on, and the first routes. */
function partsOf(all: readonly VersionedResource[]): VersionedResource[][] {
  const routes = all.filter(({ resource }) => resource.type === 'route')
  const parts = [all.filter(({ resource }) => resource.type !== 'route')]
  for (let from = 0; from < routes.length; from += partRoutes) {
    const part = routes.slice(from, from + partRoutes)
    if (from === 0) parts[0]?.push(...part)
    else parts.push(part)
  }
  return parts
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
  publish({ sequence, upserted, removed }: DesiredDelta): void {
    const isFirst = this.#sequence === undefined
    this.#sequence = sequence
    this.#full = undefined
    const parts = isFirst ? partsOf(upserted) : [upserted]
    for (const [index, part] of parts.entries()) {
      const pieces = part.flatMap((versioned) => this.#put(sequence, versioned) ?? [])
      if (index < parts.length - 1) this.#send(sequence, { pieces, removed: [], isPart: true })
      else this.#send(sequence, { pieces, removed })
    }
    for (const key of removed) this.#resources.delete(key)
  }

  #send(sequence: number, { pieces, removed, ...part }: Encoded): void {
    if (this.#subscribers.size === 0) return
    const update = { sequence, bytes: assembleSharedDelta(sequence, pieces, removed), ...part }
    for (const receive of [...this.#subscribers]) receive(update)
  }

  /** Encodes and keeps a resource. One that cannot be encoded does not replace its previous version. */
  #put(sequence: number, versioned: VersionedResource): EncodedResource | undefined {
    const bytes = this.#encode(sequence, versioned)
    if (bytes !== undefined) this.#resources.set(versioned.resource.key, versioned)
    return bytes
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
    const sequence = this.#sequence
    this.#full ??= { sequence, bytes: assembleSharedDelta(sequence, this.#pieces(), []) }
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

/**
 * A model of a NATS server with JetStream: one stream with expected sequences and message ids, consumers
 * that push, the bucket of snapshots and the bucket of heartbeats. What it has acknowledged survives its
 * restarts.
 */
import { JetStreamApiError } from '@nats-io/jetstream'
import type { MsgHdrs } from '@nats-io/transport-node'
import type { Machine, World } from '../virtual-time/world.ts'

export interface StoredMessage {
  readonly seq: number
  readonly subject: string
  readonly headers: MsgHdrs
  readonly data: Uint8Array
}

export interface PublishRequest {
  readonly subject: string
  readonly headers: MsgHdrs
  readonly data: Uint8Array
  readonly msgID: string
  readonly lastSequence: number
}

interface Consumer {
  next: number
  send(message: StoredMessage): void
}

export interface StoredObject {
  readonly name: string
  readonly nuid: string
  readonly size: number
  readonly metadata: Readonly<Record<string, string>> | undefined
  readonly bytes: Uint8Array
}

export class NatsServer {
  readonly machine: Machine
  /** Whether the disk takes no more messages. */
  isFull = false
  /** How long the server knows the id of a message. */
  dedupeMs = 120_000
  /** Called with every stored message. */
  onStored: (message: StoredMessage) => void = () => undefined
  readonly #world: World
  #messages: StoredMessage[] = []
  #first = 0
  #last = 0
  readonly #ids = new Map<string, { readonly seq: number; readonly at: number }>()
  readonly #consumers = new Set<Consumer>()
  readonly #entries = new Map<string, { readonly text: string; readonly at: number }>()
  readonly #buckets = new Map<string, Map<string, StoredObject>>()
  #uploads = 0

  constructor(world: World, machine: Machine) {
    this.#world = world
    this.machine = machine
  }

  info() {
    const bytes = this.#messages.length * 500
    const state = { first_seq: this.#first, last_seq: this.#last, num_deleted: 0, bytes }
    return { created: 'first', state }
  }

  /** Stores a message if it is the expected one. A known id is not stored again. */
  publish({ msgID, lastSequence, ...message }: PublishRequest): number {
    const now = this.#world.now
    const known = this.#ids.get(msgID)
    if (known !== undefined && now - known.at < this.dedupeMs) return known.seq
    if (this.isFull) throw apiError(503, 10_023, 'insufficient resources')
    if (lastSequence !== this.#last) {
      throw apiError(400, 10_071, `wrong last sequence: ${this.#last}`)
    }
    const stored = { ...message, seq: ++this.#last }
    if (this.#first === 0) this.#first = 1
    this.#messages.push(stored)
    this.#ids.set(msgID, { seq: stored.seq, at: now })
    this.onStored(stored)
    for (const consumer of this.#consumers) this.#push(consumer)
    return stored.seq
  }

  message(seq: number): StoredMessage | undefined {
    return this.#messages[seq - this.#first]
  }

  /** Removes all messages before a sequence. */
  purge(seq: number): void {
    const first = Math.min(seq, this.#last + 1)
    if (first <= this.#first) return
    this.#messages = this.#messages.slice(first - this.#first)
    this.#first = first
  }

  /** Sends all messages from a sequence on, also later ones, until the returned function is called. */
  consume(from: number, send: (message: StoredMessage) => void): () => void {
    const consumer = { next: from, send }
    this.#consumers.add(consumer)
    this.#push(consumer)
    return () => this.#consumers.delete(consumer)
  }

  #push(consumer: Consumer): void {
    consumer.next = Math.max(consumer.next, this.#first)
    for (; consumer.next <= this.#last; consumer.next++) {
      const message = this.message(consumer.next)
      if (message !== undefined) consumer.send(message)
    }
  }

  /** The objects in a bucket. */
  objects(bucket: string): readonly StoredObject[] {
    return [...(this.#buckets.get(bucket)?.values() ?? [])]
  }

  saveObject(bucket: string, object: Omit<StoredObject, 'nuid' | 'size'>): void {
    if (this.isFull) throw apiError(503, 10_023, 'insufficient resources')
    const objects = this.#buckets.get(bucket) ?? new Map<string, StoredObject>()
    const stored = { ...object, size: object.bytes.length, nuid: `${++this.#uploads}` }
    this.#buckets.set(bucket, objects.set(object.name, stored))
  }

  /** Removes an object by the subject of its description, `$O.BUCKET.M.NAME`. */
  removeObject(subject: string): void {
    const [, bucket = '', part, name = ''] = subject.split('.')
    if (part !== 'M') return
    this.#buckets.get(bucket)?.delete(Buffer.from(name, 'base64url').toString())
  }

  putEntry(key: string, text: string): void {
    if (this.isFull) throw apiError(503, 10_023, 'insufficient resources')
    this.#entries.set(key, { text, at: this.#world.now })
  }

  /** The entry of a key, unless it has expired. */
  entry(
    key: string,
    lifeMs: number,
  ): { readonly text: string; readonly revision: number } | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined || this.#world.now - entry.at > lifeMs) return undefined
    return { text: entry.text, revision: 1 }
  }
}

const apiError = (code: number, errCode: number, description: string) =>
  new JetStreamApiError({ code, err_code: errCode, description })

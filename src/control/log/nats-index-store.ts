import type { StreamInfo } from '@nats-io/jetstream'
import { within } from '../../ground/base/within.ts'
import { type Link, replicas } from './nats-connection.ts'
import type { NatsIndexState, StreamIndex } from './nats-index.ts'

const objectName = 'newest'
const responseTimeoutMs = 10_000
const digestBytes = 16

/** The index is stored again after this number of new events, or after this share of all events if that is more. */
const leastEvents = 5_000
const share = 1 / 50

/** The first line of the object; the digests follow it. */
interface Head extends Omit<NatsIndexState, 'digests'> {
  /** When the stream was created, so that the index of another stream is not used. */
  readonly created: string
}

/**
 * Stores the index of a stream in an object store, so that a process that opens the log reads only the messages
 * after the index. The index can always be computed again from the stream, so one that is missing, damaged or of
 * another stream is ignored.
 */
export class IndexStore {
  readonly #stores: Link['objects']
  readonly #bucket: string
  /** When the stream was created. */
  #created = ''
  #savedAt = 0
  #saving: Promise<void> = Promise.resolve()

  constructor(link: Link) {
    this.#stores = link.objects
    this.#bucket = `${link.stream.name}_INDEX`
  }

  /** Restores an index. If the store has no usable one, the index begins at the first message of the stream. */
  async restore(index: StreamIndex, { created, state }: StreamInfo): Promise<void> {
    this.#created = created
    let stored: NatsIndexState | undefined
    // The client waits forever for parts that are removed while it reads.
    await within(responseTimeoutMs, async () => {
      const bytes = await this.#read().catch(() => null)
      if (bytes !== null) stored = decode(bytes, created)
    })
    const before = state.first_seq - 1
    if (stored === undefined || stored.sequence < before || stored.sequence > state.last_seq) {
      index.loseUpTo(before)
      return
    }
    index.restore(stored)
    this.#savedAt = stored.last
  }

  /** Stores the index in the background, if it has changed enough. */
  save(index: StreamIndex): void {
    const last = index.lastPosition()
    const held = last - index.purgedUpTo
    if (last - this.#savedAt < Math.max(leastEvents, held * share)) return
    const state = index.toState()
    if (state === undefined) return
    this.#savedAt = last
    this.#saving = this.#saving.then(() => this.#write(state)).catch(() => undefined)
  }

  /** Resolves when nothing is being stored. */
  async settled(): Promise<void> {
    await within(responseTimeoutMs, () => this.#saving)
  }

  async #read(): Promise<Uint8Array | null> {
    const store = await this.#stores.open(this.#bucket)
    return store.getBlob(objectName)
  }

  async #write(state: NatsIndexState): Promise<void> {
    const content = ReadableStream.from(encode(state, this.#created)) as ReadableStream<Uint8Array>
    const store = await this.#stores.create(this.#bucket, { replicas })
    await store.put({ name: objectName }, content)
  }
}

function encode({ digests, ...state }: NatsIndexState, created: string): readonly Uint8Array[] {
  const head: Head = { ...state, created }
  return [Buffer.from(`${JSON.stringify(head)}\n`), Buffer.from(digests.join(''), 'latin1')]
}

function decode(bytes: Uint8Array, created: string): NatsIndexState | undefined {
  const content = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  const end = content.indexOf(0x0a)
  try {
    const { created: writtenFor, ...state } = JSON.parse(content.toString('utf8', 0, end)) as Head
    const text = content.toString('latin1', end + 1)
    const count = state.last - state.purgedUpTo
    if (writtenFor !== created || text.length !== count * digestBytes) return undefined
    const digests = Array.from({ length: count }, (_, at) =>
      text.slice(at * digestBytes, (at + 1) * digestBytes),
    )
    return { ...state, digests }
  } catch {
    return undefined
  }
}

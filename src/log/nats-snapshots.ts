import { type ObjectStore, Objm } from '@nats-io/obj'
import { LogError, type Position, type Snapshot } from './log.ts'
import { type Link, messageOf, replicas, stream } from './nats-connection.ts'

const objectName = 'newest'

/** The line of JSON that is stored before the chunks. */
interface Head {
  readonly position: Position
  readonly foldVersion: string
  /** Length of each chunk in bytes. */
  readonly chunks: readonly number[]
}

/** Stores the newest snapshot in an object store beside the stream. */
export class SnapshotStore {
  #link: Link
  #opened: Promise<ObjectStore> | undefined

  constructor(link: Link) {
    this.#link = link
  }

  /**
   * Replaces the snapshot atomically.
   * @throws LogError `storage`, also if another process stored one in the meantime
   */
  async save({ position, foldVersion, chunks }: Snapshot): Promise<void> {
    const head: Head = { position, foldVersion, chunks: chunks.map(({ length }) => length) }
    const content = [Buffer.from(`${JSON.stringify(head)}\n`), ...chunks]
    await guard(async () => {
      const store = await this.#store()
      const before = await store.info(objectName)
      const stream = ReadableStream.from(content.filter(({ length }) => length > 0))
      await store.put(
        { name: objectName, description: `position ${position}` },
        stream as ReadableStream<Uint8Array>,
        before === null ? {} : { previousRevision: before.revision },
      )
    })
  }

  async load(): Promise<Snapshot | undefined> {
    const bytes = await guard(async () => {
      const store = await this.#store()
      return store.getBlob(objectName)
    })
    if (bytes === null) return undefined
    const end = bytes.indexOf(0x0a)
    const head = parseHead(bytes.subarray(0, Math.max(end, 0)))
    let start = end + 1
    const chunks = head.chunks.map((length) => {
      const chunk = new Uint8Array(bytes.subarray(start, start + length))
      start += length
      return chunk
    })
    return { position: head.position, foldVersion: head.foldVersion, chunks }
  }

  /** Position of the stored snapshot, whose chunks are not read; undefined if there is none. */
  async position(): Promise<number | undefined> {
    const info = await guard(async () => (await this.#store()).info(objectName))
    const text = /^position (\d+)$/.exec(info?.description ?? '')?.[1]
    return text === undefined ? undefined : Number(text)
  }

  #store(): Promise<ObjectStore> {
    this.#opened ??= new Objm(this.#link.client).create(`${stream}_SNAPSHOTS`, { replicas })
    this.#opened.catch(() => {
      this.#opened = undefined
    })
    return this.#opened
  }
}

function parseHead(line: Uint8Array): Head {
  try {
    return JSON.parse(Buffer.from(line).toString()) as Head
  } catch (cause) {
    throw new LogError('corrupt', 'the stored snapshot is damaged', { cause })
  }
}

async function guard<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (cause) {
    if (cause instanceof LogError) throw cause
    throw new LogError('storage', `the snapshot cannot be read or written: ${messageOf(cause)}`, {
      cause,
    })
  }
}

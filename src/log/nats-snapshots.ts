import { type ObjectStore, Objm } from '@nats-io/obj'
import { LogError, type Position, type Snapshot } from './log.ts'
import { type Link, messageOf } from './nats-connection.ts'

const objectName = 'newest'

/** What stands before the chunks, as a line of JSON. */
interface Head {
  readonly position: Position
  readonly foldVersion: string
  /** Bytes of each chunk. */
  readonly chunks: readonly number[]
}

/** The newest snapshot, in an object store beside the stream; the server keeps it in pieces. */
export class SnapshotStore {
  #link: Link
  #opened: Promise<ObjectStore> | undefined

  constructor(link: Link) {
    this.#link = link
  }

  /**
   * Puts a snapshot in place of the one before, in one step for whoever loads it.
   * @throws LogError `storage`, also where another process stored one meanwhile.
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

  /** Position of the stored snapshot, without its chunks. */
  async position(): Promise<number | undefined> {
    const info = await guard(async () => (await this.#store()).info(objectName))
    const text = /^position (\d+)$/.exec(info?.description ?? '')?.[1]
    return text === undefined ? undefined : Number(text)
  }

  #store(): Promise<ObjectStore> {
    const { client, stream, replicas } = this.#link
    this.#opened ??= new Objm(client).create(`${stream}_SNAPSHOTS`, { replicas })
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

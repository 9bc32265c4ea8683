import type { ObjectInfo, ObjectStore } from '@nats-io/obj'
import { within } from '../../ground/base/within.ts'
import {
  LogError,
  type LogSnapshot,
  type NewSnapshot,
  type Position,
  type SnapshotInfo,
  type SnapshotQuery,
} from './log.ts'
import { type Link, messageOf, replicas } from './nats-connection.ts'
import { packChunks, unpackChunks } from './snapshot-codec.ts'
import { surplusSnapshots } from './snapshot-thinning.ts'

const bucketOf = ({ stream }: Link): string => `${stream.name}_SNAPSHOTS`

/** The stream of an object store, and the subjects of its parts, as NATS defines them (ADR-20). */
const bucketStream = (bucket: string) => `OBJ_${bucket}`
const chunkSubject = (bucket: string, nuid: string) => `$O.${bucket}.C.${nuid}`
const metaSubject = (bucket: string, name: string) =>
  `$O.${bucket}.M.${Buffer.from(name).toString('base64').replaceAll('+', '-').replaceAll('/', '_')}`

/** Earlier versions stored one snapshot under this name. */
const firstName = 'newest'

/** After this time without a new part, an upload has failed. */
const abandonedAfterMs = 60 * 60 * 1000
const loadTimeoutMs = 30_000

/** The line of JSON that is stored before the chunks. */
interface Head {
  readonly position: Position
  readonly foldVersion: string
  /** Length of each stored chunk in bytes. */
  readonly chunks: readonly number[]
}

interface StoredObject extends SnapshotInfo {
  readonly name: string
  readonly nuid: string
}

/**
 * Stores snapshots in an object store of their own. Each is an object of its own, and appears once its
 * last part is stored, so that several replicas can write at a time.
 */
export class SnapshotStore {
  #link: Link
  readonly #bucket: string
  #opened: Promise<ObjectStore> | undefined

  constructor(link: Link) {
    this.#link = link
    this.#bucket = bucketOf(link)
  }

  async save(
    snapshot: NewSnapshot,
    log: { purgedUpTo: number; lastPosition: number },
  ): Promise<void> {
    const { position, foldVersion } = snapshot
    const chunks = await packChunks(snapshot.chunks)
    const head: Head = { position, foldVersion, chunks: chunks.map(({ length }) => length) }
    const content = [Buffer.from(`${JSON.stringify(head)}\n`), ...chunks]
    const metadata = { position: `${position}`, foldVersion }
    await guard(async () => {
      const store = await this.#store()
      const parts = ReadableStream.from(content.filter(({ length }) => length > 0))
      await store.put(
        { name: `${position}.${foldVersion}`, metadata },
        parts as ReadableStream<Uint8Array>,
      )
      await this.#thin(foldVersion, log)
    })
  }

  async load({ atMost = Number.POSITIVE_INFINITY as Position, foldVersion }: SnapshotQuery = {}) {
    for (;;) {
      const stored = (await this.list()).findLast(
        (one) =>
          one.position <= atMost && (foldVersion === undefined || one.foldVersion === foldVersion),
      )
      if (stored === undefined) return undefined
      const content = await this.#content(stored)
      if (content !== undefined) return snapshotOf(content)
      // Another replica has removed it since; the next list does not have it.
    }
  }

  /** The stored snapshots, in order of their positions. */
  async list(): Promise<StoredObject[]> {
    return guard(async () => {
      const infos = await (await this.#store()).list()
      const stored = await Promise.all(infos.map((info) => this.#describe(info)))
      return stored
        .filter((one) => one !== undefined)
        .sort((a, b) => a.position - b.position || (a.name < b.name ? -1 : 1))
    })
  }

  /** Position of the newest snapshot; undefined if there is none. */
  async position(): Promise<number | undefined> {
    return (await this.list()).at(-1)?.position
  }

  /** Removes the snapshots before a position. */
  async purgeUpTo(position: number): Promise<void> {
    const stored = await this.list()
    await guard(() => this.#removeAll(stored.filter((one) => one.position < position)))
  }

  /** Makes the server write the parts of removed snapshots no longer: all before the oldest part in use. */
  async compact(): Promise<void> {
    const { manager } = this.#link
    await guard(async () => {
      await this.#store()
      const stream = bucketStream(this.#bucket)
      const { first_seq: first } = (await manager.streams.info(stream)).state
      // The server would remove everything if the sequence were 1.
      if (first > 1) await manager.streams.purge(stream, { seq: first })
    })
  }

  async #describe(info: ObjectInfo): Promise<StoredObject | undefined> {
    const { name, nuid, size: bytes } = info
    const { position, foldVersion } = info.metadata ?? {}
    if (position !== undefined && foldVersion !== undefined) {
      return { name, nuid, bytes, position: Number(position) as Position, foldVersion }
    }
    if (name !== firstName) return undefined
    const content = await this.#content({ name })
    if (content === undefined) return undefined
    const head = parseHead(content)
    return { name, nuid, bytes, position: head.position, foldVersion: head.foldVersion }
  }

  async #content({ name }: Pick<StoredObject, 'name'>): Promise<Uint8Array | undefined> {
    const store = await guard(() => this.#store())
    let content: Uint8Array | null | undefined
    // The client waits forever for parts that are removed while it reads.
    const isRead = await within(loadTimeoutMs, async () => {
      content = await guard(() => store.getBlob(name))
    })
    if (!isRead) throw new LogError('storage', `the NATS server does not deliver snapshot ${name}`)
    return content ?? undefined
  }

  async #thin(
    foldVersion: string,
    log: { readonly purgedUpTo: number; readonly lastPosition: number },
  ): Promise<void> {
    const { manager } = this.#link
    const stored = await this.list()
    const { bytes } = (await manager.streams.info(this.#link.stream.name)).state
    const surplus = new Set<SnapshotInfo>(surplusSnapshots(stored, { ...log, bytes, foldVersion }))
    await this.#removeAll(stored.filter((one) => surplus.has(one)))
    await this.#removeAbandoned(new Set(stored.map(({ nuid }) => chunkSubject(this.#bucket, nuid))))
  }

  /** Removes objects as a whole. The client's own way would keep a message for each of them. */
  async #removeAll(objects: readonly StoredObject[]): Promise<void> {
    for (const { name, nuid } of objects) {
      await this.#removeSubject(metaSubject(this.#bucket, name))
      await this.#removeSubject(chunkSubject(this.#bucket, nuid))
    }
  }

  /** Removes the parts of objects whose writers died before the last part. */
  async #removeAbandoned(known: ReadonlySet<string>): Promise<void> {
    const { streams } = this.#link.manager
    const { state } = await streams.info(bucketStream(this.#bucket), {
      subjects_filter: chunkSubject(this.#bucket, '>'),
    })
    for (const subject of Object.keys(state.subjects ?? {})) {
      if (known.has(subject)) continue
      const last = await streams.getMessage(bucketStream(this.#bucket), { last_by_subj: subject })
      const isAbandoned = last !== null && last.time.getTime() < Date.now() - abandonedAfterMs
      if (isAbandoned) await this.#removeSubject(subject)
    }
  }

  async #removeSubject(filter: string): Promise<void> {
    await this.#link.manager.streams.purge(bucketStream(this.#bucket), { filter })
  }

  #store(): Promise<ObjectStore> {
    this.#opened ??= this.#link.objects.create(this.#bucket, { replicas })
    this.#opened.catch(() => {
      this.#opened = undefined
    })
    return this.#opened
  }
}

function parseHead(content: Uint8Array): Head {
  const line = content.subarray(0, Math.max(content.indexOf(0x0a), 0))
  try {
    return JSON.parse(Buffer.from(line).toString()) as Head
  } catch (cause) {
    throw new LogError('corrupt', 'a stored snapshot is damaged', { cause })
  }
}

async function snapshotOf(content: Uint8Array): Promise<LogSnapshot> {
  const { position, foldVersion, chunks } = parseHead(content)
  let start = content.indexOf(0x0a) + 1
  const packed = chunks.map((length) => {
    const chunk = new Uint8Array(content.subarray(start, start + length))
    start += length
    return chunk
  })
  return { position, foldVersion, chunks: await unpackChunks(position, packed) }
}

async function guard<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (cause) {
    if (cause instanceof LogError) throw cause
    const message = messageOf(cause)
    const code = message.includes('corrupt object') ? 'corrupt' : 'storage'
    throw new LogError(code, `the snapshot cannot be read or written: ${message}`, { cause })
  }
}

/**
 * Records which content of manifests is in the log, so that a restart need not parse and validate it again. A file is
 * recorded only if it has no problems, no Secrets and no ConfigMaps: then its objects depend only on its bytes and on the
 * build of this program. A record is used only if the log has each of its objects in the recorded version.
 */
import { readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { hexDigest } from '../../ground/base/digest.ts'
import { parseVersion } from './difference.ts'
import type { ParsedFile } from './file-set.ts'
import type { FileState } from './file-state.ts'
import type { ObjectClaim } from './observed.ts'
import type { IndexEntry, ResourceIndex } from './resource-index.ts'

/** Where a file defines an object, and the version of the object in the log. */
type RecordedObject = readonly [key: string, resourceVersion: string, line: number, column: number]
type FileRecord = readonly [hash: string, ...objects: RecordedObject[]]

/** Objects of these kinds may have values of the environment, values of other files, or secret values. */
const otherInputs = new Set(['Secret', 'ConfigMap'])

export class FileRecords {
  readonly #path: string
  readonly #build: string
  #text: string | undefined
  #records: ReadonlyMap<string, FileRecord> = new Map()

  /**
   * `path` is the file with the records, which is replaced if it cannot be read. Records that another version or build
   * has written are not used.
   */
  constructor(path: string, version: string) {
    const build = `${version} ${stampOf(process.argv[1] ?? '')}`
    this.#path = path
    this.#build = build
    try {
      this.#text = readFileSync(path, 'utf8')
      this.#records = recordsIn(this.#text, build)
    } catch {
      // Without records, all files are parsed.
    }
  }

  /** Returns what a file with this content defines; undefined if there is no record, or if the log differs from it. */
  find(
    index: ResourceIndex,
    file: string,
    content: Uint8Array,
    parse: () => ParsedFile,
  ): ParsedFile | undefined {
    const [hash, ...objects] = this.#records.get(file) ?? []
    if (hash === undefined || hash !== hexDigest('sha256', content)) return undefined
    let parsed: ParsedFile | undefined
    const claims: ObjectClaim[] = []
    for (const object of objects) {
      const entry = index.get(object[0])
      if (entry === undefined || !isRecorded(entry, file, object[1])) return undefined
      claims.push(
        claimOf(entry, file, object, (key) => {
          parsed ??= parse()
          return parsed.claims.find((claim) => claim.key === key)
        }),
      )
    }
    return { claims, problems: [], references: [] }
  }

  /** Writes the records of all files. Failures are ignored: they only make the next start slower. */
  save(index: ResourceIndex, files: Iterable<readonly [string, FileState]>): void {
    const records: [string, FileRecord][] = []
    for (const [file, state] of files) {
      const record = recordOf(index, file, state)
      if (record !== undefined) records.push([file, record])
    }
    const text = JSON.stringify({ build: this.#build, records })
    if (text === this.#text) return
    this.#text = text
    try {
      writeFileSync(`${this.#path}.new`, text, { mode: 0o600 })
      renameSync(`${this.#path}.new`, this.#path)
    } catch {
      // The disk is full or read-only. Writes of the event log fail too, and report it.
    }
  }
}

/** Identifies a file by its path, its times and its size. */
function stampOf(path: string): string {
  const { mtimeMs, ctimeMs, size } = statSync(path, { throwIfNoEntry: false }) ?? {}
  return [path, mtimeMs, ctimeMs, size].join(' ')
}

/** @throws if the text is not JSON */
function recordsIn(text: string, build: string): ReadonlyMap<string, FileRecord> {
  const stored = JSON.parse(text) as { build?: unknown; records?: [string, FileRecord][] }
  const records = stored.build === build ? (stored.records ?? []) : []
  return new Map(records.filter(([, [, ...objects]]) => objects.every(Array.isArray)))
}

const isRecorded = (entry: IndexEntry, file: string, resourceVersion: string) =>
  entry.origin?.file === file && !entry.isRefused && entry.resourceVersion === resourceVersion

function recordOf(
  index: ResourceIndex,
  file: string,
  { hash, claims, problems, references }: FileState,
): FileRecord | undefined {
  if (hash === '' || problems.length + references.length > 0) return undefined
  const objects: RecordedObject[] = []
  for (const { key, name, origin, column, content } of claims) {
    const entry = index.get(key)
    const version = entry?.resourceVersion ?? ''
    const { spec, metadata } = parseVersion(version)
    const isPlain =
      entry !== undefined &&
      isRecorded(entry, file, version) &&
      content.state === 'valid' &&
      content.secrets.length === 0 &&
      !otherInputs.has(name.kind) &&
      content.version.spec === spec &&
      content.version.metadata === metadata
    if (!isPlain) return undefined
    objects.push([key, version, origin.line, column])
  }
  return [hash, ...objects]
}

/** Returns the claim of a recorded object. Its file is parsed only if the object itself is read, for example for an event. */
function claimOf(
  { kind, namespace, name, resourceVersion }: IndexEntry,
  file: string,
  [key, , line, column]: RecordedObject,
  find: (key: string) => ObjectClaim | undefined,
): ObjectClaim {
  const { spec, metadata } = parseVersion(resourceVersion)
  return {
    key,
    name: { kind, namespace, name },
    origin: { file, line },
    column,
    content: {
      state: 'valid',
      version: { spec, metadata },
      secrets: [],
      get object() {
        const content = find(key)?.content
        if (content?.state === 'valid') return content.object
        throw new Error(`${file} does not define ${key}`)
      },
    },
  }
}

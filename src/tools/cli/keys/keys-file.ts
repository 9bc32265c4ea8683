/**
 * A file with a ConfigMap whose entries are API keys (see `readApiKeyEntry`). Other documents, comments and the
 * order of entries stay as they are.
 */
import { hash } from 'node:crypto'
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  lstatSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { type Document, isMap, parseAllDocuments, stringify } from 'yaml'
import { LockedError, takeFileLock } from '../../../control/plane/file-lock.ts'
import { stateFolder } from '../../../control/plane/open-log.ts'
import { makeFolder } from '../../../ground/base/make-folder.ts'
import { readWholeFile } from '../../../ground/base/read-whole-file.ts'
import { apiKeyFaults, readApiKeyEntry } from '../../../ground/secrets/api-key-entry.ts'
import { UsageError } from '../shared/output.ts'

export interface WrittenHash {
  readonly keyHash: string
  readonly expiresAt: string
}

/** The members of an entry as they are written; times are RFC 3339. */
export interface WrittenEntry {
  readonly keyHash: string
  readonly previous?: WrittenHash | readonly WrittenHash[]
  readonly metadata?: Readonly<Record<string, unknown>>
  readonly expiresAt?: string
  readonly disabled?: boolean
  readonly allowedModels?: readonly string[]
  readonly allowedRoutes?: readonly string[]
}

/** An entry of the file: its members, or why it is not a usable key. */
export interface FoundEntry {
  readonly name: string
  /** The members; a text if the entry is no usable key: the reason. */
  readonly entry: WrittenEntry | string
  /** What has the entry, if keys of several places are listed. */
  readonly place?: string
}

/** Where keys are: in the ConfigMap of a file, or in the event log. */
export interface Keys {
  /** For messages. */
  readonly place: string
  has(name: string): boolean
  /** @throws UsageError if there is no such entry, or if it is not a key */
  entry(name: string): WrittenEntry
  /** @throws UsageError if the name or the entry is invalid */
  set(name: string, entry: WrittenEntry): void
  delete(name: string): void
}

export interface NewConfigMap {
  readonly name: string
  readonly namespace?: string
  readonly labels: Readonly<Record<string, string>>
}

/** Names that Kubernetes accepts for entries of a ConfigMap. */
const nameForm = /^(?!\.\.|\.$|__proto__$)[-._a-zA-Z0-9]{1,253}$/

/** Kubernetes accepts objects of 1 MiB. */
const maxBytes = 1_000_000

/** How long a command waits for another one that changes the same file. */
const waitMs = 10_000

/**
 * Changes a file, while no other command changes it. Returns what `work` returns. `deliver` is called when all that
 * may fail is done, except for putting the new file in place.
 * @throws UsageError if the file cannot be read or written, or what `work` or `deliver` throw; the file stays as it
 * was then
 */
export function changeKeys<Result>(
  path: string,
  work: (file: KeysFile) => Result,
  create?: NewConfigMap,
  deliver?: () => void,
): Result {
  const target = targetOf(path)
  const release = lockOf(target)
  try {
    const file = new KeysFile(path, target, create)
    const result = work(file)
    file.save(deliver)
    return result
  } finally {
    release()
  }
}

/** @throws UsageError if the file cannot be read, or does not have exactly one ConfigMap */
export const readKeys = (path: string): KeysFile => new KeysFile(path, targetOf(path))

/** Follows links, also to a file that does not exist yet, so that the file itself is changed. */
function targetOf(path: string): string {
  if (path === '-') throw new UsageError('--file -: keys are changed in a file')
  let target = resolve(path)
  for (let links = 0; links < 40; links++) {
    if (lstatSync(target, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return target
    target = resolve(dirname(target), readlinkSync(target))
  }
  throw new UsageError(`${path}: too many links`)
}

function lockOf(target: string): () => void {
  const folder = join(stateFolder(), 'locks')
  const lock = join(folder, hash('sha256', target).slice(0, 16))
  const end = performance.now() + waitMs
  for (;;) {
    try {
      makeFolder(folder, 0o700)
      return takeFileLock(lock)
    } catch (error) {
      if (!(error instanceof LockedError))
        throw new UsageError(`${lock}: ${(error as Error).message}`)
      if (performance.now() > end)
        throw new UsageError(`${target} is being changed by another command`)
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20)
    }
  }
}

class KeysFile implements Keys {
  /** As the user named it. */
  readonly #path: string
  /** The file itself, if the path is a link. */
  readonly #target: string
  /** The text that was read; undefined if the file did not exist. */
  readonly #before: string | undefined
  readonly #documents: Document[]
  readonly #configMap: Document

  /** If the file does not exist and `create` is set, begins it with an empty ConfigMap. */
  constructor(path: string, target: string, create?: NewConfigMap) {
    this.#path = path
    this.#target = target
    this.#before = existsSync(target) ? readText(path) : undefined
    if (this.#before === undefined && create === undefined) {
      throw new UsageError(`${path}: no such file; make a key with \`sluice keys create\` first`)
    }
    const text = this.#before ?? (create ? beginning(create) : '')
    this.#documents = documentsOf(path, text)
    const configMaps = this.#documents.filter(
      (one) => isMap(one.contents) && one.get('kind') === 'ConfigMap',
    )
    const [configMap] = configMaps
    if (configMap === undefined || configMaps.length > 1) {
      throw new UsageError(`${path}: expected one ConfigMap, found ${configMaps.length}`)
    }
    const data = configMap.get('data')
    if (data === null) configMap.delete('data')
    else if (data !== undefined && !isMap(data)) {
      throw new UsageError(`${path}: the ConfigMap has "data" that is not a map`)
    }
    this.#configMap = configMap
  }

  get place(): string {
    return this.#path
  }

  entries(): FoundEntry[] {
    const data = (this.#configMap.toJS() as { data?: Record<string, unknown> | null }).data ?? {}
    return Object.entries(data).map(([name, value]) => ({ name, entry: entryIn(value) }))
  }

  has(name: string): boolean {
    return this.#configMap.hasIn(['data', name])
  }

  entry(name: string): WrittenEntry {
    const found = this.entries().find((one) => one.name === name)
    if (found === undefined) throw new UsageError(`${this.#path}: key ${name} does not exist`)
    if (typeof found.entry === 'string') {
      throw new UsageError(`${this.#path}: entry ${name} ${found.entry}`)
    }
    return found.entry
  }

  set(name: string, entry: WrittenEntry): void {
    this.#configMap.setIn(['data', name], textOfEntry(name, entry))
  }

  delete(name: string): void {
    this.#configMap.deleteIn(['data', name])
  }

  /** Replaces the file atomically. @throws UsageError if it has changed since it was read */
  save(deliver?: () => void): void {
    const now = existsSync(this.#target) ? readText(this.#path) : undefined
    if (now !== this.#before) {
      throw new UsageError(
        `${this.#path}: another program has changed the file; run the command again`,
      )
    }
    const text = this.#text()
    if (text === now) return
    if (Buffer.byteLength(text) > maxBytes) {
      throw new UsageError(
        `${this.#path}: the file would have more than ${maxBytes} bytes, which Kubernetes does not accept; begin another file`,
      )
    }
    const draft = `${this.#target}.${process.pid}.tmp`
    try {
      const mode = now === undefined ? undefined : statSync(this.#target).mode & 0o777
      if (now !== undefined) accessSync(this.#target, constants.W_OK)
      writeFileSync(draft, text, { flag: 'wx' })
      if (mode !== undefined) chmodSync(draft, mode)
      deliver?.()
      renameSync(draft, this.#target)
    } catch (error) {
      rmSync(draft, { force: true })
      if (error instanceof UsageError) throw error
      throw new UsageError(`${this.#path}: ${(error as Error).message}`)
    }
  }

  /** The text to write, as JSON or with the line breaks of Windows if the file was so. */
  #text(): string {
    const [first] = this.#documents
    if (this.#before?.trimStart().startsWith('{') === true && isJson(this.#before)) {
      return `${JSON.stringify(first?.toJS(), undefined, 2)}\n`
    }
    const text = this.#documents.map((one) => one.toString({ lineWidth: 0 })).join('')
    return this.#before?.includes('\r\n') === true ? text.replaceAll('\n', '\r\n') : text
  }
}

/** The text of an entry. @throws UsageError if the name or the entry is invalid */
export function textOfEntry(name: string, entry: WrittenEntry): string {
  if (!nameForm.test(name)) {
    throw new UsageError(
      `${name}: a key's name has at most 253 letters, digits, "-", "_" and ".", does not begin with ".." and is not __proto__`,
    )
  }
  const text = JSON.stringify(entry)
  const read = readApiKeyEntry(text)
  if (typeof read === 'string') throw new UsageError(`key ${name} ${apiKeyFaults[read]}`)
  return text
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

function readText(path: string): string {
  try {
    return readWholeFile(path)
  } catch (error) {
    throw new UsageError(`${path}: ${(error as Error).message}`)
  }
}

function documentsOf(path: string, text: string): Document[] {
  const documents = parseAllDocuments(text) as Document[]
  const error = documents.flatMap(({ errors }) => errors)[0]
  if (error !== undefined) throw new UsageError(`${path}: ${error.message}`)
  return documents
}

function beginning({ name, namespace, labels }: NewConfigMap): string {
  return stringify({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, ...(namespace !== undefined && { namespace }), labels },
  })
}

/** An entry as it is stored, or why it is no usable key. */
export function entryIn(value: unknown): WrittenEntry | string {
  const entry = readApiKeyEntry(typeof value === 'string' ? value : undefined)
  if (typeof entry === 'string') return apiKeyFaults[entry]
  return entry.keyHash === undefined
    ? 'has the key itself in place of "keyHash"'
    : (JSON.parse(value as string) as WrittenEntry)
}

/**
 * API keys that are events of the log of the configuration (`--dynamic`). An event is appended at the position for
 * which it was checked, so that no other writer has added the same key meanwhile.
 */
import { randomUUID } from 'node:crypto'
import { userInfo } from 'node:os'
import { apiKeysChanged } from '../../../../events/index.ts'
import {
  type EventLog,
  joinEmbeddedLog,
  LogError,
  newEvent,
  type Position,
} from '../../../control/log/index.ts'
import { isObject } from '../../../ground/base/json-object.ts'
import {
  type DynamicKeys,
  dynamicKeyLabel,
  dynamicKeysInput,
  selectsDynamicKeys,
} from '../../../ground/model/dynamic-keys.ts'
import { compareText } from '../../../ground/model/names.ts'
import type { Fold } from '../../../past/replay/index.ts'
import { isDatabase } from '../recording/log-files.ts'
import { type RecordingOptions, readState } from '../recording/recording.ts'
import { type Output, UsageError } from '../shared/output.ts'
import { entryIn, type FoundEntry, type Keys, textOfEntry, type WrittenEntry } from './keys-file.ts'

interface DynamicSource extends Pick<RecordingOptions, 'logFile' | 'nats'> {
  /** Namespace whose policies accept the keys. */
  readonly namespace?: string
}

export interface DynamicChange extends DynamicSource {
  readonly reason?: string
  readonly author?: string
}

/** How long an append is repeated while other writers are faster. */
const patienceMs = 10_000

/** Bytes of the entries of one event; a NATS server accepts 1 MiB by default. */
const eventBytes = 256 * 1024

const defaultNamespace = 'default'
const eventLog = 'the event log'

/**
 * Changes the keys of a log, also while gateways write it. `work` may be called several times; `deliver` is called
 * once, before anything is appended.
 * @throws UsageError, also if `deliver` throws; nothing is appended then
 */
export async function changeDynamicKeys<Result>(
  source: DynamicChange,
  report: Output['report'],
  work: (keys: Keys) => Result,
  deliver?: () => void,
): Promise<Result> {
  const { namespace = defaultNamespace, reason, author = userInfo().username } = source
  if (reason === undefined) {
    throw new UsageError('--dynamic needs --reason: the event of the change records it')
  }
  const { fold } = await readState(source, report)
  const log = await joinLog(source)
  let isDelivered = false
  try {
    for (const end = performance.now() + patienceMs; ; ) {
      const from = (fold.position + 1) as Position
      for await (const recorded of log.read({ from })) fold.apply(recorded)
      const keys = new KeysOfLog(fold, namespace)
      const result = work(keys)
      if (!isDelivered) deliver?.()
      isDelivered = true
      if (await append(log, fold, [...keys.changed], { namespace, reason, author })) {
        if (!isAccepted(fold, namespace)) {
          report(
            `no policy of namespace ${namespace} accepts these keys: none has apiKeyAuthentication with a configMapSelector of the label ${dynamicKeyLabel}`,
          )
        }
        return result
      }
      if (performance.now() > end) {
        throw new UsageError(
          `the log has changed all the time for ${patienceMs / 1_000} s, so nothing was stored; try again`,
        )
      }
    }
  } catch (error) {
    throw error instanceof LogError ? new UsageError(`${eventLog}: ${error.message}`) : error
  } finally {
    await log.close()
  }
}

/** Opens the log to append to it, beside the gateway that runs. */
async function joinLog({ logFile = '', nats }: DynamicSource): Promise<EventLog> {
  if (nats !== undefined) {
    const { openNatsLog } = await import('../../../control/log/nats.ts')
    return openNatsLog({ servers: nats, create: false })
  }
  if (!isDatabase(logFile)) {
    throw new UsageError(`${logFile} is an export of a log, which cannot be changed`)
  }
  return joinEmbeddedLog(logFile)
}

/** Returns false if another writer was faster. */
async function append(
  log: EventLog,
  fold: Fold,
  changed: readonly (readonly [string, string | null])[],
  about: { readonly namespace: string; readonly reason: string; readonly author: string },
): Promise<boolean> {
  if (changed.length === 0) return true
  const subject = { kind: 'ApiKeys', namespace: about.namespace, name: 'dynamic' }
  const id = randomUUID()
  const events = chunksOf(changed).map((entries, at) => {
    const data = { ...about, entries: Object.fromEntries(entries) }
    return newEvent(apiKeysChanged, writer, subject, { id: `${id}:${at}`, data })
  })
  const appended = await log.append(events, { expectedVersion: fold.position as Position })
  if (appended.ok) return true
  const [problem] = appended.problems
  if (problem?.reason === 'conflict') return false
  throw new UsageError(`${eventLog}: ${problem?.message ?? 'nothing was appended'}`)
}

/** Readers accept these events whichever replica holds the lease, like all events without an epoch. */
const writer = { source: '/sluice/keys', epoch: 0 } as const

function chunksOf<Entry extends readonly [string, string | null]>(all: readonly Entry[]) {
  const chunks: Entry[][] = []
  let bytes = Number.POSITIVE_INFINITY
  for (const one of all) {
    bytes += one[0].length + Buffer.byteLength(one[1] ?? '')
    if (bytes > eventBytes) {
      chunks.push([])
      bytes = 0
    }
    chunks.at(-1)?.push(one)
  }
  return chunks
}

/** Whether a policy of the namespace accepts dynamic keys. */
const isAccepted = ({ graph }: Fold, namespace: string): boolean =>
  [...graph.objects()].some(({ ref, object }) => {
    if (ref.kind !== 'GatewayPolicy' || ref.namespace !== namespace) return false
    const labels = ['traffic', 'apiKeyAuthentication', 'configMapSelector', 'matchLabels'].reduce(
      (part: unknown, name) => (isObject(part) ? part[name] : undefined),
      object?.spec,
    )
    return isObject(labels) && selectsDynamicKeys(labels as Readonly<Record<string, string>>)
  })

/** The dynamic keys of a namespace, and then those of its ConfigMaps that the same policies accept. */
export async function dynamicAndOtherKeys(
  source: DynamicSource,
  report: Output['report'],
): Promise<FoundEntry[]> {
  const { fold } = await readState(source, report)
  const { namespace = defaultNamespace } = source
  const dynamic = [...dynamicKeysOf(fold, namespace)]
    .map(([name, text]) => ({ name, entry: entryIn(text), place: eventLog }))
    .sort((a, b) => compareText(a.name, b.name))
  return [...dynamic, ...manifestKeysOf(fold, namespace)]
}

const dynamicKeysOf = ({ graph }: Fold, namespace: string): DynamicKeys =>
  (graph.inputs.get(dynamicKeysInput(namespace)) as DynamicKeys | undefined) ?? new Map()

/** The entries of ConfigMaps that a policy accepts beside dynamic keys. */
function manifestKeysOf({ graph }: Fold, namespace: string) {
  return [...graph.objects()]
    .filter(({ ref, object }) => {
      const isConfigMap = ref.kind === 'ConfigMap' && ref.namespace === namespace
      const labels = Object.entries(object?.metadata.labels ?? {})
      return isConfigMap && labels.some(([name, value]) => `${name}=${value}` === dynamicKeyLabel)
    })
    .sort((a, b) => compareText(a.ref.name, b.ref.name))
    .flatMap(({ ref, object }) => {
      const place = `ConfigMap ${ref.namespace}/${ref.name}`
      const data = isObject(object?.data) ? object.data : {}
      return Object.entries(data).map(([name, text]) => ({ name, entry: entryIn(text), place }))
    })
}

class KeysOfLog implements Keys {
  readonly place = eventLog
  /** The texts of changed entries; null for those that are deleted. */
  readonly changed = new Map<string, string | null>()
  readonly #entries = new Map<string, WrittenEntry | string>()
  /** The place of each key of a manifest. */
  readonly #elsewhere = new Map<string, string>()
  /** Hash -> the key that has it. */
  readonly #owners = new Map<string, { readonly name: string; readonly place: string }>()

  constructor(fold: Fold, namespace: string) {
    for (const { name, entry, place } of manifestKeysOf(fold, namespace)) {
      this.#elsewhere.set(name, place)
      this.#own(name, entry, place)
    }
    for (const [name, text] of dynamicKeysOf(fold, namespace)) {
      const entry = entryIn(text)
      this.#entries.set(name, entry)
      this.#own(name, entry, eventLog)
    }
  }

  #own(name: string, entry: WrittenEntry | string, place: string): void {
    for (const hash of hashesOf(entry)) {
      if (!this.#owners.has(hash)) this.#owners.set(hash, { name, place })
    }
  }

  has(name: string): boolean {
    if (this.#entries.has(name)) return true
    this.#assertNotElsewhere(name)
    return false
  }

  entry(name: string): WrittenEntry {
    if (!this.has(name)) throw new UsageError(`${eventLog}: key ${name} does not exist`)
    const found = this.#entries.get(name)
    if (typeof found === 'object') return found
    throw new UsageError(`${eventLog}: entry ${name} ${found}`)
  }

  set(name: string, entry: WrittenEntry): void {
    const text = textOfEntry(name, entry)
    for (const hash of hashesOf(entry)) {
      const owner = this.#owners.get(hash)
      if (owner !== undefined && (owner.name !== name || owner.place !== eventLog)) {
        throw new UsageError(`key ${name} is the same as key ${owner.name} of ${owner.place}`)
      }
    }
    this.#entries.set(name, entry)
    this.#own(name, entry, eventLog)
    this.changed.set(name, text)
  }

  delete(name: string): void {
    this.#entries.delete(name)
    this.changed.set(name, null)
  }

  #assertNotElsewhere(name: string): void {
    const place = this.#elsewhere.get(name)
    if (place === undefined) return
    throw new UsageError(`key ${name} is in ${place}; change it there, or choose another name`)
  }
}

/** The hashes that an entry accepts, in lower case. */
function hashesOf(entry: WrittenEntry | string): string[] {
  if (typeof entry === 'string') return []
  const { keyHash, previous = [] } = entry
  return [keyHash, ...[previous].flat().map((one) => one.keyHash)].map((one) => one.toLowerCase())
}

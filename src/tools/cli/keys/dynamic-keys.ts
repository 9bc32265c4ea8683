/**
 * API keys that are events of the log of the configuration (`--dynamic`). An event is appended at the position for
 * which it was checked, so that no other writer has added the same key meanwhile.
 */
import { randomUUID } from 'node:crypto'
import { apiKeysChanged, type SluiceEvent } from '../../../../events/index.ts'
import { newEvent } from '../../../control/log/index.ts'
import { isObject } from '../../../ground/base/json-object.ts'
import {
  type DynamicKeys,
  dynamicKeyLabel,
  dynamicKeysInput,
  selectsDynamicKeys,
} from '../../../ground/model/dynamic-keys.ts'
import { compareText } from '../../../ground/model/names.ts'
import type { Fold } from '../../../past/replay/index.ts'
import { changeLog, eventLog, inEvents, type LogPlace } from '../recording/change-log.ts'
import { defaultAuthor } from '../recording/operator-change.ts'
import { readState } from '../recording/recording.ts'
import { type Output, UsageError } from '../shared/output.ts'
import { entryIn, type FoundEntry, type Keys, textOfEntry, type WrittenEntry } from './keys-file.ts'

interface DynamicSource extends LogPlace {
  /** Namespace whose policies accept the keys. */
  readonly namespace?: string
}

export interface DynamicChange extends DynamicSource {
  readonly reason?: string
  readonly author?: string
}

const defaultNamespace = 'default'

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
  const { namespace = defaultNamespace, reason, author = defaultAuthor() } = source
  if (reason === undefined) {
    throw new UsageError('--dynamic needs --reason: the event of the change records it')
  }
  let isDelivered = false
  return changeLog(
    source,
    report,
    (fold) => {
      const keys = new KeysOfLog(fold, namespace)
      const result = work(keys)
      if (!isDelivered) deliver?.()
      isDelivered = true
      return { events: eventsOf([...keys.changed], { namespace, reason, author }), result }
    },
    ({ fold }) => {
      if (isAccepted(fold, namespace)) return
      report(
        `no policy of namespace ${namespace} accepts these keys: none has apiKeyAuthentication with a configMapSelector of the label ${dynamicKeyLabel}`,
      )
    },
  )
}

function eventsOf(
  changed: readonly (readonly [string, string | null])[],
  about: { readonly namespace: string; readonly reason: string; readonly author: string },
): SluiceEvent[] {
  if (changed.length === 0) return []
  const subject = { kind: 'ApiKeys', namespace: about.namespace, name: 'dynamic' }
  const id = randomUUID()
  const bytesOf = ([name, text]: readonly [string, string | null]) =>
    name.length + Buffer.byteLength(text ?? '')
  return inEvents(changed, bytesOf).map((entries, at) => {
    const data = { ...about, entries: Object.fromEntries(entries) }
    return newEvent(apiKeysChanged, writer, subject, { id: `${id}:${at}`, data })
  })
}

/** Readers accept these events whichever replica holds the lease, like all events without an epoch. */
const writer = { source: '/sluice/keys', epoch: 0 } as const

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

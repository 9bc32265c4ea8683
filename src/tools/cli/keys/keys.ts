/** The commands that change or list API keys, in a file or in the event log. Only hashes of keys are written. */
import { hash, randomBytes } from 'node:crypto'
import { usdText } from '../../../engines/messages/cost/money.ts'
import { apiKeyState, maxPrevious } from '../../../ground/secrets/api-key-entry.ts'
import { timeAfter } from '../shared/expiry.ts'
import { type CommandResult, exitCode, table, UsageError } from '../shared/output.ts'
import { type KeyUsage, type KeyUsages, usageCells, usageHead } from './key-usage.ts'
import {
  changeKeys,
  type FoundEntry,
  type Keys,
  type NewConfigMap,
  readKeys,
  type WrittenEntry,
  type WrittenHash,
} from './keys-file.ts'

export interface CreateOptions extends NewFileOptions {
  readonly owner?: string
  readonly team?: string
  readonly metadata?: readonly string[]
  readonly model?: readonly string[]
  readonly route?: readonly string[]
  readonly expires?: string
  readonly prefix: string
}

/** Options for a file that may not exist yet. */
export interface NewFileOptions {
  readonly file: string
  readonly configMap: string
  readonly namespace?: string
  readonly label: readonly string[]
}

/** The ConfigMap of a file that does not exist yet. */
export function newConfigMapOf({ configMap, namespace, label }: NewFileOptions): NewConfigMap {
  const labels = pairsOf(label, '--label')
  return { name: configMap, labels, ...(namespace !== undefined && { namespace }) }
}

/** 256 random bits cannot be guessed, so a plain SHA-256 protects the key. */
export function newKey(prefix: string): string {
  if (!/^[!-~]{1,64}$/.test(prefix)) {
    throw new UsageError(
      `--prefix ${JSON.stringify(prefix)}: expected up to 64 letters, digits and signs`,
    )
  }
  return `${prefix}${randomBytes(32).toString('base64url')}`
}

/** The form in which a key is stored. */
export const hashOf = (key: string): string => `sha256:${hash('sha256', key)}`

/** Gives a new key to the user. If it throws, the file stays as it was. */
type Deliver = (result: CommandResult) => void

/** A change of keys, and what the command prints. `change` may be called again with newer keys. */
export interface KeyChange {
  readonly change: (keys: Keys) => void
  readonly result: CommandResult
}

/** Creates a key in a file. */
export function createKey(name: string, options: CreateOptions, deliver?: Deliver): CommandResult {
  return changeFile(options.file, createdKey(name, options), newConfigMapOf(options), deliver)
}

function changeFile(
  path: string,
  { change, result }: KeyChange,
  create?: NewConfigMap,
  deliver?: Deliver,
): CommandResult {
  changeKeys(path, change, create, () => deliver?.(result))
  return result
}

/** Creates a key. Its text is the only line of the result. It is not stored. */
export function createdKey(name: string, options: Omit<CreateOptions, 'file'>): KeyChange {
  const { model, route, expires, prefix } = options
  const key = newKey(prefix)
  const metadata = metadataOf(options)
  const entry = {
    keyHash: hashOf(key),
    ...(Object.keys(metadata).length > 0 && { metadata }),
    ...(expires !== undefined && { expiresAt: endAfter(expires) }),
    ...(model !== undefined && { allowedModels: model }),
    ...(route !== undefined && { allowedRoutes: route }),
  }
  const change = (keys: Keys) => {
    if (keys.has(name)) {
      throw new UsageError(
        `${keys.place}: key ${name} already exists; replace it with \`sluice keys rotate\``,
      )
    }
    keys.set(name, entry)
  }
  return { change, result: { text: () => [key], json: { name, key } } }
}

function metadataOf({
  owner,
  team,
  metadata = [],
}: Omit<CreateOptions, 'file'>): Record<string, string> {
  return {
    ...(owner !== undefined && { owner }),
    ...(team !== undefined && { team }),
    ...pairsOf(metadata, '--metadata'),
  }
}

function pairsOf(texts: readonly string[], option: string): Record<string, string> {
  const pairs = texts.map((text): [string, string] => {
    const equals = text.indexOf('=')
    if (equals < 1) throw new UsageError(`${option} ${text}: expected NAME=VALUE`)
    return [text.slice(0, equals), text.slice(equals + 1)]
  })
  return Object.fromEntries(pairs)
}

/** Reads the end of a key, which must be later than now. */
function endAfter(text: string): string {
  const end = timeAfter(text, '--expires')
  if (isPast(end)) throw new UsageError(`--expires ${text}: this time has passed`)
  return end
}

const isPast = (time: string | undefined) => time !== undefined && Date.parse(time) <= Date.now()

export interface RotateOptions {
  readonly file: string
  readonly overlap: string
  readonly prefix: string
  readonly expires?: string
}

/** Replaces a key in a file. */
export function rotateKey(name: string, options: RotateOptions, deliver?: Deliver): CommandResult {
  return changeFile(options.file, rotatedKey(name, options), undefined, deliver)
}

/** Replaces a key. The previous keys are accepted until their overlaps have passed. */
export function rotatedKey(
  name: string,
  { overlap, prefix, expires }: Omit<RotateOptions, 'file'>,
): KeyChange {
  const key = newKey(prefix)
  const until = timeAfter(overlap, '--overlap')
  const result = { text: () => [key], json: { name, key, previousUntil: until } }
  const change = (keys: Keys) => {
    const { previous, expiresAt, ...entry } = keys.entry(name)
    const end = expires === undefined ? expiresAt : endAfter(expires)
    if (isPast(end)) {
      throw new UsageError(
        `key ${name} expired at ${end}; give the new one another end: --expires 90d`,
      )
    }
    const kept = accepted([...listOf(previous), { keyHash: entry.keyHash, expiresAt: until }])
    if (kept.length > maxPrevious) {
      throw new UsageError(`key ${name} has ${maxPrevious} previous keys that are still accepted`)
    }
    const [only] = kept
    keys.set(name, {
      ...entry,
      keyHash: hashOf(key),
      ...(end !== undefined && { expiresAt: end }),
      ...(only !== undefined && { previous: kept.length === 1 ? only : kept }),
    })
  }
  return { change, result }
}

/** `previous` of an entry is one hash or a list of them. */
const listOf = (previous: WrittenEntry['previous'] = []): readonly WrittenHash[] =>
  [previous].flat()

const accepted = (hashes: readonly WrittenHash[]) =>
  hashes.filter(({ expiresAt }) => !isPast(expiresAt))

export const setDisabled = (name: string, path: string, isDisabled: boolean): CommandResult =>
  changeFile(path, disabledKey(name, isDisabled))

export function disabledKey(name: string, isDisabled: boolean): KeyChange {
  const change = (keys: Keys) => {
    const { disabled: _, ...entry } = keys.entry(name)
    keys.set(name, isDisabled ? { ...entry, disabled: true } : entry)
  }
  const text = `key ${name} is ${isDisabled ? 'disabled' : 'enabled'}`
  return { change, result: { text: () => [text], json: { name, disabled: isDisabled } } }
}

export const deleteKey = (name: string, path: string): CommandResult =>
  changeFile(path, deletedKey(name))

export function deletedKey(name: string): KeyChange {
  const change = (keys: Keys) => {
    if (!keys.has(name)) throw new UsageError(`${keys.place}: key ${name} does not exist`)
    keys.delete(name)
  }
  return { change, result: { text: () => [`key ${name} is deleted`], json: { name } } }
}

const listHead = ['NAME', 'STATE', 'OWNER', 'TEAM', 'MODELS', 'ROUTES', 'EXPIRES', 'HASH'] as const

/** Lists the keys of a file. */
export const listKeys = (path: string, usages?: KeyUsages): CommandResult =>
  listedKeys(readKeys(path).entries(), path, usages)

/**
 * Lists keys, with where they are and with their usage if these are given; the exit code is 1 if an entry is not a
 * usable key.
 */
export function listedKeys(
  found: readonly FoundEntry[],
  place: string,
  usages?: KeyUsages,
): CommandResult {
  const isFaulty = found.some(({ entry }) => typeof entry === 'string')
  const usageOf = ({ name }: FoundEntry) => usages?.byKey.get(name)
  const cells = (one: FoundEntry) => (usages ? usageCells(usageOf(one)) : [])
  const isPlaced = found.some((one) => one.place !== undefined)
  const placeOf = (one: FoundEntry) => (isPlaced ? [one.place ?? ''] : [])
  const head = [...listHead, ...(isPlaced ? ['PLACE'] : []), ...(usages ? usageHead : [])]
  return {
    text: () =>
      found.length === 0
        ? [`${place} has no keys`]
        : [table([head, ...found.map((one) => [...rowOf(one), ...placeOf(one), ...cells(one)])])],
    json: found.map((one) => ({
      name: one.name,
      ...(one.place !== undefined && { place: one.place }),
      ...(typeof one.entry === 'string' ? { problem: one.entry } : one.entry),
      ...(usages && { usage: usageJson(usageOf(one)) }),
    })),
    ...(isFaulty && { exitCode: exitCode.negative }),
  }
}

const usageJson = (usage: KeyUsage | undefined) =>
  usage === undefined
    ? { requests: 0, costUsd: '0' }
    : { lastUsed: usage.lastUsed, requests: usage.requests, costUsd: usdText(usage.cost) }

function rowOf({ name, entry }: FoundEntry): string[] {
  if (typeof entry === 'string') return [name, `unusable: ${entry}`, '', '', '', '', '', '']
  const { metadata = {}, allowedModels, allowedRoutes, expiresAt = 'never', keyHash } = entry
  return [
    name,
    stateOf(entry),
    textOf(metadata.owner),
    textOf(metadata.team),
    allowedModels?.join(', ') ?? 'all',
    allowedRoutes?.join(', ') ?? 'all',
    expiresAt,
    keyHash.slice('sha256:'.length, 'sha256:'.length + 8),
  ]
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

const stateOf = ({ disabled = false, expiresAt, previous }: WrittenEntry): string =>
  apiKeyState(
    {
      isDisabled: disabled,
      expiresAt: expiresAt === undefined ? undefined : Date.parse(expiresAt),
      previous: listOf(previous).map(({ keyHash, expiresAt: end }) => ({
        keyHash,
        expiresAt: Date.parse(end),
      })),
    },
    Date.now(),
  )

/**
 * One entry of a Secret or ConfigMap with API keys. In a Secret, it is the key as text, or JSON; in a ConfigMap, JSON
 * with `keyHash`:
 *
 * ```json
 * { "keyHash": "sha256:<64 hexadecimal digits>", "metadata": { "team": "search" },
 *   "expiresAt": "2027-01-31T00:00:00Z", "allowedModels": ["gpt-*"], "allowedRoutes": ["web/chat"] }
 * ```
 *
 * Members: `key` (the key itself) or `keyHash` (SHA-256 of the key), `metadata` (read by expressions as
 * `apiKey.…`), `previous` (the key before a rotation, or a list of them, each until it expires), `expiresAt`
 * (RFC 3339), `disabled`, `allowedModels` (exact names, or beginnings followed by `*`), and `allowedRoutes` (the same,
 * as `namespace/name`). An entry with another member, or with a member twice, is refused, because a restriction would
 * otherwise not apply.
 */
import { isObject } from '../base/json-object.ts'
import type { LearnedValue } from '../exchange/learned.ts'

/** A hash that is accepted until a time. */
interface ExpiringHash {
  /** SHA-256 of the key in lower-case hexadecimal digits. */
  readonly keyHash: string
  /** Milliseconds since 1970; undefined if the key does not expire. */
  readonly expiresAt: number | undefined
}

export interface ApiKeyEntry {
  /** The key; undefined if the entry has its hash. */
  readonly key: string | undefined
  readonly keyHash: string | undefined
  readonly previous: readonly ExpiringHash[]
  readonly metadata: LearnedValue | undefined
  readonly expiresAt: number | undefined
  readonly isDisabled: boolean
  /** Names of models, or beginnings followed by `*`; undefined if the key may use every model. */
  readonly allowedModels: readonly string[] | undefined
  /** Routes as `namespace/name`, or beginnings followed by `*`; undefined if the key may use every route. */
  readonly allowedRoutes: readonly string[] | undefined
}

/** Why an entry is not a usable key. Never contains a part of the entry. */
export const apiKeyFaults = {
  empty: 'is empty',
  'not-text': 'is not UTF-8 text',
  'not-json': 'begins with { and is not JSON',
  'json-without-key': 'has neither a "key" that is a text nor a "keyHash"',
  'key-and-hash': 'has both "key" and "keyHash"',
  'unknown-member':
    'has a member other than key, keyHash, previous, metadata, expiresAt, disabled, allowedModels and allowedRoutes',
  'malformed-hash': 'has a "keyHash" that is not "sha256:" with 64 hexadecimal digits',
  'member-twice': 'has a member twice',
  'malformed-previous':
    'has a "previous" that is neither an object with keyHash and expiresAt nor a list of at most 8 of them',
  'malformed-expiry': 'has an "expiresAt" that is not a time such as 2027-01-31T00:00:00Z',
  'malformed-disabled': 'has a "disabled" that is neither true nor false',
  'malformed-models':
    'has "allowedModels" that is not a list of names, each with `*` at most at its end',
  'malformed-routes':
    'has "allowedRoutes" that is not a list of routes as namespace/name, each with `*` at most at its end',
} as const

type ApiKeyFault = keyof typeof apiKeyFaults

const members: ReadonlySet<string> = new Set([
  'key',
  'keyHash',
  'previous',
  'metadata',
  'expiresAt',
  'disabled',
  'allowedModels',
  'allowedRoutes',
])

/** Reads an entry. `text` is undefined if its bytes are not UTF-8. */
export function readApiKeyEntry(text: string | undefined): ApiKeyEntry | ApiKeyFault {
  if (text === undefined) return 'not-text'
  const trimmed = text.trim()
  if (trimmed === '') return 'empty'
  if (!trimmed.startsWith('{')) return plainEntry(trimmed)
  let entry: Record<string, unknown>
  try {
    entry = JSON.parse(trimmed) as Record<string, unknown>
  } catch {
    return 'not-json'
  }
  const names = membersOf(trimmed)
  return new Set(names).size < names.length ? 'member-twice' : readMembers(entry)
}

const token = /"(?:[^"\\]|\\.)*"|[{}[\]:]/g

/** Returns the names of the members of an object, as often as they occur. The text is valid JSON. */
function membersOf(text: string): string[] {
  const names: string[] = []
  let depth = 0
  let before = ''
  for (const [part] of text.matchAll(token)) {
    if (part === '{' || part === '[') depth++
    else if (part === '}' || part === ']') depth--
    else if (part === ':' && depth === 1) names.push(JSON.parse(before) as string)
    before = part
  }
  return names
}

const plainEntry = (key: string): ApiKeyEntry => ({
  key,
  keyHash: undefined,
  previous: [],
  metadata: undefined,
  expiresAt: undefined,
  isDisabled: false,
  allowedModels: undefined,
  allowedRoutes: undefined,
})

function readMembers(entry: Record<string, unknown>): ApiKeyEntry | ApiKeyFault {
  const { key, metadata, disabled = false, allowedModels, allowedRoutes } = entry
  if (Object.keys(entry).some((name) => !members.has(name))) return 'unknown-member'
  if (key !== undefined && entry.keyHash !== undefined) return 'key-and-hash'
  const keyHash = readHash(entry.keyHash)
  const expiresAt = readTime(entry.expiresAt)
  const previous = readPrevious(entry.previous)
  if (keyHash === null) return 'malformed-hash'
  if (keyHash === undefined && (typeof key !== 'string' || key === '')) return 'json-without-key'
  if (previous === null) return 'malformed-previous'
  if (expiresAt === null) return 'malformed-expiry'
  if (typeof disabled !== 'boolean') return 'malformed-disabled'
  if (!isListOf(modelPattern, allowedModels)) return 'malformed-models'
  if (!isListOf(routePattern, allowedRoutes)) return 'malformed-routes'
  return {
    key: key as string | undefined,
    keyHash,
    previous,
    metadata: metadata as LearnedValue | undefined,
    expiresAt,
    isDisabled: disabled,
    allowedModels,
    allowedRoutes,
  }
}

/** Returns null if the value is not a hash. */
function readHash(value: unknown): string | undefined | null {
  if (value === undefined) return undefined
  const form = /^sha256:([0-9a-f]{64})$/i
  return (typeof value === 'string' && form.exec(value)?.[1]?.toLowerCase()) || null
}

/** Maximum number of previous keys that are still accepted. */
export const maxPrevious = 8

function readPrevious(value: unknown): ExpiringHash[] | null {
  if (value === undefined) return []
  const all: unknown[] = Array.isArray(value) ? value : [value]
  const read = all.flatMap((one) => readExpiringHash(one) ?? [])
  return read.length === all.length && all.length <= maxPrevious ? read : null
}

function readExpiringHash(value: unknown): ExpiringHash | undefined {
  if (!isObject(value) || Object.keys(value).length !== 2) return undefined
  const keyHash = readHash(value.keyHash)
  const expiresAt = readTime(value.expiresAt)
  const isRead = typeof keyHash === 'string' && typeof expiresAt === 'number'
  return isRead ? { keyHash, expiresAt } : undefined
}

const timeForm = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/

function readTime(value: unknown): number | undefined | null {
  if (value === undefined) return undefined
  if (typeof value !== 'string' || !timeForm.test(value)) return null
  return timeOfRfc3339(value) ?? null
}

/** Returns milliseconds since 1970; undefined for a day that does not exist, such as 30 February. */
export function timeOfRfc3339(text: string): number | undefined {
  const time = Date.parse(text)
  const day = text.slice(0, 10)
  const isDay = new Date(Date.parse(`${day}T00:00:00Z`)).toJSON()?.startsWith(day) === true
  return Number.isNaN(time) || !isDay ? undefined : time
}

/** Whether a key is accepted: `active`, `disabled` or `expired`, and until when previous keys are. */
export function apiKeyState(
  { isDisabled, expiresAt, previous }: Pick<ApiKeyEntry, 'isDisabled' | 'expiresAt' | 'previous'>,
  nowMs: number,
): string {
  if (isDisabled) return 'disabled'
  if (expiresAt !== undefined && expiresAt <= nowMs) return 'expired'
  const ends = previous.map((one) => one.expiresAt ?? Number.POSITIVE_INFINITY)
  const last = Math.max(0, ...ends)
  if (last <= nowMs) return 'active'
  return `active, previous key until ${Number.isFinite(last) ? new Date(last).toISOString() : 'it is removed'}`
}

const modelPattern = /^(?:[^*]+\*?|\*)$/
/** Without its namespace, a route of another team with the same name would be allowed. */
const routePattern = /^[a-z0-9-]+\/(?:[a-z0-9.-]+\*?|\*)$/

function isListOf(pattern: RegExp, value: unknown): value is readonly string[] | undefined {
  if (value === undefined) return true
  return (
    Array.isArray(value) && value.every((name) => typeof name === 'string' && pattern.test(name))
  )
}

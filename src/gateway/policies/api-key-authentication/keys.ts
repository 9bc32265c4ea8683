import { hash } from 'node:crypto'
import type { AllowedNames } from '../../../ground/exchange/forwarding.ts'
import type { LearnedRecord, LearnedValue } from '../../../ground/exchange/learned.ts'
import { type ApiKeyEntry, readApiKeyEntry } from '../../../ground/secrets/api-key-entry.ts'
import { redacted } from '../../../ground/secrets/credential-names.ts'

/** An entry with its name. The text is undefined if it is not UTF-8. */
export interface NamedEntry {
  readonly name: string
  readonly text: string | undefined
  /** The object that has it, such as `Secret default/keys`. */
  readonly source?: string | undefined
}

export interface ApiKey {
  /** What expressions can read: `id` (the name of the entry), the metadata, which may replace `id`, and `key`, redacted. */
  readonly record: LearnedRecord
  /** The object that has it. */
  readonly source: string | undefined
  readonly isDisabled: boolean
  /** Milliseconds since 1970; undefined if the key does not expire. */
  readonly expiresAt: number | undefined
  /** Undefined if the key may use every model. */
  readonly allowedModels: AllowedNames | undefined
  /** Undefined if the key may use every route. */
  readonly allowedRoutes: AllowedNames | undefined
}

/** Looks up API keys by digest, so that the time of a lookup reveals nothing about valid keys. */
export class ApiKeys {
  readonly #byDigest = new Map<string, ApiKey>()

  /**
   * If several entries have the same key, the first one is used. Entries that cannot be read have no valid key;
   * the control plane reports them.
   */
  constructor(entries: Iterable<NamedEntry>) {
    for (const { name, text, source } of entries) {
      const entry = readApiKeyEntry(text)
      if (typeof entry !== 'string') this.#add(name, entry, source)
    }
  }

  #add(id: string, entry: ApiKeyEntry, source: string | undefined): void {
    const { key = '', isDisabled, expiresAt, previous, allowedModels, allowedRoutes } = entry
    const found = {
      record: { id, ...visible(entry.metadata), key: redacted },
      source,
      isDisabled,
      expiresAt,
      allowedModels: allowedModels && namesOf(allowedModels),
      allowedRoutes: allowedRoutes && namesOf(allowedRoutes),
    }
    const digest = entry.keyHash ?? hash('sha256', Buffer.from(key))
    if (!this.#byDigest.has(digest)) this.#byDigest.set(digest, found)
    for (const one of previous) {
      if (this.#byDigest.has(one.keyHash)) continue
      this.#byDigest.set(one.keyHash, { ...found, expiresAt: earlier(one, expiresAt) })
    }
  }

  get isEmpty(): boolean {
    return this.#byDigest.size === 0
  }

  /** Returns the entry of a key in the form of header values (latin1); undefined if it is unknown. */
  find(key: string): ApiKey | undefined {
    return this.#byDigest.get(hash('sha256', Buffer.from(key, 'latin1')))
  }
}

function earlier({ expiresAt }: { expiresAt: number | undefined }, other: number | undefined) {
  return Math.min(expiresAt ?? Number.POSITIVE_INFINITY, other ?? Number.POSITIVE_INFINITY)
}

function namesOf(patterns: readonly string[]): AllowedNames {
  const names = new Set(patterns.filter((pattern) => !pattern.endsWith('*')))
  const beginnings = patterns.filter((one) => one.endsWith('*')).map((one) => one.slice(0, -1))
  const allows = (name: string) =>
    names.has(name) || beginnings.some((beginning) => name.startsWith(beginning))
  return { patterns, allows }
}

/** Metadata that expressions can read. Metadata that is no object is put into `metadata`. */
function visible(metadata: LearnedValue | undefined): LearnedRecord {
  if (metadata === undefined || metadata === null) return {}
  const isObject = typeof metadata === 'object' && !Array.isArray(metadata)
  return isObject ? (metadata as LearnedRecord) : { metadata }
}

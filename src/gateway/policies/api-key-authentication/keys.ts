import { hash } from 'node:crypto'
import type { LearnedRecord, LearnedValue } from '../../../ground/exchange/learned.ts'
import { redacted } from '../../../ground/secrets/credential-names.ts'

/** Looks up API keys by digest, so that the time of a lookup reveals nothing about valid keys. */
export class ApiKeys {
  readonly #byDigest = new Map<string, LearnedRecord>()

  /** Parses the contents of Secret entries. If several have the same key, the first one is used. */
  constructor(entries: Iterable<Uint8Array>) {
    for (const entry of entries) {
      const { key, metadata } = parseEntry(Buffer.from(entry).toString())
      const digest = hash('sha256', Buffer.from(key))
      if (!this.#byDigest.has(digest)) this.#byDigest.set(digest, visible(metadata))
    }
  }

  get isEmpty(): boolean {
    return this.#byDigest.size === 0
  }

  /** Returns the metadata of a key that was read from a header; undefined if the key is not valid. */
  find(key: string): LearnedRecord | undefined {
    return this.#byDigest.get(hash('sha256', Buffer.from(key, 'latin1')))
  }
}

interface Entry {
  readonly key: string
  readonly metadata: LearnedValue | undefined
}

/** Throws if the entry cannot be read, but the control plane sends no such entries. */
function parseEntry(text: string): Entry {
  const trimmed = text.trim()
  if (!trimmed.startsWith('{')) return { key: trimmed, metadata: undefined }
  const { key, metadata } = JSON.parse(trimmed) as Entry
  if (typeof key !== 'string' || key === '') throw new Error('an API key without "key"')
  return { key, metadata }
}

/** Metadata that expressions can read. Members of an object are put next to the redacted `key`. */
function visible(metadata: LearnedValue | undefined): LearnedRecord {
  if (metadata === undefined || metadata === null) return { key: redacted }
  const isObject = typeof metadata === 'object' && !Array.isArray(metadata)
  return isObject ? { ...(metadata as LearnedRecord), key: redacted } : { metadata, key: redacted }
}

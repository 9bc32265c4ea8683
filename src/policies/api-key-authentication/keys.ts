/** API keys by their digests, so that finding one takes no time that depends on its characters. */
import { hash } from 'node:crypto'
import { redacted } from '../../base/credential-names.ts'
import type { LearnedRecord, LearnedValue } from '../../exchange/learned.ts'

export class ApiKeys {
  readonly #byDigest = new Map<string, LearnedRecord>()

  /** Entries of Secrets, as they are; where several have the same key, the first counts. */
  constructor(entries: Iterable<Uint8Array>) {
    for (const entry of entries) {
      const { key, metadata } = parseEntry(Buffer.from(entry).toString())
      const digest = hash('sha256', Buffer.from(key))
      if (!this.#byDigest.has(digest)) this.#byDigest.set(digest, visible(metadata))
    }
  }

  /** What is known of a key as a header carries it; undefined where it is nobody's. */
  find(key: string): LearnedRecord | undefined {
    return this.#byDigest.get(hash('sha256', Buffer.from(key, 'latin1')))
  }
}

interface Entry {
  readonly key: string
  readonly metadata: LearnedValue | undefined
}

/** The control plane sends only those that can be read. */
function parseEntry(text: string): Entry {
  const trimmed = text.trim()
  if (!trimmed.startsWith('{')) return { key: trimmed, metadata: undefined }
  const { key, metadata } = JSON.parse(trimmed) as Entry
  if (typeof key !== 'string' || key === '') throw new Error('an API key without "key"')
  return { key, metadata }
}

/** Members of an object stand beside `key`; whatever else it is stands under `metadata`. */
function visible(metadata: LearnedValue | undefined): LearnedRecord {
  if (metadata === undefined || metadata === null) return { key: redacted }
  const isObject = typeof metadata === 'object' && !Array.isArray(metadata)
  return isObject ? { ...(metadata as LearnedRecord), key: redacted } : { metadata, key: redacted }
}

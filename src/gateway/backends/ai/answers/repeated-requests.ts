/**
 * What the gateway has found in requests to backends with a cache of answers. If a client sends the same bytes again,
 * they are not read again. Entries contain no text of a request: neither its bytes nor its messages.
 */
import { hash } from 'node:crypto'
import type { ScannedBody } from '../../../../engines/messages/request/client-body.ts'
import type { OutgoingRequest } from '../../../../engines/messages/request/outgoing.ts'
import { BoundedMap } from '../../../../ground/base/bounded-map.ts'

/** A request that guards and settings leave as it is. */
interface RepeatedRequest {
  readonly scanned: ScannedBody
  readonly outgoing: OutgoingRequest
  /** The key of the answer. */
  readonly key: string
}

const maxEntries = 2_048
/** Maximum length of the members that are kept of one request, as JSON. */
const maxFields = 1_024
/** Size of the memory in which digests are computed. Longer requests are read again. */
const maxBytes = 256 * 1_024

const requests = new BoundedMap<string, RepeatedRequest>(maxEntries)
let scratch: Buffer | undefined

/**
 * Identifies a request by its bytes and by everything else that its preparation and the key of its answer depend on,
 * also the principal. Returns undefined if the request is too long.
 */
export function repetitionOf(sources: readonly unknown[], bytes: Uint8Array): string | undefined {
  // No text of a JSON array begins with another one, so that the digest is that of the pair.
  const text = JSON.stringify(sources)
  scratch ??= Buffer.allocUnsafeSlow(maxBytes)
  // A character has at most three bytes.
  if (text.length * 3 + bytes.length > maxBytes) return undefined
  const start = scratch.write(text)
  scratch.set(bytes, start)
  return hash('sha256', scratch.subarray(0, start + bytes.length), 'base64url')
}

export const repeatedRequest = (id: string | undefined): RepeatedRequest | undefined =>
  id === undefined ? undefined : requests.get(id)

export function rememberRequest(id: string, request: RepeatedRequest): void {
  if (JSON.stringify(request.scanned.fields).length <= maxFields) requests.set(id, request)
}

/**
 * Chooses the endpoint of a session by rendezvous hashing (highest random weight): every proxy computes the same
 * scores, and an endpoint that leaves moves only its own sessions.
 */

interface Addressed {
  readonly address: { readonly host: string; readonly port: number }
}

/** Hashes by endpoint, because they are needed for each request. */
const hashes = new WeakMap<Addressed, number>()

/** Returns the usable endpoint with the highest score for a session; undefined if none is usable. */
export function endpointOfSession<Endpoint extends Addressed>(
  endpoints: readonly Endpoint[],
  session: string,
  isUsable: (endpoint: Endpoint) => boolean,
): Endpoint | undefined {
  const seed = textHash(session)
  let best: Endpoint | undefined
  let highest = -1
  for (const endpoint of endpoints) {
    const score = mix(hashOf(endpoint) ^ seed)
    if (score <= highest || !isUsable(endpoint)) continue
    highest = score
    best = endpoint
  }
  return best
}

function hashOf(endpoint: Addressed): number {
  let hash = hashes.get(endpoint)
  if (hash === undefined) {
    const { host, port } = endpoint.address
    hash = textHash(`${host} ${port}`)
    hashes.set(endpoint, hash)
  }
  return hash
}

/** Returns the 32-bit FNV-1a hash of a text, mixed. */
function textHash(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) {
    hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  }
  return mix(hash)
}

/** Spreads all bits of a number over 32 bits: the finalizer of MurmurHash3. */
function mix(value: number): number {
  let bits = value
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b)
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35)
  return (bits ^ (bits >>> 16)) >>> 0
}

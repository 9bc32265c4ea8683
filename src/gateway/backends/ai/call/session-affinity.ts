/**
 * Keeps requests of a session at one provider by weighted rendezvous hashing: every proxy computes the same
 * scores from the same value, and a provider that leaves moves only its own sessions.
 */
import { createHash } from 'node:crypto'
import type { ServerExchange } from '../../../../engines/http/contracts/requests.ts'
import type { Expression } from '../../../variables/index.ts'

/** The value that identifies a session. */
export type Affinity = string

/** Returns undefined if there is no expression, or if its value is empty or no text. */
export function affinityOf(
  source: Expression | undefined,
  exchange: ServerExchange,
): Affinity | undefined {
  const value = source?.evaluate(exchange)
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** Returns the candidate with the highest score for the session. */
export function bestByHash<Candidate>(
  candidates: readonly Candidate[],
  session: Affinity,
  keyOf: (candidate: Candidate) => string,
  weightOf: (candidate: Candidate) => number,
): Candidate | undefined {
  let best: Candidate | undefined
  let highest = Number.NEGATIVE_INFINITY
  for (const candidate of candidates) {
    const score = -weightOf(candidate) / Math.log(fraction(session, keyOf(candidate)))
    if (score > highest) {
      highest = score
      best = candidate
    }
  }
  return best
}

const bits = 48

/** Returns a number between 0 and 1, without both, that depends on the session and the candidate only. */
function fraction(session: Affinity, key: string): number {
  const digest = createHash('sha256').update(`${key}\0${session}`).digest()
  return (digest.readUIntBE(0, bits / 8) + 0.5) / 2 ** bits
}

/** Finds the stored answer to a similar request: one that is equal except for the last message of the user. */
import { hash } from 'node:crypto'
import type { OutgoingRequest } from '../../../../engines/messages/request/outgoing.ts'
import { canonicalBytes } from '../../../../ground/base/canonical.ts'
import { isFresh, type StoredAnswer } from '../answers/answer-memory.ts'
import { lastMessageOf } from '../answers/last-message.ts'
import type { RequestVector } from '../answers/similar-requests.ts'
import { textFeatures } from '../answers/text-features.ts'
import type { SemanticConfig } from '../policy/config.ts'
import type { Comparison } from './comparison.ts'
import type { ModelCall } from './model-call.ts'

/** Maximum number of similar requests whose answers are looked up; each answer may have been dropped. */
const maxLookups = 3

/**
 * Returns the stored answer to the most similar request; undefined if there is none, or if the request cannot be
 * compared. `inputs` is everything that the answer depends on, except for the body of the request.
 */
export async function findSimilar(
  call: ModelCall,
  { format }: OutgoingRequest,
  inputs: unknown,
  since: number,
): Promise<StoredAnswer | undefined> {
  const semantic = call.policy?.config.cache?.semantic
  const body = call.request?.body.whole
  // Placeholders are different in each request, and only this one can restore its own.
  if (semantic === undefined || body === undefined || call.restorer !== undefined) return undefined
  const last = format.operation === 'chat' ? lastMessageOf(body) : undefined
  const features = last && textFeatures(last.text)
  if (last === undefined || features === undefined) return undefined
  const { figures, negations } = features
  const group = digestOf(['similar', inputs, last.rest, figures, negations])
  const comparison = await compared(call, semantic, { group, text: last.text, features })
  const { vector } = comparison
  return vector === undefined || call.context.over
    ? undefined
    : answerTo(call, semantic, comparison.group, vector, since)
}

const digestOf = (value: unknown): string => hash('sha256', canonicalBytes(value), 'base64url')

/** Asks for the embedding of a request, unless an earlier attempt has. */
async function compared(
  call: ModelCall,
  semantic: SemanticConfig,
  { group, text, features }: Pick<Comparison, 'group' | 'text' | 'features'>,
): Promise<Comparison> {
  const known = call.comparison
  if (known?.text === text) {
    call.comparison = { ...known, group }
    return call.comparison
  }
  const found = await call.embedder.embed(call, semantic, text)
  const { words, sequence } = features
  call.comparison =
    typeof found === 'string'
      ? { group, text, features, vector: undefined, use: undefined, problem: found }
      : {
          ...{ group, text, features, use: found.use, problem: undefined },
          vector: { vector: found.vector, words, sequence },
        }
  return call.comparison
}

async function answerTo(
  { answers, similarRequests }: ModelCall,
  { threshold }: SemanticConfig,
  group: string,
  vector: RequestVector,
  since: number,
): Promise<StoredAnswer | undefined> {
  for (let count = 0; count < maxLookups; count++) {
    const found = similarRequests.find(group, vector, { threshold: threshold / 100, since })
    if (found === undefined) return undefined
    const answer = await answers.find(found.key)
    if (answer !== undefined && isFresh(answer, Date.now())) {
      return { ...answer, similarity: found.similarity }
    }
    similarRequests.forget(group, found.key)
  }
  return undefined
}

/** Stores the vector of a request whose answer was stored. */
export function keepVector(call: ModelCall, { key, storedAt, expiresAt }: StoredAnswer): void {
  const { comparison, similarRequests } = call
  const most = call.policy?.config.cache?.semantic?.maxEntries
  if (comparison?.vector === undefined || most === undefined) return
  const { group, vector } = comparison
  similarRequests.add({ ...vector, group, key, storedAt, expiresAt }, most)
}

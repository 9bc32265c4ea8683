/** How fast, and at what price, a vendor processes a request: each vendor has words of its own for it. */
import type { ModelFacts, Service } from '../catalog/facts.ts'
import type { Chat } from '../chat.ts'

const byWord: ReadonlyMap<string | undefined, Service> = new Map([
  ['default', 'default'],
  ['standard', 'default'],
  ['standard_only', 'default'],
  ['flex', 'flex'],
  ['priority', 'priority'],
])

/** Reads the word of any vendor; undefined for words without a counterpart, such as `auto`. */
export const readService = (word: string | undefined): Service | undefined => byWord.get(word)

/** Services that a client can ask for, besides the usual one. */
const others = ['flex', 'priority']

/** Returns the service that the client asks for; undefined if the model has no choice of it. */
export function serviceFor({ service }: Chat, { services = [] }: ModelFacts): Service | undefined {
  if (service === undefined) return undefined
  const offered = services.filter((one) => others.includes(one))
  const isOffered = service === 'default' ? offered.length > 0 : offered.includes(service)
  return isOffered ? service : undefined
}

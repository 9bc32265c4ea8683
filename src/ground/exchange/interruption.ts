import type { Exchange, RespondVerdict } from './exchange.ts'

const interruption = 'interruption'

/** Stores the response that replaces the error when a request that was already forwarded is aborted. */
export function storeAnswer({ extensions }: Exchange, answer: RespondVerdict): void {
  extensions.set(interruption, answer)
}

/** Returns the stored response and removes it, so that it replaces only one error. */
export function takeAnswer({ extensions }: Exchange): RespondVerdict | undefined {
  if (extensions.size === 0) return undefined
  const answer = extensions.get(interruption) as RespondVerdict | undefined
  if (answer !== undefined) extensions.delete(interruption)
  return answer
}

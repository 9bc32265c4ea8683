import type { Exchange, RespondVerdict } from './exchange.ts'

const interruption = 'interruption'

/** Leaves an answer for a request that has been sent on already, before it is broken off. */
export function leaveAnswer({ facts }: Exchange, answer: RespondVerdict): void {
  facts.set(interruption, answer)
}

/** What the client is to get in place of an error; taken once. */
export function takeAnswer({ facts }: Exchange): RespondVerdict | undefined {
  if (facts.size === 0) return undefined
  const answer = facts.get(interruption) as RespondVerdict | undefined
  if (answer !== undefined) facts.delete(interruption)
  return answer
}

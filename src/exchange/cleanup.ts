/** What is to be done once an exchange is over, by whoever holds something open for it. */
import type { Exchange } from './exchange.ts'

const cleanups = 'cleanups'

/** Calls back once, when nothing of the exchange is left but its log line. */
export function onceOver({ facts }: Exchange, callback: () => void): void {
  const known = facts.get(cleanups) as (() => void)[] | undefined
  if (known === undefined) facts.set(cleanups, [callback])
  else known.push(callback)
}

/** For the data plane, at the end of an exchange. */
export function cleanUp({ facts }: Exchange): void {
  if (facts.size === 0) return
  const known = facts.get(cleanups) as (() => void)[] | undefined
  for (const callback of known ?? []) callback()
}

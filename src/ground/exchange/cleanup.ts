import type { Exchange } from './exchange.ts'

const cleanups = 'cleanups'

/** Registers a callback that runs once, when the exchange is over but has not been logged. */
export function onExchangeEnd({ extensions }: Exchange, callback: () => void): void {
  const known = extensions.get(cleanups) as (() => void)[] | undefined
  if (known === undefined) extensions.set(cleanups, [callback])
  else known.push(callback)
}

/** Runs the registered callbacks. The data plane calls it at the end of an exchange. */
export function cleanUp({ extensions }: Exchange): void {
  if (extensions.size === 0) return
  const known = extensions.get(cleanups) as (() => void)[] | undefined
  for (const callback of known ?? []) callback()
}

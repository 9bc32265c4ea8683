import type { Exchange, RespondVerdict } from './exchange.ts'

const interruption = 'interruption'

/** Stores the response that replaces the error when a request that was already forwarded is aborted. */
export function storeResponse({ extensions }: Exchange, response: RespondVerdict): void {
  extensions.set(interruption, response)
}

/** Returns the stored response and removes it, so that it replaces only one error. */
export function takeResponse({ extensions }: Exchange): RespondVerdict | undefined {
  if (extensions.size === 0) return undefined
  const response = extensions.get(interruption) as RespondVerdict | undefined
  if (response !== undefined) extensions.delete(interruption)
  return response
}

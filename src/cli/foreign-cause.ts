/** Finds out whether a log that anyone may have written is why a command has failed. */
import { openedLogs } from './opened-logs.ts'

/** Returns what is wrong with a log that a command has read, if that may be why it failed. */
export async function foreignCause(error: unknown): Promise<Error | undefined> {
  if (openedLogs.size === 0) return undefined
  const { invalidObjectError } = await import('./invalid-objects.ts')
  return invalidObjectError(error).catch(() => undefined)
}

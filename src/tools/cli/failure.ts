/** What a command prints when it fails. */
import { CommanderError } from 'commander'
import { DamagedEventError, UnknownEventTypeError } from '../../../events/index.ts'
import { LogError } from '../../control/log/index.ts'
import { isAboutAddress } from '../../ground/errors/listening.ts'
import { openedLogs } from './recording/opened-logs.ts'
import { exitCode, type Output, UsageError } from './shared/output.ts'

/** Prints wrong usage and unreadable input on one line, bugs with their stack. Returns the exit code. */
export async function fail(error: unknown, output: Output): Promise<number> {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : exitCode.usage
  const isUnreadable = error instanceof UnknownEventTypeError || error instanceof DamagedEventError
  const isUserError = error instanceof UsageError || error instanceof LogError || isUnreadable
  const cause = isUserError || isAboutAddress(error) ? error : await causeInLog(error)
  if (cause !== undefined) {
    output.report(`sluice: ${cause.message}`)
    return exitCode.usage
  }
  output.report(`sluice: bug: ${error instanceof Error ? error.stack : String(error)}`)
  return exitCode.bug
}

/** Returns what is wrong with a log that the command has read, if that may be why it failed. */
async function causeInLog(error: unknown): Promise<Error | undefined> {
  if (openedLogs.size === 0) return undefined
  const { invalidObjectError } = await import('./recording/invalid-objects.ts')
  return invalidObjectError(error).catch(() => undefined)
}

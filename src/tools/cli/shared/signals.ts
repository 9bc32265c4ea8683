/** How a process that serves traffic reacts to signals, and how it ends. */
import type { OperationalLog } from './operational-log.ts'
import { exitCode } from './output.ts'

/**
 * SIGINT and SIGTERM call `end` once; a second signal of the same kind kills the process. SIGHUP calls `end`
 * if the process has a terminal, because that was closed. Without a terminal SIGHUP is ignored, because
 * scripts send it after they have changed files. SIGUSR1 and SIGUSR2 are ignored too; by default they start
 * Node's debugger and kill the process.
 */
export function handleSignals(end: () => void, log: OperationalLog): void {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => end())
  const hasTerminal = process.stdin.isTTY
  for (const signal of ['SIGHUP', 'SIGUSR1', 'SIGUSR2'] as const) {
    process.on(signal, () => {
      if (signal === 'SIGHUP' && hasTerminal) end()
      else log.write('info', `${signal} is ignored: configuration changes are followed anyway`)
    })
  }
}

/** Exits although the log does not answer, because its open connections would keep the process alive. */
export function endAfterLogTimeout(log: OperationalLog): never {
  log.write(
    'warn',
    'the log does not answer: events that it has not stored are lost from its history',
  )
  process.exit(exitCode.success)
}

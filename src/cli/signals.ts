/** What signals mean to a process that serves. */
import type { OperationalLog } from './operational-log.ts'

/**
 * SIGINT and SIGTERM end the process in order, once: a second one of the same kind ends it at once.
 * SIGHUP does so where a terminal has gone. Elsewhere it is what scripts send to have files read
 * again (log rotation, reloads), and must not take anything out of service: files are followed as
 * they change. SIGUSR1 and SIGUSR2, which rotators send too, would open Node's debugger and kill.
 */
export function heedSignals(end: () => void, log: OperationalLog): void {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => end())
  const hasTerminal = process.stdin.isTTY
  process.on('SIGHUP', () => {
    if (hasTerminal) end()
    else tellUnheeded('SIGHUP', log)
  })
  for (const signal of ['SIGUSR1', 'SIGUSR2'] as const) {
    process.on(signal, () => tellUnheeded(signal, log))
  }
}

function tellUnheeded(signal: NodeJS.Signals, log: OperationalLog): void {
  log.write('info', `${signal} changes nothing: what is configured is followed as it changes`)
}

/** Child processes of tests: they end with the test process, however that ends. */
import { spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'

/** A running program. */
export interface Program {
  /** Resolves with the exit code once the program has ended, by itself or by `stop`. */
  readonly exited: Promise<number>
  /** Has it ended? */
  readonly hasExited: () => boolean
  /** The last lines that it wrote, for the message of a failed test. */
  readonly lastLines: (count?: number) => string
  /** Sends a signal to the program, such as `STOP`. */
  readonly signal: (name: 'STOP' | 'CONT' | 'TERM' | 'HUP') => void
  /** Kills the program and resolves when it is gone. */
  readonly stop: () => Promise<void>
}

// A killed test worker runs no handlers, so a shell that reads from it is what notices: at the end
// of its input it kills the program that it started. Each line of its input is a signal for the
// program. Nothing else is ever signalled.
const guard = `
exec 3<&0
"$@" </dev/null 3<&- &
child=$!
{ while read -r signal; do kill -"$signal" $child; done; kill -KILL $child; } <&3 2>/dev/null &
watcher=$!
wait $child
code=$?
kill $watcher 2>/dev/null
exit $code
`

/**
 * Starts a program with its output in `logFile`.
 * @throws the spawn error when there is no POSIX shell
 */
export function startProgram(
  command: string,
  args: readonly string[],
  logFile: string,
  environment: NodeJS.ProcessEnv = process.env,
): Program {
  const log = openSync(logFile, 'a')
  const child = spawn('/bin/sh', ['-c', guard, 'sh', command, ...args], {
    stdio: ['pipe', log, log],
    env: environment,
  })
  closeSync(log)
  let ended = false
  const exited = new Promise<number>((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code) => {
      ended = true
      child.stdin?.end()
      resolve(code ?? 1)
    })
  })
  // `stop` breaks the pipe on purpose.
  child.stdin?.on('error', () => undefined)
  return {
    exited,
    hasExited: () => ended,
    lastLines: (count = 20) => readFileSync(logFile, 'utf8').split('\n').slice(-count).join('\n'),
    signal: (name) => child.stdin?.write(`${name}\n`),
    stop: async () => {
      child.stdin?.end()
      await exited
    },
  }
}

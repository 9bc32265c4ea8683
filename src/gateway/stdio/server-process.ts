/** One process of a server: starts it confined, reads its lines, and ends it together with its children. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chownSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { StdioServer } from '../backends/mcp/stdio/settings.ts'
import { confined, type Isolation, type ProcessUser } from './isolation.ts'
import { LineReader } from './line-reader.ts'
import { maxLogBytes, type ServerLog } from './server-log.ts'
import { endSurvivors } from './usage.ts'

interface ProcessListener {
  onLine(line: Buffer): void
  /** Called once, when no more lines come. `reason` completes the sentence `the server …`. */
  onEnd(reason: string): void
}

/** Variables of the host that servers inherit. All others must be in `env`. */
const inherited = ['PATH', 'HOME', 'LANG', 'LC_ALL', 'TZ']

/** How long a server may take to end after its input was closed, and after SIGTERM. */
const graceMs = 2_000
/** How long the last lines of a process that has ended may take. */
const lastLinesMs = 500
/** Maximum size of messages that the server has not read yet. */
const maxUnreadBytes = 16 * 1024 * 1024

/** Name of the variable by which children are found that have left the group. */
const marker = 'SLUICE_STDIO_SERVER'

export class ServerProcess {
  readonly #child: ChildProcessWithoutNullStreams
  readonly #listener: ProcessListener
  readonly #log: ServerLog
  readonly #folder: string | undefined
  readonly #variable = `${marker}=${randomBytes(12).toString('hex')}`
  readonly #hasOwnPids: boolean
  readonly startedAt = performance.now()
  /** Why the host has ended it. */
  #reason: string | undefined
  #isOver = false
  readonly #ended = Promise.withResolvers<void>()
  #stopping: Promise<void> | undefined

  constructor(
    server: StdioServer,
    isolation: Isolation,
    user: ProcessUser | undefined,
    log: ServerLog,
    listener: ProcessListener,
  ) {
    this.#listener = listener
    this.#log = log
    this.#hasOwnPids = isolation.namespaces !== undefined
    this.#folder = server.workingDirectory === undefined ? ownFolder(user) : undefined
    const [program, ...args] = confined(server, isolation)
    this.#child = spawn(program, args, {
      cwd: server.workingDirectory ?? this.#folder,
      env: environmentOf(server, this.#variable),
      // A group and a session of its own, so that its children are found.
      detached: true,
      ...user,
    })
    this.#follow(server)
  }

  get pid(): number | undefined {
    return this.#child.pid
  }

  #follow({ command, limits, workingDirectory }: StdioServer): void {
    const { stdin, stdout, stderr } = this.#child
    const lines = new LineReader(
      limits.messageBytes,
      (line) => {
        if (!this.#isOver) this.#listener.onLine(line)
      },
      () => this.end(`wrote a line of more than ${limits.messageBytes} bytes`),
    )
    stdout.on('data', (chunk: Buffer) => lines.add(chunk))
    const errors = new LineReader(
      maxLogBytes,
      (line) => this.#log.line(line.toString()),
      (start) => this.#log.line(`${start.toString()}…`),
    )
    stderr.on('data', (chunk: Buffer) => errors.add(chunk))
    stderr.on('end', () => errors.end())
    // Writes to a server that has ended fail; its end is reported elsewhere.
    stdin.on('error', () => {})
    this.#child.on('error', (error: NodeJS.ErrnoException) => {
      const where = workingDirectory === undefined ? '' : ` in ${workingDirectory}`
      const why = error.code === 'ENOENT' ? 'was not found' : error.message
      this.#over(`cannot be started: ${command[0]}${where} ${why}`)
    })
    let how = ''
    this.#child.on('exit', (code, signal) => {
      // `unshare` and `prlimit` report with this code that there is no such command.
      const isMissing = code === 127 && performance.now() - this.startedAt < graceMs
      const ended = signal === null ? `ended with code ${code}` : `was ended by ${signal}`
      how = isMissing ? `cannot be started: ${command[0]} was not found` : ended
      this.#endChildren()
      // Its last lines may not have been read yet. A process that has escaped may hold the pipes open.
      setTimeout(() => this.#over(how), lastLinesMs).unref()
    })
    this.#child.on('close', () => this.#over(how))
  }

  /** Sends a line to the server. */
  write(text: string): void {
    const { stdin } = this.#child
    if (this.#isOver || !stdin.writable) return
    stdin.write(`${text}\n`)
    if (stdin.writableLength > maxUnreadBytes) this.end('does not read its input')
  }

  /** Ends the process at once, because it has broken a limit. */
  end(reason: string): void {
    if (this.#isOver || this.#reason !== undefined) return
    this.#reason = reason
    this.#log.warn(`the server ${reason}; ending it`)
    this.#signal('SIGKILL')
  }

  get isStopping(): boolean {
    return this.#stopping !== undefined
  }

  /** Closes its input, then sends SIGTERM, then SIGKILL. Resolves when it has ended. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop()
    return this.#stopping
  }

  async #stop(): Promise<void> {
    this.#reason ??= 'was stopped'
    this.#child.stdin.end()
    const steps = (['SIGTERM', 'SIGKILL'] as const).map((signal, at) =>
      setTimeout(() => this.#signal(signal), (at + 1) * graceMs),
    )
    await this.#ended.promise
    for (const step of steps) clearTimeout(step)
  }

  /** Signals the whole group. */
  #signal(signal: NodeJS.Signals): void {
    const { pid } = this.#child
    if (pid === undefined) return
    try {
      process.kill(-pid, signal)
    } catch {
      // The group has ended.
    }
  }

  #over(reason: string): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#log.flush()
    if (this.#reason === undefined) this.#log.warn(`the server ${reason}`)
    this.#listener.onEnd(this.#reason ?? reason)
    this.#child.stdout.destroy()
    this.#child.stderr.destroy()
    if (this.#folder !== undefined) rmSync(this.#folder, { recursive: true, force: true })
    this.#ended.resolve()
  }

  #endChildren(): void {
    this.#signal('SIGKILL')
    if (!this.#hasOwnPids) endSurvivors(this.#variable)
  }
}

function ownFolder(user: ProcessUser | undefined): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-stdio-'))
  if (user !== undefined) chownSync(folder, user.uid, user.gid)
  return folder
}

function environmentOf({ env }: StdioServer, variable: string): NodeJS.ProcessEnv {
  const kept = inherited.flatMap((name) => {
    const value = process.env[name]
    return value === undefined ? [] : [[name, value] as const]
  })
  const [name = marker, value] = variable.split('=')
  return { ...Object.fromEntries(kept), ...env, [name]: value }
}

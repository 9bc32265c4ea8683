/**
 * The process that runs MCP servers that are commands for `sluice run`. It is not this process, because the servers
 * must end even if this process is killed, and must not be near its memory.
 */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { createInterface } from 'node:readline'
import { setTimeout as after } from 'node:timers/promises'
import type { ProxyOptions } from '../../../gateway/proxy/workers/proxy-options.ts'
import type { ProcessUser } from '../../../gateway/stdio/isolation.ts'
import type { OperationalLog } from '../shared/operational-log.ts'

/** Variables of this process that the other one gets, and of which servers inherit some. */
const inherited = ['PATH', 'HOME', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR', 'NODE_COMPILE_CACHE']

const restartMs = 1_000
/** How long servers may take to end. */
const stopMs = 6_000

export class StdioChild {
  readonly #log: OperationalLog
  readonly #user: ProcessUser | undefined
  readonly #token = randomBytes(32).toString('hex')
  #child: ChildProcessWithoutNullStreams | undefined
  #address = '127.0.0.1:0'
  #isStopping = false

  constructor(user: ProcessUser | undefined, log: OperationalLog) {
    this.#user = user
    this.#log = log
  }

  /** Resolves to how proxies reach it. */
  async start(): Promise<NonNullable<ProxyOptions['stdio']>> {
    this.#address = await this.#spawn()
    return { address: this.#address, token: { value: this.#token } }
  }

  #spawn(): Promise<string> {
    const [, script = ''] = process.argv
    const user = this.#user && ['--user', `${this.#user.uid}:${this.#user.gid}`]
    const args = [...process.execArgv, script, 'stdio', '--address', this.#address, ...(user ?? [])]
    const env = Object.fromEntries(
      inherited.flatMap((name) => {
        const value = process.env[name]
        return value === undefined ? [] : [[name, value]]
      }),
    )
    // A signal of the terminal is for this process, which then ends the other one in order.
    const child = spawn(process.execPath, args, { env, detached: true })
    this.#child = child
    child.stdin.on('error', () => {})
    child.stdin.write(`${this.#token}\n`)
    child.stderr.on('data', (text) => this.#log.write('error', `stdio: ${String(text).trimEnd()}`))
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    createInterface({ input: child.stdout }).on('line', (line) => {
      const { address, severity = 'warn', text } = reportOf(line)
      if (address !== undefined) resolve(address)
      if (text !== undefined) this.#log.write(severity, text)
    })
    child.on('error', reject)
    child.on('exit', (code, signal) => {
      reject(new Error(`sluice stdio ended with ${signal ?? `code ${code}`}`))
      if (!this.#isStopping) void this.#restart(signal ?? `code ${code}`)
    })
    return promise
  }

  /** Starts it again on the same port, so that proxies find it. */
  async #restart(how: string): Promise<void> {
    this.#log.write('error', `the process that runs commands ended with ${how}; starting it again`)
    await after(restartMs)
    if (!this.#isStopping) this.#spawn().catch(() => {})
  }

  /** Ends it and all servers. */
  async stop(): Promise<void> {
    this.#isStopping = true
    const child = this.#child
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const { promise, resolve } = Promise.withResolvers<void>()
    child.once('exit', () => resolve())
    child.stdin.end()
    const limit = setTimeout(() => child.kill('SIGKILL'), stopMs)
    await promise
    clearTimeout(limit)
  }
}

function reportOf(line: string): Reported {
  try {
    return JSON.parse(line) as Reported
  } catch {
    return { text: `stdio: ${line}` }
  }
}

interface Reported {
  readonly address?: string
  readonly severity?: 'info' | 'warn'
  readonly text?: string
}

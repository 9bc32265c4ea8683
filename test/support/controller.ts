/** `sluice controller` as a process of its own, against a test's API server. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { send } from './http-client.ts'
import { waitFor } from './wait-for.ts'

const launcher = join(import.meta.dirname, '..', '..', 'bin', 'sluice')

export interface ControllerProcessOptions {
  readonly kubeconfig: string
  /** Keep the event log on this NATS server; a file of its own otherwise. */
  readonly nats?: string
  /** The path of the log file; if omitted, a temporary file is used and removed. */
  readonly logFile?: string
  readonly name?: string
  readonly env?: Readonly<Record<string, string>>
  readonly args?: readonly string[]
}

export class ControllerProcess {
  readonly folder = mkdtempSync(join(tmpdir(), 'sluice-controller-'))
  readonly logFile: string
  stderr = ''
  readonly #options: ControllerProcessOptions
  #process: ChildProcess | undefined
  #ended: Promise<number | null> = Promise.resolve(null)

  constructor(options: ControllerProcessOptions) {
    this.#options = options
    this.logFile = options.logFile ?? join(this.folder, 'events.db')
  }

  /** Starts the process; resolves once it has printed its addresses. */
  async launch(): Promise<this> {
    const { kubeconfig, nats, name = 'replica', env = {}, args = [] } = this.#options
    const log = nats === undefined ? ['--log-file', this.logFile] : ['--nats', nats]
    const addresses = ['xds', 'health', 'metrics'].flatMap((part) => [
      `--${part}-address`,
      '127.0.0.1:0',
    ])
    this.stderr = ''
    const all = ['controller', '--kubeconfig', kubeconfig, ...log, ...addresses, ...args]
    const child = spawn(launcher, all, {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, POD_NAME: name, SLUICE_LEASE_DURATION: '3s', ...env },
    })
    child.stderr.on('data', (chunk: Buffer) => {
      this.stderr += chunk.toString()
    })
    this.#process = child
    this.#ended = new Promise((resolve) => child.once('close', (code) => resolve(code)))
    await this.said(/^metrics: /m)
    return this
  }

  /** Starts the process and resolves once it is ready. */
  async start(): Promise<this> {
    await this.launch()
    await this.said(/^ready$/m)
    return this
  }

  /** Waits for a line on standard error. */
  said(pattern: RegExp): Promise<RegExpExecArray> {
    return waitFor(`"${pattern.source}" of the controller`, () => {
      const found = pattern.exec(this.stderr)
      if (found !== null) return found
      if (this.#process?.exitCode !== null) throw new Error(`it ended:\n${this.stderr}`)
      return undefined
    }).catch((error) => {
      throw new Error(`${error.message}; it said:\n${this.stderr}`)
    })
  }

  get pid(): number {
    return this.#process?.pid ?? 0
  }

  get isRunning(): boolean {
    return this.#process?.exitCode === null && this.#process.signalCode === null
  }

  /** The address for proxies, once the controller has printed it. */
  async xdsAddress(): Promise<string> {
    return (await this.said(/^xds: (\S+)/m))[1] ?? ''
  }

  /** Does the readiness probe succeed now? */
  async isReady(): Promise<boolean> {
    if (!this.isRunning) return false
    return this.get('health', '/readyz').then(
      ({ status }) => status === 200,
      () => false,
    )
  }

  async get(part: 'health' | 'metrics', path: string): Promise<{ status: number; text: string }> {
    const [, origin = ''] = await this.said(new RegExp(`^${part}: (http://[^/]+)`, 'm'))
    const { status, body } = await send(Number(new URL(origin).port), { path })
    return { status, text: body }
  }

  /** The value of a metric, summed over the series whose labels contain a text. */
  async metric(name: string, labels = ''): Promise<number> {
    const { text } = await this.get('metrics', '/metrics')
    const lines = text.split('\n').filter((line) => new RegExp(`^${name}[ {]`).test(line))
    return lines
      .filter((line) => line.includes(labels))
      .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
  }

  signal(name: NodeJS.Signals): void {
    this.#process?.kill(name)
  }

  /** Ends it as the platform does; resolves with the exit code. */
  async stop(): Promise<number | null> {
    this.#process?.kill('SIGTERM')
    return this.#ended
  }

  async kill(): Promise<void> {
    this.#process?.kill('SIGKILL')
    await this.#ended
  }

  async dispose(): Promise<void> {
    if (this.isRunning) await this.kill()
    rmSync(this.folder, { recursive: true, force: true })
  }
}

/**
 * A control plane on manifests and real `sluice proxy` processes that it configures, each a process
 * of its own that a test can end in any way.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { get } from 'node:http'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ControlPlaneProcessOptions } from './control-plane-process.ts'
import { allConditions, type Status, type StatusCondition, sluice } from './gateway.ts'
import { waitFor } from './wait-for.ts'

const launcher = join(import.meta.dirname, '..', '..', 'bin', 'sluice')
const controlPlane = join(import.meta.dirname, 'control-plane-process.ts')

/** A child whose output is kept. */
export class Child {
  output = ''
  #process: ChildProcess | undefined
  #ended: Promise<number | null> = Promise.resolve(null)
  readonly #command: string

  constructor(command: string) {
    this.#command = command
  }

  protected spawn(args: readonly string[], env: Readonly<Record<string, string>> = {}): void {
    this.output = ''
    const child = spawn(this.#command, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...env },
    })
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        this.output += chunk.toString()
      })
    }
    this.#process = child
    this.#ended = new Promise((resolve) => child.once('close', (code) => resolve(code)))
  }

  /** Waits for a matching line of output; returns the first group of the match. */
  printed(pattern: RegExp): Promise<string> {
    return waitFor(`${pattern} from ${this.#command}`, () => {
      const found = pattern.exec(this.output)
      if (found === null && this.hasEnded) throw new Error(`it ended:\n${this.output}`)
      return found === null ? undefined : (found[1] ?? found[0])
    })
  }

  get hasEnded(): boolean {
    return this.#process?.exitCode !== null || this.#process.signalCode !== null
  }

  get pid(): number {
    return this.#process?.pid ?? 0
  }

  signal(signal: NodeJS.Signals): void {
    this.#process?.kill(signal)
  }

  async stop(): Promise<number | null> {
    this.signal('SIGTERM')
    return this.#ended
  }

  async kill(): Promise<void> {
    this.signal('SIGKILL')
    await this.#ended
  }

  async dispose(): Promise<void> {
    if (!this.hasEnded) await this.kill()
  }
}

/** The sum of all series of a metric; 0 without any. */
function metricSum(text: string, name: string): number {
  const lines = text.split('\n').filter((line) => line.startsWith(name))
  const own = lines.filter((line) => /^[ {]/.test(line.slice(name.length)))
  return own.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0)
}

async function scrape(url: string, name: string): Promise<number> {
  const text = await new Promise<string>((resolve, reject) => {
    const request = get(url, (response) => {
      let body = ''
      response.on('data', (chunk: Buffer) => {
        body += chunk.toString()
      })
      response.on('end', () => resolve(body))
    })
    request.on('error', reject)
  })
  return metricSum(text, name)
}

/**
 * A port that stays free while its owner is down: it is below the range of ephemeral ports, which the
 * system could give to another outgoing connection.
 */
export async function stablePort(): Promise<number> {
  for (;;) {
    const port = 10_000 + Math.floor(Math.random() * 20_000)
    const server = createServer()
    const isFree = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false))
      server.listen(port, '127.0.0.1', () => resolve(true))
    })
    await new Promise((resolve) => server.close(resolve))
    if (isFree) return port
  }
}

export class ControlPlane extends Child {
  readonly logFile: string
  readonly #options: Omit<ControlPlaneProcessOptions, 'logFile'>
  address = ''
  #metrics = ''

  constructor(folder: string, options: Omit<ControlPlaneProcessOptions, 'logFile'>) {
    super(process.execPath)
    this.logFile = join(folder, 'events.db')
    this.#options = options
  }

  /** Starts, on the same address each time, and resolves once proxies are served. */
  async start(): Promise<this> {
    const options = { ...this.#options, logFile: this.logFile }
    this.spawn(['--no-warnings', controlPlane, JSON.stringify(options)])
    this.address = await this.printed(/^xds: (.+)$/m)
    this.#metrics = await this.printed(/^metrics: (.+)$/m)
    return this
  }

  metric(name: string): Promise<number> {
    return scrape(`http://127.0.0.1:${this.#metrics}/metrics`, `sluice_${name}`)
  }

  async status(kind: string, name: string, namespace = 'default'): Promise<Status | undefined> {
    const { stdout } = await sluice('status', '--log-file', this.logFile, '-o', 'json')
    const { objects } = JSON.parse(stdout) as {
      objects: { kind: string; namespace: string; name: string; status: Status }[]
    }
    return objects.find(
      (entry) => entry.kind === kind && entry.name === name && entry.namespace === namespace,
    )?.status
  }

  /** Waits until a condition of an object has a status and a message; returns it. */
  condition(
    kind: string,
    name: string,
    type: string,
    status: string,
    message: RegExp = /(?:)/,
  ): Promise<StatusCondition> {
    return waitFor(`${kind} ${name} ${type}=${status} ${message}`, async () =>
      allConditions(await this.status(kind, name)).find(
        (entry) => entry.type === type && entry.status === status && message.test(entry.message),
      ),
    )
  }
}

export interface ProxyOptions {
  readonly addresses: readonly string[]
  readonly name: string
  readonly gateway?: string
  /** Keep the last good configuration? */
  readonly isKept?: boolean
  readonly args?: readonly string[]
}

export class ProxyProcess extends Child {
  readonly stateDir: string
  readonly #options: ProxyOptions

  constructor(folder: string, options: ProxyOptions) {
    super(launcher)
    this.stateDir = join(folder, `state-${options.name}`)
    this.#options = options
  }

  launch(): this {
    const { addresses, name, gateway = 'default/edge', isKept = true, args = [] } = this.#options
    const any = '127.0.0.1:0'
    const own = ['--admin-address', any, '--stats-address', any, '--readiness-address', any]
    const where = ['--xds-address', addresses.join(','), '--gateway', gateway]
    const state = isKept ? ['--state-dir', this.stateDir] : []
    this.spawn(['proxy', ...where, ...state, '--bind-address', '127.0.0.1', ...own, ...args], {
      SLUICE_PROXY_NAME: name,
    })
    return this
  }

  /** Starts and resolves once it is ready to serve. */
  async start(): Promise<this> {
    this.launch()
    await this.printed(/^ready$/m)
    return this
  }

  async metric(name: string): Promise<number> {
    const url = await this.printed(/^metrics: (.+)$/m)
    return scrape(url, `sluice_${name}`)
  }

  get lastGood(): string {
    return join(this.stateDir, 'last-good')
  }

  /** What is on disk, as text. */
  kept(): string {
    return readFileSync(this.lastGood, 'latin1')
  }

  /** Waits until the configuration is on disk. */
  async saved(): Promise<void> {
    await waitFor('the last good configuration', () => existsSync(this.lastGood))
  }
}

export interface RigOptions {
  readonly tokenFile?: string
  readonly certificateFile?: string
  readonly keyFile?: string
  readonly returnLimitMs?: number
  readonly ackTimeoutMs?: number
  readonly aheadMs?: number
}

/** The folder, the manifests and every process of one test; `dispose` ends all. */
export class ClusterRig {
  readonly folder = mkdtempSync(join(tmpdir(), 'sluice-rig-'))
  readonly manifests = join(this.folder, 'manifests')
  readonly #children: Child[] = []

  constructor(manifests: Readonly<Record<string, string>>) {
    mkdirSync(this.manifests)
    for (const [file, text] of Object.entries(manifests)) this.write(file, text)
  }

  /** Replaces a manifest in one step. */
  write(file: string, text: string): void {
    const path = join(this.manifests, file)
    writeFileSync(`${path}.tmp`, text)
    renameSync(`${path}.tmp`, path)
  }

  remove(file: string): void {
    rmSync(join(this.manifests, file))
  }

  async controlPlane(options: RigOptions = {}): Promise<ControlPlane> {
    const folder = join(this.folder, `control-plane-${this.#children.length}`)
    mkdirSync(folder)
    const plane = new ControlPlane(folder, {
      manifests: this.manifests,
      digestKey: join(this.folder, 'digest.key'),
      xdsAddress: `127.0.0.1:${await stablePort()}`,
      ...options,
    })
    this.#children.push(plane)
    return plane.start()
  }

  proxy(options: ProxyOptions): ProxyProcess {
    const proxy = new ProxyProcess(this.folder, options)
    this.#children.push(proxy)
    return proxy
  }

  async dispose(): Promise<void> {
    await Promise.all(this.#children.map((child) => child.dispose()))
    rmSync(this.folder, { recursive: true, force: true })
  }
}

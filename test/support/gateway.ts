/** `sluice run` as a process of its own, on a folder of manifests that a test edits. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { send, type TestRequest, type TestResponse } from './http-client.ts'
import { type Manifest, manifest } from './manifests.ts'
import { waitFor } from './wait-for.ts'

export { freePort, freePorts } from './free-port.ts'

export const launcher = join(import.meta.dirname, '..', '..', 'bin', 'sluice')

export interface CommandResult {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs a command of the command line to its end. */
export async function sluice(...args: string[]): Promise<CommandResult> {
  try {
    const { stdout, stderr } = await promisify(execFile)(launcher, args, { maxBuffer: 1 << 28 })
    return { code: 0, stdout, stderr }
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string }
    return { code, stdout, stderr }
  }
}

export interface GatewayOptions {
  /** File name -> content, or the objects of a single file `all.yaml`. */
  readonly manifests: Readonly<Record<string, string>> | readonly Manifest[]
  readonly args?: readonly string[]
  /** Keep the event log on this NATS server. */
  readonly nats?: string
  readonly env?: Readonly<Record<string, string>>
  /** A command that runs the gateway in its own place, such as `unshare` with its options. */
  readonly within?: readonly string[]
  /** Receives standard output, which is not kept then. */
  readonly onOutput?: (text: string) => void
}

export class RunningGateway {
  readonly folder: string
  /** Where the event log is. */
  readonly logFile: string
  stdout = ''
  stderr = ''
  readonly #manifests: string
  readonly #options: GatewayOptions
  #process: ChildProcess | undefined
  #ended: Promise<number | null> = Promise.resolve(null)

  constructor(options: GatewayOptions) {
    this.#options = options
    this.folder = mkdtempSync(join(tmpdir(), 'sluice-test-'))
    this.#manifests = join(this.folder, 'manifests')
    this.logFile = join(this.folder, 'events.db')
    mkdirSync(this.#manifests)
    const files = isList(options.manifests)
      ? { 'all.yaml': manifest(...options.manifests) }
      : options.manifests
    for (const [file, content] of Object.entries(files)) this.write(file, content)
  }

  get manifests(): string {
    return this.#manifests
  }

  /** The process that was started last. */
  get pid(): number | undefined {
    return this.#process?.pid
  }

  get #log(): readonly string[] {
    const { nats } = this.#options
    return nats === undefined ? ['--log-file', this.logFile] : ['--nats', nats]
  }

  /** Starts the process, with more options if any are given, and resolves once it is ready to serve. */
  async start(more: readonly string[] = []): Promise<this> {
    this.launch(more)
    await waitFor('readiness', () => {
      if (this.#process?.exitCode !== null) throw new Error(`it ended:\n${this.stderr}`)
      return /^ready$/m.test(this.stderr)
    })
    return this
  }

  /** Starts the process without waiting for anything. */
  launch(more: readonly string[] = []): void {
    const { args = [], env = {}, within = [], onOutput } = this.#options
    const off = [
      '--admin-address',
      'off',
      '--console-address',
      'off',
      '--stats-address',
      '127.0.0.1:0',
    ]
    const where = ['-f', this.#manifests, ...this.#log, '--bind-address', '127.0.0.1']
    const all = ['run', ...where, ...off, '--readiness-address', '127.0.0.1:0', ...args, ...more]
    this.stdout = ''
    this.stderr = ''
    const [program = launcher, ...rest] = [...within, launcher, ...all]
    const child = spawn(program, rest, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...env },
    })
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      if (onOutput === undefined) this.stdout += text
      else onOutput(text)
    })
    child.stderr.on('data', (chunk: Buffer) => {
      this.stderr += chunk.toString()
    })
    this.#process = child
    this.#ended = new Promise((resolve) => child.once('close', (code) => resolve(code)))
  }

  /** Replaces a manifest in one step, as editors and ConfigMaps do. */
  write(file: string, content: string): void {
    const path = join(this.#manifests, file)
    writeFileSync(`${path}.tmp`, content)
    renameSync(`${path}.tmp`, path)
  }

  remove(file: string): void {
    rmSync(join(this.#manifests, file))
  }

  send(port: number, request?: TestRequest): Promise<TestResponse> {
    return send(port, request)
  }

  /** Sends until the answer satisfies; for what becomes true after an edit. */
  sendUntil(
    port: number,
    request: TestRequest,
    isDone: (response: TestResponse) => boolean,
  ): Promise<TestResponse> {
    return waitFor('the answer after an edit', async () => {
      const response = await send(port, request).catch(() => undefined)
      return response !== undefined && isDone(response) ? response : undefined
    })
  }

  /** Status of an object as the running gateway has recorded it. */
  async status(kind: string, name: string, namespace = 'default'): Promise<Status | undefined> {
    // Tests ask again and again, and a process for each question takes half a second of a core.
    const { status } = await import('../../src/tools/cli/status/status.ts')
    const { nats } = this.#options
    const log = nats === undefined ? { logFile: this.logFile } : { nats }
    const { json } = await status(log, () => undefined)
    const { objects } = json as { objects: (StatusEntry & { status: Status })[] }
    return objects.find(
      (entry) => entry.kind === kind && entry.name === name && entry.namespace === namespace,
    )?.status
  }

  /** Waits until a condition of an object has a status; returns the condition. */
  condition(kind: string, name: string, type: string, status: string): Promise<StatusCondition> {
    return waitFor(`${kind} ${name} ${type}=${status}`, async () => {
      const conditions = allConditions(await this.status(kind, name))
      return conditions.find((entry) => entry.type === type && entry.status === status)
    })
  }

  signal(name: NodeJS.Signals): void {
    this.#process?.kill(name)
  }

  /** Ends it as an operator does; resolves with the exit code. */
  async stop(): Promise<number | null> {
    this.#process?.kill('SIGTERM')
    return this.#ended
  }

  /** Ends it as a power failure does. */
  async kill(): Promise<void> {
    this.#process?.kill('SIGKILL')
    await this.#ended
  }

  /** Ends it and removes its folder. */
  async dispose(): Promise<void> {
    if (this.#process?.exitCode === null) await this.stop()
    rmSync(this.folder, { recursive: true, force: true })
  }
}

interface StatusEntry {
  readonly kind: string
  readonly namespace: string
  readonly name: string
}

export interface StatusCondition {
  readonly type: string
  readonly status: string
  readonly reason: string
  readonly message: string
  readonly observedGeneration: number
}

export interface Status {
  readonly conditions?: readonly StatusCondition[]
  readonly [field: string]: unknown
}

/** Conditions of a status wherever they stand: on top, per listener, per parent, per ancestor. */
export function allConditions(status: Status | undefined): StatusCondition[] {
  const lists = ['parents', 'ancestors', 'listeners'].flatMap(
    (field) => (status?.[field] ?? []) as Status[],
  )
  return [...(status?.conditions ?? []), ...lists.flatMap((entry) => entry.conditions ?? [])]
}

function isList(manifests: GatewayOptions['manifests']): manifests is readonly Manifest[] {
  return Array.isArray(manifests)
}

/** Starts a gateway on manifests; the caller disposes it. Most test files want `useGateway`. */
export async function startGateway(options: GatewayOptions): Promise<RunningGateway> {
  const running = new RunningGateway(options)
  try {
    return await running.start()
  } catch (error) {
    await running.dispose()
    throw error
  }
}

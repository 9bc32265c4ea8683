/**
 * A pod as the kubelet would start it, as a process: the container of a Deployment with its
 * arguments, its environment (downward API, Secrets and `$(NAME)` included) and its volumes
 * (ConfigMaps, Secrets, projected tokens, claims, empty folders), which lie in a folder of its own.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type PodFacts, type PodSpec, type Prepared, prepareContainer } from './pod-spec.ts'
import { waitFor } from './wait-for.ts'

const launcher = join(import.meta.dirname, '..', '..', 'bin', 'sluice')

export interface PodOptions extends Omit<PodFacts, 'hosts'> {
  readonly hosts?: PodFacts['hosts']
  /** Name of the Deployment that the pod is of. */
  readonly deployment: string
  /** Name of the container. Default: `proxy`. */
  readonly container?: string
}

/** What the kubelet prepares before it starts the container of a Deployment. */
export class PreparedPod {
  readonly folder = mkdtempSync(join(tmpdir(), 'sluice-pod-'))
  serviceAccount = ''
  graceSeconds = 30
  #prepared: Prepared = { args: [], env: {}, refresh: () => Promise.resolve() }
  readonly #options: PodOptions

  constructor(options: PodOptions) {
    this.#options = options
  }

  get args(): readonly string[] {
    return this.#prepared.args
  }

  get env(): Readonly<Record<string, string>> {
    return this.#prepared.env
  }

  async prepare(): Promise<this> {
    const { server, namespace, deployment, container: wanted = 'proxy', hosts = {} } = this.#options
    const path = `/apis/apps/v1/namespaces/${namespace}/deployments/${deployment}`
    const { body } = await server.request('GET', path)
    const { spec } = body.spec.template as { spec: PodSpec }
    const container = spec.containers.find(({ name }) => name === wanted)
    if (container === undefined) throw new Error(`no container is called ${wanted}`)
    this.serviceAccount = spec.serviceAccountName ?? 'default'
    this.graceSeconds = spec.terminationGracePeriodSeconds ?? this.graceSeconds
    const facts = { ...this.#options, hosts }
    this.#prepared = await prepareContainer(facts, spec, container, this.folder)
    return this
  }

  /** Brings ConfigMaps and Secrets up to date, as the kubelet does after a while. */
  refresh(): Promise<void> {
    return this.#prepared.refresh()
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true })
  }
}

export class PodProcess {
  readonly prepared: PreparedPod
  stderr = ''
  stdout = ''
  #process: ChildProcess | undefined
  #ended: Promise<number | null> = Promise.resolve(null)

  constructor(options: PodOptions) {
    this.prepared = new PreparedPod(options)
  }

  get folder(): string {
    return this.prepared.folder
  }

  get args(): readonly string[] {
    return this.prepared.args
  }

  get env(): Readonly<Record<string, string>> {
    return this.prepared.env
  }

  /** Starts the process; resolves once it has printed its readiness address. */
  async start(): Promise<this> {
    await this.launch()
    await this.said(/readiness: http/)
    return this
  }

  /** Starts the process without waiting for anything; `more` overrides variables. */
  async launch(more: Readonly<Record<string, string>> = {}): Promise<this> {
    const { args, env } = await this.prepared.prepare()
    const { PATH = '', HOME = '' } = process.env
    const child = spawn(launcher, args, { env: { PATH, HOME, ...env, ...more } })
    child.stderr.on('data', (chunk: Buffer) => {
      this.stderr += chunk.toString()
    })
    child.stdout.on('data', (chunk: Buffer) => {
      this.stdout += chunk.toString()
    })
    this.#process = child
    this.#ended = new Promise((resolve) => child.once('close', (code) => resolve(code)))
    return this
  }

  /** Waits for a line of the process. */
  said(pattern: RegExp): Promise<RegExpExecArray> {
    return waitFor(`"${pattern.source}" of the pod`, () => {
      const found = pattern.exec(this.stderr)
      if (found !== null) return found
      if (this.#process?.exitCode !== null) throw new Error(`it ended:\n${this.stderr}`)
      return undefined
    }).catch((error) => {
      throw new Error(`${error.message}; it said:\n${this.stderr}`)
    })
  }

  /** Does the readiness probe succeed now? */
  async isReady(): Promise<boolean> {
    const [, url = ''] = /readiness: (http:\/\/[^"\s]+)/.exec(this.stderr) ?? []
    return fetch(url).then(
      ({ ok }) => ok,
      () => false,
    )
  }

  /** Ends it as the kubelet does: SIGKILL after the grace period; resolves with the exit code. */
  async terminate(): Promise<number | null> {
    this.#process?.kill('SIGTERM')
    const kill = () => this.#process?.kill('SIGKILL')
    const timer = setTimeout(kill, this.prepared.graceSeconds * 1_000)
    return this.#ended.finally(() => clearTimeout(timer))
  }

  async dispose(): Promise<void> {
    if (this.#process?.exitCode === null) this.#process.kill('SIGKILL')
    await this.#ended
    this.prepared.remove()
  }
}

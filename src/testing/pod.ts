/**
 * A pod as the kubelet would start it, as a process: the container of a Deployment with its
 * arguments, its environment (downward API and `$(NAME)` included) and its volumes (ConfigMaps,
 * projected tokens, empty folders), which lie in a folder of its own.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type PodFacts, type PodSpec, prepareContainer } from './pod-spec.ts'
import { waitFor } from './wait-for.ts'

const launcher = join(import.meta.dirname, '..', '..', 'bin', 'sluice')

export interface PodOptions extends PodFacts {
  /** Name of the Deployment that the pod is of. */
  readonly deployment: string
}

export class PodProcess {
  readonly folder = mkdtempSync(join(tmpdir(), 'sluice-pod-'))
  stderr = ''
  stdout = ''
  args: readonly string[] = []
  env: Readonly<Record<string, string>> = {}
  readonly #options: PodOptions
  #process: ChildProcess | undefined
  #ended: Promise<number | null> = Promise.resolve(null)

  constructor(options: PodOptions) {
    this.#options = options
  }

  /** Starts the process; resolves once it tells where its readiness is. */
  async start(): Promise<this> {
    const { server, namespace, deployment } = this.#options
    const path = `/apis/apps/v1/namespaces/${namespace}/deployments/${deployment}`
    const { body } = await server.request('GET', path)
    const { spec } = body.spec.template as { spec: PodSpec }
    const container = spec.containers.find(({ name }) => name === 'proxy')
    if (container === undefined) throw new Error('no container is called proxy')
    const prepared = await prepareContainer(this.#options, spec, container, this.folder)
    this.args = prepared.args
    this.env = prepared.env
    const { PATH = '', HOME = '' } = process.env
    const child = spawn(launcher, this.args, { env: { PATH, HOME, ...this.env } })
    child.stderr.on('data', (chunk: Buffer) => {
      this.stderr += chunk.toString()
    })
    child.stdout.on('data', (chunk: Buffer) => {
      this.stdout += chunk.toString()
    })
    this.#process = child
    this.#ended = new Promise((resolve) => child.once('close', (code) => resolve(code)))
    await this.said(/readiness: http/)
    return this
  }

  /** Waits for what the process tells. */
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

  /** Ends it as the kubelet does; resolves with the exit code. */
  async terminate(): Promise<number | null> {
    this.#process?.kill('SIGTERM')
    return this.#ended
  }

  async dispose(): Promise<void> {
    if (this.#process?.exitCode === null) this.#process.kill('SIGKILL')
    await this.#ended
    rmSync(this.folder, { recursive: true, force: true })
  }
}

/** One pod: its containers are processes in one network namespace. Its status is kept as a kubelet keeps it. */
import type { ChildProcess } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ApiServer } from '../support/api-server.ts'
import { type Container, type PodSpec, prepareContainer } from '../support/pod-spec.ts'
import { ContainerLog } from './kubelet.ts'
import { PodSandbox } from './network.ts'
import { checkReadiness } from './probe.ts'

export interface PodTemplate {
  readonly metadata?: {
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
  }
  readonly spec: PodSpec
}

export interface PodRequest {
  readonly server: ApiServer
  readonly namespace: string
  readonly name: string
  readonly address: string
  readonly template: PodTemplate
  readonly hosts: Readonly<Record<string, string>>
  /** The program that stands for an image. */
  readonly programOf: (image: string) => string
  /** Additional environment variables for the containers of an image. */
  readonly environmentOf: (image: string) => Readonly<Record<string, string>>
}

export class Pod {
  readonly log = new ContainerLog()
  readonly sandbox: PodSandbox
  isReady = false
  readonly #request: PodRequest
  readonly #folder = mkdtempSync(join(tmpdir(), 'sluice-pod-'))
  readonly #processes: ChildProcess[] = []
  readonly #ends: Promise<unknown>[] = []
  #isStopping = false

  constructor(request: PodRequest) {
    this.#request = request
    this.sandbox = new PodSandbox(request.address)
  }

  get name(): string {
    return this.#request.name
  }

  get labels(): Readonly<Record<string, string>> {
    return this.#request.template.metadata?.labels ?? {}
  }

  get #path(): string {
    return `/api/v1/namespaces/${this.#request.namespace}/pods`
  }

  /** Creates the Pod, starts its containers, and marks it as ready once each of them is. */
  async run(): Promise<void> {
    const { namespace, name, template } = this.#request
    const { metadata, spec } = template
    await this.#create({ metadata: { ...metadata, name, namespace }, spec })
    for (const container of spec.containers) await this.#start(container)
    for (const { readinessProbe: probe } of spec.containers) {
      if (probe !== undefined) {
        await this.#eventually(() => checkReadiness(this.sandbox.address, probe))
      }
    }
    if (!this.#isStopping) await this.#markReady()
  }

  /** Starts the process of a container once the container's volumes are there. */
  async #start(container: Container): Promise<void> {
    const { namespace, name, address, template, programOf, environmentOf } = this.#request
    const facts = { ...this.#request, pod: name, ip: address }
    const folder = join(this.#folder, container.name)
    mkdirSync(folder)
    const prepared = await this.#eventually(() =>
      prepareContainer(facts, template.spec, container, folder),
    )
    if (prepared === undefined) return
    const env = { ...environmentOf(container.image), ...prepared.env }
    const child = await this.sandbox.start(programOf(container.image), prepared.args, env)
    child.stdout?.on('data', (chunk: Buffer) => this.log.add(chunk))
    child.stderr?.on('data', (chunk: Buffer) => this.log.add(chunk))
    this.#processes.push(child)
    this.#ends.push(new Promise((resolve) => child.once('close', resolve)))
    child.once('close', (code, signal) => {
      if (this.#isStopping) return
      console.error(`${namespace}/${name} ended (${code ?? signal})\n${this.tail()}`)
    })
  }

  /** The last lines that it wrote. */
  tail(): string {
    return this.log.since(0).split('\n').slice(-20).join('\n')
  }

  /** Ends the process as a kubelet does, without waiting for open connections, and the object. */
  async stop(): Promise<void> {
    this.#isStopping = true
    this.isReady = false
    await this.#request.server.request('DELETE', `${this.#path}/${this.name}`, {
      gracePeriodSeconds: 0,
    })
    for (const child of this.#processes) child.kill('SIGKILL')
    await Promise.all(this.#ends)
    rmSync(this.#folder, { recursive: true, force: true })
  }

  async #create(pod: { metadata: object; spec: PodSpec }): Promise<void> {
    const spec = { ...pod.spec, nodeName: 'node-1' }
    const object = { apiVersion: 'v1', kind: 'Pod', metadata: pod.metadata, spec }
    const { status, body } = await this.#request.server.request('POST', this.#path, object)
    if (status !== 201) throw new Error(`Pod ${this.name}: ${status} ${body.message}`)
  }

  async #markReady(): Promise<void> {
    const { server, address, template } = this.#request
    const condition = (type: string) => ({ type, status: 'True' })
    const now = new Date().toISOString()
    const status = {
      phase: 'Running',
      podIP: address,
      podIPs: [{ ip: address }],
      hostIP: '10.244.0.1',
      startTime: now,
      conditions: ['PodScheduled', 'Initialized', 'ContainersReady', 'Ready'].map(condition),
      containerStatuses: template.spec.containers.map(({ name, image }) => ({
        name,
        image,
        imageID: image,
        ready: true,
        started: true,
        restartCount: 0,
        state: { running: { startedAt: now } },
      })),
    }
    await server.request('PATCH', `${this.#path}/${this.name}/status`, { status })
    this.isReady = true
  }

  /** Retries until it succeeds; undefined if the pod is stopped first. */
  async #eventually<Value>(attempt: () => Promise<Value>): Promise<Value | undefined> {
    while (!this.#isStopping) {
      try {
        return await attempt()
      } catch {
        await new Promise((next) => setTimeout(next, 100))
      }
    }
    return undefined
  }
}

/** One pod: a process in a network namespace of its own, told to the API server as a kubelet does. */
import type { ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ApiServer } from '../../src/testing/api-server.ts'
import { type PodSpec, prepareContainer } from '../../src/testing/pod-spec.ts'
import { ContainerLog } from './kubelet.ts'
import { PodSandbox } from './network.ts'

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
}

export class Pod {
  readonly log = new ContainerLog()
  readonly sandbox: PodSandbox
  isReady = false
  readonly #request: PodRequest
  readonly #folder = mkdtempSync(join(tmpdir(), 'sluice-pod-'))
  #process: ChildProcess | undefined
  #ended: Promise<unknown> = Promise.resolve()
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

  /** Creates the Pod, starts its process once its volumes are there, and tells when it is ready. */
  async run(): Promise<void> {
    const { server, namespace, name, address, template, programOf } = this.#request
    const { metadata, spec } = template
    const [container] = spec.containers
    if (container === undefined) throw new Error(`${name} has no container`)
    await this.#create({ metadata: { ...metadata, name, namespace }, spec })
    const facts = { ...this.#request, server, pod: name, ip: address }
    const prepared = await this.#eventually(() =>
      prepareContainer(facts, spec, container, this.#folder),
    )
    if (prepared === undefined) return
    const program = programOf(container.image)
    const child = await this.sandbox.start(program, prepared.args, prepared.env)
    child.stdout?.on('data', (chunk: Buffer) => this.log.add(chunk))
    child.stderr?.on('data', (chunk: Buffer) => this.log.add(chunk))
    this.#process = child
    this.#ended = new Promise((resolve) => child.once('close', resolve))
    child.once('close', (code, signal) => {
      if (this.#isStopping) return
      console.error(`${namespace}/${name} ended (${code ?? signal})\n${this.tail()}`)
    })
    const probe = container.readinessProbe?.httpGet
    if (probe !== undefined) {
      const url = `http://${address}:${probe.port}${probe.path}`
      await this.#eventually(async () => {
        if (!(await fetch(url)).ok) throw new Error('not ready')
        return true
      })
    }
    if (!this.#isStopping) await this.#tellReady()
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
    this.#process?.kill('SIGKILL')
    await this.#ended
    rmSync(this.#folder, { recursive: true, force: true })
  }

  async #create(pod: { metadata: object; spec: PodSpec }): Promise<void> {
    const spec = { ...pod.spec, nodeName: 'node-1' }
    const object = { apiVersion: 'v1', kind: 'Pod', metadata: pod.metadata, spec }
    const { status, body } = await this.#request.server.request('POST', this.#path, object)
    if (status !== 201) throw new Error(`Pod ${this.name}: ${status} ${body.message}`)
  }

  async #tellReady(): Promise<void> {
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

  /** Tries until it works; undefined where the pod is stopped first. */
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

/**
 * A pod as the kubelet would start it, as a process: the container of a Deployment with its
 * arguments, its environment (downward API and `$(NAME)` included) and its volumes (ConfigMaps,
 * projected tokens, empty folders), which lie in a folder of its own.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { ApiServer } from './api-server.ts'
import { waitFor } from './wait-for.ts'

const launcher = join(import.meta.dirname, '..', '..', 'bin', 'sluice')

interface EnvVar {
  readonly name: string
  readonly value?: string
  readonly valueFrom?: {
    readonly fieldRef?: { readonly fieldPath: string }
    readonly resourceFieldRef?: object
  }
}

interface Volume {
  readonly name: string
  readonly configMap?: { readonly name: string; readonly optional?: boolean }
  readonly projected?: {
    readonly sources: readonly {
      readonly serviceAccountToken?: { readonly audience: string; readonly path: string }
    }[]
  }
}

interface Container {
  readonly name: string
  readonly args: readonly string[]
  readonly env: readonly EnvVar[]
  readonly readinessProbe: { readonly httpGet: { readonly path: string; readonly port: number } }
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[]
}

export interface PodOptions {
  readonly server: ApiServer
  readonly namespace: string
  /** Name of the Deployment that the pod is of. */
  readonly deployment: string
  readonly pod: string
  /** The address of the pod. */
  readonly ip: string
  /** What a name in the environment stands for, in place of a DNS server and a Service. */
  readonly hosts: Readonly<Record<string, string>>
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
    const { spec } = body.spec.template as {
      spec: { serviceAccountName: string; containers: Container[]; volumes: Volume[] }
    }
    const container = spec.containers.find(({ name }) => name === 'proxy')
    if (container === undefined) throw new Error('no container is called proxy')
    const mounts = new Map(container.volumeMounts.map(({ name, mountPath }) => [name, mountPath]))
    for (const volume of spec.volumes) {
      const mountPath = mounts.get(volume.name)
      if (mountPath === undefined) continue
      await this.#fill(volume, join(this.folder, mountPath), spec.serviceAccountName)
    }
    const located = (text: string) => this.#located(text, [...mounts.values()])
    this.args = container.args.map(located)
    this.env = this.#environment(container.env, spec.serviceAccountName, located)
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

  /** What a text says of mounted folders, of the folder that stands for them here. */
  #located(text: string, mountPaths: readonly string[]): string {
    const path = mountPaths.find((one) => text === one || text.startsWith(`${one}/`))
    return path === undefined ? text : join(this.folder, text)
  }

  #environment(
    variables: readonly EnvVar[],
    account: string,
    located: (text: string) => string,
  ): Record<string, string> {
    const { pod, namespace, ip, hosts } = this.#options
    const fields: Readonly<Record<string, string>> = {
      'metadata.name': pod,
      'metadata.namespace': namespace,
      'spec.nodeName': 'node-1',
      'status.podIP': ip,
      'spec.serviceAccountName': account,
    }
    const env: Record<string, string> = {}
    for (const { name, value = '', valueFrom } of variables) {
      const field = valueFrom?.fieldRef?.fieldPath
      const expanded = value.replaceAll(/\$\$|\$\(([^)]+)\)/g, (all, other?: string) =>
        other === undefined ? '$' : (env[other] ?? all),
      )
      const text = field === undefined ? expanded : (fields[field] ?? '')
      env[name] = hosts[text] ?? located(text)
    }
    return env
  }

  async #fill(volume: Volume, folder: string, account: string): Promise<void> {
    const { server, namespace } = this.#options
    mkdirSync(folder, { recursive: true })
    if (volume.configMap !== undefined) {
      const path = `/api/v1/namespaces/${namespace}/configmaps/${volume.configMap.name}`
      const { body, status } = await server.request('GET', path)
      if (status === 404 && volume.configMap.optional) return
      write(folder, body.data)
    }
    for (const { serviceAccountToken: token } of volume.projected?.sources ?? []) {
      if (token === undefined) continue
      const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`
      const spec = { audiences: [token.audience] }
      const { body } = await server.request('POST', path, { spec })
      write(folder, { [token.path]: body.status.token })
    }
  }
}

function write(folder: string, files: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(files)) {
    const path = join(folder, name)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text)
  }
}

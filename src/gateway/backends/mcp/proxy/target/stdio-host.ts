/** The connection of one thread to the process that runs commands: its endpoint, its token and what it knows. */
import { hash } from 'node:crypto'
import { request } from '../../../../../ground/base/node-http.ts'
import { readFileBytes } from '../../../../../ground/base/read-whole-file.ts'
import type { GatewayRuntime, StdioHostSettings } from '../../../../proxy/request/runtime.ts'
import type { EndpointSet } from '../../../../proxy/upstream/endpoint.ts'
import { plainAddress, UpstreamEndpoint } from '../../../../proxy/upstream/endpoint.ts'
import {
  definitionPath,
  type StdioServer,
  type StdioTarget,
  serverPath,
  stdioHeaders,
} from '../../stdio/settings.ts'
import { TargetFailure } from './target-failure.ts'
import { type McpTargetEntry, TargetMemory } from './targets.ts'

const maxTokenBytes = 4_096
/** How long the process may take to accept a definition. */
const defineMs = 5_000

/** The definition of a target, as the process gets it. */
export interface StdioDefinition {
  readonly id: string
  readonly path: string
  readonly text: string
  /** Whether the process knows it. */
  isKnown: boolean
  /** The request that tells the process. */
  sending: Promise<void> | undefined
}

export class StdioHostClient {
  readonly #settings: StdioHostSettings
  readonly #runtime: Pick<GatewayRuntime, 'config'>
  readonly endpoints: EndpointSet
  /** The value of the Host header. */
  readonly authority: string
  readonly #definitions = new TargetMemory<{ definition?: StdioDefinition }>(() => ({}))
  /** Definitions that this thread has sent, by their ids. */
  #sent = new Map<string, StdioDefinition>()
  #token: string | undefined

  constructor(settings: StdioHostSettings, runtime: Pick<GatewayRuntime, 'config'>) {
    this.#settings = settings
    this.#runtime = runtime
    this.authority = settings.address
    const { host, port } = partsOf(settings.address)
    const all = [new UpstreamEndpoint(plainAddress(host, port))]
    this.endpoints = { preferred: all, all }
  }

  /** Returns why the process does not run commands of backends in this namespace. */
  refusal(namespace: string): string | undefined {
    const { namespace: own } = this.#settings
    if (own === undefined || own === namespace) return undefined
    return 'commands run only for backends in the namespace of the Gateway (spec.stdio.namespaces of GatewayParameters)'
  }

  get token(): string {
    const { token } = this.#settings
    if ('value' in token) return token.value
    this.#token ??= readToken(token.file)
    return this.#token
  }

  /** Called if the process does not know the token or the definition, because it has started again. */
  forget(definition: StdioDefinition): void {
    this.#token = undefined
    definition.isKnown = false
  }

  /** Returns the definition of a target. `backend` is `namespace/name`. */
  definitionOf(entry: McpTargetEntry, backend: string): StdioDefinition {
    const kept = this.#definitions.of(entry)
    kept.definition ??= this.#make(entry, backend)
    return kept.definition
  }

  #make({ target }: McpTargetEntry, backend: string): StdioDefinition {
    const { env, ...settings } = JSON.parse(target.stdio ?? '{}') as StdioTarget
    const values = env.map((variable) => {
      if ('value' in variable) return [variable.name, variable.value]
      const value = this.#runtime.config.secret(variable.secret)
      if (value === undefined)
        throw new TargetFailure('the gateway does not have the value of a Secret yet')
      return [variable.name, Buffer.from(value).toString()]
    })
    const label = `${backend}/${target.name}`
    const server: StdioServer = { ...settings, label, env: Object.fromEntries(values) }
    const text = JSON.stringify(server)
    const id = hash('sha256', text, 'hex')
    return { id, path: serverPath(id), text, isKnown: false, sending: undefined }
  }

  /** Resolves when the process knows the definition. Rejects with a TargetFailure. */
  define(definition: StdioDefinition): Promise<void> {
    this.#sent.set(definition.id, definition)
    definition.sending ??= this.#ask('PUT', definitionPath(definition.id), definition.text)
      .then(() => {
        definition.isKnown = true
      })
      .finally(() => {
        definition.sending = undefined
      })
    return definition.sending
  }

  /** Ends servers that no target has any more. */
  keepOnly(entries: readonly McpTargetEntry[]): void {
    if (this.#sent.size === 0) return
    const kept = new Map<string, StdioDefinition>()
    for (const entry of entries) {
      const { definition } = this.#definitions.of(entry)
      if (definition !== undefined) kept.set(definition.id, definition)
    }
    for (const { id } of this.#sent.values()) {
      if (!kept.has(id)) this.#ask('DELETE', definitionPath(id), '').catch(() => {})
    }
    this.#sent = new Map([...this.#sent].filter(([id]) => kept.has(id)))
  }

  #ask(method: string, path: string, body: string): Promise<void> {
    const { host, port } = partsOf(this.#settings.address)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const fail = (why: string) => reject(new TargetFailure(`commands cannot be run: ${why}`))
    try {
      const headers = {
        [stdioHeaders.token]: this.token,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
      }
      const asked = request(
        { host, port, method, path, headers, timeout: defineMs },
        (response) => {
          response.resume()
          const { statusCode = 0 } = response
          if (statusCode < 300) resolve()
          else fail(`sluice stdio responded with ${statusCode}`)
        },
      )
      asked.on('error', (error) => fail(error.message))
      asked.on('timeout', () => asked.destroy(new Error('sluice stdio does not respond')))
      asked.end(body)
    } catch (error) {
      fail(error instanceof Error ? error.message : String(error))
    }
    return promise
  }
}

function partsOf(address: string): { readonly host: string; readonly port: number } {
  const colon = address.lastIndexOf(':')
  const host = address.slice(0, colon).replace(/^\[|\]$/g, '')
  return { host: host === 'localhost' ? '127.0.0.1' : host, port: Number(address.slice(colon + 1)) }
}

const readToken = (file: string): string =>
  Buffer.from(readFileBytes(file, maxTokenBytes)).toString().trim()

/** The manifests that `sluice mcp` keeps: a gateway, and one backend whose targets are the added servers. */
import { existsSync } from 'node:fs'
import { type Document, isMap, isSeq, parseAllDocuments, type YAMLSeq } from 'yaml'
import { readWholeFile } from '../../../ground/base/read-whole-file.ts'
import { writeYaml } from '../import/write-yaml.ts'
import {
  backendOf,
  credential,
  gatewayOn,
  keyObjects,
  routeTo,
  staticOf,
  writePrivate,
} from '../local/gateway.ts'
import { UsageError } from '../shared/output.ts'
import type { AddedServer } from './server.ts'

/** The name of the Gateway, its route and its backend. */
const gateway = 'mcp'

const targetsPath = ['spec', 'mcp', 'targets']

interface ListedServer {
  readonly name: string
  /** Its URL or its command. */
  readonly url: string
}

/** A file with manifests. Comments and other objects in it stay when servers are added. */
export class ServerFile {
  readonly path: string
  readonly #documents: Document[]

  private constructor(path: string, documents: Document[]) {
    this.path = path
    this.#documents = documents
  }

  /** Reads a file; undefined if it does not exist. @throws UsageError if it is not such a file */
  static read(path: string): ServerFile | undefined {
    if (!existsSync(path)) return undefined
    const found = parseAllDocuments(textOf(path))
    const documents = Array.isArray(found) ? found : []
    const [problem] = documents.flatMap(({ errors }) => errors)
    if (problem !== undefined) throw new UsageError(`${path}: not YAML: ${problem.message}`)
    const file = new ServerFile(path, documents)
    file.#targets()
    return file
  }

  /** Manifests without any server. */
  static create(path: string, port: number, keyHash: string | undefined): ServerFile {
    const objects = [
      gatewayOn(gateway, port),
      routeTo(gateway, gateway, '/mcp'),
      backendOf(gateway, { mcp: { targets: [] } }),
      ...(keyHash === undefined ? [] : keyObjects(gateway, keyHash)),
    ]
    const text = objects.map(writeYaml).join('---\n')
    return new ServerFile(path, parseAllDocuments(text) as Document[])
  }

  /** The port of the Gateway. */
  get port(): unknown {
    const found = this.#documents.find((document) => document.get('kind') === 'Gateway')
    return found?.getIn(['spec', 'listeners', 0, 'port'])
  }

  servers(): ListedServer[] {
    return this.#targets().items.flatMap((item) => {
      if (!isMap(item)) return []
      const {
        name = '',
        static: at,
        stdio,
      } = item.toJSON() as {
        name?: string
        stdio?: { command: readonly string[] }
        static?: { host: string; port: number; path?: string; policies?: { tls?: object } }
      }
      if (stdio !== undefined) return [{ name, url: stdio.command.join(' ') }]
      if (at === undefined) return [{ name, url: 'Services that a selector selects' }]
      const scheme = at.policies?.tls === undefined ? 'http' : 'https'
      const host = at.host.includes(':') ? `[${at.host}]` : at.host
      return [{ name, url: `${scheme}://${host}:${at.port}${at.path ?? '/mcp'}` }]
    })
  }

  /** @throws UsageError if there is a server of this name */
  add(server: AddedServer): void {
    const { name } = server
    const authorization = 'url' in server ? server.authorization : undefined
    if (this.servers().some((one) => one.name === name)) {
      throw new UsageError(
        `${name} exists already in ${this.path}; remove it first: sluice mcp remove ${name}`,
      )
    }
    const backend = this.#backend()
    backend.addIn(targetsPath, backend.createNode(targetOf(server)))
    this.#targets().flow = false
    if (authorization === undefined) return
    const [secret] = parseAllDocuments(writeYaml(credential(secretName(name), authorization)))
    if (secret !== undefined) this.#documents.push(secret as Document)
  }

  /** @throws UsageError if there is no server of this name, or no other one */
  remove(name: string): void {
    const servers = this.servers()
    const index = servers.findIndex((one) => one.name === name)
    if (index === -1) {
      const names = servers.map((one) => one.name).join(', ')
      throw new UsageError(`${name} is not in ${this.path}, which has ${names}`)
    }
    if (servers.length === 1) {
      throw new UsageError(`${name} is the only server; delete ${this.path} to start again`)
    }
    this.#backend().deleteIn([...targetsPath, index])
    const secret = this.#documents.findIndex(
      (document) =>
        document.get('kind') === 'Secret' &&
        document.getIn(['metadata', 'name']) === secretName(name),
    )
    if (secret !== -1) this.#documents.splice(secret, 1)
  }

  text(): string {
    return this.#documents
      .map((document) => document.toString({ lineWidth: 0, directives: false }))
      .join('---\n')
  }

  write(): void {
    writePrivate(this.path, this.text())
  }

  #backend(): Document {
    const found = this.#documents.find(
      (document) =>
        document.get('kind') === 'GatewayBackend' &&
        document.getIn(['metadata', 'name']) === gateway,
    )
    if (found !== undefined) return found
    throw new UsageError(`${this.path} has no GatewayBackend ${gateway}`)
  }

  #targets(): YAMLSeq {
    const targets = this.#backend().getIn(targetsPath)
    if (isSeq(targets)) return targets
    throw new UsageError(`${this.path}: GatewayBackend ${gateway} has no ${targetsPath.join('.')}`)
  }
}

function textOf(path: string): string {
  try {
    return readWholeFile(path)
  } catch (error) {
    throw new UsageError(`${path}: ${error instanceof Error ? error.message : error}`)
  }
}

const secretName = (server: string) => `mcp-${server}`

function targetOf(server: AddedServer): object {
  if ('command' in server) return { name: server.name, stdio: { command: server.command } }
  const { name, url, protocol, authorization } = server
  const secretRef = { name: secretName(name) }
  const at = staticOf(url, authorization === undefined ? {} : { auth: { secretRef } })
  return { name, static: { ...at, path: url.pathname, ...(protocol === 'SSE' && { protocol }) } }
}

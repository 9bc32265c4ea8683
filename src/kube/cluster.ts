/** Which API server, and as whom: the part that kubeconfig files and service accounts define. */
import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { Agent, type RequestOptions } from 'node:https'
import { KubeConfig } from '@kubernetes/client-node'
import { Agent as HttpAgent } from '../base/node-http.ts'

/** What a request needs beside method, path and body. */
interface Credentials {
  readonly agent: Agent | HttpAgent
  readonly headers: Readonly<Record<string, string>>
  /** `user:password` of basic authentication. */
  readonly auth?: string
}

export interface Cluster {
  readonly server: URL
  /** Namespace of the context or of the pod; undefined where neither names one. */
  readonly namespace: string | undefined
  /** `isFresh`: read tokens and certificates again, since the last ones were refused. */
  credentials(isFresh?: boolean): Promise<Credentials>
  close(): void
}

/** There is no usable configuration; the message says what to do. */
export class ClusterConfigError extends Error {}

const serviceAccountToken = '/var/run/secrets/kubernetes.io/serviceaccount/token'

/** Bound service-account tokens are written anew well before they end. */
const reuseMs = 30_000

/**
 * The cluster of a kubeconfig file; without one the cluster that this pod runs in, else what the
 * variable KUBECONFIG names.
 * @throws ClusterConfigError
 */
export function openCluster(kubeconfig?: string): Cluster {
  const config = loadConfig(kubeconfig)
  const current = config.getCurrentCluster()
  if (current === null) {
    throw new ClusterConfigError('the kubeconfig has no current context with a cluster')
  }
  const server = new URL(current.server.endsWith('/') ? current.server : `${current.server}/`)
  const namespace = config.getContextObject(config.getCurrentContext())?.namespace
  return new ConfiguredCluster(config, server, namespace)
}

function loadConfig(kubeconfig: string | undefined): KubeConfig {
  const config = new KubeConfig()
  try {
    if (kubeconfig !== undefined) config.loadFromFile(kubeconfig)
    else if (process.env.KUBERNETES_SERVICE_HOST && existsSync(serviceAccountToken)) {
      config.loadFromCluster()
    } else if (process.env.KUBECONFIG) config.loadFromDefault()
    else throw new ClusterConfigError('this process is in no cluster: give --kubeconfig')
  } catch (cause) {
    if (cause instanceof ClusterConfigError) throw cause
    const reason = cause instanceof Error ? cause.message : String(cause)
    const place =
      kubeconfig === undefined ? 'the cluster configuration' : `--kubeconfig: ${kubeconfig}`
    throw new ClusterConfigError(`${place} cannot be read: ${reason}`, { cause })
  }
  return config
}

class ConfiguredCluster implements Cluster {
  readonly server: URL
  readonly namespace: string | undefined
  readonly #config: KubeConfig
  #known: { readonly credentials: Credentials; readonly readAt: number } | undefined
  /** One agent for each set of certificates, so that connections are used again. */
  readonly #agents = new Map<string, Agent | HttpAgent>()

  constructor(config: KubeConfig, server: URL, namespace: string | undefined) {
    this.#config = config
    this.server = server
    this.namespace = namespace
  }

  async credentials(isFresh = false): Promise<Credentials> {
    const known = this.#known
    const now = performance.now()
    if (!isFresh && known !== undefined && now - known.readAt < reuseMs) return known.credentials
    const options: RequestOptions = { headers: {} }
    await this.#config.applyToHTTPSOptions(options)
    const token = this.#fileToken()
    if (token !== undefined)
      options.headers = { ...options.headers, Authorization: `Bearer ${token}` }
    const credentials: Credentials = {
      agent: this.#agentFor(options),
      headers: options.headers as Record<string, string>,
      ...(typeof options.auth === 'string' && { auth: options.auth }),
    }
    this.#known = { credentials, readAt: now }
    return credentials
  }

  /** The library keeps a token from a file for a minute, also where it was refused meanwhile. */
  #fileToken(): string | undefined {
    const { config } = this.#config.getCurrentUser()?.authProvider ?? {}
    const path: unknown = (config as { tokenFile?: unknown } | undefined)?.tokenFile
    return typeof path === 'string' ? readFileSync(path, 'utf8').trim() : undefined
  }

  close(): void {
    for (const agent of this.#agents.values()) agent.destroy()
    this.#agents.clear()
  }

  #agentFor(options: RequestOptions): Agent | HttpAgent {
    // The library's own agent knows how to go through a proxy; otherwise one that keeps connections.
    if (this.#config.getCurrentCluster()?.proxyUrl) return options.agent as Agent
    const { ca, cert, key, pfx, passphrase, servername, rejectUnauthorized } = options
    const tls = { ca, cert, key, pfx, passphrase, servername, rejectUnauthorized }
    const text = Object.values(tls).map((part) => (part === undefined ? '' : String(part)))
    const id = createHash('sha256').update(text.join('\0')).digest('hex')
    const known = this.#agents.get(id)
    if (known !== undefined) return known
    const given = Object.fromEntries(Object.entries(tls).filter(([, part]) => part !== undefined))
    const kept = { keepAlive: true, maxFreeSockets: 16, scheduling: 'lifo' as const }
    const agent =
      this.server.protocol === 'http:' ? new HttpAgent(kept) : new Agent({ ...kept, ...given })
    this.#agents.set(id, agent)
    return agent
  }
}

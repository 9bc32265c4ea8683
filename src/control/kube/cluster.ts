/** Address and credentials of an API server, from a kubeconfig file or a service account. */
import { hash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { Agent, type RequestOptions } from 'node:https'
import { KubeConfig } from '@kubernetes/client-node'
import { Agent as HttpAgent } from '../../ground/base/node-http.ts'

/** Credentials of a request. */
interface Credentials {
  readonly agent: Agent | HttpAgent
  readonly headers: Readonly<Record<string, string>>
  /** `user:password` of basic authentication. */
  readonly auth?: string
}

/** Thrown if there is no usable configuration; the message tells users what to do. */
export class ClusterConfigError extends Error {}

const serviceAccountToken = '/var/run/secrets/kubernetes.io/serviceaccount/token'

/** How long credentials are reused: service-account tokens are renewed well before they expire. */
const reuseMs = 30_000

/**
 * Opens the cluster of a kubeconfig file. If it is omitted, opens the cluster of this pod, or outside
 * of a pod the cluster of the variable KUBECONFIG.
 * @throws ClusterConfigError
 */
export function openCluster(kubeconfig?: string): KubernetesCluster {
  const config = loadConfig(kubeconfig)
  const current = config.getCurrentCluster()
  if (current === null) {
    throw new ClusterConfigError('the kubeconfig has no current context with a cluster')
  }
  const server = new URL(current.server.endsWith('/') ? current.server : `${current.server}/`)
  const namespace = config.getContextObject(config.getCurrentContext())?.namespace
  return new KubernetesCluster(config, server, namespace)
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

export class KubernetesCluster {
  readonly server: URL
  /** Namespace of the kubeconfig's context or of the pod; undefined if neither has one. */
  readonly namespace: string | undefined
  readonly #config: KubeConfig
  #known: { readonly credentials: Credentials; readonly readAt: number } | undefined
  /** One agent for each set of certificates, so that connections are reused. */
  readonly #agents = new Map<string, Agent | HttpAgent>()

  constructor(config: KubeConfig, server: URL, namespace: string | undefined) {
    this.#config = config
    this.server = server
    this.namespace = namespace
  }

  /** With `isFresh`, reads tokens and certificates again, since the server refused the last ones. */
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

  /** Reads the token file here, since the library caches a token for a minute even if it was refused. */
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
    // The library's agent supports proxies; without a proxy, our own agent keeps connections alive.
    if (this.#config.getCurrentCluster()?.proxyUrl) return options.agent as Agent
    const { ca, cert, key, pfx, passphrase, servername, rejectUnauthorized } = options
    const tls = { ca, cert, key, pfx, passphrase, servername, rejectUnauthorized }
    const text = Object.values(tls).map((part) => (part === undefined ? '' : String(part)))
    const id = hash('sha256', text.join('\0'))
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

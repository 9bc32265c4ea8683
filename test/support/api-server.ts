/**
 * A real Kubernetes API server with its own etcd, on free loopback ports and in a temporary folder.
 * There is no controller manager: nothing finishes namespaces or collects garbage, and nothing
 * schedules Pods; everything that the API server itself does (schemas, CEL rules, admission,
 * versions, watches, tokens, RBAC) is real.
 */
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, request as httpsRequest } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { freePort } from './free-port.ts'
import { partPath } from './parts.ts'
import { type Program, startProgram } from './program.ts'

/** The parts that `startApiServer` needs; for `describeWithParts`. */
export const apiServerParts = ['etcd', 'kube-apiserver'] as const

/** An answer of the API server; `body` is the parsed JSON, or the text of a body that is not JSON. */
export interface ApiAnswer {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: objects of every kind, looked into by tests
  readonly body: any
  /** The header `warning`, such as of webhooks; empty if there is none. */
  readonly warning: string
}

export interface ApiServer {
  /** https://ADDRESS:PORT */
  readonly url: string
  /** Bearer token of a member of system:masters. */
  readonly token: string
  /** The certificate that the server presents, PEM. */
  readonly ca: string
  /** Path of a kubeconfig file for the same user. */
  readonly kubeconfig: string
  /** One JSON object (audit.k8s.io/v1 Event) a line for each write of an object of a custom kind. */
  readonly auditLog: string
  /**
   * Sends one request as that user. An object body is sent as JSON (a PATCH as JSON merge patch
   * unless `contentType` says otherwise). Answers of any status resolve; only I/O rejects.
   */
  readonly request: (
    method: string,
    path: string,
    body?: unknown,
    contentType?: string,
  ) => Promise<ApiAnswer>
  /** SIGKILL of the API server; etcd keeps its data. */
  readonly kill: () => Promise<void>
  /** Starts a killed API server again on its port; resolves when it is ready. */
  readonly restart: () => Promise<void>
  /** Ends both programs and removes the folder. */
  readonly stop: () => Promise<void>
}

export interface ApiServerOptions {
  /** Write `auditLog`. */
  readonly isAudited?: boolean
  /** The address that the server binds and that its certificate names. Default 127.0.0.1. */
  readonly address?: string
  /** The client certificate (PEM) that the server presents to admission webhooks. */
  readonly webhookClient?: { readonly certificate: string; readonly key: string }
}

const startAttempts = 3
const readyWithinMs = 120_000

/**
 * Starts etcd and kube-apiserver and waits until the server is ready.
 * @throws when a part is absent, or with the last lines of the log when a program ends early
 */
export async function startApiServer(options: ApiServerOptions = {}): Promise<ApiServer> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await startOnce(options)
    } catch (cause) {
      // Neither program can bind port 0, so another process may take a port between choice and bind.
      if (attempt === startAttempts || !/address already in use/.test(String(cause))) throw cause
    }
  }
}

async function startOnce({
  isAudited = false,
  address = '127.0.0.1',
  webhookClient,
}: ApiServerOptions): Promise<ApiServer> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-api-server-'))
  const programs: Program[] = []
  const stop = async () => {
    await Promise.all(programs.map((program) => program.stop()))
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    const [etcdPort, port] = [await freePort(), await freePort()]
    const url = `https://${address}:${port}`
    const token = randomBytes(24).toString('hex')
    writeKeys(folder, token)
    programs.push(startEtcd(folder, etcdPort))
    const more = [
      ...(isAudited ? auditOptions(folder) : []),
      ...(webhookClient ? webhookOptions(folder, webhookClient) : []),
    ]
    const start = (): Promise<string> => {
      programs[1] = startKubeApiServer(folder, etcdPort, new URL(url), more)
      return whenReady(join(folder, 'apiserver.crt'), programs, (certificate) =>
        send({ url, token, ca: certificate }, 'GET', '/readyz'),
      )
    }
    const ca = await start()
    const kubeconfig = writeKubeconfig(folder, url, token, ca)
    const agent = new Agent({ keepAlive: true, ca })
    return {
      auditLog: auditLogIn(folder),
      url,
      token,
      ca,
      kubeconfig,
      request: (method, path, body, contentType) =>
        send({ url, token, ca, agent }, method, path, body, contentType),
      kill: async () => programs[1]?.stop(),
      restart: async () => void (await start()),
      stop: async () => {
        agent.destroy()
        await stop()
      },
    }
  } catch (cause) {
    await stop()
    throw cause
  }
}

function writeKeys(folder: string, token: string): void {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const secret = { mode: 0o600 }
  writeFileSync(
    join(folder, 'accounts.key'),
    privateKey.export({ type: 'pkcs8', format: 'pem' }),
    secret,
  )
  writeFileSync(join(folder, 'accounts.pub'), publicKey.export({ type: 'spki', format: 'pem' }))
  writeFileSync(join(folder, 'tokens.csv'), `${token},test,test,"system:masters"\n`, secret)
}

function startEtcd(folder: string, port: number): Program {
  const url = `http://127.0.0.1:${port}`
  return startProgram(
    partPath('etcd'),
    [
      `--data-dir=${join(folder, 'etcd')}`,
      `--listen-client-urls=${url}`,
      `--advertise-client-urls=${url}`,
      '--listen-peer-urls=http://127.0.0.1:0',
      '--unsafe-no-fsync',
      '--log-level=warn',
    ],
    join(folder, 'etcd.log'),
  )
}

const auditLogIn = (folder: string) => join(folder, 'audit.log')

/** The audit policy: which client wrote which version; more would slow the server down. */
function auditOptions(folder: string): string[] {
  const file = join(folder, 'audit-policy.json')
  const verbs = ['create', 'update', 'patch', 'delete']
  const written = ['gateway.networking.k8s.io', 'sluice.dev'].map((group) => ({
    level: 'RequestResponse',
    verbs,
    resources: [{ group }],
  }))
  const policy = {
    apiVersion: 'audit.k8s.io/v1',
    kind: 'Policy',
    omitStages: ['RequestReceived'],
    omitManagedFields: true,
    rules: [...written, { level: 'None' }],
  }
  writeFileSync(file, JSON.stringify(policy))
  return [`--audit-policy-file=${file}`, `--audit-log-path=${auditLogIn(folder)}`]
}

/** Options with which the server presents a client certificate to every webhook. */
function webhookOptions(
  folder: string,
  { certificate, key }: NonNullable<ApiServerOptions['webhookClient']>,
): string[] {
  const [kubeconfig, file] = [join(folder, 'webhooks.json'), join(folder, 'admission.json')]
  const base64 = (text: string) => Buffer.from(text).toString('base64')
  const user = { 'client-certificate-data': base64(certificate), 'client-key-data': base64(key) }
  const users = [{ name: '*', user }]
  writeFileSync(kubeconfig, JSON.stringify({ apiVersion: 'v1', kind: 'Config', users }), {
    mode: 0o600,
  })
  const configuration = {
    apiVersion: 'apiserver.config.k8s.io/v1',
    kind: 'WebhookAdmissionConfiguration',
    kubeConfigFile: kubeconfig,
  }
  const plugins = [{ name: 'ValidatingAdmissionWebhook', configuration }]
  const admission = {
    apiVersion: 'apiserver.config.k8s.io/v1',
    kind: 'AdmissionConfiguration',
    plugins,
  }
  writeFileSync(file, JSON.stringify(admission))
  return [`--admission-control-config-file=${file}`]
}

function startKubeApiServer(
  folder: string,
  etcdPort: number,
  { hostname, port }: URL,
  more: readonly string[],
): Program {
  return startProgram(
    partPath('kube-apiserver'),
    [
      `--etcd-servers=http://127.0.0.1:${etcdPort}`,
      `--bind-address=${hostname}`,
      `--secure-port=${port}`,
      // No certificate is given: the server makes one for its address and writes it here.
      `--cert-dir=${folder}`,
      `--token-auth-file=${join(folder, 'tokens.csv')}`,
      '--authorization-mode=RBAC',
      '--service-account-issuer=https://kubernetes.default.svc',
      `--service-account-key-file=${join(folder, 'accounts.pub')}`,
      `--service-account-signing-key-file=${join(folder, 'accounts.key')}`,
      '--service-cluster-ip-range=10.96.0.0/24',
      '--endpoint-reconciler-type=none',
      // Without a controller manager no ServiceAccount exists that a Pod could be given.
      '--disable-admission-plugins=ServiceAccount',
      '--allow-privileged=true',
      ...more,
    ],
    join(folder, 'kube-apiserver.log'),
  )
}

/** Polls until `ask` answers 200; resolves with the certificate that the server wrote. */
async function whenReady(
  certificateFile: string,
  programs: readonly Program[],
  ask: (certificate: string) => Promise<ApiAnswer>,
): Promise<string> {
  const deadline = performance.now() + readyWithinMs
  for (;;) {
    let last: unknown
    try {
      const certificate = readFileSync(certificateFile, 'utf8')
      const answer = await ask(certificate)
      if (answer.status === 200) return certificate
      last = answer.body
    } catch (cause) {
      last = cause
    }
    const ended = programs.find((program) => program.hasExited())
    if (ended !== undefined) throw new Error(`the API server ended early:\n${ended.lastLines()}`)
    if (performance.now() > deadline) {
      const lines = programs.map((program) => program.lastLines()).join('\n')
      throw new Error(`the API server is not ready: ${String(last)}\n${lines}`)
    }
    await pause(50)
  }
}

function writeKubeconfig(folder: string, url: string, token: string, ca: string): string {
  const file = join(folder, 'kubeconfig')
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'test',
    clusters: [
      {
        name: 'test',
        cluster: { server: url, 'certificate-authority-data': Buffer.from(ca).toString('base64') },
      },
    ],
    users: [{ name: 'test', user: { token } }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
  }
  // JSON is YAML.
  writeFileSync(file, JSON.stringify(config, null, 2), { mode: 0o600 })
  return file
}

interface Access {
  readonly url: string
  readonly token: string
  readonly ca: string
  readonly agent?: Agent
}

function send(
  access: Access,
  method: string,
  path: string,
  body?: unknown,
  contentType = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json',
): Promise<ApiAnswer> {
  const payload = body === undefined ? undefined : JSON.stringify(body)
  const headers = {
    authorization: `Bearer ${access.token}`,
    accept: 'application/json',
    ...(payload === undefined
      ? {}
      : { 'content-type': contentType, 'content-length': Buffer.byteLength(payload) }),
  }
  const { ca, agent } = access
  return new Promise((resolve, reject) => {
    const outgoing = httpsRequest(
      new URL(path, access.url),
      { method, headers, ca, ...(agent && { agent }) },
      (incoming) => {
        const chunks: Buffer[] = []
        incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
        incoming.once('error', reject)
        incoming.once('end', () => {
          const text = Buffer.concat(chunks).toString()
          const isJson = (incoming.headers['content-type'] ?? '').includes('json')
          const { warning = '' } = incoming.headers
          const body = isJson ? JSON.parse(text) : text
          resolve({ status: incoming.statusCode ?? 0, body, warning: `${warning}` })
        })
      },
    )
    outgoing.once('error', reject)
    outgoing.end(payload)
  })
}

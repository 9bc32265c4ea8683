/** What the commands share that write the manifests of a gateway on this machine. */
import { renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { bareHost } from '../../../ground/base/bare-host.ts'
import { makeFolder } from '../../../ground/base/make-folder.ts'
import { defaultClassName, gatewayGroup, ownGroup } from '../../../ground/model/api-names.ts'
import { hashOf, newKey } from '../keys/keys.ts'
import { UsageError } from '../shared/output.ts'

/** Settings of a gateway beside others on this machine: its addresses for operators take any free ports. */
export const besideOthers = {
  bindAddress: '127.0.0.1',
  adminAddress: 'off',
  statsAddress: '127.0.0.1:0',
  readinessAddress: '127.0.0.1:0',
  consoleAddress: '127.0.0.1:0',
} as const

export const ownApi = `${ownGroup}/v1alpha1`

/** A Gateway that listens on one port. */
export const gatewayOn = (name: string, port: number): object => ({
  apiVersion: `${gatewayGroup}/v1`,
  kind: 'Gateway',
  metadata: { name },
  spec: {
    gatewayClassName: defaultClassName,
    listeners: [{ name: 'http', port, protocol: 'HTTP' }],
  },
})

/** A route to a backend from all paths of a Gateway below one. */
export const routeTo = (gateway: string, backend: string, path: string): object => ({
  apiVersion: `${gatewayGroup}/v1`,
  kind: 'HTTPRoute',
  metadata: { name: backend },
  spec: {
    parentRefs: [{ name: gateway }],
    rules: [
      {
        matches: [{ path: { type: 'PathPrefix', value: path } }],
        backendRefs: [{ group: ownGroup, kind: 'GatewayBackend', name: backend }],
      },
    ],
  },
})

export const backendOf = (name: string, spec: object): object => ({
  apiVersion: ownApi,
  kind: 'GatewayBackend',
  metadata: { name },
  spec,
})

/** The host and the port of a URL, with TLS if its scheme is https. */
export function staticOf(url: URL, more: object = {}): object {
  const isSecure = url.protocol === 'https:'
  const policies = { ...(isSecure && { tls: {} }), ...more }
  return {
    host: bareHost(url.hostname),
    port: Number(url.port || (isSecure ? 443 : 80)),
    ...(Object.keys(policies).length > 0 && { policies }),
  }
}

/** A policy for all requests of a Gateway. */
export const policyOn = (gateway: string, name: string, fields: object): object => ({
  apiVersion: ownApi,
  kind: 'GatewayPolicy',
  metadata: { name },
  spec: { targetRefs: [{ group: gatewayGroup, kind: 'Gateway', name: gateway }], ...fields },
})

/** The only key of clients of a Gateway, and the policy that asks for it. */
export function keyObjects(gateway: string, keyHash: string): object[] {
  const name = `${gateway}-keys`
  const labels = { 'sluice.dev/keys': gateway }
  const data = { [gateway]: JSON.stringify({ keyHash }) }
  const configMapSelector = { matchLabels: labels }
  return [
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, labels }, data },
    policyOn(gateway, name, { traffic: { apiKeyAuthentication: { configMapSelector } } }),
  ]
}

/** A Secret with the credential that the gateway sends to a vendor or a server. */
export const credential = (name: string, value: string): object => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name },
  stringData: { Authorization: value },
})

export interface ClientKeyOptions {
  /** The environment variable with the key of clients. */
  readonly clientKeyEnv?: string
  /** False if clients need no key. */
  readonly clientKey: boolean
}

interface ClientKey {
  readonly hash: string
  /** What users write for the key: a new one, or the name of its variable. */
  readonly shown: string
  readonly isNew: boolean
}

/** The key of clients, which is new unless a variable has it. @throws UsageError if the variable has none */
export function clientKeyOf({ clientKeyEnv, clientKey }: ClientKeyOptions): ClientKey | undefined {
  if (!clientKey) return undefined
  if (clientKeyEnv === undefined) {
    const key = newKey('sk-sluice-')
    return { hash: hashOf(key), shown: key, isNew: true }
  }
  const key = process.env[clientKeyEnv]?.trim()
  if (key) return { hash: hashOf(key), shown: `$${clientKeyEnv}`, isNew: false }
  throw new UsageError(`--client-key-env ${clientKeyEnv}: this environment variable is not set`)
}

/** Replaces a file at once. Only this user can read it, because it may contain credentials. */
export function writePrivate(file: string, text: string): void {
  makeFolder(dirname(file), 0o700)
  writeFileSync(`${file}.new`, text, { mode: 0o600 })
  renameSync(`${file}.new`, file)
}

/** What is printed: a GatewayPolicy that asks for tokens of the realm, and the backend for its keys. */
import { gatewayGroup, ownGroup } from '../../api/names.ts'
import { validateObject } from '../../api/validate.ts'
import { UsageError } from '../output.ts'
import type { Discovery } from './setup.ts'

type Manifest = Readonly<Record<string, unknown>>

export interface PolicyOptions {
  readonly name: string
  readonly namespace?: string
  /** Kind/name. */
  readonly targets: readonly string[]
  readonly audiences: readonly string[]
  /** Kind/name, or Service/name:port; where absent, a static backend is printed too. */
  readonly backend?: string
}

const apiVersion = 'sluice.dev/v1alpha1'

const groups: Readonly<Record<string, string>> = {
  Gateway: gatewayGroup,
  HTTPRoute: gatewayGroup,
  GRPCRoute: gatewayGroup,
  ListenerSet: gatewayGroup,
  GatewayBackend: ownGroup,
  Service: '',
}

/** RFC 1123 subdomain, as Kubernetes wants it of names. */
const objectName = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/

function reference(option: string, text: string, kinds: readonly string[]): Manifest {
  const [, kind = '', name = '', port] =
    /^([A-Za-z]+)\/([^/:]+)(?::([0-9]{1,5}))?$/.exec(text) ?? []
  const wantsPort = kind === 'Service'
  if (!kinds.includes(kind) || (port !== undefined) !== wantsPort) {
    const forms = kinds.map((known) => `${known}/NAME${known === 'Service' ? ':PORT' : ''}`)
    throw new UsageError(`${option}: '${text}' must be ${forms.join(' or ')}`)
  }
  if (name.length > 253 || !objectName.test(name)) {
    throw new UsageError(`${option}: '${name}' is no name of an object`)
  }
  return { group: groups[kind], kind, name, ...(wantsPort && { port: Number(port) }) }
}

/**
 * References of the options, found wrong before anything is changed.
 * @throws UsageError naming the option
 */
export function referencesOf({ targets, backend }: PolicyOptions): {
  readonly targetRefs: readonly Manifest[]
  readonly backendRef?: Manifest
} {
  const targetKinds = ['Gateway', 'ListenerSet', 'HTTPRoute', 'GRPCRoute']
  const targetRefs = targets.map((target) => reference('--target', target, targetKinds))
  if (backend === undefined) return { targetRefs }
  const backendRef = reference('--backend', backend, ['Service', 'GatewayBackend'])
  return { targetRefs, backendRef }
}

/** The backend of the identity provider; where its address says https, a policy for TLS too. */
function backendFor(url: URL, metadata: Manifest & { readonly name: string }): Manifest[] {
  const isSecure = url.protocol === 'https:'
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const port = Number(url.port || (isSecure ? 443 : 80))
  const backend = {
    apiVersion,
    kind: 'GatewayBackend',
    metadata,
    spec: { static: { host, port } },
  }
  if (!isSecure) return [backend]
  const { name } = metadata
  const tls = {
    apiVersion,
    kind: 'GatewayPolicy',
    metadata: { ...metadata, name: `${name}-tls` },
    spec: {
      targetRefs: [{ group: ownGroup, kind: 'GatewayBackend', name }],
      backend: { tls: { sni: host } },
    },
  }
  return [backend, tls]
}

/**
 * The manifests, checked as the gateway checks them.
 * @param url base address of the identity provider
 * @throws UsageError naming the field that the gateway would refuse
 */
export function manifestsOf(
  url: string,
  { issuer, jwksPath }: Discovery,
  options: PolicyOptions,
): Manifest[] {
  const { name, namespace, audiences } = options
  const metadata = { name, ...(namespace !== undefined && { namespace }) }
  const { targetRefs, backendRef } = referencesOf(options)
  const own = backendRef === undefined ? backendFor(new URL(url), metadata) : []
  const remote = {
    jwksPath,
    backendRef: backendRef ?? { group: ownGroup, kind: 'GatewayBackend', name },
  }
  const provider = { issuer, ...(audiences.length > 0 && { audiences }), jwks: { remote } }
  const policy = {
    apiVersion,
    kind: 'GatewayPolicy',
    metadata,
    spec: {
      targetRefs,
      traffic: { jwtAuthentication: { mode: 'Strict', providers: [provider] } },
    },
  }
  const manifests = [...own, policy]
  for (const manifest of manifests) requireValid(manifest)
  return manifests
}

function requireValid(manifest: Manifest): void {
  const outcome = validateObject(manifest)
  if (outcome.ok) return
  const [first] = outcome.problems
  throw new UsageError(
    `the ${manifest.kind} cannot be printed: ${first?.path ?? ''}: ${first?.message ?? ''}`,
  )
}

/** Creates the manifests: a GatewayPolicy that requires tokens of the realm, and its key set's backend. */
import { kinds as known, requestRouteKinds } from '../../../control/api/kinds.ts'
import { validateObject } from '../../../control/api/validate.ts'
import { bareHost } from '../../../ground/base/bare-host.ts'
import { ownGroup } from '../../../ground/model/api-names.ts'
import { UsageError } from '../shared/output.ts'
import type { Discovery } from './setup.ts'

type Manifest = Readonly<Record<string, unknown>>

export interface PolicyOptions {
  readonly name: string
  readonly namespace?: string
  /** Targets of the policy, each as Kind/name. */
  readonly target: readonly string[]
  readonly audience?: readonly string[]
  /** Backend of the key set: Service/name:port or GatewayBackend/name. If omitted, one is printed too. */
  readonly backend?: string
}

const apiVersion = 'sluice.dev/v1alpha1'

/** Matches an RFC 1123 subdomain, which Kubernetes requires for object names. */
const objectName = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/

function reference(option: string, text: string, kinds: readonly string[]): Manifest {
  const [, kind = '', name = '', port] =
    /^([A-Za-z]+)\/([^/:]+)(?::([0-9]{1,5}))?$/.exec(text) ?? []
  const wantsPort = kind === 'Service'
  if (!kinds.includes(kind) || (port !== undefined) !== wantsPort) {
    const forms = kinds.map((one) => `${one}/NAME${one === 'Service' ? ':PORT' : ''}`)
    throw new UsageError(`${option}: '${text}' must be ${forms.join(' or ')}`)
  }
  if (name.length > 253 || !objectName.test(name)) {
    throw new UsageError(`${option}: '${name}' is not a valid object name`)
  }
  const { group } = known.find((row) => row.kind === kind) ?? {}
  return { group, kind, name, ...(wantsPort && { port: Number(port) }) }
}

/**
 * Parses the references in the options.
 * @throws UsageError that names the wrong option
 */
export function referencesOf({ target: targets, backend }: PolicyOptions): {
  readonly targetRefs: readonly Manifest[]
  readonly backendRef?: Manifest
} {
  const targetKinds = ['Gateway', 'ListenerSet', ...requestRouteKinds]
  const targetRefs = targets.map((target) => reference('--target', target, targetKinds))
  if (backend === undefined) return { targetRefs }
  const backendRef = reference('--backend', backend, ['Service', 'GatewayBackend'])
  return { targetRefs, backendRef }
}

/** A backend for the identity provider, and a TLS policy for it if its address begins with https. */
function backendFor(url: URL, metadata: Manifest & { readonly name: string }): Manifest[] {
  const isSecure = url.protocol === 'https:'
  const host = bareHost(url.hostname)
  const port = Number(url.port || (isSecure ? 443 : 80))
  const spec = { static: { host, port } }
  const backend = { apiVersion, kind: 'GatewayBackend', metadata, spec }
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
 * Creates the manifests and validates them as the gateway does.
 * @param url base address of the identity provider
 * @throws UsageError that names the field that the gateway would refuse
 */
export function manifestsOf(
  url: string,
  { issuer, jwksPath }: Discovery,
  options: PolicyOptions,
): Manifest[] {
  const { name, namespace, audience = [] } = options
  const metadata = { name, ...(namespace !== undefined && { namespace }) }
  const { targetRefs, backendRef } = referencesOf(options)
  const own = backendRef === undefined ? backendFor(new URL(url), metadata) : []
  const remote = {
    jwksPath,
    backendRef: backendRef ?? { group: ownGroup, kind: 'GatewayBackend', name },
  }
  const provider = { issuer, ...(audience.length > 0 && { audiences: audience }), jwks: { remote } }
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

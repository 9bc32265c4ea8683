/**
 * TLS of one listener: the certificates with which it terminates TLS, checked by their Secrets' metadata.
 * An unusable certificate is left out and reported in ResolvedRefs. If none is left, the listener keeps
 * its port and fails every handshake; it must never serve plaintext.
 */

import { certificatePair } from '../../../ground/model/certificates.ts'
import type { ObjectRef } from '../../../ground/model/names.ts'
import type { CertificateRef, ListenerTls } from '../../../ground/model/resources.ts'
import type { SecretObjectRef } from '../../api/gateway-api/common.ts'
import type { FrontendTlsSpec } from '../../api/gateway-api/gateway.ts'
import type { ListenerSpec } from '../../api/gateway-api/listeners.ts'
import { type Failure, notOwn, resolveAll } from '../conditions.ts'
import type { Reader } from '../graph.ts'
import { resolveClients } from './client-validation.ts'
import { referencesFrom } from './referenced-objects.ts'
import { grantFailure } from './references.ts'

export interface ResolvedTls {
  /** Set if and only if the listener terminates TLS. */
  readonly tls: ListenerTls | undefined
  /** Failure of the first reference that cannot be used. */
  readonly failure: Failure | undefined
  /** Why no client certificate could be verified. The listener is then not accepted. */
  readonly refusal: Failure | null
}

/** Finds settings that cannot be enforced. The listener is then not accepted. */
export function tlsFailure({ protocol, tls }: ListenerSpec): Failure | null {
  const unsupported = (message: string): Failure => ({ reason: 'UnsupportedValue', message })
  if (protocol === 'HTTP' && tls !== undefined) {
    return unsupported('tls is set on a listener of protocol HTTP')
  }
  if (protocol !== 'HTTPS' && protocol !== 'TLS') return null
  if (protocol === 'HTTPS' && tls?.mode !== undefined && tls.mode !== 'Terminate') {
    return unsupported(`tls.mode ${tls.mode} is not supported on a listener of protocol HTTPS`)
  }
  const options = Object.keys(tls?.options ?? {})
  if (options.length > 0) {
    return unsupported(`tls.options are not supported: ${options.sort().join(', ')}`)
  }
  return null
}

/** Whether the listener terminates TLS. In mode Passthrough its certificates are not used. */
function endsTls({ protocol, tls }: ListenerSpec): boolean {
  return protocol === 'HTTPS' || (protocol === 'TLS' && tls?.mode !== 'Passthrough')
}

/** The Gateway of a listener, and the settings for its client connections. */
export interface GatewayTls {
  readonly ref: ObjectRef
  readonly frontend: FrontendTlsSpec | undefined
}

/** Resolves the TLS settings of a listener. `owner`, the object with the listener, needs the grants. */
export function resolveTls(
  spec: ListenerSpec,
  owner: ObjectRef,
  gateway: GatewayTls,
  read: Reader,
): ResolvedTls {
  if (!endsTls(spec)) return { tls: undefined, failure: undefined, refusal: null }
  const own = resolveCertificates(spec, owner, read)
  const clients = resolveClients(spec.port, gateway.ref, gateway.frontend, read)
  return {
    tls: {
      certificates: own.found,
      ...(clients.clients !== undefined && { clients: clients.clients }),
    },
    failure: own.failure ?? clients.failure,
    refusal: clients.refusal,
  }
}

function resolveCertificates(spec: ListenerSpec, owner: ObjectRef, read: Reader) {
  const references = spec.tls?.certificateRefs ?? []
  if (references.length === 0)
    return { found: [], failure: invalid('tls.certificateRefs is empty') }
  return resolveAll(references, (reference) => resolveCertificate(reference, owner, read))
}

function invalid(message: string): Failure {
  return { reason: 'InvalidCertificateRef', message }
}

/** Resolves a reference to a certificate; returns a failure if the certificate cannot be used. */
export function resolveCertificate(
  { group = '', kind = 'Secret', name, namespace: given }: SecretObjectRef,
  owner: ObjectRef,
  read: Reader,
): CertificateRef | Failure {
  if (group !== '' || kind !== 'Secret') {
    return invalid(`references to ${kind} of group "${group}" are not supported`)
  }
  const namespace = given ?? owner.namespace
  const refused = grantFailure(owner, { group, kind, namespace, name }, read)
  if (refused !== undefined) return refused
  const label = `Secret ${namespace}/${name}`
  const secret = referencesFrom(namespace, read).secret(name)
  if (secret === undefined) return { ...invalid(`${label} does not exist`), ...notOwn }
  if (secret.type !== 'kubernetes.io/tls') {
    return invalid(`${label} is of type ${secret.type}, not kubernetes.io/tls`)
  }
  const pair = certificatePair(secret)
  return typeof pair === 'string' ? invalid(`${label}: ${pair}`) : pair
}

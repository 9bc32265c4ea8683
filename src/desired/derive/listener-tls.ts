/**
 * TLS of one listener: which certificates it ends TLS with, decided from facts of Secrets. A
 * certificate that cannot be used is left out and named in ResolvedRefs; where none is left the
 * listener keeps its port and fails every handshake, because plaintext would be worse.
 */
import type { SecretObjectRef } from '../../api/gateway-api/common.ts'
import type { FrontendTlsSpec } from '../../api/gateway-api/gateway.ts'
import type { ListenerSpec } from '../../api/gateway-api/listeners.ts'
import { certificatePair } from '../../model/certificates.ts'
import type { ObjectRef } from '../../model/names.ts'
import type { CertificateRef, ListenerTls } from '../../model/resources.ts'
import { elsewhere, type Failure, firstOf } from '../conditions.ts'
import type { Reader } from '../graph.ts'
import { resolveClients } from './client-validation.ts'
import { referencesFrom } from './referenced-objects.ts'
import { isGranted } from './references.ts'

export interface ResolvedTls {
  /** Present exactly where TLS ends at the listener. */
  readonly tls: ListenerTls | undefined
  /** The first reference that cannot be used. */
  readonly failure: Failure | null
  /** Why nobody could be let in as asked: the listener is not accepted. */
  readonly refusal: Failure | null
}

/** Settings that would have to be enforced and are not: the listener is not accepted. */
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

/** Does TLS end at the listener? In mode Passthrough its certificates are not looked at. */
function endsTls({ protocol, tls }: ListenerSpec): boolean {
  return protocol === 'HTTPS' || (protocol === 'TLS' && tls?.mode !== 'Passthrough')
}

/** The Gateway that a listener is of, and what it asks of clients. */
export interface GatewayTls {
  readonly ref: ObjectRef
  readonly frontend: FrontendTlsSpec | undefined
}

/** What TLS needs at a listener. Certificates are referred to by the object that has the listener. */
export function resolveTls(
  spec: ListenerSpec,
  owner: ObjectRef,
  gateway: GatewayTls,
  read: Reader,
): ResolvedTls {
  if (!endsTls(spec)) return { tls: undefined, failure: null, refusal: null }
  const own = resolveCertificates(spec, owner, read)
  const clients = resolveClients(spec.port, gateway.ref, gateway.frontend, read)
  return {
    tls: {
      certificates: own.certificates,
      ...(clients.clients !== undefined && { clients: clients.clients }),
    },
    failure: own.failure ?? clients.failure,
    refusal: clients.refusal,
  }
}

function resolveCertificates(
  spec: ListenerSpec,
  owner: ObjectRef,
  read: Reader,
): { certificates: CertificateRef[]; failure: Failure | null } {
  const references = spec.tls?.certificateRefs ?? []
  if (references.length === 0) {
    return { certificates: [], failure: invalid('tls.certificateRefs is empty') }
  }
  const certificates: CertificateRef[] = []
  const failures: Failure[] = []
  for (const reference of references) {
    const resolved = resolveCertificate(reference, owner, read)
    if ('reason' in resolved) failures.push(resolved)
    else certificates.push(resolved)
  }
  return { certificates, failure: firstOf(failures) }
}

function invalid(message: string): Failure {
  return { reason: 'InvalidCertificateRef', message }
}

/** A certificate that an object refers to, or why it cannot be used. */
export function resolveCertificate(
  { group = '', kind = 'Secret', name, namespace: given }: SecretObjectRef,
  owner: ObjectRef,
  read: Reader,
): CertificateRef | Failure {
  if (group !== '' || kind !== 'Secret') {
    return invalid(`references to ${kind} of group "${group}" are not supported`)
  }
  const namespace = given ?? owner.namespace
  if (!isGranted(owner, { group, kind, namespace, name }, read)) {
    const message = `no ReferenceGrant in namespace ${namespace} permits ${owner.kind}s of ${owner.namespace} to refer to Secret ${name}`
    return { reason: 'RefNotPermitted', message, ...elsewhere }
  }
  const label = `Secret ${namespace}/${name}`
  const secret = referencesFrom(namespace, read).secret(name)
  if (secret === undefined) return { ...invalid(`${label} does not exist`), ...elsewhere }
  if (secret.type !== 'kubernetes.io/tls') {
    return invalid(`${label} is of type ${secret.type}, not kubernetes.io/tls`)
  }
  const pair = certificatePair(secret)
  return typeof pair === 'string' ? invalid(`${label}: ${pair}`) : pair
}

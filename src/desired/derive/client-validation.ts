/**
 * What clients must prove on a port where TLS ends: the authorities that `spec.tls.frontend` of the
 * Gateway names, as far as they can be used (Gateway API, FrontendTLSValidation). Where none is left
 * the listener is not accepted, and nobody gets in.
 */
import type { SecretObjectRef } from '../../api/gateway-api/common.ts'
import type { FrontendTlsSpec } from '../../api/gateway-api/gateway.ts'
import { authoritiesEntry, authoritiesOf } from '../../model/certificates.ts'
import type { ObjectRef } from '../../model/names.ts'
import type { Authority, ClientValidation } from '../../model/resources.ts'
import { elsewhere, type Failure, firstOf } from '../conditions.ts'
import type { Reader } from '../graph.ts'
import { referencesFrom } from './referenced-objects.ts'
import { isGranted } from './references.ts'

interface ResolvedClients {
  /** Absent where clients prove nothing, or nobody could. */
  readonly clients?: ClientValidation
  /** The first reference that cannot be used. */
  readonly failure: Failure | null
  /** Set where no authority is left. */
  readonly refusal: Failure | null
}

const nothing: ResolvedClients = { failure: null, refusal: null }

/** An entry of `perPort` stands in the place of the default as a whole. */
function validationOn(port: number, frontend: FrontendTlsSpec | undefined) {
  const onPort = frontend?.perPort?.find((entry) => entry.port === port)
  return (onPort === undefined ? frontend?.default : onPort.tls)?.validation
}

/** Is a client without a good certificate let in anywhere? Then the Gateway says so. */
export function admitsUnverified(frontend: FrontendTlsSpec | undefined): boolean {
  const all = [frontend?.default, ...(frontend?.perPort ?? []).map(({ tls }) => tls)]
  return all.some((tls) => tls?.validation?.mode === 'AllowInsecureFallback')
}

/** References count from the Gateway, also for listeners of ListenerSets. */
export function resolveClients(
  port: number,
  gateway: ObjectRef,
  frontend: FrontendTlsSpec | undefined,
  read: Reader,
): ResolvedClients {
  const validation = validationOn(port, frontend)
  if (validation === undefined) return nothing
  const authorities: Authority[] = []
  const failures: Failure[] = []
  for (const reference of validation.caCertificateRefs) {
    const resolved = resolveAuthority(reference, gateway, read)
    if ('reason' in resolved) failures.push(resolved)
    else authorities.push(resolved)
  }
  const failure = firstOf(failures)
  if (authorities.length === 0) {
    const message = `no authority is left to verify clients with: ${failure?.message ?? 'none is named'}`
    // ResolvedRefs says what is wrong with the references.
    const refusal = { reason: 'NoValidCACertificate', message, ...(failure && elsewhere) }
    return { failure, refusal }
  }
  const required = validation.mode !== 'AllowInsecureFallback'
  return { clients: { required, authorities }, failure, refusal: null }
}

function invalid(message: string): Failure {
  return { reason: 'InvalidCACertificateRef', message }
}

function resolveAuthority(
  { group = '', kind = 'ConfigMap', name, namespace: given }: SecretObjectRef,
  gateway: ObjectRef,
  read: Reader,
): Authority | Failure {
  if (group !== '' || (kind !== 'ConfigMap' && kind !== 'Secret')) {
    const message = `caCertificateRefs to ${kind} of group "${group}" are not supported; use a ConfigMap or a Secret`
    return { reason: 'InvalidCACertificateKind', message }
  }
  const namespace = given ?? gateway.namespace
  if (!isGranted(gateway, { group, kind, namespace, name }, read)) {
    const message = `no ReferenceGrant in namespace ${namespace} permits Gateways of ${gateway.namespace} to refer to ${kind} ${name}`
    return { reason: 'RefNotPermitted', message, ...elsewhere }
  }
  return kind === 'Secret' ? ofSecret(namespace, name, read) : ofConfigMap(namespace, name, read)
}

function ofConfigMap(namespace: string, name: string, read: Reader): Authority | Failure {
  const found = authoritiesOf(name, referencesFrom(namespace, read))
  if ('authorities' in found) return { pem: found.authorities }
  const { problem, own } = found
  return { ...invalid(problem), ...(own && { own }) }
}

function ofSecret(namespace: string, name: string, read: Reader): Authority | Failure {
  const secret = referencesFrom(namespace, read).secret(name)
  if (secret === undefined) {
    return { ...invalid(`Secret ${namespace}/${name} does not exist`), ...elsewhere }
  }
  const label = `Secret ${secret.label}`
  const reference = secret.ref(authoritiesEntry)
  if (reference === undefined) return invalid(`${label} has no ${authoritiesEntry}`)
  const found = secret.entries[authoritiesEntry]?.certificates ?? []
  if (found.length === 0) {
    return invalid(`${label}: ${authoritiesEntry} holds no certificate in PEM`)
  }
  const isGood = found.every(({ isValid }) => isValid)
  if (!isGood) return invalid(`${label}: ${authoritiesEntry} has a certificate that cannot be read`)
  return { secret: reference }
}

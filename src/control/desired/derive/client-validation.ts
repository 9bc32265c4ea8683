/**
 * Validation of client certificates on a port that terminates TLS: resolves the CA certificates that
 * `spec.tls.frontend` of the Gateway refers to (Gateway API, FrontendTLSValidation). If none is usable,
 * the listener is not accepted and refuses all clients.
 */

import { authoritiesOf, authoritiesOfSecret } from '../../../ground/model/certificates.ts'
import type { ObjectRef } from '../../../ground/model/names.ts'
import type { Authority, ClientValidation } from '../../../ground/model/resources.ts'
import type { SecretObjectRef } from '../../api/gateway-api/common.ts'
import type { FrontendTlsSpec } from '../../api/gateway-api/gateway.ts'
import { type Failure, notOwn, resolveAll } from '../conditions.ts'
import type { Reader } from '../graph.ts'
import { referencesFrom } from './referenced-objects.ts'
import { grantFailure } from './references.ts'

interface ResolvedClients {
  /** Omitted if client certificates are not validated, or if no CA certificate is usable. */
  readonly clients?: ClientValidation
  /** Failure of the first reference that cannot be used. */
  readonly failure: Failure | undefined
  /** Set if no CA certificate is usable. */
  readonly refusal: Failure | null
}

const noValidation: ResolvedClients = { failure: undefined, refusal: null }

/** The `validation` of a port. An entry of `perPort` replaces the default completely. */
function validationOn(port: number, frontend: FrontendTlsSpec | undefined) {
  const onPort = frontend?.perPort?.find((entry) => entry.port === port)
  return (onPort === undefined ? frontend?.default : onPort.tls)?.validation
}

/** Whether any port accepts clients without a valid certificate. The Gateway's status reports it. */
export function admitsUnverified(frontend: FrontendTlsSpec | undefined): boolean {
  const all = [frontend?.default, ...(frontend?.perPort ?? []).map(({ tls }) => tls)]
  return all.some((tls) => tls?.validation?.mode === 'AllowInsecureFallback')
}

/** References are resolved from the Gateway, even for listeners of ListenerSets. */
export function resolveClients(
  port: number,
  gateway: ObjectRef,
  frontend: FrontendTlsSpec | undefined,
  read: Reader,
): ResolvedClients {
  const validation = validationOn(port, frontend)
  if (validation === undefined) return noValidation
  const { found: authorities, failure } = resolveAll(validation.caCertificateRefs, (reference) =>
    resolveAuthority(reference, gateway, read),
  )
  if (authorities.length === 0) {
    const message = `no authority is left to verify clients with: ${failure?.message ?? 'none is named'}`
    // The condition ResolvedRefs reports the problems of the references.
    const refusal = { reason: 'NoValidCACertificate', message, ...(failure && notOwn) }
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
  const refused = grantFailure(gateway, { group, kind, namespace, name }, read)
  if (refused !== undefined) return refused
  return kind === 'Secret' ? ofSecret(namespace, name, read) : ofConfigMap(namespace, name, read)
}

function ofConfigMap(namespace: string, name: string, read: Reader): Authority | Failure {
  const found = authoritiesOf(name, referencesFrom(namespace, read))
  if ('authorities' in found) return { pem: found.authorities }
  const { problem, own } = found
  return { ...invalid(problem), ...(own && { own }) }
}

function ofSecret(namespace: string, name: string, read: Reader): Authority | Failure {
  const references = referencesFrom(namespace, read)
  if (references.secret(name) === undefined) {
    return { ...invalid(`Secret ${namespace}/${name} does not exist`), ...notOwn }
  }
  const found = authoritiesOfSecret(name, references)
  if ('secret' in found) return found
  return invalid(found.problem)
}

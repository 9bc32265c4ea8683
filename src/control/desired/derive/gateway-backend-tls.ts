/** `spec.tls.backend` of a Gateway: the client certificate that it presents to backends. */

import { findPolicy } from '../../../gateway/policies/registry.ts'
import { canonicalJson } from '../../../ground/base/canonical.ts'
import type { PolicyResource } from '../../../ground/model/resources.ts'
import type { GatewaySpec } from '../../api/gateway-api/gateway.ts'
import type { Failure } from '../conditions.ts'
import type { Reader } from '../graph.ts'
import type { ObjectState } from '../object-state.ts'
import { policyResource } from './compile-policy.ts'
import { resolveCertificate } from './listener-tls.ts'

export interface GatewayBackendTls {
  /** Why the reference cannot be used. Backends then get no client certificate. */
  readonly failure: Failure | null
}

const field = 'gatewayCertificate'

/** Returns undefined if the Gateway does not configure TLS to backends. */
export function gatewayBackendTls(
  self: ObjectState,
  { tls }: GatewaySpec,
  read: Reader,
): { readonly view: GatewayBackendTls; readonly resources: readonly PolicyResource[] } | undefined {
  const backend = tls?.backend
  if (backend === undefined) return undefined
  if (backend.clientCertificateRef === undefined) return { view: { failure: null }, resources: [] }
  const found = resolveCertificate(backend.clientCertificateRef, self.ref, read)
  if ('reason' in found) {
    const { own } = found
    const message = `spec.tls.backend.clientCertificateRef: ${found.message}`
    const isInvalid = found.reason === 'InvalidCertificateRef'
    const reason = isInvalid ? 'InvalidClientCertificateRef' : found.reason
    const failure = { reason, message, ...(own && { own }) }
    return { view: { failure }, resources: [] }
  }
  const { certificate, privateKey } = found
  const compiled = {
    config: canonicalJson({ chain: certificate.digest, key: privateKey.digest }),
    configVersion: findPolicy('backend', field)?.configVersion ?? 0,
    secrets: [certificate, privateKey],
    unenforceable: undefined,
  }
  const { ref: owner, age } = self
  const tlsField = { owner, age, section: 'backend', field, phase: 'PostRouting' } as const
  // Safe to ignore: backends then get no certificate, and those that require one refuse the connection.
  const resource = { ...policyResource(tlsField, compiled, self.ref), dispensable: true } as const
  return { view: { failure: null }, resources: [resource] }
}

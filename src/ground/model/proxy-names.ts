/** Names and labels of the objects that are deployed for a Gateway. */
import { hexDigest } from '../base/digest.ts'

/** Label of all objects that belong to a Gateway (GEP-1762). */
export const gatewayNameLabel = 'gateway.networking.k8s.io/gateway-name'
export const gatewayClassLabel = 'gateway.networking.k8s.io/gateway-class-name'
export const managedByLabel = 'app.kubernetes.io/managed-by'
export const managedBy = 'sluice'

/** An RFC 1035 label, as the names of Services must be; other kinds allow more. */
const label = /^[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?$/

/**
 * The name of every object that is deployed for a Gateway, and the value of labels that name it. This
 * is the name of the Gateway. If that is not a valid Service name (it is longer than 63 characters, has
 * dots, or begins with a digit), it is changed to a valid one that ends in 12 hex digits of the SHA-256.
 */
export function proxyObjectName(gateway: string): string {
  if (label.test(gateway)) return gateway
  const plain = gateway.replaceAll('.', '-')
  const start = (/^[a-z]/.test(plain) ? plain : `gw-${plain}`).slice(0, 50).replace(/-+$/, '')
  return `${start}-${hexDigest('sha256', gateway).slice(0, 12)}`
}

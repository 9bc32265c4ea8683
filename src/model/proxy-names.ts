/** Names and labels of what is deployed for a Gateway. */
import { hash } from 'node:crypto'

/** GEP-1762: marks what belongs to a Gateway. */
export const gatewayNameLabel = 'gateway.networking.k8s.io/gateway-name'
export const gatewayClassLabel = 'gateway.networking.k8s.io/gateway-class-name'
export const managedByLabel = 'app.kubernetes.io/managed-by'
export const managedBy = 'sluice'

/** Names of Services are the strictest (RFC 1035 label). */
const label = /^[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?$/

/**
 * The name of every object of a Gateway, its service account included, and the value of labels that
 * name it: the name of the Gateway, or where that cannot be the name of a Service (it is longer than
 * 63 characters, has dots, or begins with a digit) the part of it that can, and 12 hex digits of its
 * SHA-256.
 */
export function proxyObjectName(gateway: string): string {
  if (label.test(gateway)) return gateway
  const plain = gateway.replaceAll('.', '-')
  const start = (/^[a-z]/.test(plain) ? plain : `gw-${plain}`).slice(0, 50).replace(/-+$/, '')
  return `${start}-${hash('sha256', gateway).slice(0, 12)}`
}

/** Checks certificates before they are used: those of Secrets by their metadata, others by parsing. */

import type { ReferencedSecret, References } from './references.ts'
import type { SecretRef } from './resources.ts'
import { isCertificate } from './x509.ts'

interface CertificatePairRefs {
  readonly certificate: SecretRef
  readonly privateKey: SecretRef
}

const certificateEntry = 'tls.crt'
const keyEntry = 'tls.key'

/** References to the certificate and private key of a Secret, or the reason why they cannot be used. */
export function certificatePair({ entries, ref }: ReferencedSecret): CertificatePairRefs | string {
  const certificate = ref(certificateEntry)
  const privateKey = ref(keyEntry)
  if (certificate === undefined) return `has no ${certificateEntry}`
  if (privateKey === undefined) return `has no ${keyEntry}`
  const chain = entries[certificateEntry]?.certificates ?? []
  if (chain.length === 0) return `${certificateEntry} has no certificate in PEM`
  if (chain.some(({ isValid }) => !isValid)) {
    return `${certificateEntry} has a certificate that cannot be read`
  }
  const key = entries[keyEntry]?.privateKey
  if (key === undefined) return `${keyEntry} has no private key in PEM`
  if (key.type === 'unreadable') return `${keyEntry} cannot be read, or is encrypted`
  if (!key.pairsWith.includes(certificateEntry)) {
    return `${keyEntry} is not the key of the certificate in ${certificateEntry}`
  }
  return { certificate, privateKey }
}

/** Name of the ConfigMap entry that holds CA certificates (Gateway API). */
export const authoritiesEntry = 'ca.crt'

interface AuthoritiesProblem {
  readonly problem: string
  /** See `DecidedCondition.own`. */
  readonly own?: readonly string[]
}

/** The CA certificates of a ConfigMap in PEM, or the reason why it cannot be used. */
export function authoritiesOf(
  name: string,
  references: References,
): { readonly authorities: string } | AuthoritiesProblem {
  const configMap = references.configMap(name)
  if (configMap === undefined) return { problem: `ConfigMap ${name} does not exist`, own: [] }
  const text = configMap.entry(authoritiesEntry)
  const label = `ConfigMap ${configMap.label}`
  if (text === undefined) return { problem: `${label} has no ${authoritiesEntry}` }
  const problem = pemProblem(text)
  if (problem !== undefined) return { problem: `${label}: ${authoritiesEntry} ${problem}` }
  return { authorities: text }
}

/** The entry of a Secret with CA certificates, or the reason why it cannot be used. */
export function authoritiesOfSecret(
  name: string,
  references: References,
): { readonly secret: SecretRef } | AuthoritiesProblem {
  const secret = references.secret(name)
  if (secret === undefined) return { problem: `Secret ${name} does not exist`, own: [] }
  const reference = secret.ref(authoritiesEntry)
  const label = `Secret ${secret.label}`
  if (reference === undefined) return { problem: `${label} has no ${authoritiesEntry}` }
  const found = secret.entries[authoritiesEntry]?.certificates ?? []
  if (found.length === 0) {
    return { problem: `${label}: ${authoritiesEntry} contains no certificate in PEM` }
  }
  return found.every(({ isValid }) => isValid)
    ? { secret: reference }
    : { problem: `${label}: ${authoritiesEntry} has a certificate that cannot be read` }
}

/** Splits a PEM text into its certificates; text between them is dropped. */
export function pemCertificates(text: string): readonly string[] {
  return text.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? []
}

/** Returns undefined if the text is a list of PEM certificates, otherwise the reason why it is not. */
function pemProblem(text: string): string | undefined {
  const blocks = pemCertificates(text)
  if (blocks.length === 0) return 'contains no certificate in PEM'
  for (const [index, block] of blocks.entries()) {
    if (isCertificate(block)) continue
    return `has a certificate that cannot be read (the ${index + 1}. of ${blocks.length})`
  }
  return undefined
}

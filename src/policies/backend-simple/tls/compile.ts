import type { BackendTlsConfig, VerifyMode } from '../../../model/backend-tls.ts'
import { authoritiesOf, certificatePair } from '../../../model/certificates.ts'
import type { References } from '../../../model/references.ts'
import type { SecretRef } from '../../../model/resources.ts'
import type { Compiled, PolicyProblem } from '../../define.ts'
import type { BackendTlsSpec } from './schema.ts'

const verifyModes: Readonly<Record<string, VerifyMode>> = { All: 'none', Hostname: 'issuer' }

/**
 * `backend.tls`. A Secret or ConfigMap that is missing, or that holds something else than it should,
 * is a problem: the backend then is not reached at all, neither in clear nor unverified.
 */
export function compile(spec: BackendTlsSpec, references: References): Compiled<BackendTlsConfig> {
  const problems: PolicyProblem[] = []
  const secrets: SecretRef[] = []
  const certificate = clientCertificate(spec, references, problems, secrets)
  const config: BackendTlsConfig = {
    verify: verifyModes[spec.insecureSkipVerify ?? ''] ?? 'full',
    ...authorities(spec, references, problems, secrets),
    ...(certificate && { certificate }),
    ...(spec.sni !== undefined && { serverName: spec.sni }),
    ...(spec.verifySubjectAltNames && { names: spec.verifySubjectAltNames }),
    ...(spec.alpnProtocols && { alpn: spec.alpnProtocols }),
  }
  return { config, problems, secrets }
}

function clientCertificate(
  { mtlsCertificateRef }: BackendTlsSpec,
  references: References,
  problems: PolicyProblem[],
  secrets: SecretRef[],
): BackendTlsConfig['certificate'] {
  const name = mtlsCertificateRef?.[0]?.name
  if (name === undefined) return undefined
  const path = 'mtlsCertificateRef[0]'
  const secret = references.secret(name)
  if (secret === undefined) {
    problems.push({ path, message: `Secret ${name} does not exist` })
    return undefined
  }
  const pair = certificatePair(secret)
  if (typeof pair === 'string') {
    problems.push({ path, message: `Secret ${secret.label}: ${pair}` })
    return undefined
  }
  secrets.push(pair.certificate, pair.privateKey)
  return { chain: pair.certificate.digest, key: pair.privateKey.digest }
}

/** The ConfigMap wins; else an authority that lies beside the client certificate; else the system's. */
function authorities(
  { caCertificateRefs, mtlsCertificateRef }: BackendTlsSpec,
  references: References,
  problems: PolicyProblem[],
  secrets: SecretRef[],
): Pick<BackendTlsConfig, 'authorities' | 'authoritiesDigest'> {
  const name = caCertificateRefs?.[0]?.name
  if (name !== undefined) {
    const found = authoritiesOf(name, references)
    if ('authorities' in found) return found
    problems.push({ path: 'caCertificateRefs[0]', message: found.problem })
    return {}
  }
  const client = mtlsCertificateRef?.[0]?.name
  const secret = client === undefined ? undefined : references.secret(client)
  // The usual name is read as well, where the one of the interface is absent.
  const key = ['ca.cert', 'ca.crt'].find((entry) => secret?.ref(entry) !== undefined)
  const ref = key === undefined ? undefined : secret?.ref(key)
  if (secret === undefined || ref === undefined) return {}
  const chain = secret.entries[ref.key]?.certificates ?? []
  if (chain.length === 0 || chain.some(({ isValid }) => !isValid)) {
    const message = `Secret ${secret.label}: ${ref.key} holds no certificate in PEM that can be read`
    problems.push({ path: 'mtlsCertificateRef[0]', message })
    return {}
  }
  secrets.push(ref)
  return { authoritiesDigest: ref.digest }
}

import type { BackendTlsConfig, VerifyMode } from '../../../../ground/model/backend-tls.ts'
import {
  authoritiesOf,
  authoritiesOfSecret,
  certificatePair,
} from '../../../../ground/model/certificates.ts'
import type { References } from '../../../../ground/model/references.ts'
import type { SecretRef } from '../../../../ground/model/resources.ts'
import { choice, type Infer, list, object, optional } from '../../../../ground/schema/field.ts'
import { atMostOneOf } from '../../../../ground/schema/rules.ts'
import {
  certificateAuthorityReference,
  localReference,
} from '../../../../ground/schema/shapes/references.ts'
import { shortString, sni, tinyString } from '../../../../ground/schema/strings.ts'
import { type Compiled, definePolicy, type PolicyProblem } from '../../define.ts'

const schema = object(
  'BackendTLS',
  {
    mtlsCertificateRef: optional(
      list(localReference('Secret'), { max: 1 }),
      'Secret with tls.crt and tls.key that the proxy presents; its ca.cert, if present, verifies the server. No client certificate if not set.',
    ),
    caCertificateRefs: optional(
      list(certificateAuthorityReference, { max: 1 }),
      'ConfigMap or Secret whose ca.crt verifies the server. If not set, the certificates of the system do.',
    ),
    insecureSkipVerify: optional(
      choice('InsecureTLSMode', {
        All: 'the certificate is not verified',
        Hostname: 'the issuer is verified, the name is not',
      }),
      'Disables a part of the verification.',
    ),
    sni: optional(sni, 'Server name that is sent; the host of the destination if not set.'),
    verifySubjectAltNames: optional(
      list(shortString, { min: 1, max: 16 }),
      'The certificate must have one of these names; the host of the destination if not set.',
    ),
    alpnProtocols: optional(list(tinyString, { min: 1, max: 16 }), {
      doc: 'Application protocols that TLS offers, best first. If the list is set, it is offered as written and the server selects: h2 means HTTP/2, anything else HTTP/1.1. If unset, only the version that the request needs is offered.',
      default: ['h2', 'http/1.1'],
    }),
  },
  { rules: [atMostOneOf('verifySubjectAltNames', 'insecureSkipVerify')] },
)
type BackendTlsSpec = Infer<typeof schema>

const verifyModes: Readonly<Record<string, VerifyMode>> = { All: 'none', Hostname: 'issuer' }

/**
 * A missing or unusable Secret or ConfigMap is a problem. Calls to the backend then fail; they are not
 * sent in plain text or without verification.
 */
export function compile(spec: BackendTlsSpec, references: References): Compiled<BackendTlsConfig> {
  const problems: PolicyProblem[] = []
  const secrets: SecretRef[] = []
  const certificate = clientCertificate(spec, references, problems, secrets)
  const config: BackendTlsConfig = {
    verify: verifyModes[spec.insecureSkipVerify ?? ''] ?? 'full',
    ...authorities(spec, references, problems, secrets),
    certificate,
    serverName: spec.sni,
    names: spec.verifySubjectAltNames,
    alpn: spec.alpnProtocols,
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

/** Returns the CA certificates of `caCertificateRefs`; if it is not set, those of the client certificate's Secret or of the system. */
function authorities(
  { caCertificateRefs, mtlsCertificateRef }: BackendTlsSpec,
  references: References,
  problems: PolicyProblem[],
  secrets: SecretRef[],
): Pick<BackendTlsConfig, 'authorities' | 'authoritiesDigest'> {
  const given = caCertificateRefs?.[0]
  if (given !== undefined) {
    const isSecret = given.kind === 'Secret'
    const found = (isSecret ? authoritiesOfSecret : authoritiesOf)(given.name, references)
    if ('problem' in found) problems.push({ path: 'caCertificateRefs[0]', message: found.problem })
    else if ('authorities' in found) return { authorities: found.authorities }
    else {
      secrets.push(found.secret)
      return { authoritiesDigest: found.secret.digest }
    }
    return {}
  }
  const client = mtlsCertificateRef?.[0]?.name
  const secret = client === undefined ? undefined : references.secret(client)
  // GatewayBackend documents `ca.cert`; `ca.crt` is the usual name.
  const key = ['ca.cert', 'ca.crt'].find((entry) => secret?.ref(entry) !== undefined)
  const ref = key === undefined ? undefined : secret?.ref(key)
  if (secret === undefined || ref === undefined) return {}
  const chain = secret.entries[ref.key]?.certificates ?? []
  if (chain.length === 0 || chain.some(({ isValid }) => !isValid)) {
    const message = `Secret ${secret.label}: ${ref.key} contains no readable certificate in PEM`
    problems.push({ path: 'mtlsCertificateRef[0]', message })
    return {}
  }
  secrets.push(ref)
  return { authoritiesDigest: ref.digest }
}

/** Uses TLS to the backend. Connections fail if its certificate does not verify. */
export const backendTls = definePolicy({
  section: 'backend',
  field: 'tls',
  schema,
  doc: 'Uses TLS to the backend. An empty object verifies with the certificate authorities of the system.',
  security: true,
  compile,
  apply: () => import('./apply.ts'),
})

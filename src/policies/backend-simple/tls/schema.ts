import { choice, type Infer, list, object, optional } from '../../../schema/field.ts'
import { atMostOneOf } from '../../../schema/rules.ts'
import { sectionField } from '../../../schema/section-field.ts'
import { localObjectReference } from '../../../schema/shapes/references.ts'
import { shortString, sni, tinyString } from '../../../schema/strings.ts'

export const backendTls = object(
  'BackendTLS',
  {
    mtlsCertificateRef: optional(
      list(localObjectReference, { max: 1 }),
      'Secret with tls.crt and tls.key that the proxy presents; its ca.cert, where present, verifies the server. No client certificate where unset.',
    ),
    caCertificateRefs: optional(
      list(localObjectReference, { max: 1 }),
      'ConfigMap whose ca.crt verifies the server; the certificates of the system where unset.',
    ),
    insecureSkipVerify: optional(
      choice('InsecureTLSMode', {
        All: 'the certificate is not verified',
        Hostname: 'the issuer is verified, the name is not',
      }),
      'Gives up a part of verification.',
    ),
    sni: optional(sni, 'Server name that is sent; the host of the destination where unset.'),
    verifySubjectAltNames: optional(
      list(shortString, { min: 1, max: 16 }),
      'Names of which the certificate must have one; the host of the destination where unset.',
    ),
    alpnProtocols: optional(list(tinyString, { min: 1, max: 16 }), {
      doc: 'Application protocols that TLS offers, best first. If the list is set, it is offered as written and the server selects: h2 means HTTP/2, anything else HTTP/1.1. If unset, only the version that the request needs is offered.',
      default: ['h2', 'http/1.1'],
    }),
  },
  { rules: [atMostOneOf('verifySubjectAltNames', 'insecureSkipVerify')] },
)
export type BackendTlsSpec = Infer<typeof backendTls>

export const backendTlsField = sectionField({
  section: 'backend',
  field: 'tls',
  schema: backendTls,
  doc: 'Speaks TLS to the backend; an empty object verifies against the certificates of the system.',
})

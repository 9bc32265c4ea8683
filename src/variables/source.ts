import type { CelRecord, CelResult } from '../cel/index.ts'
import type { PeerCertificate } from '../exchange/exchange.ts'
import { ExchangeView, type Pointer } from './view.ts'

const fields = [
  'address',
  'port',
  'rawAddress',
  'rawPort',
  'identity',
  'subjectAltNames',
  'issuer',
  'subject',
  'subjectCn',
  'spiffeId',
  'certificate',
] as const

/** `source`: the client. What its certificate says is missing where it has none that is trusted. */
export class SourceView extends ExchangeView {
  constructor(pointer: Pointer) {
    super(pointer, fields)
  }

  override field(name: string): CelResult | undefined {
    const { exchange } = this
    if (exchange === undefined) return undefined
    switch (name) {
      case 'address':
        return exchange.source.address
      case 'rawAddress':
        return exchange.rawSource.address
      case 'port':
        return BigInt(exchange.source.port)
      case 'rawPort':
        return BigInt(exchange.rawSource.port)
      default: {
        const certificate = exchange.peerCertificate
        return certificate === undefined ? undefined : certificateField(certificate, name)
      }
    }
  }
}

function certificateField(certificate: PeerCertificate, name: string): CelResult | undefined {
  switch (name) {
    case 'identity':
      return certificate.spiffeId === undefined ? undefined : workloadOf(certificate.spiffeId)
    case 'subjectAltNames':
      return certificate.subjectAltNames
    case 'issuer':
      return certificate.issuer
    case 'subject':
      return certificate.subject
    case 'subjectCn':
      return certificate.subjectCn
    case 'spiffeId':
      return certificate.spiffeId
    case 'certificate':
      return certificate.pem
    default:
      return undefined
  }
}

/** `spiffe://<trust domain>/ns/<namespace>/sa/<service account>`, the form that meshes use. */
function workloadOf(spiffeId: string): CelRecord | undefined {
  const found = /^spiffe:\/\/([^/]+)\/ns\/([^/]+)\/sa\/([^/]+)$/.exec(spiffeId)
  if (found === null) return undefined
  const [, trustDomain, namespace, serviceAccount] = found
  return { trustDomain, namespace, serviceAccount }
}

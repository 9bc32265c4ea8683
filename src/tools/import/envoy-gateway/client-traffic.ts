/** Converts ClientTrafficPolicy. */
import { type Conversion, compact, type Fields, filled } from '../conversion.ts'
import type { SourceField } from '../field.ts'
import { forwardedHeaders } from '../targets.ts'
import { keepaliveOf } from './backend-traffic.ts'
import { enter, targetsOf } from './targets.ts'

/** A size in bytes, or a Kubernetes quantity. */
const size = (field: SourceField): unknown => (field.isSet ? field.take() : undefined)

/** Returns the Gateways, as `namespace/name`, for which the policy says which proxies are trusted. */
export function convertClientTrafficPolicy(field: SourceField, result: Conversion): string[] {
  const name = enter(field, result)
  const spec = field.get('spec')
  const refs = targetsOf(spec).map((ref) => {
    if (ref.sectionName === undefined) return ref
    spec.report('changed', 'applies to all listeners of the Gateway')
    const { sectionName: _section, ...gateway } = ref
    return gateway
  })
  const forwarded = forwardedOf(spec)
  const frontend = {
    tcp: tcpOf(spec),
    proxyProtocol: proxyProtocolOf(spec),
    tls: tlsOf(spec.get('tls')),
    http: httpOf(spec),
    forwarded,
  }
  if (refs.length > 0) result.policy(`${name}-clients`, refs, { frontend }, field)
  const gateways = refs.map(({ name: gateway }) => `${result.namespace ?? ''}/${String(gateway)}`)
  const early = spec.at('headers', 'earlyRequestHeaders')
  const late = spec.at('headers', 'lateResponseHeaders')
  const configured = forwarded === undefined ? [] : gateways
  if (!early.isSet && !late.isSet) return configured
  const headerModifiers = compact({
    request: early.isSet ? early.take() : undefined,
    response: late.isSet ? late.take() : undefined,
  })
  result.policy(`${name}-headers`, refs, { traffic: { headerModifiers } }, field)
  return configured
}

/** Which entry of X-Forwarded-For is the client. */
function forwardedOf(spec: SourceField): Fields | undefined {
  const detection = spec.at('clientIPDetection', 'xForwardedFor')
  const fields = filled(
    compact({
      trustedHops: detection.number('numTrustedHops'),
      trustedProxies: detection.list('trustedCIDRs'),
    }),
  )
  return fields && { ...forwardedHeaders.appended, ...fields }
}

/** Envoy accepts both versions. */
function proxyProtocolOf(spec: SourceField): Fields | undefined {
  const isOptional = spec.at('proxyProtocol', 'optional').flag()
  const isSet = spec.get('proxyProtocol').isSet || spec.flag('enableProxyProtocol') === true
  return isSet ? { version: 'All', mode: isOptional === true ? 'Optional' : 'Strict' } : undefined
}

function tcpOf(spec: SourceField): Fields | undefined {
  const keepalive = spec.get('tcpKeepalive')
  return keepalive.isSet ? { keepalive: keepaliveOf(keepalive) } : undefined
}

function tlsOf(tls: SourceField): Fields | undefined {
  const fields = compact({
    minProtocolVersion: tls.text('minVersion'),
    maxProtocolVersion: tls.text('maxVersion'),
    alpnProtocols: tls.list('alpnProtocols'),
  })
  return filled(fields)
}

function httpOf(spec: SourceField): Fields | undefined {
  const http2 = spec.get('http2')
  const fields = compact({
    http1IdleTimeout: spec.at('timeout', 'http', 'idleTimeout').text(),
    maxConnectionDuration: spec.at('connection', 'maxConnectionDuration').text(),
    http2WindowSize: size(http2.get('initialStreamWindowSize')),
    http2ConnectionWindowSize: size(http2.get('initialConnectionWindowSize')),
    http2KeepaliveInterval: http2.at('connectionKeepalive', 'interval').text(),
    http2KeepaliveTimeout: http2.at('connectionKeepalive', 'timeout').text(),
  })
  return filled(fields)
}

/** Converts ClientTrafficPolicy. */
import { type Conversion, compact, type Fields, filled } from '../conversion.ts'
import type { SourceField } from '../field.ts'
import { keepaliveOf } from './backend-traffic.ts'
import { enter, targetsOf } from './targets.ts'

/** A size in bytes, or a Kubernetes quantity. */
const size = (field: SourceField): unknown => (field.isSet ? field.take() : undefined)

export function convertClientTrafficPolicy(field: SourceField, result: Conversion): void {
  const name = enter(field, result)
  const spec = field.get('spec')
  const refs = targetsOf(spec).map((ref) => {
    if (ref.sectionName === undefined) return ref
    spec.report('changed', 'applies to all listeners of the Gateway')
    const { sectionName: _section, ...gateway } = ref
    return gateway
  })
  const frontend = { tcp: tcpOf(spec), tls: tlsOf(spec.get('tls')), http: httpOf(spec) }
  if (refs.length > 0) result.policy(`${name}-clients`, refs, { frontend }, field)
  const early = spec.at('headers', 'earlyRequestHeaders')
  const late = spec.at('headers', 'lateResponseHeaders')
  if (!early.isSet && !late.isSet) return
  const headerModifiers = compact({
    request: early.isSet ? early.take() : undefined,
    response: late.isSet ? late.take() : undefined,
  })
  result.policy(`${name}-headers`, refs, { traffic: { headerModifiers } }, field)
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

/** Converts Gateways of Istio to Gateways of the Gateway API. */
import { gatewayGroup } from '../../../ground/model/api-names.ts'
import { type Conversion, compact, type Fields } from '../conversion.ts'
import type { SourceField } from '../field.ts'
import { namesOf } from '../kubernetes.ts'
import { forwardedHeaders } from '../targets.ts'

export function convertGateway(field: SourceField, result: Conversion): void {
  const home = result.namespace
  const { name, namespace } = namesOf(field)
  result.namespace = namespace
  const spec = field.get('spec')
  spec.ignore('selector')
  const listeners = spec.items('servers').flatMap((server) => listenersOf(server))
  const object = { spec: { gatewayClassName: 'agentgateway', listeners } }
  result.create(`${gatewayGroup}/v1`, 'Gateway', name, object, field)
  const frontend = { forwarded: forwardedHeaders.appended }
  const target = { group: gatewayGroup, kind: 'Gateway', name }
  result.policy(`${name}-forwarded-headers`, [target], { frontend }, field)
  result.namespace = home
}

/** Returns a listener for each host of a server. Hosts are written as HOST or NAMESPACE/HOST. */
function listenersOf(server: SourceField): Fields[] {
  const port = server.at('port', 'number').number()
  const protocol = server.at('port', 'protocol').text()?.toUpperCase() ?? ''
  server.get('port').ignore('name', 'targetPort')
  server.ignore('name', 'defaultEndpoint')
  const tls = server.get('tls')
  const isSecure = protocol === 'HTTPS'
  if (!isSecure && !['HTTP', 'HTTP2', 'GRPC'].includes(protocol)) {
    return server.refuse('route', `protocol ${protocol} is not converted`) ?? []
  }
  if (tls.flag('httpsRedirect') === true) {
    tls
      .get('httpsRedirect')
      .report('protection', 'write an HTTPRoute with a RequestRedirect filter')
  }
  const mode = tls.text('mode')
  if (isSecure && mode !== 'SIMPLE') {
    tls.report(
      'protection',
      `mode ${mode ?? '(none)'} is not converted; clients need no certificate`,
    )
  }
  const certificate = tls.text('credentialName')
  if (isSecure && certificate === undefined) {
    return server.refuse('route', 'a listener of HTTPS needs credentialName') ?? []
  }
  return server.texts('hosts').map((text) => {
    const [host = '*', scope] = text.split('/').reverse()
    const isAny = host === '*'
    const label = `${protocol.toLowerCase()}-${port ?? 0}${isAny ? '' : `-${host}`}`
    return compact({
      name: label.replaceAll('*', 'any').replaceAll('.', '-').toLowerCase().slice(0, 63),
      port,
      protocol: isSecure ? 'HTTPS' : 'HTTP',
      hostname: isAny ? undefined : host,
      tls: isSecure ? { certificateRefs: [{ name: certificate }] } : undefined,
      allowedRoutes: { namespaces: namespacesOf(scope) },
    })
  })
}

/** The namespaces whose routes may use a host: `.` is that of the Gateway. */
function namespacesOf(scope = '*'): Fields {
  if (scope === '.') return { from: 'Same' }
  if (scope === '*') return { from: 'All' }
  const matchLabels = { 'kubernetes.io/metadata.name': scope }
  return { from: 'Selector', selector: { matchLabels } }
}

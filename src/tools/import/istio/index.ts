/** The source `istio`: VirtualServices and the Gateways that they name. */
import { gatewayGroup } from '../../../ground/model/api-names.ts'
import { type Conversion, compact, type Fields } from '../conversion.ts'
import type { SourceDocument, SourceField } from '../field.ts'
import { isStandard, namesOf, openObject, wholeObject } from '../kubernetes.ts'
import { RoutePlan } from '../plan.ts'
import { type ImportSource, objectKind } from '../source.ts'
import { addRoute, forwardedHeaders } from '../targets.ts'
import { convertGateway } from './gateway.ts'
import { convertHttp } from './http.ts'

const group = 'networking.istio.io'
const securityGroup = 'security.istio.io'

const groupOf = (document: SourceDocument) => objectKind(document)?.group

export const istio: ImportSource = {
  name: 'istio',
  port: 80,
  detects: (document) => groupOf(document) === group || groupOf(document) === securityGroup,
  convert: convertAll,
}

/** Kinds that neither protect anything nor route requests. */
const harmless = ['WorkloadEntry', 'WorkloadGroup', 'ProxyConfig']

function convertAll(documents: readonly SourceDocument[], result: Conversion): void {
  const services: SourceField[] = []
  for (const document of documents) {
    const field = openObject(document, result)
    if (field === undefined) continue
    const kind = objectKind(document)?.kind ?? ''
    if (groupOf(document) === group && kind === 'VirtualService') services.push(field)
    else if (groupOf(document) === group && kind === 'Gateway') convertGateway(field, result)
    else if (isStandard(document)) result.add(wholeObject(field), field)
    else {
      const loss = harmless.includes(kind) ? 'lost' : 'protection'
      field.refuse(loss, `${kind} is not converted`)
    }
  }
  result.forwarded = forwardedHeaders.appended
  for (const service of services) convertService(service, result)
}

function convertService(service: SourceField, result: Conversion): void {
  const home = result.namespace
  const { name, namespace } = namesOf(service)
  result.namespace = namespace
  const spec = service.get('spec')
  spec.ignore('exportTo')
  for (const kind of ['tcp', 'tls'])
    spec.get(kind).lose(`write a ${kind.toUpperCase()}Route`, 'route')
  const parentRefs = parentsOf(spec, namespace)
  const hostnames = spec.texts('hosts').filter((host) => host !== '*')
  const entries = spec.items('http')
  if (entries.length > 1) {
    spec.get('http').report('changed', 'the most specific match is used, regardless of the order')
  }
  for (const entry of entries) {
    const label = entries.length === 1 ? name : `${name}-${entries.indexOf(entry) + 1}`
    const plan = new RoutePlan()
    const rules = convertHttp(entry, { plan, namespace })
    if (rules === undefined) continue
    const routeName = result.newName('HTTPRoute', label, entry)
    const names = addRoute(
      result,
      routeName,
      compact({ parentRefs, hostnames: hostnames.length > 0 ? hostnames : undefined, rules }),
      entry,
    )
    plan.addPolicies(result, label, names, entry)
  }
  result.namespace = home
}

/** Returns references to the Gateways of a VirtualService, which are written as NAME or NAMESPACE/NAME. */
function parentsOf(spec: SourceField, home: string | undefined): Fields[] {
  const gateways = spec.items('gateways')
  if (gateways.length === 0) {
    spec.report('route', 'routes inside the mesh have no counterpart; name a Gateway')
  }
  return gateways.flatMap((field) => {
    const text = field.text() ?? ''
    if (text === 'mesh') {
      field.report('route', 'routes inside the mesh have no counterpart')
      return []
    }
    const [name = '', namespace] = text.split('/').reverse()
    return [
      compact({
        group: gatewayGroup,
        kind: 'Gateway',
        name,
        namespace: namespace === home ? undefined : namespace,
      }),
    ]
  })
}

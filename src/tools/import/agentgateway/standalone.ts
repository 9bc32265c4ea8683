/** Converts the configuration file of the standalone agentgateway: binds, listeners, routes and backends. */
import { type Conversion, compact, type Fields, filled } from '../conversion.ts'
import type { SourceDocument, SourceField } from '../field.ts'
import { RoutePlan } from '../plan.ts'
import { hasField } from '../source.ts'
import { addGateway, addRoute, gatewayName } from '../targets.ts'
import { backendRefs } from './standalone-backends.ts'
import { applyPolicies } from './standalone-policies.ts'
import type { Filters } from './standalone-scene.ts'

export const isStandalone = (document: SourceDocument): boolean => hasField(document, 'binds')

export function convertStandalone(document: SourceDocument, result: Conversion): void {
  const root = result.open(document)
  const listeners: Fields[] = []
  const routes: (() => void)[] = []
  for (const bind of root.items('binds')) {
    const port = bind.number('port') ?? 0
    bind.items('listeners').forEach((listener, index) => {
      const label = listener.text('name') ?? (index === 0 ? 'listener' : `listener-${index + 1}`)
      const name = result.nameOf('Listener', `${label}-${port}`)
      const spec = listenerOf(listener, name, port, result)
      if (spec === undefined) return
      listeners.push(spec)
      for (const route of listener.items('routes'))
        routes.push(() => convertRoute(route, name, result))
    })
  }
  addGateway(result, root, listeners)
  for (const convert of routes) convert()
}

function listenerOf(
  listener: SourceField,
  name: string,
  port: number,
  result: Conversion,
): Fields | undefined {
  listener.ignore('namespace')
  const tls = listener.get('tls')
  const protocol = listener.text('protocol') ?? (tls.isSet ? 'HTTPS' : 'HTTP')
  if (protocol !== 'HTTP' && protocol !== 'HTTPS') {
    return listener.refuse('lost', `a listener of protocol ${protocol} is not converted`)
  }
  const hostname = listener.text('hostname')
  return compact({
    name,
    port,
    protocol,
    hostname: hostname === '*' ? undefined : hostname,
    tls: protocol === 'HTTPS' ? certificateOf(tls, name, result) : undefined,
  })
}

/** Refers to a Secret, which the user creates: the configuration does not contain the certificate files. */
function certificateOf(tls: SourceField, listener: string, result: Conversion): Fields {
  const secret = result.nameOf('Secret', `${listener}-certificate`)
  tls.ignore('cert', 'key')
  const reason = `create the Secret ${secret} from these files: kubectl create secret tls ${secret} --cert … --key …`
  tls.report('secret', reason)
  return { certificateRefs: [{ name: secret }] }
}

function convertRoute(route: SourceField, listener: string, result: Conversion): void {
  route.ignore('namespace', 'ruleName')
  const label = route.text('name') ?? `route-${listener}`
  const name = result.newName('HTTPRoute', label, route)
  const plan = new RoutePlan()
  const scene = { plan, name, result, filters: [] as Filters, backend: {}, rule: {} }
  applyPolicies(route.get('policies'), scene)
  const matches = route.items('matches').map(matchOf)
  const refs = backendRefs(route, scene)
  const rule = {
    ...scene.rule,
    matches: filled(matches),
    filters: filled(scene.filters),
    backendRefs: refs,
  }
  const hostnames = route.texts('hostnames')
  const spec = {
    parentRefs: [{ name: gatewayName, sectionName: listener }],
    hostnames: filled(hostnames),
    rules: [compact(rule)],
  }
  plan.addPolicies(result, name, addRoute(result, name, spec, route), route)
}

function matchOf(field: SourceField): Fields {
  const path = field.get('path')
  const [exact, prefix, regex] = ['exact', 'pathPrefix', 'regex'].map((kind) => path.text(kind))
  return compact({
    path:
      exact !== undefined
        ? { type: 'Exact', value: exact }
        : regex !== undefined
          ? { type: 'RegularExpression', value: regex }
          : { type: 'PathPrefix', value: prefix ?? '/' },
    method: field.text('method'),
    headers: valueMatches(field.get('headers')),
    queryParams: valueMatches(field.get('query')),
  })
}

function valueMatches(list: SourceField): Fields[] | undefined {
  const matches = list.items().map((item) => {
    const name = item.text('name') ?? ''
    const regex = item.at('value', 'regex').text()
    if (regex !== undefined) return { type: 'RegularExpression', name, value: regex }
    return { name, value: item.at('value', 'exact').text() ?? '' }
  })
  return filled(matches)
}

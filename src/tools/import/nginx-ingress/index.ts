/** The source `nginx-ingress`: Ingress objects with annotations of the nginx Ingress controller. */
import { type Conversion, compact, type Fields } from '../conversion.ts'
import type { SourceDocument, SourceField } from '../field.ts'
import { isStandard, openObject, wholeObject } from '../kubernetes.ts'
import { RoutePlan } from '../plan.ts'
import { type ImportSource, labelOf, objectKind } from '../source.ts'
import { addRoute, forwardedHeaders, gatewayName, toRoute } from '../targets.ts'
import { applyAnnotations } from './annotations.ts'
import { type Canaries, canaryOf } from './canary.ts'
import { addIngressGateway, type TlsHost } from './gateway.ts'
import { listenerOf } from './listeners.ts'
import { gatewayAnnotations, ignoreBookkeeping, routeAnnotations } from './other-annotations.ts'
import { type IngressPath, pathsOf, Services } from './paths.ts'
import { ruleOf } from './rules.ts'

const isIngress = (document: SourceDocument): boolean => {
  const { group, kind } = objectKind(document) ?? {}
  return kind === 'Ingress' && group === 'networking.k8s.io'
}

export const nginxIngress: ImportSource = {
  name: 'nginx-ingress',
  port: 80,
  detects: isIngress,
  convert: convertAll,
}

/** An Ingress with its settings. */
interface Ingress {
  readonly field: SourceField
  readonly name: string
  readonly namespace: string | undefined
  readonly annotations: SourceField
  readonly paths: readonly IngressPath[]
  readonly tls: readonly TlsHost[]
}

function convertAll(documents: readonly SourceDocument[], result: Conversion): void {
  const services = new Services(documents)
  const ingresses: Ingress[] = []
  for (const document of documents) {
    if (isIngress(document)) ingresses.push(readIngress(document, services, result))
    else if (objectKind(document)?.kind !== 'IngressClass') passOn(document, result)
  }
  const namespaces = new Set(ingresses.map(({ namespace }) => namespace))
  const home = result.namespace ?? (namespaces.size === 1 ? [...namespaces][0] : undefined)
  const [first] = ingresses
  if (first === undefined) return
  result.namespace = home
  result.forwarded = forwardedHeaders.replaced
  addIngressGateway(
    result,
    ingresses.flatMap(({ tls }) => tls),
    gatewayAnnotations(ingresses, result),
    first.field,
  )
  const canaries: Canaries = new Map()
  for (const { annotations, paths } of ingresses) {
    const canary = canaryOf(annotations)
    if (canary === undefined) continue
    for (const path of paths) canaries.set(path.key, { ...canary, ref: path.backend })
  }
  for (const ingress of ingresses) {
    if (canaryOf(ingress.annotations) === undefined) convertIngress(ingress, canaries, home, result)
  }
  result.namespace = home
}

/** Services, Secrets and others are part of the result as they are. */
function passOn(document: SourceDocument, result: Conversion): void {
  const field = openObject(document, result)
  if (field === undefined) return
  if (isStandard(document)) result.add(wholeObject(field), field)
  else field.refuse('lost', 'is not a kind that Sluice reads')
}

function readIngress(document: SourceDocument, services: Services, result: Conversion): Ingress {
  const field = result.open(document, labelOf(document))
  field.ignore('apiVersion', 'kind', 'status')
  const metadata = field.get('metadata')
  const name = metadata.text('name') ?? ''
  const namespace = metadata.text('namespace')
  for (const [other, value] of metadata.entries()) if (other !== 'annotations') value.take()
  const annotations = metadata.get('annotations')
  ignoreBookkeeping(annotations)
  const spec = field.get('spec')
  spec.ignore('ingressClassName')
  const paths = pathsOf(spec, namespace, services)
  const tls = spec.items('tls').flatMap((item) => {
    const secret = item.text('secretName')
    const hosts = item.texts('hosts')
    if (secret === undefined) item.report('changed', 'without a Secret, there is no HTTPS listener')
    if (secret === undefined) return []
    return hosts.map((host) => ({ host, secret, namespace, field: item }))
  })
  return { field, name, namespace, annotations, paths, tls }
}

function convertIngress(
  { field, name, namespace, annotations, paths, tls }: Ingress,
  canaries: Canaries,
  home: string | undefined,
  result: Conversion,
): void {
  result.namespace = namespace
  const plan = new RoutePlan()
  const settings = applyAnnotations(annotations, { plan, result, name })
  const routes = [...Map.groupBy(paths, ({ host }) => host)].flatMap(([host, list]) => {
    const rules = list.flatMap((path) =>
      rulesWithCanary(path, settings, canaries, annotations, result),
    )
    const root = settings.rootRedirect === undefined ? [] : [settings.rootRedirect]
    const routeName = result.nameOf('HTTPRoute', host === '' ? name : `${name}-${host}`)
    const isTls = tls.some((entry) => entry.host === host)
    const isRedirected = isTls && settings.redirectsToTls
    const hostnames = host === '' ? undefined : [host]
    const parentRefs = parents(host, isTls, isRedirected, namespace, home)
    if (isRedirected) {
      const redirect = {
        type: 'RequestRedirect',
        requestRedirect: { scheme: 'https', statusCode: 308 },
      }
      const plain = { parentRefs: parents(host, false, false, namespace, home), hostnames }
      const redirectName = result.nameOf('HTTPRoute', `${routeName}-to-https`)
      addRoute(result, redirectName, { ...plain, rules: [{ filters: [redirect] }] }, field)
    }
    const spec = { parentRefs, hostnames, rules: [...root, ...rules] }
    return addRoute(result, routeName, spec, field, routeAnnotations(annotations))
  })
  plan.addPolicies(result, name, routes, field)
  if (Object.keys(settings.backend).length > 0) {
    result.policy(`${name}-backend`, routes.map(toRoute), { backend: settings.backend }, field)
  }
}

/** The listeners of a route: of HTTP unless it is redirected, and of HTTPS if there is a certificate. */
function parents(
  host: string,
  isTls: boolean,
  isRedirected: boolean,
  namespace: string | undefined,
  home: string | undefined,
): Fields[] {
  const gateway = compact({
    name: gatewayName,
    namespace: namespace === home ? undefined : (home ?? 'default'),
  })
  const http = isRedirected ? [] : [{ ...gateway, sectionName: 'http' }]
  return isTls ? [...http, { ...gateway, sectionName: listenerOf(host) }] : http
}

function rulesWithCanary(
  path: IngressPath,
  settings: Parameters<typeof ruleOf>[1],
  canaries: Canaries,
  annotations: SourceField,
  result: Conversion,
): Fields[] {
  const canary = canaries.get(path.key)
  const rule = ruleOf(path, settings, annotations, result)
  if (canary === undefined) return [rule]
  const weighted = [
    { ...path.backend, weight: canary.total - canary.weight },
    { ...canary.ref, weight: canary.weight },
  ]
  const matches = rule.matches as Fields[]
  const always = canary.matches.map((match) => ({
    ...rule,
    matches: matches.map((own) => ({ ...own, ...match })),
    backendRefs: [canary.ref],
  }))
  const never = canary.exclusions.map((match) => ({
    ...rule,
    matches: matches.map((own) => ({ ...own, ...match })),
  }))
  return [...always, ...never, { ...rule, backendRefs: weighted }]
}

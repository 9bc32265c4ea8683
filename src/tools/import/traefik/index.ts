/** The source `traefik`: IngressRoutes with their Middlewares and TraefikServices. */
import { isObject } from '../../../ground/base/json-object.ts'
import { type Conversion, compact, type Fields, filled } from '../conversion.ts'
import type { SourceDocument, SourceField } from '../field.ts'
import { isStandard, namesOf, openObject, wholeObject } from '../kubernetes.ts'
import { addIngressGateway, type TlsHost } from '../nginx-ingress/gateway.ts'
import { listenerOf } from '../nginx-ingress/listeners.ts'
import { RoutePlan } from '../plan.ts'
import { type ImportSource, objectKind } from '../source.ts'
import { addRoute, forwardedHeaders, gatewayName } from '../targets.ts'
import { type Alternative, alternativesOf } from './expression.ts'
import { middlewareKinds, type RouteScene } from './middlewares.ts'
import { TraefikServices } from './services.ts'

const groups = ['traefik.io', 'traefik.containo.us']

const isTraefik = (document: SourceDocument): boolean =>
  groups.includes(objectKind(document)?.group ?? '')

export const traefik: ImportSource = {
  name: 'traefik',
  port: 80,
  detects: isTraefik,
  convert: convertAll,
}

const handled = ['IngressRoute', 'Middleware', 'TraefikService']

function convertAll(documents: readonly SourceDocument[], result: Conversion): void {
  const opened = documents.flatMap((document) => {
    const field = openObject(document, result)
    return field === undefined ? [] : [{ field, kind: objectKind(document)?.kind ?? '', document }]
  })
  const of = (kind: string) =>
    opened.filter((entry) => entry.kind === kind).map(({ field }) => field)
  for (const { field, kind, document } of opened) {
    if (isStandard(document)) result.add(wholeObject(field), field)
    else if (!isTraefik(document)) field.refuse('lost', 'is not a kind that Sluice reads')
    else if (!handled.includes(kind)) refuseKind(field, kind)
  }
  const routers = of('IngressRoute')
  const [first] = routers
  if (first === undefined) return
  const namespaces = new Set(routers.map((field) => namesOf(field).namespace))
  const home = result.namespace ?? (namespaces.size === 1 ? [...namespaces][0] : undefined)
  const scene: Scene = {
    result,
    home,
    services: new TraefikServices(documents, of('TraefikService'), result),
    middlewares: new Map(of('Middleware').map((field) => [keyOf(namesOf(field)), field])),
    used: new Set(),
    tls: [],
  }
  result.forwarded = forwardedHeaders.replaced
  for (const router of routers) convertRouter(router, scene)
  for (const [key, field] of scene.middlewares) if (!scene.used.has(key)) field.take('spec')
  for (const field of of('TraefikService')) field.take('spec')
  result.namespace = home
  addIngressGateway(result, scene.tls, {}, first)
}

/** TCP and UDP routers are routes; options of TLS and of connections may protect something. */
function refuseKind(field: SourceField, kind: string): void {
  const isRoute = kind === 'IngressRouteTCP' || kind === 'IngressRouteUDP'
  field.refuse(isRoute ? 'route' : 'protection', `${kind} has no counterpart`)
}

interface Scene {
  readonly result: Conversion
  /** Namespace of the Gateway. */
  readonly home: string | undefined
  readonly services: TraefikServices
  /** By namespace and name. */
  readonly middlewares: ReadonlyMap<string, SourceField>
  readonly used: Set<string>
  /** Hosts with certificates. */
  readonly tls: TlsHost[]
}

const keyOf = ({ name, namespace = '' }: { name: string; namespace?: string | undefined }) =>
  `${namespace}/${name}`

function convertRouter(router: SourceField, scene: Scene): void {
  const { name, namespace } = namesOf(router)
  const { annotations } = router.object('metadata')
  reportAnnotations(router, annotations)
  scene.result.namespace = namespace
  const spec = router.get('spec')
  reportEntryPoints(spec)
  const tls = spec.get('tls')
  const secret = tls.text('secretName')
  tls.get('certResolver').lose('issue the certificate with cert-manager', 'lost')
  tls.get('domains').lose('certificates are named by secretName', 'lost')
  if (tls.isSet && secret === undefined) {
    tls.report('protection', 'names no Secret, so the routes are served without TLS')
  }
  const routes = spec.items('routes')
  for (const route of routes) {
    const label = routes.length === 1 ? name : `${name}-${routes.indexOf(route) + 1}`
    convertRoute(route, { label, namespace, secret, tls }, scene)
  }
}

/** Entry points that usually everybody reaches. */
const publicPoints = new Set(['web', 'websecure', 'http', 'https'])

function reportEntryPoints(spec: SourceField): void {
  for (const field of spec.items('entryPoints')) {
    const name = field.text() ?? ''
    if (publicPoints.has(name)) continue
    field.report('protection', `who reaches ${name} is not known; the Gateway serves the routes`)
  }
}

const bookkeeping = /^(kubectl\.kubernetes\.io\/|meta\.helm\.sh\/|kubernetes\.io\/ingress\.class$)/

function reportAnnotations(router: SourceField, annotations: unknown): void {
  for (const name of Object.keys(isObject(annotations) ? annotations : {})) {
    if (bookkeeping.test(name)) continue
    router.report('lost', `the annotation ${name} is not carried over`)
  }
}

interface Router {
  readonly label: string
  readonly namespace: string | undefined
  /** Name of the Secret with the certificate; undefined for routes without TLS. */
  readonly secret: string | undefined
  readonly tls: SourceField
}

function convertRoute(route: SourceField, router: Router, scene: Scene): void {
  const { label, namespace, secret, tls } = router
  const { result } = scene
  route.ignore('kind', 'syntax', 'observability')
  route.get('priority').lose('more specific matches come first', 'changed')
  const match = route.get('match')
  const alternatives = alternativesOf(match.text() ?? '')
  if (typeof alternatives === 'string') {
    route.refuse('route', `${alternatives}; the route is left out`)
    return
  }
  const settings: RouteScene = {
    plan: new RoutePlan(),
    result,
    pathChanges: [],
    redirect: undefined,
  }
  for (const middleware of route.items('middlewares')) apply(middleware, namespace, scene, settings)
  const backendRefs = scene.services.backends(route.items('services'), namespace)
  const plan = settings.plan
  const byHost = Map.groupBy(alternatives, ({ host }) => host)
  const names = [...byHost].flatMap(([host, list]) => {
    const isSecure = secret !== undefined && host !== undefined
    if (secret !== undefined && host === undefined) {
      route.report(
        'protection',
        'the rule has no host, which TLS needs; the route is served without TLS',
      )
    }
    if (isSecure) scene.tls.push({ host, secret, namespace, field: tls })
    const parent = {
      name: gatewayName,
      namespace: namespace === scene.home ? undefined : (scene.home ?? 'default'),
      sectionName: isSecure ? listenerOf(host) : 'http',
    }
    const text = byHost.size === 1 ? label : `${label}-${host ?? 'any'}`
    const rules = list.map((alternative) => ruleOf(alternative, settings, backendRefs, match))
    return addRoute(
      result,
      result.newName('HTTPRoute', text, route),
      { parentRefs: [compact(parent)], hostnames: host === undefined ? undefined : [host], rules },
      route,
    )
  })
  plan.addPolicies(result, label, names, route)
}

function ruleOf(
  { path, method, headers, queryParams }: Alternative,
  { pathChanges, redirect }: RouteScene,
  backendRefs: readonly Fields[],
  match: SourceField,
): Fields {
  if (path?.type === 'PathPrefix' && !path.value.endsWith('/')) {
    const { value } = path
    match.report('changed', `matches ${value} and ${value}/…, but not ${value}… without a slash`)
  }
  const matches = [
    compact({ path, method, headers: filled(headers), queryParams: filled(queryParams) }),
  ]
  if (redirect !== undefined) {
    return { matches, filters: [{ type: 'RequestRedirect', requestRedirect: redirect }] }
  }
  const [change, ...others] = pathChanges.flatMap((of) => of(path) ?? [])
  if (others.length > 0) match.report('route', 'only the first change of the path is made')
  const filters =
    change === undefined ? undefined : [{ type: 'URLRewrite', urlRewrite: { path: change } }]
  return compact({ matches, filters, backendRefs })
}

const maxChain = 8

/** Applies the middleware that a reference names. A chain applies its middlewares in order. */
function apply(
  reference: SourceField,
  home: string | undefined,
  scene: Scene,
  settings: RouteScene,
  depth = 0,
): void {
  const namespace = reference.text('namespace') ?? home
  const key = keyOf({ name: reference.text('name') ?? '', namespace })
  const middleware = scene.middlewares.get(key)
  if (middleware === undefined || depth > maxChain) {
    reference.report('protection', `Middleware ${key.replace(/^\//, '')} is not in these files`)
    return
  }
  scene.used.add(key)
  for (const [name, field] of middleware.entries('spec')) {
    if (name === 'chain') {
      for (const next of field.items('middlewares')) {
        apply(next, namespace, scene, settings, depth + 1)
      }
    } else if (Object.hasOwn(middlewareKinds, name)) middlewareKinds[name]?.(field, settings)
    else field.refuse('protection', `${name} is not converted; it may protect something`)
  }
  reportSecretNamespace(reference, middleware, namespace, home, settings)
}

/** Reports a Secret of basic authentication that is in another namespace than the route, where it is read. */
function reportSecretNamespace(
  reference: SourceField,
  middleware: SourceField,
  namespace: string | undefined,
  home: string | undefined,
  { plan }: RouteScene,
): void {
  const isAuth = middleware.get('spec').has('basicAuth') && plan.traffic.basicAuthentication
  if (!isAuth || namespace === home) return
  reference.report(
    'stricter',
    `copy the Secret of the Middleware to namespace ${home ?? 'default'}`,
  )
}

/** The source `kong`: declarative configuration of Kong Gateway (decK, DB-less). */
import { type Conversion, compact, type Fields } from '../conversion.ts'
import type { SourceDocument, SourceField } from '../field.ts'
import { RoutePlan } from '../plan.ts'
import { hasField, type ImportSource } from '../source.ts'
import {
  addBackend,
  addGateway,
  addRoute,
  addStatic,
  duration,
  forwardedHeaders,
  parseAddress,
} from '../targets.ts'
import { Consumers } from './consumers.ts'
import { matchesOf } from './matches.ts'
import { applyPlugin, reportPlugin } from './plugins.ts'

export const kong: ImportSource = {
  name: 'kong',
  port: 8000,
  detects: (document) => hasField(document, '_format_version', '_transform'),
  convert(documents, result) {
    for (const document of documents) convertConfig(document, result)
  },
}

/** Fields for the administration of Kong, which have no meaning for requests. */
const administrative = ['id', 'tags', 'created_at', 'updated_at']

interface KongRoute {
  readonly route: SourceField
  /** Undefined for a route without service. */
  readonly service: SourceField | undefined
}

function convertConfig(document: SourceDocument, result: Conversion): void {
  const root = result.open(document)
  root.ignore('_format_version', '_transform', '_info', '_workspace', '_plugin_configs')
  const services = root.items('services')
  const upstreams = new Map(
    root.items('upstreams').map((upstream) => [upstream.text('name') ?? '', upstream] as const),
  )
  const consumers = new Consumers(root, result)
  const plugins = new Plugins(root)
  result.forwarded = forwardedHeaders.appended
  addGateway(result, root)
  for (const { route, service } of routesOf(root, services)) {
    convertRoute(route, service, { upstreams, consumers, plugins }, result)
  }
  for (const upstream of upstreams.values()) {
    upstream.ignore(...administrative, 'name', 'algorithm', 'slots')
    upstream.get('healthchecks').lose('backends are judged by their answers')
  }
}

/** Routes below services, and those that name their service. */
function routesOf(root: SourceField, services: readonly SourceField[]): KongRoute[] {
  const byName = new Map(
    services.flatMap((service) => [
      [service.text('name'), service] as const,
      [service.text('id'), service] as const,
    ]),
  )
  const nested = services.flatMap((service) =>
    service.items('routes').map((route) => ({ route, service })),
  )
  const others = root.items('routes').map((route) => {
    const name = referenceOf(route.get('service'))
    const service = name === undefined ? undefined : byName.get(name)
    if (name !== undefined && service === undefined) {
      route.get('service').report('lost', `no service has the name ${name}`)
    }
    return { route, service }
  })
  return [...nested, ...others]
}

/** A reference is a name, or an object with `name` or `id`. */
function referenceOf(field: SourceField): string | undefined {
  if (typeof field.value === 'string') return field.text()
  return field.text('name') ?? field.text('id')
}

/** The plugins of a configuration, by what they are attached to. */
class Plugins {
  readonly #global: SourceField[] = []
  readonly #byTarget = new Map<string, SourceField[]>()

  constructor(root: SourceField) {
    for (const plugin of root.items('plugins')) {
      const consumer = plugin.get('consumer')
      const group = plugin.get('consumer_group')
      const route = referenceOf(plugin.get('route'))
      const service = referenceOf(plugin.get('service'))
      if (consumer.isSet || group.isSet) reportPlugin(plugin, 'applies to one consumer')
      else if (route !== undefined) this.#add(`route ${route}`, plugin)
      else if (service !== undefined) this.#add(`service ${service}`, plugin)
      else this.#global.push(plugin)
    }
  }

  #add(target: string, plugin: SourceField): void {
    const known = this.#byTarget.get(target)
    if (known === undefined) this.#byTarget.set(target, [plugin])
    else known.push(plugin)
  }

  #of(kind: string, owner: SourceField | undefined): SourceField[] {
    if (owner === undefined) return []
    const names = [owner.text('name'), owner.text('id')]
    const attached = names.flatMap((name) =>
      name === undefined ? [] : (this.#byTarget.get(`${kind} ${name}`) ?? []),
    )
    return [...attached, ...owner.items('plugins')]
  }

  /** The plugins of a route: for each name, the one that is attached most specifically. */
  effective(route: SourceField, service: SourceField | undefined): SourceField[] {
    const all = [...this.#global, ...this.#of('service', service), ...this.#of('route', route)]
    const byName = new Map(all.map((plugin) => [plugin.text('name') ?? '', plugin]))
    return [...byName.values()].filter((plugin) => {
      plugin.ignore(...administrative, 'protocols', 'instance_name', 'ordering')
      const isEnabled = plugin.flag('enabled') !== false
      if (!isEnabled) plugin.take()
      return isEnabled
    })
  }
}

interface KongParts {
  readonly upstreams: ReadonlyMap<string, SourceField>
  readonly consumers: Consumers
  readonly plugins: Plugins
}

function convertRoute(
  route: SourceField,
  service: SourceField | undefined,
  { upstreams, consumers, plugins }: KongParts,
  result: Conversion,
): void {
  route.ignore(...administrative, 'request_buffering', 'response_buffering', 'path_handling')
  const label = route.text('name') ?? service?.text('name') ?? 'route'
  const name = result.newName('HTTPRoute', label, route)
  const plan = new RoutePlan()
  for (const plugin of plugins.effective(route, service)) {
    applyPlugin(plugin, { plan, consumers, result, name })
  }
  const target = matchesOf(route, service?.text('path') ?? servicePath(service))
  if (target === undefined) return
  const { hostnames, matches } = target
  const models = plan.modelBackend()
  const backendRefs =
    models === undefined
      ? serviceRefs(service, upstreams, result)
      : [addBackend(result, name, models, route)]
  if (models === undefined) applyService(service, route, plan)
  if (backendRefs.length === 0 && plan.traffic.directResponse === undefined) {
    route.report('lost', 'the route has no service; its requests get 500')
  }
  const rules = matches.map(({ match, rewrite }) =>
    compact({
      matches: match,
      filters: models === undefined && rewrite !== undefined ? [rewrite] : undefined,
      backendRefs,
    }),
  )
  const routes = addRoute(result, name, { hostnames, rules }, route)
  plan.addPolicies(result, name, routes, route)
}

const servicePath = (service: SourceField | undefined): string | undefined =>
  parseAddress(service?.text('url') ?? '')?.path

/** Settings of the service and the route that apply to its connections. */
function applyService(service: SourceField | undefined, route: SourceField, plan: RoutePlan): void {
  const keepsHost = route.flag('preserve_host') === true
  plan.traffic.hostRewrite = { mode: keepsHost ? 'None' : 'Auto' }
  if (service === undefined) return
  service.ignore(...administrative, 'name')
  const retries = service.number('retries')
  if (retries !== undefined && retries > 0) plan.traffic.retry ??= { attempts: retries }
  const read = service.get('read_timeout')
  const readMs = read.number()
  if (readMs !== undefined) {
    plan.traffic.timeouts = { request: duration(readMs) }
    read.report('changed', 'limits the whole response, not the time between two reads')
  }
  service.ignore('write_timeout', 'enabled')
}

/** References to the addresses of a service, with the weights of its upstream. */
function serviceRefs(
  service: SourceField | undefined,
  upstreams: ReadonlyMap<string, SourceField>,
  result: Conversion,
): Fields[] {
  if (service === undefined) return []
  const url = service.get('url')
  const parsed = url.isSet ? parseAddress(url.text() ?? '') : undefined
  if (url.isSet && parsed === undefined) {
    url.report('lost', 'is not an http or https URL')
    return []
  }
  const protocol = service.text('protocol') ?? (parsed?.isTls ? 'https' : 'http')
  if (!/^(http|https|grpc|grpcs)$/.test(protocol)) {
    service.get('protocol').report('lost', `the protocol ${protocol} is not converted`)
    return []
  }
  const isTls = protocol.endsWith('s')
  const host = parsed?.host ?? service.text('host') ?? ''
  const port = parsed?.port ?? service.number('port') ?? (isTls ? 443 : 80)
  const policies = backendPolicies(service, isTls, protocol)
  const targets = upstreams.get(host)?.items('targets')
  if (targets === undefined) return [addStatic(result, { host, port, isTls }, service, policies)]
  return targets.flatMap((target) => {
    target.ignore(...administrative)
    const [, targetHost = '', , targetPort] =
      /^(.*?)(:(\d+))?$/.exec(target.text('target') ?? '') ?? []
    const address = { host: targetHost, port: Number(targetPort ?? 8000), isTls }
    const weight = target.number('weight') ?? 100
    return [{ ...addStatic(result, address, target, policies), weight }]
  })
}

function backendPolicies(service: SourceField, isTls: boolean, protocol: string): Fields {
  const connect = service.number('connect_timeout')
  const verify = service.get('tls_verify')
  const isUnverified = isTls && verify.flag() === false
  if (isTls && !verify.isSet) {
    service.report('changed', 'the certificate of the service is verified')
  }
  return {
    tcp: connect === undefined ? undefined : { connectTimeout: duration(connect) },
    tls: isUnverified ? { insecureSkipVerify: 'All' } : isTls ? {} : undefined,
    http: protocol.startsWith('grpc') ? { version: 'HTTP2' } : undefined,
  }
}

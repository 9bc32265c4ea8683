/** Random configurations of a world, and what they mean for requests. */
import type { Resource } from '../../src/ground/model/resources.ts'
import {
  backend,
  listener,
  match,
  policy,
  route,
  service,
  slice,
  toBackend,
  toService,
} from '../proxy/plane-resources.ts'
import type { Random } from '../virtual-time/random.ts'

export interface SimulatedRoute {
  readonly name: string
  readonly upstreams: readonly string[]
  /** Whether its upstreams speak HTTP/2. */
  readonly isHttp2: boolean
  /** Whether it leads to a model, with guards that mask email addresses in both directions. */
  readonly isModel: boolean
  /** Number of times that a failed attempt is repeated. */
  readonly retries: number
  /** Statuses that are retried. */
  readonly retryCodes: readonly number[]
  /** Longest time until the response is over, in milliseconds. */
  readonly timeoutMs: number
  /** Whether its upstreams end connections after a response without saying so. */
  readonly mayEnd: boolean
  /** Whether only requests with `X-Role: reader` may pass. */
  readonly isGuarded: boolean
  /** Whether the gateway reads whole responses, to replace their body by the same one and to set `X-Seen`. */
  readonly rewritesResponses: boolean
  /** The same for requests. */
  readonly rewritesRequests: boolean
}

export interface Configuration {
  readonly resources: readonly Resource[]
  readonly port: number
  readonly routes: readonly SimulatedRoute[]
  /** Addresses of the upstreams by their names. */
  readonly upstreams: ReadonlyMap<string, { readonly host: string; readonly port: number }>
}

const upstreamPort = 9_000

export function randomConfiguration(random: Random): Configuration {
  const port = 8_080
  const upstreams = new Map<string, { host: string; port: number }>()
  const routes: SimulatedRoute[] = []
  const resources: Resource[] = [listener(port)]
  for (let at = 0, count = 1 + random.below(3); at < count; at++) {
    const name = `r${at}`
    const endpoints = Array.from({ length: 1 + random.below(2) }, (_, index) => {
      const upstream = `u${at}-${index}`
      upstreams.set(upstream, { host: `10.0.2.${10 * at + index + 1}`, port: upstreamPort })
      return upstream
    })
    const retries = random.chance(0.3) ? 1 + random.below(2) : 0
    const retryCodes = random.chance(0.5) ? [503] : []
    const timeoutMs = random.pick([2_000, 10_000, 30_000])
    const isGuarded = random.chance(0.3)
    const rewritesResponses = random.chance(0.4)
    const rewritesRequests = random.chance(0.3)
    const mayEnd = random.chance(0.3)
    const isModel = random.chance(0.3)
    const isHttp2 = !isModel && random.chance(0.3)
    const rules = { mayEnd, isGuarded, isModel, isHttp2, rewritesResponses, rewritesRequests }
    routes.push({ name, upstreams: endpoints, retries, retryCodes, timeoutMs, ...rules })
    const hosts = endpoints.map((one) => upstreams.get(one)?.host ?? '')
    resources.push(...(isModel ? modelAt(name, hosts) : serviceAt(name, hosts, isHttp2)))
    const to = isModel ? toBackend(name) : toService(name)
    resources.push(route({ name, matches: [match(`/${name}`)], to: [to] }))
    const target = { kind: 'HTTPRoute', namespace: 'shop', name }
    resources.push(
      policy(target, 'timeouts', { request: `${timeoutMs}ms` }, { name: `timeouts-${name}` }),
    )
    if (isGuarded) {
      const expression = "request.headers['x-role'] == 'reader'"
      const spec = { action: 'Require', policy: { matchExpressions: [expression] } }
      resources.push(policy(target, 'authorization', spec, { name: `roles-${name}` }))
    }
    if (rewritesResponses || rewritesRequests) {
      const response = {
        set: [{ name: 'x-seen', value: "response.headers['x-tag']" }],
        body: 'response.body',
      }
      const request = {
        set: [{ name: 'x-seen', value: "request.headers['x-tag']" }],
        body: 'request.body',
      }
      const spec = { ...(rewritesResponses && { response }), ...(rewritesRequests && { request }) }
      resources.push(policy(target, 'transformation', spec, { name: `rewrites-${name}` }))
    }
    if (retries > 0) {
      const spec = { attempts: retries, backoff: '25ms', codes: retryCodes }
      resources.push(policy(target, 'retry', spec, { name: `retry-${name}` }))
    }
  }
  return { resources, port, routes, upstreams }
}

function serviceAt(name: string, hosts: readonly string[], isHttp2: boolean): Resource[] {
  const protocol = isHttp2 ? { appProtocol: 'kubernetes.io/h2c' } : {}
  const endpoints = hosts.map((address) => ({ address, ready: true }))
  return [
    service(name, { ports: [{ name: 'http', port: 80, ...protocol }] }),
    slice(name, upstreamPort, { endpoints }),
  ]
}

/** A model of a vendor whose guards mask email addresses; each host is a provider of equal priority. */
function modelAt(name: string, hosts: readonly string[]): Resource[] {
  const providers = hosts.map((host) => ({
    name: host,
    config: { vendor: 'vendorA' },
    host,
    port: upstreamPort,
  }))
  const mask = { regex: { builtins: ['Email'], action: 'Mask' } }
  const spec = { promptGuard: { request: [mask], response: [mask] } }
  const target = { kind: 'GatewayBackend', namespace: 'shop', name }
  return [
    backend(name, { type: 'ai', groups: [providers] }),
    policy(target, 'ai', spec, { name: `guards-${name}`, section: 'backend' }),
  ]
}

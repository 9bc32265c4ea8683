/** Random configurations of a world, and what they mean for requests. */
import { modelPlaces, type Place, responsePlaces } from '../../src/engines/messages/mask/places.ts'
import type { Resource, RouteFilter, SessionPersistence } from '../../src/ground/model/resources.ts'
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
import { keyPolicy, type RouteKeys, randomKeys } from './api-keys.ts'
import type { Emphasis } from './emphasis.ts'
import { clientFormats, type VendorName, vendorNames } from './formats/index.ts'
import { callerField } from './services/authorization.ts'
import {
  addressOf,
  type ServiceName,
  serviceNames,
  servicePort,
} from './services/policy-services.ts'
import { countedEntries, limitDomain } from './services/rate-limits.ts'
import { randomSession } from './sessions.ts'

interface Limit {
  readonly unit: 'Seconds' | 'Minutes'
  readonly burst: number
}

export interface RequestLimit extends Limit {
  readonly requests: number
}

/** A limit of the tokens that vendors bill. */
export interface TokenLimit extends Limit {
  readonly tokens: number
}

export interface SimulatedRoute {
  readonly name: string
  readonly upstreams: readonly string[]
  /** Whether its upstreams speak HTTP/2. */
  readonly isHttp2: boolean
  /** Whether it leads to a model, with guards that mask email addresses in both directions. */
  readonly isModel: boolean
  /** The vendor of all providers of the model, whose format the gateway translates to. */
  readonly vendor: VendorName
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
  /** The service that is asked whether a request may pass. */
  readonly authorizer: 'http-auth' | 'grpc-auth' | undefined
  /** Largest body that the service gets; undefined if it gets none. */
  readonly sentBody: number | undefined
  /** Whether an external processor changes requests and responses. */
  readonly isProcessed: boolean
  /** The places that the guards of a model read; undefined for the usual ones. */
  readonly scope: readonly Place[] | undefined
  /** Whether webhooks judge the texts of a model after the masks. */
  readonly webhooks: { readonly request: boolean; readonly response: boolean }
  /** Keys without which requests are refused; undefined if they need none. */
  readonly keys: RouteKeys | undefined
  /** How clients stay at their endpoint; undefined if they need not. */
  readonly session: SessionPersistence | undefined
  /** The server that gets a copy of each request; undefined if none does. */
  readonly mirror: string | undefined
  /** Whether a rate limit service counts its requests, and the tokens of a model. */
  readonly isCounted: boolean
  /** Whether requests with `X-Role: writer` are refused. */
  readonly refusesWriters: boolean
  readonly limit: RequestLimit | undefined
  readonly tokenLimit: TokenLimit | undefined
  /** Whether each provider of a model is asked only if those before it fail. */
  readonly hasGroups: boolean
  /** Largest body that the gateway reads as a whole. */
  readonly maxBuffer: number
  /** Whether the gateway reads whole responses, to replace their body by the same one and to set `X-Seen`. */
  readonly rewritesResponses: boolean
  /** The same for requests. */
  readonly rewritesRequests: boolean
}

interface Address {
  readonly host: string
  readonly port: number
}

export interface Configuration {
  readonly resources: readonly Resource[]
  readonly port: number
  readonly routes: readonly SimulatedRoute[]
  /** Addresses of the upstreams and mirrors by their names. */
  readonly upstreams: ReadonlyMap<string, Address>
}

const upstreamPort = 9_000
const defaultMaxBuffer = 2_097_152

/** `keyRandom` chooses keys, and `epochMs` is the wall clock when the world begins. */
export function randomConfiguration(
  random: Random,
  keyRandom: Random,
  emphasis: Emphasis,
  epochMs: number,
): Configuration {
  const port = 8_080
  const upstreams = new Map<string, Address>()
  const routes: SimulatedRoute[] = []
  const resources: Resource[] = [listener(port), ...serviceNames.flatMap(policyService)]
  for (let at = 0, count = emphasis.isShort ? 1 : 1 + random.below(3); at < count; at++) {
    const hosts = Array.from({ length: 1 + random.below(2) }, (_, index) => {
      const host = `10.0.2.${10 * at + index + 1}`
      upstreams.set(`u${at}-${index}`, { host, port: upstreamPort })
      return host
    })
    const names = hosts.map((_, index) => `u${at}-${index}`)
    const keys = randomKeys(keyRandom, emphasis.of('keys', 0.2))
    const plain = randomRoute(random, emphasis, `r${at}`, names)
    const session = plain.isModel
      ? undefined
      : randomSession(keyRandom, emphasis.of('session', 0.25))
    const one = { ...plain, keys, session, scope: randomScope(emphasis.scopes, plain) }
    routes.push(one)
    resources.push(...backendOf(one, hosts), ...policiesOf(one))
    if (one.keys !== undefined) resources.push(keyPolicy(one.name, one.keys, epochMs, true))
    const filters: RouteFilter[] = []
    if (one.mirror !== undefined) {
      const host = `10.0.4.${at + 1}`
      upstreams.set(one.mirror, { host, port: upstreamPort })
      resources.push(...serviceAt(one.mirror, [host], one.isHttp2))
      filters.push({ type: 'mirror', target: toService(one.mirror), numerator: 1, denominator: 1 })
    }
    const to = one.isModel ? toBackend(one.name) : toService(one.name)
    const matches = [match(`/${one.name}`)]
    resources.push(
      route({ name: one.name, matches, filters, to: [to], ...(session && { session }) }),
    )
  }
  return { resources, port, routes, upstreams }
}

function randomRoute(
  random: Random,
  emphasis: Emphasis,
  name: string,
  upstreams: readonly string[],
): Omit<SimulatedRoute, 'keys' | 'session' | 'scope'> {
  const has = (feature: string, usual: number) => random.chance(emphasis.of(feature, usual))
  const isModel = has('model', 0.3)
  return {
    name,
    upstreams,
    isModel,
    vendor: random.pick(vendorNames),
    isHttp2: !isModel && has('HTTP/2', 0.3),
    retries: has('retries', 0.3) ? 1 + random.below(2) : 0,
    retryCodes: random.chance(0.5) ? [503] : [],
    timeoutMs: random.pick([2_000, 10_000, 30_000]),
    mayEnd: has('ends', 0.3),
    isGuarded: has('authorization', 0.3),
    authorizer: has('authorizer', 0.3)
      ? random.pick(['http-auth', 'grpc-auth'] as const)
      : undefined,
    sentBody: random.chance(0.4) ? random.pick([100, 8_000, 100_000]) : undefined,
    isProcessed: has('processor', 0.35),
    webhooks: {
      request: isModel && has('webhook', 0.4),
      response: isModel && has('webhook', 0.4),
    },
    mirror: !isModel && has('mirror', 0.2) ? `${name}-mirror` : undefined,
    isCounted: has('rate limit service', 0.2),
    refusesWriters: has('authorization', 0.15),
    limit: has('limit', 0.2)
      ? {
          requests: 1 + random.below(3),
          unit: random.pick(['Seconds', 'Minutes'] as const),
          burst: random.below(3),
        }
      : undefined,
    tokenLimit:
      isModel && has('token limit', 0.4)
        ? { tokens: random.pick([100, 1_000, 5_000]), unit: 'Minutes', burst: random.below(100) }
        : undefined,
    maxBuffer: defaultMaxBuffer,
    hasGroups: random.chance(0.5),
    rewritesResponses: has('rewritten responses', 0.4),
    rewritesRequests: has('rewritten requests', 0.3),
  }
}

function backendOf(one: SimulatedRoute, hosts: readonly string[]): Resource[] {
  return one.isModel ? modelAt(one, hosts) : serviceAt(one.name, hosts, one.isHttp2)
}

/** A Service with the endpoint of a policy service. */
function policyService(name: ServiceName): Resource[] {
  const endpoints = [{ address: addressOf(name).host, ready: true }]
  return [service(name), slice(name, servicePort, { endpoints })]
}

function serviceAt(name: string, hosts: readonly string[], isHttp2: boolean): Resource[] {
  const protocol = isHttp2 ? { appProtocol: 'kubernetes.io/h2c' } : {}
  const endpoints = hosts.map((address) => ({ address, ready: true }))
  return [
    service(name, { ports: [{ name: 'http', port: 80, ...protocol }] }),
    slice(name, upstreamPort, { endpoints }),
  ]
}

const refTo = (name: ServiceName) => ({ backendRef: { name, port: 80 } })

/** Some places for the guards of a model that no webhook judges. */
function randomScope(
  random: Random,
  { isModel, webhooks }: Pick<SimulatedRoute, 'isModel' | 'webhooks'>,
): readonly Place[] | undefined {
  if (!isModel || webhooks.request || webhooks.response || !random.chance(0.5)) return undefined
  const scope = modelPlaces.filter(() => random.chance(0.4))
  return scope.length === 0 ? [random.pick(modelPlaces)] : scope
}

/** A model of a vendor; each host is a provider. */
function modelAt(
  { name, vendor, webhooks, hasGroups, scope }: SimulatedRoute,
  hosts: readonly string[],
): Resource[] {
  const providers = hosts.map((host) => ({
    name: host,
    config: { vendor },
    host,
    port: upstreamPort,
  }))
  const mask = { regex: { builtins: ['Email'], action: 'Mask' } }
  const forwardHeaderMatches = [{ name: 'x-tag', type: 'RegularExpression', value: '.*' }]
  const webhook = { webhook: { ...refTo('webhook'), forwardHeaderMatches } }
  const guards = (isAsked: boolean, places = scope) => {
    if (places !== undefined) return places.length === 0 ? [] : [{ ...mask, scope: places }]
    return isAsked ? [mask, webhook] : [mask]
  }
  const ofResponse = scope?.filter((place) => responsePlaces.has(place))
  const types = Object.entries(clientFormats).map(([type, { path }]) => [path, type])
  const spec = {
    routes: Object.fromEntries(types),
    promptGuard: {
      request: guards(webhooks.request),
      response: guards(webhooks.response, ofResponse),
    },
  }
  const target = { kind: 'GatewayBackend', namespace: 'shop', name }
  return [
    backend(name, { type: 'ai', groups: hasGroups ? providers.map((one) => [one]) : [providers] }),
    policy(target, 'ai', spec, { name: `guards-${name}`, section: 'backend' }),
  ]
}

/** The policies of a route. */
function policiesOf(one: SimulatedRoute): Resource[] {
  const specs: Record<string, unknown> = {
    timeouts: { request: `${one.timeoutMs}ms` },
    authorization: authorizationRules(one),
    extAuth: one.authorizer && authorizationSpec(one.authorizer, one.sentBody),
    extProc: one.isProcessed && refTo('processor'),
    rateLimit: limitsOf(one),
    transformation: rewritingSpec(one),
    retry: one.retries > 0 && {
      attempts: one.retries,
      backoff: '25ms',
      codes: one.retryCodes,
    },
  }
  const target = { kind: 'HTTPRoute', namespace: 'shop', name: one.name }
  return Object.entries(specs).flatMap(([field, spec]) =>
    spec ? [policy(target, field, spec, { name: `${field.toLowerCase()}-${one.name}` })] : [],
  )
}

/** Merges the rules of both kinds into one policy, since there is one for each target. */
function authorizationRules({ isGuarded, refusesWriters }: SimulatedRoute) {
  const isRole = (role: string) => `request.headers['x-role'] == '${role}'`
  if (isGuarded) return { action: 'Require', policy: { matchExpressions: [isRole('reader')] } }
  return refusesWriters && { action: 'Deny', policy: { matchExpressions: [isRole('writer')] } }
}

function limitsOf({ limit, tokenLimit, isCounted, isModel }: SimulatedRoute) {
  if (!isCounted && limit === undefined && tokenLimit === undefined) return undefined
  const descriptor = (name: string, unit: string) => ({
    entries: [{ name, expression: "request.headers['x-tag']" }],
    unit,
  })
  const requests = descriptor(countedEntries.requests, 'Requests')
  const tokens = descriptor(countedEntries.tokens, 'Tokens')
  const descriptors = isModel ? [requests, tokens] : [requests]
  const global = { domain: limitDomain, ...refTo('rate-limits'), descriptors }
  return {
    local: [limit, tokenLimit].filter((one) => one !== undefined),
    ...(isCounted && { global }),
  }
}

function authorizationSpec(authorizer: 'http-auth' | 'grpc-auth', sentBody: number | undefined) {
  return {
    ...refTo(authorizer),
    ...(sentBody !== undefined && { forwardBody: { maxSize: sentBody } }),
    ...(authorizer === 'http-auth'
      ? { http: { allowedResponseHeaders: [callerField] } }
      : { grpc: {} }),
  }
}

function rewritingSpec({ rewritesRequests, rewritesResponses }: SimulatedRoute) {
  if (!rewritesRequests && !rewritesResponses) return undefined
  const response = {
    set: [{ name: 'x-seen', value: "response.headers['x-tag']" }],
    body: 'response.body',
  }
  const request = {
    set: [{ name: 'x-seen', value: "request.headers['x-tag']" }],
    body: 'request.body',
  }
  return { ...(rewritesResponses && { response }), ...(rewritesRequests && { request }) }
}

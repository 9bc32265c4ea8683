/** People and other controllers, who change objects in the API server. */
import { KubeError, type KubeObject } from '../../src/control/kube/index.ts'
import type { Random } from '../virtual-time/random.ts'
import type { World } from '../virtual-time/world.ts'
import type { ApiServer } from './api-server.ts'
import { secretMark } from './checks.ts'

const gatewayApi = 'apis/gateway.networking.k8s.io/v1'
const own = 'apis/sluice.dev/v1alpha1'
const group = 'gateway.networking.k8s.io'

const counts = { services: 3, routes: 4, policies: 3, secrets: 2 } as const

export class Users {
  readonly #apiServer: ApiServer
  readonly #random: Random
  readonly #world: World
  /** Whether objects may be invalid now. */
  mayErr = true

  constructor(world: World, apiServer: ApiServer, random: Random) {
    this.#world = world
    this.#apiServer = apiServer
    this.#random = random
  }

  /** Creates what the cluster has at the start. */
  begin(): void {
    const definitions = 'apis/apiextensions.k8s.io/v1/customresourcedefinitions'
    const annotations = { 'gateway.networking.k8s.io/bundle-version': 'v1.4.0' }
    this.#put(`${definitions}/gateways.${group}`, { annotations }, {})
    for (const name of ['apps', 'shared']) this.#put(`api/v1/namespaces/${name}`, {}, {})
    this.#parameters()
    for (const name of ['a', 'b']) this.#gateway(name)
    for (let number = 0; number < counts.services; number++) this.#service(number)
    for (let number = 0; number < counts.secrets; number++) this.#secret(number)
    for (let number = 0; number < counts.routes; number++) this.#route(number)
    for (let number = 0; number < counts.policies; number++) this.#policy(number)
    this.#grant()
  }

  /** Makes one change. */
  act(): void {
    const random = this.#random
    const route = random.below(counts.routes)
    const policy = random.below(counts.policies)
    const acts: (readonly [weight: number, act: () => void])[] = [
      [6, () => this.#route(route)],
      [2, () => this.#remove(`${gatewayApi}/namespaces/apps/httproutes/r${route}`)],
      [4, () => this.#service(random.below(counts.services))],
      [3, () => this.#secret(random.below(counts.secrets))],
      [3, () => this.#policy(policy)],
      [1, () => this.#remove(`${own}/namespaces/apps/gatewaypolicies/p${policy}`)],
      [3, () => this.#gateway(random.pick(['a', 'b']))],
      [
        0.3,
        () => this.#remove(`${gatewayApi}/namespaces/apps/gateways/${random.pick(['a', 'b'])}`),
      ],
      [1, () => this.#parameters()],
      [1, () => this.#grant()],
      [1, () => this.#remove(`${gatewayApi}/namespaces/shared/referencegrants/routes`)],
      [1, () => this.#remove(`api/v1/namespaces/apps/secrets/s${random.below(counts.secrets)}`)],
      [2, () => this.#foreignStatus(route)],
    ]
    let place = random.between(
      0,
      acts.reduce((sum, [weight]) => sum + weight, 0),
    )
    for (const [weight, act] of acts) {
      place -= weight
      if (place >= 0) continue
      act()
      return
    }
  }

  /** Makes every object valid, and creates what was deleted. */
  repair(): void {
    this.mayErr = false
    for (const name of ['a', 'b']) this.#gateway(name)
    for (let number = 0; number < counts.routes; number++) this.#route(number)
    for (let number = 0; number < counts.policies; number++) this.#policy(number)
    this.mayErr = true
  }

  /** Under which conditions, and in which steps, changes of both Gateways take effect. */
  #parameters(): void {
    const steps = { steps: [{ proxies: 1 }, { proxies: '50%' }], hold: '3s', analysis: [] }
    const [mode, rollout] = this.#random.pick([
      ['Hold', steps],
      ['Hold', undefined],
      ['Hold', { ...steps, steps: [{ proxies: '50%' }], hold: '20s' }],
      ['Off', { steps: [{ proxies: 1 }], hold: '15s', analysis: ['Errors', 'Refusals', 'Costs'] }],
      ['Warn', undefined],
      ['Off', steps],
    ])
    this.#put(
      `${own}/namespaces/apps/gatewayparameters/safe`,
      {},
      { spec: { changeProtection: { mode }, ...(rollout && { rollout }) } },
    )
  }

  #gateway(name: string): void {
    const ports = this.#random.chance(0.5) ? [80] : [80, 81 + this.#random.below(2)]
    this.#put(
      `${gatewayApi}/namespaces/apps/gateways/${name}`,
      {},
      {
        spec: {
          gatewayClassName: 'agentgateway',
          infrastructure: {
            parametersRef: { group: 'sluice.dev', kind: 'GatewayParameters', name: 'safe' },
          },
          listeners: ports.map((port) => ({ name: `http-${port}`, port, protocol: 'HTTP' })),
        },
      },
    )
  }

  #route(number: number): void {
    const random = this.#random
    const parents = random.pick([['a'], ['b'], ['a', 'b']])
    const isBroken = this.mayErr && random.chance(0.1)
    const path = isBroken
      ? { type: 'RegularExpression', value: '/x(' }
      : { type: 'PathPrefix', value: `/v${random.below(5)}` }
    const backend = random.below(counts.services + (this.mayErr ? 1 : 0))
    const shared = random.chance(0.2) ? { namespace: 'shared' } : {}
    const labels = random.chance(0.3) ? { team: `t${random.below(3)}` } : {}
    this.#put(
      `${gatewayApi}/namespaces/apps/httproutes/r${number}`,
      { labels },
      {
        spec: {
          parentRefs: parents.map((name) => ({ name })),
          hostnames: [`r${number}.example.com`],
          rules: [
            { matches: [{ path }], backendRefs: [{ name: `s${backend}`, port: 80, ...shared }] },
          ],
        },
      },
    )
  }

  #service(number: number): void {
    for (const namespace of ['apps', 'shared']) {
      this.#put(
        `api/v1/namespaces/${namespace}/services/s${number}`,
        {},
        {
          spec: { clusterIP: `10.96.0.${number + 1}`, ports: [{ name: 'http', port: 80 }] },
        },
      )
    }
    const addresses = Array.from(
      { length: 1 + this.#random.below(3) },
      () => `10.1.0.${this.#random.below(200)}`,
    )
    const labels = { 'kubernetes.io/service-name': `s${number}` }
    this.#put(
      `apis/discovery.k8s.io/v1/namespaces/apps/endpointslices/s${number}-x`,
      { labels },
      {
        addressType: 'IPv4',
        ports: [{ name: 'http', port: 8080 }],
        endpoints: [...new Set(addresses)].map((address) => ({
          addresses: [address],
          conditions: { ready: true },
        })),
      },
    )
  }

  #secret(number: number): void {
    const value = (name: string) =>
      Buffer.from(`${secretMark}-${name}-${this.#random.hex(8)}`).toString('base64')
    this.#put(
      `api/v1/namespaces/apps/secrets/s${number}`,
      {},
      {
        type: 'Opaque',
        data: { ann: value('ann'), bob: value('bob') },
      },
    )
  }

  #policy(number: number): void {
    const secret = this.#random.below(counts.secrets)
    const isOnGateway = number === 0
    const target = isOnGateway
      ? { kind: 'Gateway', name: this.#random.pick(['a', 'b']) }
      : { kind: 'HTTPRoute', name: `r${this.#random.below(counts.routes)}` }
    this.#put(
      `${own}/namespaces/apps/gatewaypolicies/p${number}`,
      {},
      {
        spec: {
          targetRefs: [{ group, ...target }],
          traffic: isOnGateway
            ? {
                headerModifiers: {
                  response: { set: [{ name: 'x-by', value: this.#random.hex(4) }] },
                },
              }
            : { apiKeyAuthentication: { secretRef: { name: `s${secret}` } } },
        },
      },
    )
  }

  #grant(): void {
    this.#put(
      `${gatewayApi}/namespaces/shared/referencegrants/routes`,
      {},
      {
        spec: {
          from: [{ group, kind: 'HTTPRoute', namespace: 'apps' }],
          to: [{ group: '', kind: 'Service' }],
        },
      },
    )
  }

  /** Another controller writes its entry into the status of a route. */
  #foreignStatus(number: number): void {
    const path = `${gatewayApi}/namespaces/apps/httproutes/r${number}`
    const object = this.#get(path)
    if (object === undefined) return
    const controllerName = 'example.com/other'
    const { parents = [] } = (object.status ?? {}) as { parents?: { controllerName: string }[] }
    const others = parents.filter((one) => one.controllerName !== controllerName)
    const conditions = [{ type: 'Accepted', status: 'True', reason: this.#random.hex(4) }]
    const entry = { parentRef: { name: 'other' }, controllerName, conditions }
    this.#send('PATCH', `${path}/status`, { metadata: {}, status: { parents: [...others, entry] } })
  }

  #get(path: string): KubeObject | undefined {
    return this.#send('GET', path) as KubeObject | undefined
  }

  #put(path: string, metadata: object, fields: object): void {
    const at = path.lastIndexOf('/')
    const [collection, name] = [path.slice(0, at), path.slice(at + 1)]
    const known = this.#get(path)
    const body = { metadata: { ...metadata, name }, ...fields }
    if (known === undefined) this.#send('POST', collection, body)
    else this.#send('PUT', path, { ...body, metadata: { ...known.metadata, ...metadata } })
  }

  #remove(path: string): void {
    this.#send('DELETE', path)
  }

  /** Sends a request that passes unless the server is down. */
  #send(method: string, path: string, body?: unknown): unknown {
    const server = this.#apiServer
    if (!server.machine.isUp) return undefined
    const before = server.flakiness
    server.flakiness = 0
    if (method !== 'GET') this.#world.note(`user: ${method} ${path}`)
    try {
      return server.handle({ method, path, query: {}, body, by: 'user' })
    } catch (error) {
      if (error instanceof KubeError && error.isNotFound) return undefined
      throw error
    } finally {
      server.flakiness = before
    }
  }
}

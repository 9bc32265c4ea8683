/** Objects in a test's API server. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { crds } from '../../src/control/api/crds.ts'
import { kinds } from '../../src/control/api/kinds.ts'
import type { ApiServer } from './api-server.ts'
import { type Crd, installCrds, readCrds } from './crds.ts'
import { allConditions, type Status, type StatusCondition } from './gateway.ts'
import { partPath } from './parts.ts'
import { waitFor } from './wait-for.ts'

export interface TestObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly [field: string]: unknown
  }
  readonly [field: string]: unknown
}

/** An Event of events.k8s.io/v1. */
export interface KubernetesEvent {
  readonly type: string
  readonly action: string
  readonly reason: string
  readonly note: string
  readonly eventTime: string
  readonly series?: { readonly count: number; readonly lastObservedTime: string }
  readonly regarding: { readonly kind: string; readonly name: string; readonly uid: string }
  readonly reportingController: string
  readonly reportingInstance: string
}

/** The definitions of the Gateway API (standard channel) and our own. */
export function gatewayCrds(): readonly Crd[] {
  return [
    ...readCrds(join(partPath('gateway-api-crds'), 'standard')),
    ...(crds() as readonly Crd[]),
  ]
}

export class TestCluster {
  readonly server: ApiServer

  constructor(server: ApiServer) {
    this.server = server
  }

  async install(crds: readonly Crd[] = gatewayCrds()): Promise<this> {
    await installCrds(this.server, crds)
    return this
  }

  /** Path of an object, by its kind's row in the API table. */
  path(kind: string, name: string, namespace = 'default'): string {
    return `${this.collection(kind, namespace)}/${name}`
  }

  collection(kind: string, namespace = 'default'): string {
    const row = kinds.find((one) => one.kind === kind)
    if (row === undefined) throw new Error(`no kind ${kind}`)
    const base = row.group === '' ? '/api/v1' : `/apis/${row.group}/${row.versions[0]}`
    return row.namespaced
      ? `${base}/namespaces/${namespace}/${row.plural}`
      : `${base}/${row.plural}`
  }

  /** Creates or updates an object. */
  async apply(object: TestObject): Promise<TestObject> {
    const { kind, metadata } = object
    const path = this.path(kind, metadata.name, metadata.namespace)
    const { status, body } = await this.server.request(
      'PATCH',
      `${path}?fieldManager=test&force=true`,
      object,
      'application/apply-patch+yaml',
    )
    if (status >= 300) throw new Error(`${kind} ${metadata.name}: ${status} ${body.message}`)
    return body
  }

  async applyAll(objects: readonly TestObject[]): Promise<void> {
    for (const object of objects) await this.apply(object)
  }

  async delete(kind: string, name: string, namespace = 'default'): Promise<void> {
    await this.server.request('DELETE', this.path(kind, name, namespace))
  }

  async get(kind: string, name: string, namespace = 'default') {
    const { status, body } = await this.server.request('GET', this.path(kind, name, namespace))
    return status === 200 ? body : undefined
  }

  async status(kind: string, name: string, namespace = 'default'): Promise<Status | undefined> {
    return (await this.get(kind, name, namespace))?.status
  }

  /** The Kubernetes Events about an object, oldest first. */
  async events(uid: string, namespace = 'default'): Promise<KubernetesEvent[]> {
    const path = `/apis/events.k8s.io/v1/namespaces/${namespace}/events`
    const { body } = await this.server.request('GET', path)
    const items = (body.items as KubernetesEvent[]).filter(({ regarding }) => regarding.uid === uid)
    return items.sort((a, b) => (a.eventTime < b.eventTime ? -1 : 1))
  }

  /** Gives a service account rules in the whole cluster; returns a kubeconfig file that is it. */
  async account(name: string, rules: readonly object[]): Promise<string> {
    const { server } = this
    const accounts = '/api/v1/namespaces/default/serviceaccounts'
    await server.request('POST', accounts, { metadata: { name } })
    const authorization = '/apis/rbac.authorization.k8s.io/v1'
    const role = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name }
    await server.request('POST', `${authorization}/clusterroles`, { metadata: { name }, rules })
    await server.request('POST', `${authorization}/clusterrolebindings`, {
      metadata: { name },
      roleRef: role,
      subjects: [{ kind: 'ServiceAccount', namespace: 'default', name }],
    })
    return this.kubeconfigOf(name)
  }

  /** A kubeconfig file that is a service account which is there. */
  async kubeconfigOf(name: string, namespace = 'default'): Promise<string> {
    const { server } = this
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`
    const { body } = await server.request('POST', path, { spec: {} })
    const config = JSON.parse(readFileSync(server.kubeconfig, 'utf8'))
    config.users[0].user = { token: body.status.token }
    const file = `${server.kubeconfig}.${namespace}.${name}`
    writeFileSync(file, JSON.stringify(config), { mode: 0o600 })
    return file
  }

  async setRules(name: string, rules: readonly object[]): Promise<void> {
    const path = `/apis/rbac.authorization.k8s.io/v1/clusterroles/${name}`
    await this.server.request('PATCH', path, { rules })
  }

  /** Waits until a condition of the object has a status (and a reason) for its newest generation. */
  condition(
    kind: string,
    name: string,
    expected: string,
    namespace = 'default',
  ): Promise<StatusCondition> {
    const [, type, status, reason] = /^(\w+)=(\w+)(?:\/(\w+))?$/.exec(expected) ?? []
    let seen: unknown
    return waitFor(`${kind} ${name} ${expected}`, async () => {
      const object = await this.get(kind, name, namespace)
      seen = object?.status
      return allConditions(object?.status).find(
        (one) =>
          one.type === type &&
          one.status === status &&
          (reason === undefined || one.reason === reason) &&
          one.observedGeneration === object.metadata.generation,
      )
    }).catch((error) => {
      throw new Error(`${error.message}; its status is ${JSON.stringify(seen, null, 1)}`)
    })
  }
}

/** Rules of a role that may do all that the controller needs, kinds left out. */
export function controllerRules(without: readonly string[] = []): object[] {
  const groups = new Map<string, string[]>()
  for (const { group, plural } of kinds) {
    if (!without.includes(plural)) groups.set(group, [...(groups.get(group) ?? []), plural])
  }
  const read = [...groups].map(([group, resources]) => ({
    apiGroups: [group],
    resources,
    verbs: ['get', 'list', 'watch'],
  }))
  const write = [...groups].map(([group, resources]) => ({
    apiGroups: [group],
    resources: resources.map((one) => `${one}/status`),
    verbs: ['patch', 'update'],
  }))
  const rule = (group: string, resource: string, ...verbs: string[]) => ({
    apiGroups: [group],
    resources: [resource],
    verbs,
  })
  return [
    ...read,
    ...write,
    rule('gateway.networking.k8s.io', 'gatewayclasses', 'create', 'patch'),
    rule('apiextensions.k8s.io', 'customresourcedefinitions', 'get', 'list', 'watch'),
    rule('coordination.k8s.io', 'leases', 'get', 'create', 'update'),
    rule('authentication.k8s.io', 'tokenreviews', 'create'),
    rule('', 'secrets', 'create'),
  ]
}

/** Rules of a role that may write the objects deployed for Gateways. */
export function deployerRules(): object[] {
  const verbs = ['get', 'list', 'watch', 'create', 'patch', 'delete']
  const rule = (group: string, ...resources: string[]) => ({ apiGroups: [group], resources, verbs })
  return [
    rule('', 'serviceaccounts', 'configmaps', 'services'),
    rule('apps', 'deployments', 'daemonsets'),
    rule('policy', 'poddisruptionbudgets'),
    rule('autoscaling', 'horizontalpodautoscalers'),
  ]
}

const meta = (name: string, namespace: string) => ({ name, namespace })

/** A Gateway of the default class with one HTTP listener that takes routes from everywhere. */
export const gateway = (name: string, namespace = 'default', spec: object = {}): TestObject => ({
  apiVersion: 'gateway.networking.k8s.io/v1',
  kind: 'Gateway',
  metadata: meta(name, namespace),
  spec: {
    gatewayClassName: 'agentgateway',
    listeners: [
      {
        name: 'http',
        port: 8080,
        protocol: 'HTTP',
        allowedRoutes: { namespaces: { from: 'All' } },
      },
    ],
    ...spec,
  },
})

/** An HTTPRoute of a Gateway in the namespace to port 80 of a Service. */
export const route = (
  name: string,
  parent: string,
  service: string,
  hostname = `${name}.example.com`,
  namespace = 'default',
): TestObject => ({
  apiVersion: 'gateway.networking.k8s.io/v1',
  kind: 'HTTPRoute',
  metadata: meta(name, namespace),
  spec: {
    parentRefs: [{ name: parent, namespace: 'default' }],
    hostnames: [hostname],
    rules: [{ backendRefs: [{ name: service, port: 80 }] }],
  },
})

export const service = (name: string, namespace = 'default', more: object = {}): TestObject => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { ...meta(name, namespace), ...more },
  spec: { ports: [{ name: 'http', port: 80 }] },
})

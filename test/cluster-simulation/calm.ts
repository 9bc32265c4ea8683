/** What must hold some time after the last fault and the last change. */
import type { ResourceEvent } from '../../events/index.ts'
import { Fold } from '../../src/control/actors/fold.ts'
import { createGraph } from '../../src/control/desired/derivations.ts'
import type { KubeObject } from '../../src/control/kube/index.ts'
import { apiBinding, regexProblem } from '../../src/control/plane/api-binding.ts'
import { statusPatch } from '../../src/control/status/merge.ts'
import { DigestKey } from '../../src/control/watch/digest-key.ts'
import { watchedKinds } from '../../src/control/watch/kubernetes/kinds.ts'
import { KubernetesSource, kubernetesSource } from '../../src/control/watch/kubernetes/source.ts'
import { ResourceIndex } from '../../src/control/watch/resource-index.ts'
import { type ObjectKey, objectKey } from '../../src/ground/model/names.ts'
import { Machine } from '../virtual-time/world.ts'
import type { Cluster } from './cluster.ts'
import { SimulatedKubeClient } from './kube-client.ts'

/** Compares everything with the API server, and everything with everything. */
export async function checkCalm(cluster: Cluster): Promise<void> {
  const { world, checks } = cluster
  const { fold } = checks.reference
  checks.compareShadow()
  if (fold.pin !== undefined) world.fail('the pin was not lifted')
  const waiting = [...fold.changes.waiting.keys(), ...fold.rollouts.waiting.keys()]
  if (waiting.length > 0) world.fail(`${waiting.join(', ')} wait, although all was approved`)
  checkLease(cluster)
  const fresh = await foldOf(cluster)
  compareObjects(cluster, fresh)
  const [own, other] = [fold.digests().desired, fresh.digests().desired]
  if (own !== other)
    world.fail(`the log leads to ${own}, the API server to ${other}: ${differing(fold, fresh)}`)
  for (const text of statusProblems(cluster)) world.fail(text)
  for (const text of proxyProblems(cluster)) world.fail(text)
}

function checkLease({ world, apiServer, leader }: Cluster): void {
  const lease = apiServer.get('coordination.k8s.io/leases', 'sluice-system', 'sluice-controller')
  if (leader === undefined) world.fail(`no replica holds the lease: ${JSON.stringify(lease?.spec)}`)
}

/** Folds a complete listing of the API server, without any log, network trouble or history. */
async function foldOf({ world, apiServer, network }: Cluster): Promise<Fold> {
  const auditor = new Machine('auditor')
  const index = new ResourceIndex(kubernetesSource)
  const events: ResourceEvent[] = []
  let isDone = false
  world.schedule(auditor, 0, async () => {
    const source = new KubernetesSource({
      ...apiBinding,
      client: new SimulatedKubeClient(auditor, apiServer, network),
      digestKey: new DigestKey(Buffer.alloc(32, 7)),
      keepSecret: () => undefined,
      namespaceSelectors: [],
      ownNamespace: 'sluice-system',
      readsPools: false,
      onChange: async (observed) => void events.push(...observed),
      onState: () => undefined,
      onProblem: () => undefined,
      onLive: () => undefined,
      onVersions: () => undefined,
    })
    await source.start()
    await source.lead(index, 0)
    isDone = true
    await source.close()
  })
  for (let tries = 0; tries < 50 && !isDone; tries++) await world.runUntil(world.now + 100)
  auditor.run++
  const fold = new Fold(createGraph({ checkRegex: regexProblem }))
  for (const [at, event] of events.entries()) fold.apply({ position: at + 1, event })
  return fold
}

function compareObjects({ world, checks }: Cluster, fresh: Fold): void {
  const { fold } = checks.reference
  const keysOf = ({ graph }: Fold) => new Set([...graph.objects()].map(({ ref }) => objectKey(ref)))
  const [own, other] = [keysOf(fold), keysOf(fresh)]
  const missing = [...other.difference(own)]
  const extra = [...own.difference(other)]
  if (missing.length > 0) world.fail(`the log lacks ${missing.join(', ')}`)
  if (extra.length > 0) world.fail(`the log has ${extra.join(', ')}, which the API server lacks`)
  for (const key of own.intersection(other)) {
    const [a, b] = [fold.graph.object(key), fresh.graph.object(key)]
    if (JSON.stringify(a?.object) === JSON.stringify(b?.object)) continue
    world.fail(
      `the log has another ${key} (${a?.resourceVersion}) than the API server (${b?.resourceVersion})`,
    )
  }
}

function differing(own: Fold, other: Fold): string {
  const versions = (fold: Fold) =>
    new Map(fold.resources().map(({ resource, version }) => [resource.key, version]))
  const [a, b] = [versions(own), versions(other)]
  const keys = new Set([...a.keys(), ...b.keys()])
  return [...keys].filter((key) => a.get(key) !== b.get(key)).join(', ')
}

/** Objects whose status in the API server is not the decided one. */
function statusProblems({ apiServer, checks }: Cluster): string[] {
  const { fold } = checks.reference
  return watchedKinds
    .filter(({ hasStatus }) => hasStatus)
    .flatMap(({ kind, group, plural, namespaced }) =>
      apiServer.list(`${group}/${plural}`).flatMap(({ metadata, status }: KubeObject) => {
        const ref = {
          kind,
          namespace: namespaced ? (metadata.namespace ?? '') : '',
          name: metadata.name,
        }
        const patch = statusPatch(kind, status as never, fold.statusOf(ref))
        return patch === undefined
          ? []
          : [
              `the status of ${objectKey(ref)} is ${JSON.stringify(status)} and lacks ${JSON.stringify(patch)}`,
            ]
      }),
    )
}

interface Condition {
  readonly type: string
  readonly status: string
  readonly message?: string
}

/** Proxies that have another configuration than they should, and Gateways that are not programmed. */
function proxyProblems({ proxies, checks }: Cluster): string[] {
  const { reference } = checks
  const connected = new Map(reference.fold.proxies().map((one) => [one.proxy, one.state]))
  const wrong = proxies.flatMap(({ machine: { name }, gateway, versions }) => {
    const wanted = reference.versionsOf(`apps/${gateway}`)
    const isSame = (key: string) =>
      key.startsWith('secret/') || wanted.get(key) === versions.get(key)
    const keys = new Set([...wanted.keys(), ...versions.keys()])
    const different = [...keys].filter((key) => !isSame(key))
    const state = connected.get(name)
    return [
      ...(different.length > 0 ? [`${name} has another version of ${different.join(', ')}`] : []),
      ...(state === 'ready' ? [] : [`the log has ${name} as ${state ?? 'gone'}`]),
    ]
  })
  for (const name of ['a', 'b']) {
    const key = `Gateway/apps/${name}` as ObjectKey
    const { conditions = [] } = (reference.fold.statusOf({
      kind: 'Gateway',
      namespace: 'apps',
      name,
    }) ?? {}) as {
      conditions?: Condition[]
    }
    const programmed = conditions.find(({ type }) => type === 'Programmed')
    if (programmed?.status !== 'True')
      wrong.push(`${key} is not programmed: ${programmed?.message}`)
  }
  return wrong
}

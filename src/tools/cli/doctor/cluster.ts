/** Checks of a cluster: what `sluice controller` needs there, and what it has decided. */
import { randomBytes } from 'node:crypto'
import { kinds } from '../../../control/api/kinds.ts'
import { referencesOf } from '../../../control/api/references.ts'
import type { ObjectState } from '../../../control/desired/object-state.ts'
import {
  collectionPath,
  type KubeClient,
  KubeError,
  type KubeList,
  type KubeObject,
  objectPath,
} from '../../../control/kube/index.ts'
import { DigestKey } from '../../../control/watch/digest-key.ts'
import { secretMetadata } from '../../../control/watch/secret-metadata.ts'
import { accessFindings } from './access.ts'
import { conditionFindings, ownStatus } from './conditions.ts'
import { checkDefinitions, definitionRows } from './definitions.ts'
import { type Check, type CheckPlan, errorAbout, type Finding, warningAbout } from './finding.ts'
import { find, leaseIn } from './lease.ts'
import { certificatesOf } from './state.ts'
import { checkWebhook } from './webhook.ts'

type Result = Omit<Check, 'name'>

/** Maximum number of Secrets and ConfigMaps that are read. */
const maxSecrets = 1_000
/** The Secret of the configuration server, if it uses TLS. */
const xdsSecret = 'sluice-xds-cert'

/** @param namespace that of the controller */
export function clusterChecks(client: KubeClient, namespace: string): CheckPlan[] {
  let objects: Promise<readonly KubeObject[]> | undefined
  const listed = () => {
    objects ??= listObjects(client)
    return objects
  }
  return [
    { name: 'api-server', run: () => checkServer(client) },
    { name: 'definitions', run: () => checkDefinitions(client) },
    { name: 'controller', run: () => checkController(client, namespace) },
    { name: 'access', run: () => accessFindings(client, namespace) },
    { name: 'conditions', run: async () => ({ findings: statusFindings(await listed()) }) },
    { name: 'certificates', run: async () => checkSecrets(client, namespace, await listed()) },
    { name: 'webhook', run: () => checkWebhook(client) },
  ]
}

/** A clock that differs by more than this is reported, in milliseconds. */
const maxSkewMs = 5_000

async function checkServer(client: KubeClient): Promise<Result> {
  const date = await client.serverDate()
  const skew = Date.now() - date
  if (Math.abs(skew) <= maxSkewMs) return { findings: [] }
  const text = `the clock of this machine differs by ${Math.round(skew / 1_000)} s from that of the API server`
  const advice = 'synchronize the clocks (NTP): leases, tokens and certificates depend on them'
  return { findings: [warningAbout('clock', text, advice)] }
}

async function checkController(client: KubeClient, namespace: string): Promise<Result> {
  const subject = `Lease ${namespace}/sluice-controller`
  const advice = `look at the pods and logs of the controller in the namespace ${namespace}`
  const lease = await leaseIn(client, namespace)
  if (lease === undefined) {
    const other = 'name the namespace of the controller with --namespace, or install the chart'
    return { findings: [errorAbout(subject, 'it does not exist: no controller runs here', other)] }
  }
  const { holderIdentity = '', leaseDurationSeconds = 15, renewTime = '' } = lease
  const date = await client.serverDate()
  const age = Math.round((date - Date.parse(renewTime)) / 1_000)
  if (holderIdentity === '' || age > leaseDurationSeconds) {
    const text = `no replica leads: the last renewal was ${age} s ago, by ${holderIdentity || 'none'}`
    return { findings: [errorAbout(subject, text, advice)] }
  }
  if (age * 1_000 >= -maxSkewMs) return { findings: [] }
  const text = `the clock of ${holderIdentity} is ${-age} s ahead of that of the API server`
  return { findings: [warningAbout(subject, text, 'synchronize the clocks of the nodes (NTP)')] }
}

/** All objects of kinds with a status, with `apiVersion` and `kind`, which items of a list lack. */
async function listObjects(client: KubeClient): Promise<readonly KubeObject[]> {
  const lists = definitionRows.map(async ({ kind, group, plural, versions: [version] }) => {
    const objects: KubeObject[] = []
    let next: string | undefined
    do {
      const query = { limit: 500, continue: next }
      const path = collectionPath({ group, version, plural })
      const list = await client.get<KubeList>(path, { query }).catch(nothingIfUndefined)
      const apiVersion = `${group}/${version}`
      objects.push(...(list.items ?? []).map((object) => ({ ...object, apiVersion, kind })))
      next = list.metadata.continue || undefined
    } while (next !== undefined)
    return objects
  })
  return (await Promise.all(lists)).flat()
}

function nothingIfUndefined(error: unknown): KubeList {
  if (error instanceof KubeError && error.isNotFound) return { metadata: {}, items: [] }
  throw error
}

function statusFindings(objects: readonly KubeObject[]): Finding[] {
  return objects.flatMap(({ kind = '', metadata, status }) => {
    const ref = { kind, namespace: metadata.namespace ?? '', name: metadata.name }
    const own = ownStatus(status as Parameters<typeof ownStatus>[0])
    return conditionFindings(ref, own, '--nats URL, or in a pod of the controller')
  })
}

const skippedSecrets = (count: number): string =>
  `only ${maxSecrets} of ${count} Secrets and ConfigMaps were read`

/** Checks the certificates in Secrets and ConfigMaps that objects refer to, and those of the controller. */
async function checkSecrets(
  client: KubeClient,
  namespace: string,
  objects: readonly KubeObject[],
): Promise<Result> {
  const wanted = new Map([[`Secret/${namespace}/${xdsSecret}`, 'secrets']])
  for (const { apiVersion = '', kind = '', metadata, spec } of objects) {
    for (const { kind: target, namespace: where, by } of referencesOf(
      { apiVersion, kind, spec },
      metadata.namespace ?? '',
    )) {
      const plural = kinds.find((one) => one.kind === target)?.plural ?? ''
      if ((target !== 'Secret' && target !== 'ConfigMap') || !('name' in by)) continue
      wanted.set(`${target}/${where}/${by.name}`, plural)
    }
  }
  const states: ObjectState[] = []
  const digestKey = new DigestKey(randomBytes(32))
  let denied: string | undefined
  for (const [key, plural] of [...wanted].slice(0, maxSecrets)) {
    const [kind = '', where = '', name = ''] = key.split('/')
    const path = objectPath({ group: '', version: 'v1', plural }, where, name)
    const object = await find(client, path).catch((error) => {
      denied ??= `${kind} ${where}/${name}: ${error.message}`
      return undefined
    })
    const data = (object?.data ?? {}) as Readonly<Record<string, string>>
    const entries = new Map(
      Object.entries(data).map(([entry, text]) => [entry, Buffer.from(text, 'base64')]),
    )
    const content = kind === 'Secret' ? { facts: secretMetadata(entries, digestKey) } : { data }
    states.push({
      ref: { kind, namespace: where, name },
      object: content,
    } as unknown as ObjectState)
  }
  const notChecked = denied ?? (wanted.size > maxSecrets ? skippedSecrets(wanted.size) : undefined)
  return { findings: certificatesOf(states), ...(notChecked !== undefined && { notChecked }) }
}
